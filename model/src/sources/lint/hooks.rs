//! Mistakes in hooks and matchers.

use super::{Script, ScriptFacts, Settings, at, retired};
use crate::finding::{Finding, Severity};
use crate::gate::tools;
use crate::hooks::handler::Group;
use crate::hooks::{BlockEffect, Event, Handler, HandlerKind, OnFailure};
use crate::profile::Profile;

/// Variables that people expect and that no hook gets.
const UNDOCUMENTED: [&str; 9] = [
    "CLAUDE_TOOL_INPUT",
    "CLAUDE_TOOL_NAME",
    "CLAUDE_TOOL_OUTPUT",
    "CLAUDE_FILE_PATHS",
    "CLAUDE_FILE_PATH",
    "CLAUDE_NOTIFICATION",
    "TOOL_NAME",
    "TOOL_INPUT",
    "FILE_PATH",
];

pub(super) fn lint(
    settings: &Settings,
    profile: &Profile,
    scripts: &dyn ScriptFacts,
    findings: &mut Vec<Finding>,
) {
    for (event, groups) in &settings.hooks.events {
        for group in groups {
            matcher(settings, *event, group, findings);
            for handler in &group.handlers {
                one(settings, *event, handler, profile, findings);
                if let HandlerKind::Command { command, args } = &handler.kind {
                    command_line(settings, *event, handler, command, args.is_some(), findings);
                    script(settings, handler, command, scripts, findings);
                }
            }
        }
    }
    edits_through_shell(settings, findings);
}

fn matcher(settings: &Settings, event: Event, group: &Group, findings: &mut Vec<Finding>) {
    let text = group.matcher.text();
    let pointer = format!("{}/matcher", group.pointer);
    let mut add = |id: &str, severity, message: String, why: &str, remedy: &str| {
        findings.push(at(settings, &pointer, id, severity, message, why, remedy));
    };
    if group.handlers.is_empty() {
        add(
            "group-without-handlers",
            Severity::Note,
            format!("a group of {event} has no handlers"),
            "it does nothing",
            "remove it",
        );
    }
    let Some(field) = event.matcher_field() else {
        if !group.matcher.is_all() {
            add(
                "matcher-ignored",
                Severity::Note,
                format!("{event} has no matcher, so `{text}` is ignored"),
                "the handlers run every time",
                "remove the matcher",
            );
        }
        return;
    };
    let is_expression = text.contains("==") || text.contains("&&") || text.contains(" AND ");
    let is_rule = text.split_once('(').is_some_and(|(tool, _)| tools::is_builtin(tool));
    if is_expression || is_rule {
        add(
            if is_rule { "matcher-is-a-rule" } else { "matcher-is-an-expression" },
            Severity::Error,
            format!(
                "the matcher `{text}` is {}",
                if is_rule { "a permission rule" } else { "an expression" }
            ),
            "a matcher is compared with the tool's name only, so these handlers never run",
            if is_rule {
                "match the tool and put the rule into `if`"
            } else {
                "match the tool; test the rest in the hook"
            },
        );
        return;
    }
    if let Some(why) = group.matcher.never() {
        add(
            "matcher-matches-nothing",
            Severity::Error,
            format!("the matcher `{text}` never matches: {why}"),
            "these handlers never run, and the harness does not say so",
            "write a list of names, or a valid regular expression",
        );
        return;
    }
    if field != "tool_name" {
        return;
    }
    match group.matcher.names() {
        Some(names) => {
            for name in names {
                name_in_matcher(name, &mut add);
            }
        }
        None if group.matcher.is_all() => {}
        None => {
            let known =
                tools::builtin_names().chain(tools::ABSENT).any(|tool| group.matcher.matches_tool(tool));
            if !known && !text.contains("mcp") {
                add(
                    "matcher-matches-no-builtin",
                    Severity::Warning,
                    format!("the matcher `{text}` matches no built-in tool"),
                    "unless it is meant for an MCP tool these handlers never run",
                    "check the name and its case",
                );
            }
        }
    }
}

fn name_in_matcher(name: &str, add: &mut dyn FnMut(&str, Severity, String, &str, &str)) {
    if let Some(instead) = retired(name) {
        add(
            "retired-tool",
            Severity::Warning,
            format!("the matcher names `{name}`, which no longer exists"),
            "no call has that name",
            &format!("use {instead}"),
        );
    } else if let Some(rest) = name.strip_prefix("mcp__") {
        if !rest.contains("__") || rest.ends_with("__") {
            add(
                "matcher-names-a-server",
                Severity::Error,
                format!("the matcher `{name}` names a server, not a tool"),
                "a list of names is compared exactly, so no tool of the server matches",
                &format!("write `{}__.*`", name.trim_end_matches('_')),
            );
        }
    } else if !tools::is_known(name) {
        let hint = tools::nearest(name).map(|known| format!("; did you mean `{known}`?")).unwrap_or_default();
        add(
            "matcher-unknown-tool",
            Severity::Error,
            format!("there is no tool `{name}`{hint}"),
            "names in matchers are exact and their case counts, so these handlers never run for it",
            "use the tool's exact name",
        );
    }
}

fn one(settings: &Settings, event: Event, handler: &Handler, profile: &Profile, findings: &mut Vec<Finding>) {
    let mut add = |field: &str, id: &str, severity, message: String, why: &str, remedy: &str| {
        let pointer = format!("{}/{field}", handler.pointer);
        findings.push(at(settings, &pointer, id, severity, message, why, remedy));
    };
    if let Some(seconds) = handler.timeout.filter(|seconds| *seconds >= 1000.0) {
        add(
            "timeout",
            "timeout-in-milliseconds",
            Severity::Warning,
            format!("a time limit of {seconds} seconds"),
            "the unit is seconds; a hook that hangs holds the session up for that long",
            "divide it by 1000",
        );
    }
    if let Some(rule) = &handler.condition
        && !event.is_about_a_tool()
    {
        add(
            "if",
            "condition-never-holds",
            Severity::Error,
            format!("`if` on {event} never holds (`{rule}`)"),
            "conditions are looked at on tool events only; elsewhere the handler never runs",
            "remove the condition",
        );
    }
    let raw = settings.root.pointer(&handler.pointer);
    if raw.and_then(|h| h.get("once")).is_some() {
        add(
            "once",
            "once-ignored",
            Severity::Note,
            "`once` has no effect in settings files".to_owned(),
            "the handler runs every time",
            "keep a mark in a file of your own",
        );
    }
    if handler.on_failure == OnFailure::Block {
        let ignored = if handler.is_async() {
            Some("a handler that runs in the background")
        } else if event.ignores_on_failure() && profile.hooks.stop_like_ignore_on_failure.value {
            Some("this event")
        } else if matches!(handler.kind, HandlerKind::Prompt { .. } | HandlerKind::Agent { .. })
            && !profile.hooks.prompt_on_failure.value
        {
            Some("prompt and agent handlers")
        } else {
            None
        };
        if let Some(what) = ignored {
            add(
                "onFailure",
                "on-failure-without-effect",
                Severity::Warning,
                format!("`onFailure: block` has no effect for {what}"),
                "the failure of this hook lets things go on",
                "do not rely on it here",
            );
        }
    }
    if handler.is_async() && event.block_effect() == BlockEffect::DenyCall {
        add(
            "async",
            "async-guard",
            Severity::Warning,
            format!("a {event} handler runs in the background"),
            "whatever it decides comes too late and is ignored",
            "remove `async` if it is to decide anything",
        );
    }
}

/// Whether blocking on this event is the point of most hooks on it.
fn can_block(event: Event) -> bool {
    matches!(
        event.block_effect(),
        BlockEffect::DenyCall
            | BlockEffect::BlockPrompt
            | BlockEffect::Continue
            | BlockEffect::Undo
            | BlockEffect::EndRun
    )
}

fn command_line(
    settings: &Settings,
    event: Event,
    handler: &Handler,
    command: &str,
    is_exec: bool,
    findings: &mut Vec<Finding>,
) {
    let mut add = |id: &str, severity, message: String, why: &str, remedy: &str| {
        let pointer = format!("{}/command", handler.pointer);
        findings.push(at(settings, &pointer, id, severity, message, why, remedy));
    };
    let exits = |code: &str| {
        command
            .split("exit ")
            .skip(1)
            .any(|rest| rest.split(|c: char| !c.is_ascii_digit()).next() == Some(code))
    };
    let decides = ["permissionDecision", "\"decision\"", "\\\"decision\\\"", "\"behavior\"", "\"continue\""]
        .iter()
        .any(|field| command.contains(field));
    if can_block(event) && exits("1") && !exits("2") && !decides {
        add(
            "exit-1-guard",
            Severity::Error,
            format!("this {event} hook refuses with exit code 1"),
            "only exit code 2 blocks; 1 is a failure, after which things go on",
            "exit with 2, or set `onFailure` to `block`",
        );
    }
    let guards = event.block_effect() == BlockEffect::DenyCall && (exits("2") || command.contains("deny"));
    if guards && handler.on_failure == OnFailure::Continue {
        add(
            "guard-fails-open",
            Severity::Note,
            "this guard lets calls through when it fails".to_owned(),
            "a crash, a missing interpreter or a time-out counts as if it had said nothing",
            "set `onFailure` to `block`",
        );
    }
    let trimmed = command.trim_end();
    if can_block(event)
        && (trimmed.ends_with("|| true") || trimmed.ends_with("; true") || trimmed.ends_with("|| exit 0"))
    {
        add(
            "exit-code-swallowed",
            if exits("2") { Severity::Error } else { Severity::Note },
            "the hook always ends with 0".to_owned(),
            "whatever it finds, it cannot block by its exit code",
            "remove the `|| true`",
        );
    }
    if command.contains("\"permissionDecision\"") && !command.contains("hookSpecificOutput") {
        add(
            "decision-at-top-level",
            Severity::Error,
            "`permissionDecision` stands at the top level of the output".to_owned(),
            "it is an unknown field there, and ignored",
            "put it into `hookSpecificOutput`, with `hookEventName`",
        );
    } else if command.contains("hookSpecificOutput") && !command.contains("hookEventName") {
        add(
            "output-without-event-name",
            Severity::Error,
            "`hookSpecificOutput` has no `hookEventName`".to_owned(),
            "the output has the wrong shape, so the hook counts as failed",
            &format!("add `\"hookEventName\": \"{event}\"`"),
        );
    }
    if command.trim() == "cat" {
        add(
            "output-is-input",
            Severity::Warning,
            "the hook prints its input".to_owned(),
            "its stdout is an object without any field of the contract: it decides nothing",
            "print a decision, or nothing",
        );
    }
    for name in UNDOCUMENTED {
        let used = [format!("${name}"), format!("${{{name}")].iter().any(|form| {
            command.match_indices(form.as_str()).any(|(i, _)| {
                command
                    .get(i + form.len()..)
                    .and_then(|rest| rest.chars().next())
                    .is_none_or(|c| !c.is_ascii_alphanumeric() && c != '_')
            })
        });
        let own = command.contains(&format!("{name}=")) || command.contains(&format!("read {name}"));
        if used && !own {
            add(
                "undocumented-variable",
                Severity::Warning,
                format!("no hook gets a variable `{name}`"),
                "it is empty, so tests on it are never true",
                "read the JSON on standard input",
            );
        }
    }
    if command.contains("{{") || command.contains("{file}") || command.contains("{file_path}") {
        add(
            "placeholder-in-command",
            Severity::Warning,
            "the command holds a placeholder that nobody fills".to_owned(),
            "commands are handed to the shell as they are",
            "read the JSON on standard input",
        );
    }
    if !is_exec && has_unquoted_folder(command) {
        add(
            "unquoted-path-placeholder",
            Severity::Note,
            "a folder variable stands outside quotes".to_owned(),
            "a folder with a blank in its name breaks the command, and the hook then fails open",
            "quote it: \"$CLAUDE_PROJECT_DIR\"/…",
        );
    }
    let words: Vec<&str> = command.split_whitespace().take(3).collect();
    let script = match words.as_slice() {
        ["sh" | "bash" | "python3" | "python" | "node", script, ..] => *script,
        [script, ..] => script,
        [] => "",
    };
    if script.starts_with("./") || script.starts_with(".claude/") {
        add(
            "relative-script",
            Severity::Warning,
            format!("the script `{script}` is named relative to the current directory"),
            "hooks run where the session is; after a `cd` the script is not found, and the shell's own status may block",
            "begin the path with \"$CLAUDE_PROJECT_DIR\"/",
        );
    }
}

fn has_unquoted_folder(command: &str) -> bool {
    ["${CLAUDE_PLUGIN_ROOT}/", "$CLAUDE_PLUGIN_ROOT/", "${CLAUDE_PROJECT_DIR}/", "$CLAUDE_PROJECT_DIR/"]
        .iter()
        .any(|form| {
            command.match_indices(form).any(|(i, _)| {
                let before = command.get(..i).unwrap_or("");
                before.matches('"').count() % 2 == 0 && before.matches('\'').count() % 2 == 0
            })
        })
}

fn script(
    settings: &Settings,
    handler: &Handler,
    command: &str,
    scripts: &dyn ScriptFacts,
    findings: &mut Vec<Finding>,
) {
    let mut words = command.split_whitespace();
    let Some(first) = words.next() else { return };
    let interpreted =
        matches!(first, "sh" | "bash" | "zsh" | "python" | "python3" | "node" | "ruby" | "perl");
    let path = if interpreted { words.next().unwrap_or("") } else { first };
    let path = path.trim_matches(['"', '\'']).replace("\"", "");
    if !path.contains('/') || path.starts_with('-') {
        return;
    }
    let pointer = format!("{}/command", handler.pointer);
    match scripts.script(&path) {
        Script::Missing => findings.push(at(
            settings,
            &pointer,
            "script-missing",
            Severity::Error,
            format!("the script `{path}` is not there"),
            "the hook fails at every call, and a failed hook lets the call go on",
            "correct the path, and set `onFailure` to `block` for a guard",
        )),
        Script::NotExecutable if !interpreted => findings.push(at(
            settings,
            &pointer,
            "script-not-executable",
            Severity::Error,
            format!("the script `{path}` is not executable"),
            "the hook fails at every call, and a failed hook lets the call go on",
            "chmod +x, or name its interpreter",
        )),
        _ => {}
    }
}

/// Hooks on the edit tools that do not also look at Bash.
fn edits_through_shell(settings: &Settings, findings: &mut Vec<Finding>) {
    let groups: Vec<&Group> = settings.hooks.groups(Event::PreToolUse).collect();
    if groups.iter().any(|group| group.matcher.matches_tool("Bash")) {
        return;
    }
    if let Some(group) = groups.iter().find(|group| {
        ["Write", "Edit"].iter().any(|tool| group.matcher.matches_tool(tool)) && !group.matcher.is_all()
    }) {
        findings.push(at(
            settings,
            &format!("{}/matcher", group.pointer),
            "edits-through-shell",
            Severity::Note,
            "the guard on the edit tools sees nothing of files written by Bash",
            "`sed -i`, redirections and scripts change files without an edit tool",
            "match Bash as well, or deny `Edit(path)`, which also reaches recognised commands",
        ));
    }
}
