//! Commands that only read: they run without a rule as long as their arguments stay inside the working directories.
//!
//! Source: gate-and-hooks, section 7.5. A command or option that is not listed there is not taken for reading.

use super::shell::{Part, Word};

/// What a command's operands are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Operands {
    /// Paths.
    Paths,
    /// A pattern or program, then paths.
    PatternThenPaths,
    /// Words without meaning as paths.
    Words,
}

const COMMANDS: &[(&str, Operands)] = &[
    ("ls", Operands::Paths),
    ("cat", Operands::Paths),
    ("head", Operands::Paths),
    ("tail", Operands::Paths),
    ("grep", Operands::PatternThenPaths),
    ("rg", Operands::PatternThenPaths),
    ("find", Operands::Paths),
    ("wc", Operands::Paths),
    ("which", Operands::Words),
    ("diff", Operands::Paths),
    ("stat", Operands::Paths),
    ("du", Operands::Paths),
    ("df", Operands::Paths),
    ("tree", Operands::Paths),
    ("file", Operands::Paths),
    ("cut", Operands::Paths),
    ("tr", Operands::Words),
    ("sort", Operands::Paths),
    ("nl", Operands::Paths),
    ("tac", Operands::Paths),
    ("rev", Operands::Paths),
    ("column", Operands::Paths),
    ("paste", Operands::Paths),
    ("comm", Operands::Paths),
    ("od", Operands::Paths),
    ("md5sum", Operands::Paths),
    ("sha256sum", Operands::Paths),
    ("seq", Operands::Words),
    ("sleep", Operands::Words),
    ("date", Operands::Words),
    ("whoami", Operands::Words),
    ("id", Operands::Words),
    ("hostname", Operands::Words),
    ("uname", Operands::Words),
    ("ps", Operands::Words),
    ("jq", Operands::PatternThenPaths),
    ("echo", Operands::Words),
    ("printf", Operands::Words),
    ("pwd", Operands::Words),
    ("test", Operands::Paths),
    ("[", Operands::Paths),
    ("true", Operands::Words),
    ("false", Operands::Words),
    ("type", Operands::Words),
    ("man", Operands::Words),
    ("history", Operands::Words),
    ("basename", Operands::Words),
    ("dirname", Operands::Words),
    ("realpath", Operands::Paths),
    ("readlink", Operands::Paths),
];

/// Whether the part only reads. `words` are its words after wrappers are stripped; `inside` says whether a path as it
/// is written is inside the working directories.
pub fn is_read_only(part: &Part, words: &[Word], inside: &dyn Fn(&str) -> bool) -> bool {
    let Some((name, arguments)) = words.split_first() else {
        // A bare `X=1` is a no-op.
        return true;
    };
    let reads_inside =
        part.redirects.iter().filter(|redirect| !redirect.writes).all(|redirect| {
            redirect.target.value.as_deref().is_some_and(|path| is_null(path) || inside(path))
        });
    if !reads_inside {
        return false;
    }
    let name = name.text();
    let texts: Vec<&str> = arguments.iter().map(Word::text).collect();
    match name {
        "git" => return is_git_read(&texts),
        "node" => return matches!(texts.as_slice(), ["-v" | "--version"]),
        "python" | "python3" => return matches!(texts.as_slice(), ["--version" | "-V"]),
        "docker" => return matches!(texts.as_slice(), ["ps", ..]),
        "sed" => return is_sed_print(arguments, inside),
        _ => {}
    }
    let Some((_, operands)) = COMMANDS.iter().find(|(known, _)| *known == name) else { return false };
    let has_action = |options: &[&str]| texts.iter().any(|text| options.contains(text));
    let refused = match name {
        // A glob could expand to an option that acts.
        "find" | "sort" if arguments.iter().any(|word| word.glob) => true,
        "find" => texts.iter().any(|text| is_find_action(text)),
        "sort" => texts.iter().any(|text| {
            (text.starts_with("-o") || text.starts_with("--output")) || text.starts_with("--compress-program")
        }),
        "rg" => texts.iter().any(|text| text.starts_with("--pre")),
        "tree" => has_action(&["-o"]),
        "date" => texts.iter().any(|text| text.starts_with("-s") || text.starts_with("--set")),
        "hostname" => texts.iter().any(|text| !text.starts_with('-')),
        "cat" | "ls" => false,
        _ => false,
    };
    if refused {
        return false;
    }
    let skip = match operands {
        Operands::Words => return true,
        Operands::PatternThenPaths => 1,
        Operands::Paths => 0,
    };
    let operands = texts.iter().filter(|text| !text.starts_with('-') || **text == "-");
    if name == "find" {
        // Paths end where the expression begins.
        return texts.iter().take_while(|text| !text.starts_with(['-', '(', '!'])).all(|path| inside(path));
    }
    operands.skip(skip).all(|path| *path == "]" || inside(path))
}

/// Options of `find` that run or remove something.
pub fn is_find_action(option: &str) -> bool {
    matches!(
        option,
        "-exec" | "-execdir" | "-ok" | "-okdir" | "-delete" | "-fprint" | "-fprint0" | "-fprintf" | "-fls"
    )
}

/// `/dev/null` and the like, which no rule is about.
pub fn is_null(path: &str) -> bool {
    matches!(path, "/dev/null" | "/dev/stdout" | "/dev/stderr" | "/dev/stdin" | "/dev/tty")
}

fn is_git_read(arguments: &[&str]) -> bool {
    match arguments {
        ["status" | "log" | "diff" | "show", rest @ ..] => {
            !rest.iter().any(|text| text.starts_with("--output") || text.starts_with("--ext-diff"))
        }
        ["branch", rest @ ..] => rest
            .iter()
            .all(|text| matches!(*text, "-a" | "-r" | "-v" | "-vv" | "--all" | "--list" | "--show-current")),
        ["remote"] | ["remote", "-v" | "--verbose"] | ["stash", "list", ..] => true,
        _ => false,
    }
}

/// `sed -n Np FILE…`: printing lines by number.
fn is_sed_print(arguments: &[Word], inside: &dyn Fn(&str) -> bool) -> bool {
    let mut quiet = false;
    let mut rest = Vec::new();
    for word in arguments {
        match word.text() {
            "-n" | "--quiet" | "--silent" => quiet = true,
            "-E" | "-r" => {}
            text if text.starts_with('-') => return false,
            _ if word.glob => return false,
            text => rest.push(text),
        }
    }
    let Some((script, files)) = rest.split_first() else { return false };
    let is_print = script.strip_suffix('p').is_some_and(|lines| {
        !lines.is_empty() && lines.chars().all(|c| c.is_ascii_digit() || matches!(c, ',' | '$' | ';' | 'p'))
    });
    quiet && is_print && files.iter().all(|path| inside(path))
}
