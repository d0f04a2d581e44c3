//! Matchers: which tool names (or other fields of an event) a group of handlers is for.
//!
//! Source: gate-and-hooks, section 3.2.

/// Characters of a pattern beyond which it is not compiled.
const PATTERN_LIMIT: usize = 2_000;
/// Characters of a subject beyond which no regular expression is tried.
const SUBJECT_LIMIT: usize = 512;

/// A compiled matcher. Compiling is total: what cannot be compiled never matches, and says why.
#[derive(Clone, Debug)]
pub struct Matcher {
    text: String,
    kind: Kind,
}

#[derive(Clone, Debug)]
enum Kind {
    All,
    List(Vec<String>),
    Regex(Box<regress::Regex>),
    Never(String),
}

impl Matcher {
    /// The matcher of a group that names none.
    pub fn all() -> Self {
        Self { text: String::new(), kind: Kind::All }
    }

    /// Compiles a matcher: absent, empty or `*` is all; letters, digits, `_`, space, `,`, `|` and `-` only is a list of
    /// exact names; anything else is an ECMAScript regular expression, unanchored; an invalid one never matches.
    pub fn compile(text: &str) -> Self {
        let kind = if text.is_empty() || text == "*" {
            Kind::All
        } else if text.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | ' ' | ',' | '|' | '-'))
        {
            let items = text.split(['|', ',']).map(|item| item.trim().to_owned());
            Kind::List(items.filter(|item| !item.is_empty()).collect())
        } else if text.chars().count() > PATTERN_LIMIT {
            Kind::Never(format!("a pattern of more than {PATTERN_LIMIT} characters"))
        } else if has_nested_repetition(text) {
            Kind::Never("nested repetitions, whose matching time has no bound".to_owned())
        } else {
            match regress::Regex::new(text) {
                Ok(regex) => Kind::Regex(Box::new(regex)),
                Err(error) => Kind::Never(error.to_string()),
            }
        };
        Self { text: text.to_owned(), kind }
    }

    /// Whether it matches a value of the event's field.
    pub fn matches(&self, value: &str) -> bool {
        match &self.kind {
            Kind::All => true,
            Kind::List(names) => names.iter().any(|name| name == value),
            Kind::Regex(regex) => value.len() <= SUBJECT_LIMIT && regex.find(value).is_some(),
            Kind::Never(_) => false,
        }
    }

    /// Whether it matches a tool; the agent tool answers to `Agent` and `Task`.
    pub fn matches_tool(&self, tool: &str) -> bool {
        self.matches(tool)
            || (tool == "Agent" && self.matches("Task"))
            || (tool == "Task" && self.matches("Agent"))
    }

    /// As it was written.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Why it can never match; `None` when it can.
    pub fn never(&self) -> Option<&str> {
        match &self.kind {
            Kind::Never(why) => Some(why),
            Kind::List(names) if names.is_empty() => Some("an empty list of names"),
            _ => None,
        }
    }

    /// The exact names of a list; `None` for the other kinds.
    pub fn names(&self) -> Option<&[String]> {
        match &self.kind {
            Kind::List(names) => Some(names),
            _ => None,
        }
    }

    /// Whether it matches everything by its form.
    pub fn is_all(&self) -> bool {
        matches!(self.kind, Kind::All)
    }
}

/// Whether a repeated group holds a repetition of its own (`(a+)+`): a backtracking engine may then need time that
/// grows exponentially with the subject.
fn has_nested_repetition(pattern: &str) -> bool {
    let mut repeats_inside = vec![false];
    let mut in_class = false;
    let mut chars = pattern.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '\\' => {
                chars.next();
            }
            '[' => in_class = true,
            ']' => in_class = false,
            _ if in_class => {}
            '(' => repeats_inside.push(false),
            ')' => {
                let inner = repeats_inside.pop().unwrap_or(false);
                let repeated = matches!(chars.peek(), Some('*' | '+' | '{'));
                if inner && repeated {
                    return true;
                }
                match repeats_inside.last_mut() {
                    Some(outer) => *outer |= inner || repeated,
                    None => repeats_inside.push(false),
                }
            }
            '*' | '+' | '{' => {
                if let Some(outer) = repeats_inside.last_mut() {
                    *outer = true;
                }
            }
            _ => {}
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::Matcher;

    /// The table of gate-and-hooks, section 3.2.
    #[test]
    fn matchers_of_the_table() {
        let fires = |matcher: &str, tool: &str| Matcher::compile(matcher).matches_tool(tool);
        for matcher in ["", "*", "Write", " Write ", "Edit|Write", "Edit, Write", "|Write"] {
            assert!(fires(matcher, "Write"), "{matcher}");
        }
        for matcher in ["write", "Wri", "Edit|", "Write Edit", "W-rite"] {
            assert!(!fires(matcher, "Write"), "{matcher}");
        }
        for matcher in ["W.*", ".rite", "rite$", "^Edit|Write$", "Wri*", "Write*", "^(?!Edit).*$"] {
            assert!(fires(matcher, "Write"), "{matcher}");
        }
        for matcher in ["write.*", "Write.", "Write(*)", "!Write", "(", "[", "**", "(?i)write", "+Write"] {
            assert!(!fires(matcher, "Write"), "{matcher}");
        }
        for matcher in ["mcp__srv", "mcp__srv__", "add", "srv"] {
            assert!(!fires(matcher, "mcp__srv__add"), "{matcher}");
        }
        for matcher in ["mcp__srv__.*", "mcp__srv__*", "mcp__.*__add", "add$", "mcp__srv__add"] {
            assert!(fires(matcher, "mcp__srv__add"), "{matcher}");
        }
        assert!(fires("Task", "Agent") && fires("Agent", "Agent") && fires("Ta.k", "Agent"));
    }

    #[test]
    fn nested_repetitions_are_refused() {
        assert!(Matcher::compile("^(a+)+$").never().is_some());
        assert!(Matcher::compile("^((a)*b)*$").never().is_some());
        assert!(Matcher::compile("mcp__(a|b)__.*").never().is_none());
    }
}
