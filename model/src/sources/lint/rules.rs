//! Mistakes in permission rules.

use super::{Settings, at, retired};
use crate::finding::{Finding, Severity};
use crate::gate::examples::caught;
use crate::gate::facts::NoFiles;
use crate::gate::permission::{By, permission};
use crate::gate::rule::{Behaviour, Pattern};
use crate::gate::tools;
use crate::gate::{Policy, Workspace};
use crate::sources::merge::{Merged, SourcedRule};

/// Rules beyond which pairs are not compared.
const PAIR_LIMIT: usize = 3_000;

pub(super) fn lint(
    settings: &Settings,
    merged: &Merged,
    policy: &Policy,
    workspace: &Workspace,
    findings: &mut Vec<Finding>,
) {
    for (rule, (_, pattern)) in merged.rules.iter().zip(&policy.rules.patterns) {
        one(settings, rule, pattern, findings);
    }
    pairs(settings, merged, policy, workspace, findings);
}

fn one(settings: &Settings, rule: &SourcedRule, pattern: &Pattern, findings: &mut Vec<Finding>) {
    let text = rule.text.as_str();
    let word = rule.behaviour.word();
    let mut add = |id: &str, severity, message: String, why: &str, remedy: &str| {
        findings.push(at(settings, &rule.pointer, id, severity, message, why, remedy));
    };
    let tool = text.split('(').next().unwrap_or(text);
    let specifier = text.split_once('(').map_or("", |(_, rest)| rest.strip_suffix(')').unwrap_or(rest));
    if let Some(instead) = retired(tool) {
        add(
            "retired-tool",
            Severity::Warning,
            format!("the {word} rule `{text}` names a tool that no longer exists"),
            "the rule matches no call",
            &format!("use {instead}"),
        );
    } else if let Some(why) = pattern.never() {
        let severity = if rule.behaviour == Behaviour::Allow { Severity::Warning } else { Severity::Error };
        add(
            "rule-matches-nothing",
            severity,
            format!("the {word} rule `{}` matches nothing: {why}", shown(text)),
            "what was meant to be governed by it is not, and the harness does not say so",
            "write it in a form that matches, and check it with `gate test`",
        );
    }
    let is_name = tool.chars().all(|c| c.is_ascii_alphanumeric() || c == '_') && !tool.starts_with("mcp__");
    if is_name && !tools::is_known(tool) {
        let near = tools::nearest(tool);
        // A guard under a wrong name protects nothing; an allow only fails to spare a question.
        let severity = match (rule.behaviour, near) {
            (Behaviour::Deny | Behaviour::Ask, Some(_)) => Severity::Error,
            _ => Severity::Warning,
        };
        let hint = near.map(|known| format!("; did you mean `{known}`?")).unwrap_or_default();
        add(
            "rule-unknown-tool",
            severity,
            format!("no tool `{tool}` is known, which the {word} rule `{}` names{hint}", shown(text)),
            "names in rules are exact and their case counts, so the rule governs no call",
            "use the tool's exact name",
        );
    }
    if tool == "Bash" && !specifier.is_empty() {
        bash(rule, specifier, &mut add);
    }
    if matches!(pattern, Pattern::ReadPath(_) | Pattern::EditPath(_)) {
        let windows = specifier.get(1..3).is_some_and(|rest| rest == ":\\" || rest == ":/");
        if windows {
            add(
                "drive-letter-path",
                Severity::Warning,
                format!("`{text}` uses a drive letter"),
                "path rules are gitignore patterns with `/`; this one matches nothing on other systems",
                "write the path with `//` and forward slashes",
            );
        }
        let looks_absolute = ["/etc/", "/usr/", "/var/", "/home/", "/Users/", "/tmp/", "/opt/", "/root/"]
            .iter()
            .any(|prefix| specifier.starts_with(prefix));
        if looks_absolute {
            add(
                "single-slash-path",
                if rule.behaviour == Behaviour::Allow { Severity::Warning } else { Severity::Error },
                format!("`{text}` is not an absolute path"),
                "one slash anchors the pattern at the settings' own folder; only `//` is the root of the file system",
                &format!("write `{tool}(/{specifier})`"),
            );
        }
    }
    if text.chars().count() > 200 {
        add(
            "rule-too-long",
            Severity::Note,
            format!("a {word} rule of {} characters", text.chars().count()),
            "a whole command stored as a rule matches only that very text",
            "replace it by a prefix rule",
        );
    }
    if text.contains('\n') {
        add(
            "rule-with-newline",
            Severity::Note,
            format!("the {word} rule `{}` holds a line break", shown(text)),
            "it is the leftover of one approval and matches only the very same text",
            "remove it",
        );
    }
}

fn bash(rule: &SourcedRule, specifier: &str, add: &mut dyn FnMut(&str, Severity, String, &str, &str)) {
    let word = rule.behaviour.word();
    let shown_rule = shown(&rule.text);
    let is_exact = !specifier.contains('*');
    if is_exact && ["&&", ";", "||", " | "].iter().any(|operator| specifier.contains(operator)) {
        add(
            "exact-compound-rule",
            if rule.behaviour == Behaviour::Allow { Severity::Note } else { Severity::Warning },
            format!("the {word} rule `{shown_rule}` is a whole compound command"),
            "commands are split at operators and judged part by part; this rule matches only the very same text",
            "write a rule for each part",
        );
    }
    if let Some(position) = specifier.find(":*")
        && position + 2 != specifier.len()
    {
        add(
            "prefix-mark-inside",
            Severity::Warning,
            format!("`:*` does not end the {word} rule `{shown_rule}`"),
            "`:*` means a prefix at the end only; elsewhere the colon is part of the command",
            "write ` *` instead",
        );
    }
    if specifier.starts_with("command:") {
        add(
            "parameter-rule-on-command",
            Severity::Warning,
            format!("`{shown_rule}` names the parameter `command`"),
            "parameter rules do not reach the command of Bash",
            "write the command itself: `Bash(name *)`",
        );
    }
    let first = specifier.split(' ').next().unwrap_or("");
    if first.split_once('=').is_some_and(|(name, _)| {
        !name.is_empty() && name.chars().all(|c| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_')
    }) {
        add(
            "rule-with-assignment",
            Severity::Note,
            format!("the {word} rule `{shown_rule}` begins with an assignment"),
            "it matches only with the very same value; deny rules see through assignments anyway",
            "put the variable into `env` of the settings and the command into the rule",
        );
    }
    if matches!(first, "do" | "done" | "then" | "fi" | "else" | "esac" | "for" | "while") {
        add(
            "rule-shell-fragment",
            Severity::Note,
            format!("the {word} rule `{shown_rule}` is a piece of a script"),
            "a part of a loop is never judged by its keyword",
            "remove it",
        );
    }
    let secret = ["sk-", "ghp_", "github_pat_", "AKIA", "xoxb-", "Bearer "];
    if secret.iter().any(|mark| specifier.contains(mark)) {
        add(
            "secret-in-rule",
            Severity::Warning,
            "a rule holds what looks like a secret".to_owned(),
            "settings files are shared and read by tools",
            "remove the rule and replace the secret",
        );
    }
}

fn pairs(
    settings: &Settings,
    merged: &Merged,
    policy: &Policy,
    workspace: &Workspace,
    findings: &mut Vec<Finding>,
) {
    let rules = merged.rules.get(..merged.rules.len().min(PAIR_LIMIT)).unwrap_or(&[]);
    let mut first: std::collections::BTreeMap<&str, &SourcedRule> = std::collections::BTreeMap::new();
    for rule in rules {
        match first.get(rule.text.as_str()) {
            Some(earlier) if earlier.behaviour == rule.behaviour => findings.push(at(
                settings,
                &rule.pointer,
                "duplicate-rule",
                Severity::Note,
                format!("the {} rule `{}` stands twice", rule.behaviour.word(), shown(&rule.text)),
                "one of them does nothing",
                "remove it",
            )),
            Some(earlier) => findings.push(at(
                settings,
                &rule.pointer,
                "rule-in-two-lists",
                Severity::Warning,
                format!(
                    "`{}` stands in {} and in {}",
                    shown(&rule.text),
                    earlier.behaviour.word(),
                    rule.behaviour.word()
                ),
                "deny wins over ask, ask over allow; the weaker one does nothing",
                "keep the one that is meant",
            )),
            None => {
                first.insert(&rule.text, rule);
            }
        }
    }
    let bare_bash = rules.iter().zip(&policy.rules.patterns).find(|(rule, (_, pattern))| {
        rule.behaviour == Behaviour::Allow && matches!(pattern, Pattern::Tool(tool) if tool == "Bash")
    });
    for (rule, (_, pattern)) in rules.iter().zip(&policy.rules.patterns) {
        let scoped = matches!(pattern, Pattern::Bash(_));
        match (bare_bash, rule.behaviour) {
            (Some(_), Behaviour::Deny) if scoped => findings.push(at(
                settings,
                &rule.pointer,
                "deny-undone-by-broad-allow",
                Severity::Warning,
                format!("the bare allow of Bash leaves ways around the deny rule `{}`", shown(&rule.text)),
                "a deny rule is about the text of a command; `eval`, an unknown wrapper, an interpreter or another \
                 program with the same effect is not stopped, and the bare rule lets all of them run",
                "allow the commands that are needed instead of all of Bash, or use a sandbox",
            )),
            (Some(_), Behaviour::Allow) if scoped => findings.push(at(
                settings,
                &rule.pointer,
                "scoped-beside-bare",
                Severity::Note,
                format!("`{}` does nothing beside the bare allow of Bash", shown(&rule.text)),
                "the bare rule already lets every command run",
                "remove one of them",
            )),
            _ => {}
        }
        if rule.behaviour != Behaviour::Allow {
            continue;
        }
        let Some(example) = caught(pattern, &policy.tools) else { continue };
        if !policy.tools.offers(&example.tool) {
            continue;
        }
        if let Some(stronger) = policy.removed_by(&example.tool) {
            shadowed(settings, rule, merged.rules.get(stronger as usize), findings);
            continue;
        }
        let answer = permission(policy, workspace, &NoFiles, &example.tool, &example.input);
        if let By::Rule(by) = answer.by
            && merged.rules.get(by as usize).is_some_and(|stronger| stronger.behaviour != Behaviour::Allow)
        {
            shadowed(settings, rule, merged.rules.get(by as usize), findings);
        }
    }
    unguarded_writes(settings, rules, policy, workspace, findings);
}

fn shadowed(
    settings: &Settings,
    rule: &SourcedRule,
    stronger: Option<&SourcedRule>,
    findings: &mut Vec<Finding>,
) {
    let Some(stronger) = stronger.filter(|stronger| stronger.text != rule.text) else { return };
    findings.push(at(
        settings,
        &rule.pointer,
        "rule-shadowed",
        Severity::Warning,
        format!(
            "the allow rule `{}` loses to the {} rule `{}`",
            shown(&rule.text),
            stronger.behaviour.word(),
            shown(&stronger.text)
        ),
        "deny and ask rules are looked at first, however specific the allow rule is",
        "narrow the stronger rule, or remove this one",
    ));
}

/// A Read deny that a broad allow of Bash leaves open to programs that are not recognised.
fn unguarded_writes(
    settings: &Settings,
    rules: &[SourcedRule],
    policy: &Policy,
    workspace: &Workspace,
    findings: &mut Vec<Finding>,
) {
    let session_allows = |command: &str| {
        let input = serde_json::json!({ "command": command });
        matches!(
            permission(policy, workspace, &NoFiles, "Bash", &input).permission,
            crate::gate::Permission::Allow
        )
    };
    if policy.removed_by("Bash").is_some() || !session_allows("python3 -c x") {
        return;
    }
    for (rule, (_, pattern)) in rules.iter().zip(&policy.rules.patterns) {
        if rule.behaviour == Behaviour::Deny && matches!(pattern, Pattern::ReadPath(_) | Pattern::EditPath(_))
        {
            findings.push(at(
                settings,
                &rule.pointer,
                "path-deny-open-to-programs",
                Severity::Note,
                format!("`{}` does not stop a program that opens the file itself", shown(&rule.text)),
                "path rules stop the file tools and a few recognised commands; interpreters, globs and groups pass",
                "use a sandbox for what must not be read or written",
            ));
        }
    }
}

/// A rule's text as it is shown: one line, not too long.
fn shown(text: &str) -> String {
    let line: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).take(80).collect();
    if text.chars().count() > 80 { format!("{line}…") } else { line }
}
