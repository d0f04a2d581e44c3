//! Permissions 3.6, cited by 000: adding a deny rule never enlarges what is permitted.

use crate::gate::mode::Mode;
use crate::gate::pipeline::Outcome as GateOutcome;
use crate::profile::Profile;
use crate::propositions::at_the_gate::{GivenEnds, judge, session};
use crate::propositions::from_000::blocking::modes;
use crate::propositions::{
    Check, Draws, Evidence, Hypothesis, Method, Outcome, Proposition, Trial, Variation, ensure,
};
use crate::sources::settings::Level;
use serde_json::{Value, json};

/// The proposition.
pub(super) const PROPOSITION: Proposition = Proposition {
    id: "permissions-3.6",
    title: "Adding a deny rule never enlarges what is permitted",
    notion: "A call is permitted by rules and a mode where the gate lets it run. The file is well-formed, the set of tools \
             fixed.",
    statement: "For all rules, modes and calls: what is permitted with one deny rule more was permitted without it.",
    source: "Tools and permissions, proposition 3.6 (cited by 000, sections 4 and 6)",
    hypotheses: &[Hypothesis {
        text: "the file is well-formed",
        why: "where a misshapen part drops the whole file, added text can take deny rules out of force (B8)",
    }],
    checks: &[
        Check {
            name: "every-small-list",
            method: Method::Bounded,
            claim: "over every list of up to one rule, every further deny rule, every mode and call of the pools",
            run: |trial| small_lists(trial, "deny"),
        },
        Check {
            name: "longer-lists",
            method: Method::Random,
            claim: "the same for lists of up to eight rules",
            run: |trial| longer_lists(trial, "deny"),
        },
    ],
    ablations: &[Variation {
        name: "misshapen-rule",
        text: "the file may be misshapen: the added text is no rule, and the whole file is dropped",
        run: misshapen,
    }],
    mutants: &[
        Variation {
            name: "deny-read-as-allow",
            text: "an added deny rule is read as an allow rule",
            run: |trial| small_lists(trial, "allow"),
        },
        Variation {
            name: "deny-read-as-allow-longer",
            text: "the same, in longer lists",
            run: |trial| longer_lists(trial, "allow"),
        },
    ],
    differences: &[],
    real: None,
};

const RULES: [&str; 11] = [
    "Bash",
    "Bash(make *)",
    "Bash(make all)",
    "Bash(rm *)",
    "Read(src/**)",
    "Edit(src/**)",
    "Edit(.env)",
    "WebFetch(domain:a.example)",
    "mcp__s",
    "mcp__s__read",
    "mcp__s__*",
];

fn calls() -> [(&'static str, Value); 9] {
    [
        ("Bash", json!({"command": "make all"})),
        ("Bash", json!({"command": "make x && rm y"})),
        ("Bash", json!({"command": "ls"})),
        ("Read", json!({"file_path": "src/a.rs"})),
        ("Write", json!({"file_path": "src/a.rs", "content": "x"})),
        ("Write", json!({"file_path": ".env", "content": "x"})),
        ("WebFetch", json!({"url": "https://a.example/", "prompt": "p"})),
        ("mcp__s__read", json!({})),
        ("mcp__t__read", json!({})),
    ]
}

/// The lists of rules by behaviour, as settings have them.
type Rules<'a> = Vec<(&'a str, &'a str)>;

fn permitted(profile: &Profile, rules: &Rules<'_>, mode: Mode) -> Vec<bool> {
    let of = |list: &str| -> Vec<&str> {
        rules.iter().filter(|(l, _)| *l == list).map(|(_, rule)| *rule).collect()
    };
    let settings = json!({"permissions": {"allow": of("allow"), "ask": of("ask"), "deny": of("deny")}});
    let mut session = session(profile, &[(Level::User, settings)], mode, true);
    calls()
        .iter()
        .map(|(tool, input)| {
            judge(&mut session, tool, input, &mut GivenEnds::default()).outcome == GateOutcome::Run
        })
        .collect()
}

/// Adds one rule and compares.
fn law(profile: &Profile, rules: &Rules<'_>, list: &str, added: &str, mode: Mode) -> Result<(), Evidence> {
    let before = permitted(profile, rules, mode);
    let mut more = rules.clone();
    more.push((list, added));
    let after = permitted(profile, &more, mode);
    let new = before.iter().zip(&after).position(|(before, after)| *after && !before);
    if let Some((tool, input)) = new.and_then(|at| calls().get(at).cloned()) {
        return Err(Evidence::said(format!(
            "rules {rules:?}, mode {mode}: {tool} {input} is permitted only with `{added}` added"
        )));
    }
    Ok(())
}

fn small_lists(trial: &mut Trial<'_>, list: &'static str) -> Outcome {
    trial.over("lists of at most 1 rule of a pool of 11 x 3 behaviours, 11 further rules, 6 modes, 9 calls");
    let profile = *trial.profile();
    let mut lists: Vec<Rules<'_>> = vec![Vec::new()];
    lists.extend(
        ["allow", "ask", "deny"].iter().flat_map(|behaviour| RULES.map(|rule| vec![(*behaviour, rule)])),
    );
    let cases = lists.iter().flat_map(|rules| {
        RULES.iter().flat_map(move |added| modes().iter().map(move |mode| (rules, *added, *mode)))
    });
    trial.every(cases, |(rules, added, mode)| law(&profile, rules, list, added, mode))
}

fn longer_lists(trial: &mut Trial<'_>, list: &'static str) -> Outcome {
    let profile = *trial.profile();
    trial.sampled(500, |draws: &mut Draws<'_>| {
        let rules: Rules<'_> = (0..draws.index(9))
            .map(|_| {
                let behaviour = draws.pick(&["allow", "ask", "deny"]).copied().unwrap_or("deny");
                (behaviour, draws.pick(&RULES).copied().unwrap_or("Bash"))
            })
            .collect();
        let added = draws.pick(&RULES).copied().unwrap_or("Bash");
        let mode = draws.pick(modes()).copied().unwrap_or_default();
        law(&profile, &rules, list, added, mode)
    })
}

/// B8 in short: the observed reading of a misshapen file.
fn misshapen(trial: &mut Trial<'_>) -> Outcome {
    let mut profile = *trial.profile();
    profile.settings = crate::profile::settings::CLAUDE_CODE;
    trial.every([json!([42]), json!({"PreToolUse": 42})], |added| {
        let denied = json!({"deny": ["Bash(make *)"], "allow": ["Bash(make *)"]});
        let run = |settings: Value| {
            let local = json!({"permissions": {"allow": ["Bash(make *)"]}});
            let files = [(Level::User, settings), (Level::Local, local)];
            let mut session = session(&profile, &files, Mode::Default, true);
            let call = json!({"command": "make all"});
            judge(&mut session, "Bash", &call, &mut GivenEnds::default()).outcome == GateOutcome::Run
        };
        let before = run(json!({"permissions": denied.clone()}));
        let after = run(json!({"permissions": denied, "hooks": added}));
        ensure!(
            !after || before,
            "a file with a deny rule and `\"hooks\": {added}`: the whole file is dropped, and the call runs"
        );
        Ok(())
    })
}
