//! Tables of gate-and-hooks, section 4, as unit tests.

use super::*;
use crate::profile::hooks::{CLAUDE_CODE, DOCUMENTED};

fn pre(on_failure: OnFailure, end: &HandlerEnd) -> HookVerdict {
    let handler = Handler { on_failure, ..Handler::command("x") };
    interpret(Event::PreToolUse, &handler, end, &CLAUDE_CODE)
}

/// Rows: end, decision with `continue`, decision with `block`.
#[test]
fn outcomes_of_the_table() {
    use HookDecision::{Allow, Ask, Deny, None};
    let json = |decision: &str| {
        format!(
            "{{\"hookSpecificOutput\":{{\"hookEventName\":\"PreToolUse\",\"permissionDecision\":\"{decision}\"}}}}"
        )
    };
    let deny = json("deny");
    let rows: Vec<(HandlerEnd, HookDecision, HookDecision)> = vec![
        (HandlerEnd::exited(0, "", "warn"), None, None),
        (HandlerEnd::exited(0, "{not json", ""), None, None),
        (HandlerEnd::exited(0, "[1,2]", ""), None, None),
        (HandlerEnd::exited(0, format!("hi {deny}"), ""), None, None),
        (HandlerEnd::exited(0, format!("{deny}\ntail"), ""), None, None),
        (HandlerEnd::exited(0, "{not json}", ""), None, Deny),
        (HandlerEnd::exited(0, format!("{deny}\n{{}}"), ""), None, Deny),
        (HandlerEnd::exited(0, "{\"a\":1}\n{\"b\":2}", ""), None, None),
        (HandlerEnd::exited(0, format!("{}\n{deny}", json("allow")), ""), None, Deny),
        (HandlerEnd::exited(0, "{\"continue\":\"yes\"}", ""), None, Deny),
        (HandlerEnd::exited(0, "{\"hookSpecificOutput\":null}", ""), None, Deny),
        (HandlerEnd::exited(0, json("maybe"), ""), None, Deny),
        (HandlerEnd::exited(0, "{\"decision\":\"deny\"}", ""), None, Deny),
        (HandlerEnd::exited(0, "{\"foo\":1}", ""), None, None),
        (HandlerEnd::exited(0, format!("\u{feff}{deny}"), ""), Deny, Deny),
        (HandlerEnd::exited(1, "", "bad"), None, Deny),
        (HandlerEnd::exited(127, "", ""), None, Deny),
        (HandlerEnd::silent(EndStatus::Signal(9)), None, Deny),
        (HandlerEnd::silent(EndStatus::Timeout), None, Deny),
        (HandlerEnd::silent(EndStatus::CannotStart("no such file".into())), None, Deny),
        (HandlerEnd::exited(1, deny.clone(), ""), Deny, Deny),
        (HandlerEnd::exited(1, "{\"decision\":\"block\"}", ""), Deny, Deny),
        (HandlerEnd::exited(1, json("ask"), ""), Ask, Deny),
        (HandlerEnd::exited(1, json("allow"), ""), Allow, Deny),
        (HandlerEnd::exited(1, "{}", ""), None, Deny),
        (HandlerEnd::exited(2, "", ""), Deny, Deny),
        (HandlerEnd::exited(2, json("allow"), "no"), Deny, Deny),
        (HandlerEnd::exited(2, deny, "no"), Deny, Deny),
    ];
    for (end, with_continue, with_block) in rows {
        assert_eq!(pre(OnFailure::Continue, &end).decision, with_continue, "{end:?}");
        assert_eq!(pre(OnFailure::Block, &end).decision, with_block, "{end:?} with block");
    }
}

/// 000, definition 4.2 against the observed harness: the documented profile counts unparsable stdout as a failure.
#[test]
fn bad_stdout_is_a_parameter() {
    let handler = Handler { on_failure: OnFailure::Block, ..Handler::command("x") };
    let end = HandlerEnd::exited(0, "{not json", "");
    assert_eq!(interpret(Event::PreToolUse, &handler, &end, &DOCUMENTED).decision, HookDecision::Deny);
    assert_eq!(interpret(Event::PreToolUse, &handler, &end, &CLAUDE_CODE).decision, HookDecision::None);
}

/// `{"async": true}` first sends a handler to the background, unless its failure has to block.
#[test]
fn async_output() {
    let end = HandlerEnd::exited(2, "{\"async\": true}", "");
    assert!(pre(OnFailure::Continue, &end).asynchronous);
    assert_eq!(pre(OnFailure::Block, &end).decision, HookDecision::Deny);
}

/// `onFailure: block` has no effect on Stop (observed), and denies a permission request.
#[test]
fn on_failure_by_event() {
    let handler = Handler { on_failure: OnFailure::Block, ..Handler::command("x") };
    let end = HandlerEnd::exited(1, "", "");
    assert_eq!(interpret(Event::Stop, &handler, &end, &CLAUDE_CODE).decision, HookDecision::None);
    assert_eq!(interpret(Event::PostToolUse, &handler, &end, &CLAUDE_CODE).decision, HookDecision::Deny);
    let verdict = interpret(Event::PermissionRequest, &handler, &end, &CLAUDE_CODE);
    assert!(verdict.permission.is_some_and(|answer| !answer.allow));
    let exit2 = HandlerEnd::exited(2, "", "no");
    let plain = Handler::command("x");
    assert_eq!(
        interpret(Event::PermissionRequest, &plain, &exit2, &CLAUDE_CODE).decision,
        HookDecision::None
    );
}

/// The last to finish gives reason and input; deny drops the input (gate-and-hooks, section 5).
#[test]
fn the_last_to_finish_wins() {
    let say = |decision, path: &str| HookVerdict {
        decision,
        reason: Some(path.to_owned()),
        updated_input: Some(serde_json::json!({"file_path": path})),
        ..HookVerdict::default()
    };
    let both = [say(HookDecision::Allow, "one"), say(HookDecision::Allow, "two")];
    let combined = combine_verdicts(&both, &[1, 0]);
    assert_eq!(combined.updated_input, Some(serde_json::json!({"file_path": "one"})));
    assert_eq!(combined.decided_by, Some(0));
    let denied = [say(HookDecision::Allow, "one"), say(HookDecision::Deny, "two")];
    assert_eq!(combine_verdicts(&denied, &[0, 1]).updated_input, None);
}
