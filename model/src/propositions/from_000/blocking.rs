//! What 4.2 and 4.3 share: every end of a command hook, and the domain that their laws range over: a hook H that guards
//! a write, beside other hooks, rules and modes, judged by the whole gate.

use crate::gate::mode::Mode;
use crate::gate::pipeline::{Judgement, Session};
use crate::hooks::{EndStatus, HandlerEnd, HookDecision, OnFailure};
use crate::profile::Profile;
use crate::propositions::at_the_gate::{GivenEnds, judge, session};
use crate::propositions::every_variant;
use crate::sources::settings::Level;
use serde_json::{Value, json};

/// The class of an end in definition 4.2.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::propositions) enum Class {
    /// It did its work.
    Success,
    /// Exit 2.
    Blocking,
    /// Anything else.
    NonBlocking,
}

/// What a hook prints.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::propositions) enum Prints {
    /// Nothing.
    Nothing,
    /// Text that is no JSON.
    Text,
    /// JSON that is broken inside.
    BrokenJson,
    /// JSON that breaks off before its end.
    CutJson,
    /// A decision.
    Json(HookDecision),
}

/// One end of a command hook.
#[derive(Clone, Debug)]
pub(in crate::propositions) struct End {
    /// The exit code; `None` for ends without one.
    pub(in crate::propositions) code: Option<i32>,
    /// What it prints.
    pub(in crate::propositions) prints: Prints,
    /// As the world tells it.
    pub(in crate::propositions) end: HandlerEnd,
}

impl End {
    /// Its class as definition 4.2 has it; `on_failure` counts for the last case of the definition.
    pub(in crate::propositions) fn class(&self, on_failure: OnFailure) -> Class {
        match (self.code, self.prints) {
            (Some(2), _) => Class::Blocking,
            (Some(0), Prints::Nothing | Prints::Text | Prints::Json(_)) => Class::Success,
            // Valid JSON at another code counts as success and decides; under `block` the run counts as failed.
            (Some(_), Prints::Json(_)) if on_failure == OnFailure::Continue => Class::Success,
            _ => Class::NonBlocking,
        }
    }

    pub(in crate::propositions) fn words(&self) -> String {
        let prints = match self.prints {
            Prints::Nothing => "prints nothing".to_owned(),
            Prints::Text => "prints plain text".to_owned(),
            Prints::BrokenJson => "prints broken JSON".to_owned(),
            Prints::CutJson => "prints JSON that breaks off".to_owned(),
            Prints::Json(decision) => format!("prints {}", decision.word()),
        };
        match self.code {
            Some(code) => format!("exits with {code} and {prints}"),
            None => format!("{:?}", self.end.status),
        }
    }
}

/// The JSON by which a PreToolUse hook says a decision.
pub(in crate::propositions) fn says(decision: HookDecision) -> String {
    let mut own = json!({"hookEventName": "PreToolUse"});
    if decision != HookDecision::None {
        own = json!({"hookEventName": "PreToolUse", "permissionDecision": decision.word()});
    }
    json!({"hookSpecificOutput": own}).to_string()
}

/// Every decision that hooks combine to.
pub(in crate::propositions) fn decisions() -> &'static [HookDecision] {
    every_variant!(crate::hooks::HookDecision: None, Allow, Ask, Defer, Deny)
}

/// Every end: exit codes by what tells them apart, with everything that can be printed, and the ends without a code.
pub(in crate::propositions) fn ends() -> Vec<End> {
    let prints = [Prints::Nothing, Prints::Text, Prints::BrokenJson, Prints::CutJson]
        .into_iter()
        .chain(decisions().iter().map(|decision| Prints::Json(*decision)));
    let mut ends: Vec<End> = prints
        .flat_map(|prints| [0, 1, 2, 127].map(|code| (code, prints)))
        .map(|(code, prints)| {
            let stdout = match prints {
                Prints::Nothing => String::new(),
                Prints::Text => "all is well".to_owned(),
                Prints::BrokenJson => "{\"decision\": }".to_owned(),
                Prints::CutJson => "{\"decision\": \"block\"".to_owned(),
                Prints::Json(decision) => says(decision),
            };
            End { code: Some(code), prints, end: HandlerEnd::exited(code, stdout, "") }
        })
        .collect();
    let without_code =
        [EndStatus::Signal(9), EndStatus::Timeout, EndStatus::CannotStart("no such file".to_owned())];
    ends.extend(without_code.map(|status| End {
        code: None,
        prints: Prints::Nothing,
        end: HandlerEnd::silent(status),
    }));
    ends
}

/// The lists of at most three other decisions, order left aside.
pub(in crate::propositions) fn others() -> Vec<Vec<HookDecision>> {
    let mut lists = vec![Vec::new()];
    let mut last = lists.clone();
    for _ in 0..3 {
        last = last
            .iter()
            .flat_map(|list: &Vec<HookDecision>| {
                let least = list.last().copied().unwrap_or_default();
                decisions().iter().filter(move |decision| **decision >= least).map(|decision| {
                    let mut longer = list.clone();
                    longer.push(*decision);
                    longer
                })
            })
            .collect();
        lists.extend(last.clone());
    }
    lists
}

/// What a rule says of the call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::propositions) enum RuleSays {
    /// There is none.
    Nothing,
    /// An allow rule.
    Allow,
    /// An ask rule.
    Ask,
    /// A deny rule.
    Deny,
}

/// Every answer of a rule.
pub(in crate::propositions) const RULES: [RuleSays; 4] =
    [RuleSays::Nothing, RuleSays::Allow, RuleSays::Ask, RuleSays::Deny];

/// Every permission mode.
pub(in crate::propositions) fn modes() -> &'static [Mode] {
    every_variant!(crate::gate::mode::Mode: Default, AcceptEdits, Plan, Auto, DontAsk, Bypass)
}

/// Both directions of failure.
pub(in crate::propositions) fn on_failures() -> &'static [OnFailure] {
    every_variant!(crate::hooks::OnFailure: Continue, Block)
}

/// The settings in which H guards writes, beside `others` further hooks.
pub(in crate::propositions) fn settings(on_failure: OnFailure, others: usize, rule: RuleSays) -> Value {
    let mut handlers = vec![match on_failure {
        OnFailure::Continue => json!({"type": "command", "command": "H"}),
        OnFailure::Block => json!({"type": "command", "command": "H", "onFailure": "block"}),
    }];
    handlers.extend((0..others).map(|n| json!({"type": "command", "command": format!("other-{n}")})));
    let mut settings = json!({"hooks": {"PreToolUse": [{"matcher": "Write", "hooks": handlers}]}});
    let list = match rule {
        RuleSays::Nothing => return settings,
        RuleSays::Allow => "allow",
        RuleSays::Ask => "ask",
        RuleSays::Deny => "deny",
    };
    if let Some(fields) = settings.as_object_mut() {
        fields.insert("permissions".to_owned(), json!({list: ["Edit(notes.txt)"]}));
    }
    settings
}

/// Changes a session before calls are judged.
pub(in crate::propositions) type Change = fn(&mut Session);

/// The setting of one case, without the end of H.
#[derive(Clone, Debug)]
pub(in crate::propositions) struct Setting {
    pub(in crate::propositions) on_failure: OnFailure,
    pub(in crate::propositions) others: Vec<HookDecision>,
    pub(in crate::propositions) rule: RuleSays,
    pub(in crate::propositions) mode: Mode,
}

impl Setting {
    pub(in crate::propositions) fn words(&self) -> String {
        let others: Vec<&str> = self.others.iter().map(|decision| decision.word()).collect();
        format!(
            "onFailure {:?}, other hooks [{}], rule {:?}, mode {}",
            self.on_failure,
            others.join(", "),
            self.rule,
            self.mode
        )
        .replace("Continue", "continue")
        .replace("Block", "block")
    }
}

/// Judges the write in every setting and with every end of H, and shows each to the law.
pub(in crate::propositions) fn all_settings(
    profile: &Profile,
    ends: &[End],
    others: &[Vec<HookDecision>],
    change: Change,
    law: &mut dyn FnMut(&Setting, &End, &Judgement) -> Result<(), crate::propositions::Evidence>,
) -> Result<u64, crate::propositions::Evidence> {
    let input = json!({"file_path": "notes.txt", "content": "x"});
    let mut cases = 0;
    for on_failure in on_failures() {
        for rule in RULES {
            for mode in modes() {
                for count in 0..=3 {
                    let user = settings(*on_failure, count, rule);
                    let mut session = session(profile, &[(Level::User, user)], *mode, true);
                    change(&mut session);
                    for others in others.iter().filter(|others| others.len() == count) {
                        let mut hooks = GivenEnds::default();
                        for (n, decision) in others.iter().enumerate() {
                            let end = HandlerEnd::exited(0, says(*decision), "");
                            hooks.ends.insert(format!("other-{n}"), end);
                        }
                        let setting =
                            Setting { on_failure: *on_failure, others: others.clone(), rule, mode: *mode };
                        for end in ends {
                            hooks.ends.insert("H".to_owned(), end.end.clone());
                            let judgement = judge(&mut session, "Write", &input, &mut hooks);
                            cases += 1;
                            law(&setting, end, &judgement)?;
                        }
                    }
                }
            }
        }
    }
    Ok(cases)
}
