//! Bash commands against rules: wrappers, the texts a rule is compared with, what a command reads, writes and removes.
//!
//! Source: gate-and-hooks, sections 7.2, 7.5 and 7.6.

use super::rules::RuleList;
use super::shell::{Part, Script, Word};

/// Programs that run another one in a way allow rules see through.
const WRAPPERS: [&str; 9] =
    ["timeout", "time", "nice", "nohup", "stdbuf", "command", "builtin", "noglob", "xargs"];

/// Programs that deny and ask rules see through besides.
const MORE_WRAPPERS: [&str; 5] = ["env", "sudo", "setsid", "watch", "exec"];

/// Names whose effect cannot be read from their arguments.
const EVALUATORS: [&str; 9] = ["eval", "exec", "source", ".", "alias", "watch", "setsid", "flock", "ionice"];

/// Variables whose assignment changes nothing that matters; those that were seen.
const SAFE_VARIABLES: [&str; 3] = ["NODE_ENV", "LANG", "NO_COLOR"];

/// Commands that accept-edits mode runs inside the working directories.
const EDIT_COMMANDS: [&str; 6] = ["mkdir", "touch", "rm", "cp", "mv", "sed"];

/// The words behind one wrapper; `None` when the first word is none, or its options are not understood.
fn behind_wrapper(words: &[Word], restrict: bool) -> Option<&[Word]> {
    let (first, rest) = words.split_first()?;
    let name = if restrict { base_name(first.text()) } else { first.text() };
    let is_option = |word: &Word| word.text().starts_with('-') && word.text().len() > 1;
    let skip = |options_with_value: &[&str]| -> usize {
        let mut skipped = 0;
        while let Some(word) = rest.get(skipped).filter(|word| is_option(word)) {
            skipped += if options_with_value.contains(&word.text()) { 2 } else { 1 };
        }
        skipped
    };
    let after = match name {
        "timeout" => {
            let options = skip(&["-k", "-s", "--kill-after", "--signal"]);
            rest.get(options).filter(|word| is_duration(word.text()))?;
            options + 1
        }
        "time" => skip(&["-f", "-o"]),
        "nice" => skip(&["-n"]),
        "stdbuf" => skip(&["-i", "-o", "-e"]),
        "nohup" | "builtin" | "noglob" => 0,
        "command" => {
            if rest.first().is_some_and(|word| matches!(word.text(), "-v" | "-V")) {
                return None;
            }
            skip(&[])
        }
        "xargs" => {
            if rest.first().is_some_and(is_option) {
                return None;
            }
            0
        }
        "env" if restrict => {
            let mut skipped = skip(&["-u", "-C", "-S"]);
            while rest.get(skipped).is_some_and(|word| word.text().contains('=')) {
                skipped += 1;
            }
            skipped
        }
        "sudo" if restrict => skip(&["-u", "-g", "-h", "-p", "-C", "-D"]),
        "watch" if restrict => skip(&["-n", "--interval"]),
        "setsid" | "exec" if restrict => skip(&["-a"]),
        _ => return None,
    };
    rest.get(after..).filter(|words| !words.is_empty())
}

fn is_duration(text: &str) -> bool {
    let number = text.strip_suffix(['s', 'm', 'h', 'd']).unwrap_or(text);
    !number.is_empty() && number.chars().all(|c| c.is_ascii_digit() || c == '.')
}

fn base_name(text: &str) -> &str {
    text.rsplit('/').next().unwrap_or(text)
}

/// The words as one text, white space folded, the name without quotes.
fn folded(words: &[Word], name: &str, values: bool) -> String {
    let mut text = name.to_owned();
    for word in words.iter().skip(1) {
        text.push(' ');
        let word = if values { word.text() } else { &word.raw };
        if word.contains(char::is_whitespace) {
            text.push_str(&word.split_whitespace().collect::<Vec<_>>().join(" "));
        } else {
            text.push_str(word);
        }
    }
    text
}

/// The deny or ask rule that matches any part, however it is wrapped, quoted or nested.
pub fn restricting_rule(list: &RuleList, text: &str, script: &Script) -> Option<u32> {
    if !list.has_bash() {
        return None;
    }
    if let Some(rule) = list.bash_exact(text.trim()) {
        return Some(rule);
    }
    script.parts.iter().find_map(|part| restricting_rule_for_part(list, part))
}

/// The deny rule that matches a removal inside `sh -c '…'`. Of what such a text runs only `rm` and `rmdir` were seen to
/// be found there (field report F44); other commands were seen to be missed (gate-and-hooks, section 7.2).
pub fn removal_in_shell_text(list: &RuleList, script: &Script, home: &str) -> Option<u32> {
    script.parts.iter().filter_map(shell_text).find_map(|text| {
        let inner = super::shell::decompose(text, home);
        let removals = inner.parts.iter().filter(|part| removed_operands(part).is_some());
        removals.into_iter().find_map(|part| restricting_rule_for_part(list, part))
    })
}

/// The text that a part hands to another shell with `-c`.
fn shell_text(part: &Part) -> Option<&str> {
    let words = unwrapped(part);
    let name = base_name(words.first()?.text());
    if !matches!(name, "sh" | "bash" | "dash" | "zsh") || words.get(1)?.text() != "-c" {
        return None;
    }
    words.get(2)?.value.as_deref()
}

fn restricting_rule_for_part(list: &RuleList, part: &Part) -> Option<u32> {
    if !part.source.is_empty()
        && let Some(rule) = list.bash_exact(&part.source)
    {
        return Some(rule);
    }
    let mut words = part.words.as_slice();
    // Every wrapper hides at least one word, so this ends.
    while let Some(name) = words.first() {
        let name = name.text();
        for name in [name, base_name(name)] {
            let raw = folded(words, name, false);
            if let Some(rule) = list.bash(&raw, &raw) {
                return Some(rule);
            }
            let plain = folded(words, name, true);
            if plain != raw
                && let Some(rule) = list.bash(&plain, &plain)
            {
                return Some(rule);
            }
        }
        words = behind_wrapper(words, true)?;
    }
    None
}

/// Whether the part's assignments may be ignored by an allow rule.
fn assignments_are_safe(part: &Part) -> bool {
    part.words.is_empty()
        || part.assignments.iter().all(|(name, value)| {
            SAFE_VARIABLES.contains(&name.as_str()) && value.value.is_some() && !value.expands
        })
}

/// The allow rule that matches one part.
pub fn allowing_rule(list: &RuleList, part: &Part) -> Option<u32> {
    if !list.has_bash() || part.nested || part.words.is_empty() {
        return None;
    }
    if !assignments_are_safe(part) {
        // A rule may spell the assignments out.
        let mut text = String::new();
        for (name, value) in &part.assignments {
            text.push_str(&format!("{name}={} ", value.raw));
        }
        text.push_str(&folded(&part.words, part.name(), false));
        return list.bash(&text, &text);
    }
    if let Some(rule) = list.bash_exact(&part.source) {
        return Some(rule);
    }
    let mut words = part.words.as_slice();
    while let Some(name) = words.first() {
        if let Some(rule) = list.bash_wild(&folded(words, name.text(), false)) {
            return Some(rule);
        }
        words = behind_wrapper(words, false)?;
    }
    None
}

/// Whether a part runs something that cannot be checked: an evaluator, or `find` with an action.
pub fn is_evaluator(part: &Part) -> bool {
    let mut words = part.words.as_slice();
    while let Some(name) = words.first() {
        let name = name.text();
        if EVALUATORS.contains(&name)
            || (name == "find" && words.iter().any(|word| super::readonly::is_find_action(word.text())))
        {
            return true;
        }
        match behind_wrapper(words, false) {
            Some(inner) => words = inner,
            None => return false,
        }
    }
    false
}

/// The words that the read-only set looks at: safe assignments and `timeout` are stripped, nothing else.
pub fn words_for_reading(part: &Part) -> Option<&[Word]> {
    if !assignments_are_safe(part) {
        return None;
    }
    let words = part.words.as_slice();
    match words.first().map(Word::text) {
        Some("timeout") => behind_wrapper(words, false),
        _ => Some(words),
    }
}

/// What a command does to its operands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Read.
    Reads,
    /// Written, created, moved or removed.
    Writes,
}

/// The operands of a recognised file command that count for deny rules on paths: (word, access).
pub fn path_operands(words: &[Word]) -> Vec<(&Word, Access)> {
    let Some((name, arguments)) = words.split_first() else { return Vec::new() };
    let operands = || arguments.iter().filter(|word| !word.text().starts_with('-'));
    let with = |access: Access| operands().map(|word| (word, access)).collect::<Vec<_>>();
    match base_name(name.text()) {
        "cat" | "head" | "tail" | "grep" | "awk" | "wc" | "ls" | "diff" => with(Access::Reads),
        "sed" => {
            let in_place =
                arguments.iter().any(|word| word.text().starts_with("-i") || word.text() == "--in-place");
            let mut found = with(Access::Reads);
            if in_place {
                found.extend(with(Access::Writes));
            }
            found
        }
        "cp" => {
            let mut found = with(Access::Reads);
            found.extend(with(Access::Writes));
            found
        }
        "touch" | "rm" | "mv" | "tee" => with(Access::Writes),
        _ => Vec::new(),
    }
}

/// The words behind every wrapper that deny rules see through.
pub fn unwrapped(part: &Part) -> &[Word] {
    let mut words = part.words.as_slice();
    while let Some(inner) = behind_wrapper(words, true) {
        words = inner;
    }
    words
}

/// The paths that a command writes, creates or removes, for protected paths and accept-edits mode.
pub fn written_operands(words: &[Word]) -> Vec<&Word> {
    let Some((name, arguments)) = words.split_first() else { return Vec::new() };
    let operands: Vec<&Word> = arguments.iter().filter(|word| !word.text().starts_with('-')).collect();
    match base_name(name.text()) {
        "touch" | "rm" | "rmdir" | "mkdir" | "tee" | "mv" => operands,
        "cp" => operands.last().copied().into_iter().collect(),
        "sed" if arguments.iter().any(|w| w.text().starts_with("-i") || w.text() == "--in-place") => {
            operands.into_iter().skip(1).collect()
        }
        _ => Vec::new(),
    }
}

/// Whether accept-edits mode may run the part: one of its commands, with every operand inside.
pub fn is_edit_command(part: &Part, inside: &dyn Fn(&str) -> bool) -> bool {
    let Some(words) = words_for_reading(part) else { return false };
    let Some((name, arguments)) = words.split_first() else { return false };
    if !EDIT_COMMANDS.contains(&name.text()) {
        return false;
    }
    let skip = usize::from(name.text() == "sed");
    arguments
        .iter()
        .filter(|word| !word.text().starts_with('-'))
        .skip(skip)
        .all(|word| !word.glob && word.value.as_deref().is_some_and(inside))
}

/// The operands of `rm` and `rmdir`, however wrapped.
pub fn removed_operands(part: &Part) -> Option<Vec<&Word>> {
    let words = unwrapped(part);
    let (name, arguments) = words.split_first()?;
    matches!(base_name(name.text()), "rm" | "rmdir")
        .then(|| arguments.iter().filter(|word| !word.text().starts_with('-')).collect())
}

/// Whether an operand begins with a variable, so that it becomes `/`, `/*` or a top-level path when that is empty.
pub fn is_variable_root(word: &Word) -> bool {
    let raw = word.raw.trim_matches('"').replace("\"", "");
    let Some(rest) = raw.strip_prefix('$') else { return false };
    if rest.starts_with('(') {
        return false;
    }
    match rest.split_once('/') {
        Some((_, below)) => !below.trim_end_matches('/').contains('/') && !rest.starts_with("HOME"),
        None => false,
    }
}

/// Whether a name is one of the wrappers, for messages.
pub fn is_wrapper(name: &str) -> bool {
    WRAPPERS.contains(&name) || MORE_WRAPPERS.contains(&name)
}
