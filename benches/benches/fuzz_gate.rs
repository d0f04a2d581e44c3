//! Fuzzing of the gate on a stable toolchain: seeds are mutated at random (the generator's seed is printed and can be
//! given), each text goes through one of four targets, on a thread with the smallest usual stack. A panic or an overflow
//! ends the run with its input.
//!
//! `cargo bench -p windtunnel-benches --bench fuzz_gate -- --seconds 60 [--seed N]`. The same targets for cargo-fuzz are in
//! `model/fuzz`.

use std::time::Instant;
use windtunnel_model::gate::fuzzing;

const SEEDS: [&str; 24] = [
    "foo a && ls | head -n 1; cat <<'EOF'\nhi\nEOF",
    "echo $(foo `bar` \"$(baz)\") ${X:-y} $((1+2))",
    "if true; then foo; else bar; fi; while x; do y; done",
    "for i in 1 2; do echo $i; done; case x in a) b;; esac",
    "f() { baz a; }; (ls) & { ls; } 2>&1 >| out &> both",
    "git commit -m \"$(cat <<'EOF'\nmsg\nEOF\n)\"",
    "X=1 timeout -k 1 5 nice -n 3 env A=b sudo -u me rm -rf \"$V\"/*",
    "[[ -f x && ! -d y ]] || echo {a,b} $'\\n' <(ls)",
    "Bash(foo * main)",
    "Read(//etc/**/[a-c]?.txt)",
    "Edit(~/x/{a,b}/*.ts)",
    "mcp__server__*_x",
    "WebFetch(domain:*.example.com)",
    "^(?!Edit).*(a|b)+$",
    "{\"permissions\":{\"allow\":[\"Bash(foo *)\"],\"deny\":[\"Read(.env)\"],\"defaultMode\":\"plan\"}}",
    "{\"hooks\":{\"PreToolUse\":[{\"matcher\":\"Write|Edit\",\"hooks\":[{\"type\":\"command\",\"command\":\"exit 2\",\"timeout\":5}]}]}}",
    "{\"hookSpecificOutput\":{\"hookEventName\":\"PreToolUse\",\"permissionDecision\":\"deny\",\"updatedInput\":{}}}",
    "{\"continue\":false,\"stopReason\":\"x\",\"decision\":\"block\"}\n{}",
    "{\"async\": true}",
    "// comment\n{\"env\":{\"A\":1},}",
    "((((((((((",
    "$($($($(",
    "<<A <<B\nA\nB",
    "\u{feff}{\"a\":[[[[[[]]]]]]}",
];

struct Random(u64);

impl Random {
    fn next(&mut self, below: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap_or(0) % below.max(1)
    }
}

fn mutate(random: &mut Random) -> String {
    let mut text: Vec<char> = SEEDS[random.next(SEEDS.len())].chars().collect();
    for _ in 0..=random.next(8) {
        let at = random.next(text.len() + 1);
        match random.next(6) {
            0 if at < text.len() => {
                text.remove(at);
            }
            1 => {
                const MARKS: [char; 24] = [
                    '(', ')', '{', '}', '$', '`', '"', '\'', '\\', ';', '&', '|', '<', '>', '*', '?', '[',
                    ']', '\n', ' ', '~', '=', ':', 'é',
                ];
                text.insert(at, MARKS[random.next(MARKS.len())]);
            }
            2 => {
                let other: Vec<char> = SEEDS[random.next(SEEDS.len())].chars().collect();
                let from = random.next(other.len());
                let piece: Vec<char> = other[from..(from + 1 + random.next(12)).min(other.len())].to_vec();
                text.splice(at..at, piece);
            }
            3 => {
                let from = random.next(text.len());
                let piece: Vec<char> = text[from..(from + random.next(16)).min(text.len())].to_vec();
                for _ in 0..random.next(24) {
                    text.splice(at..at, piece.clone());
                }
            }
            4 => text.truncate(at),
            _ => text
                .insert(at, char::from_u32(u32::try_from(random.next(0xd800)).unwrap_or(32)).unwrap_or(' ')),
        }
    }
    text.into_iter().collect()
}

fn option(name: &str) -> Option<u64> {
    let args: Vec<String> = std::env::args().collect();
    args.iter().position(|arg| arg == name).and_then(|i| args.get(i + 1)).and_then(|text| text.parse().ok())
}

fn main() {
    let seconds = option("--seconds").unwrap_or(10);
    let seed = option("--seed").unwrap_or(1);
    let run = move || {
        let mut random = Random(seed);
        let (started, mut runs, mut slowest) = (Instant::now(), 0_u64, (0.0_f64, String::new()));
        while started.elapsed().as_secs() < seconds {
            let text = mutate(&mut random);
            let one = Instant::now();
            match runs % 4 {
                0 => fuzzing::command(&text),
                1 => fuzzing::rule(&text),
                2 => fuzzing::settings(&text),
                _ => fuzzing::hook_output(&text),
            }
            let took = one.elapsed().as_secs_f64();
            if took > slowest.0 {
                slowest = (took, text);
            }
            runs += 1;
        }
        println!(
            "{{\"bench\":\"fuzz_gate\",\"subject\":\"commands, rules, settings, hook output\",\"engine\":\"windtunnel\",\"operations\":{runs},\"seconds\":{seconds},\"seed\":{seed},\"crashes\":0,\"slowest_seconds\":{:.4}}}",
            slowest.0
        );
        if slowest.0 > 0.5 {
            println!("slowest input: {:?}", slowest.1);
        }
    };
    // The stack of a test or worker thread.
    let worker = std::thread::Builder::new().stack_size(2 * 1024 * 1024).spawn(run);
    if worker.map(std::thread::JoinHandle::join).is_ok_and(|joined| joined.is_err()) {
        std::process::exit(1);
    }
}
