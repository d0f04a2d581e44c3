//! A tool denied by a bare rule is never offered.

use crate::gate::pipeline::Outcome as GateOutcome;
use crate::propositions::at_the_gate::{GivenEnds, judge, session};
use crate::propositions::from_000::blocking::modes;
use crate::propositions::{Check, Hypothesis, Method, Outcome, Proposition, Trial, Variation, ensure};
use crate::sources::settings::Level;
use serde_json::{Value, json};

/// The proposition.
pub(super) const PROPOSITION: Proposition = Proposition {
    id: "gate-bare-deny",
    title: "A tool denied by a bare rule is never offered",
    notion: "A bare rule is a tool's name alone, or a server's for all its tools. A tool is offered where a call of it is \
             looked at; else the call ends in `no such tool`.",
    statement: "For every tool, mode and level: with a bare deny rule for it, no call of it is looked at, whatever other \
                rules and hooks say, and the tools that the rule does not name are offered as before.",
    source: "Configure permissions, tool-wide rules; gate-and-hooks section 2, step 1",
    hypotheses: &[Hypothesis {
        text: "the rule is bare",
        why: "a rule with a content denies some calls: the tool has to stay offered for the others",
    }],
    checks: &[Check {
        name: "every-tool",
        method: Method::Enumeration,
        claim: "over built-in and MCP tools, every level that can hold rules, every mode, with an allow rule and an allowing \
                hook beside: the tool is gone, and every other tool is not",
        run: |trial| law(trial, "deny", |tool| tool.to_owned()),
    }],
    ablations: &[Variation {
        name: "not-bare",
        text: "the rule names a content",
        run: |trial| law(trial, "deny", |tool| format!("{tool}(something)")),
    }],
    mutants: &[Variation {
        name: "ask-instead",
        text: "the rule is read as an ask rule",
        run: |trial| law(trial, "ask", |tool| tool.to_owned()),
    }],
    differences: &[],
    real: None,
};

/// Tools, and a call of each.
fn tools() -> [(&'static str, Value); 6] {
    [
        ("Bash", json!({"command": "make"})),
        ("Read", json!({"file_path": "notes.txt"})),
        ("Write", json!({"file_path": "notes.txt", "content": "x"})),
        ("WebFetch", json!({"url": "https://a.example/", "prompt": "p"})),
        ("mcp__s__read", json!({})),
        ("mcp__t__read", json!({})),
    ]
}

fn law(trial: &mut Trial<'_>, list: &str, rule: fn(&str) -> String) -> Outcome {
    trial.over("6 tools x 4 levels x 6 modes");
    let profile = *trial.profile();
    let levels = [Level::User, Level::Project, Level::Local, Level::Managed];
    let cases = tools()
        .into_iter()
        .flat_map(|(denied, _)| levels.map(|level| (denied, level)))
        .flat_map(|(denied, level)| modes().iter().map(move |mode| (denied, level, *mode)));
    trial.every(cases, |(denied, level, mode)| {
        let guard = json!({"type": "command", "command": "allows"});
        let user = json!({
            "permissions": {"allow": [denied]},
            "hooks": {"PreToolUse": [{"matcher": "*", "hooks": [guard]}]},
        });
        let rules = json!({"permissions": {list: [rule(denied)]}});
        let files = if level == Level::User {
            let mut both = user.clone();
            if let Some(permissions) = both.get_mut("permissions").and_then(Value::as_object_mut) {
                permissions.insert(list.to_owned(), json!([rule(denied)]));
            }
            vec![(Level::User, both)]
        } else {
            vec![(Level::User, user), (level, rules)]
        };
        let mut session = session(&profile, &files, mode, true);
        let mut hooks = GivenEnds::default();
        let allow = crate::propositions::from_000::blocking::says(crate::hooks::HookDecision::Allow);
        hooks.ends.insert("allows".to_owned(), crate::hooks::HandlerEnd::exited(0, allow, ""));
        for (tool, input) in tools() {
            let outcome = judge(&mut session, tool, &input, &mut hooks).outcome;
            ensure!(
                (outcome == GateOutcome::Gone) == (tool == denied),
                "`{}` in the {list} list of the {} level, mode {mode}: a call of {tool} is {}",
                rule(denied),
                level.word(),
                outcome.word()
            );
        }
        Ok(())
    })
}
