//! Taking a shell command apart: its parts, redirections and everything that hides what it would do.
//!
//! The grammar is `brush-parser`'s; this module turns its tree into the few things that rules look at. Source:
//! gate-and-hooks, section 7.2. Work is capped: texts that are long or deeply nested are not parsed and count as
//! unreadable.

mod parse;
mod walk;
mod words;

use walk::Walk;

/// Nesting of brackets, quotes and substitutions beyond which a text is not parsed.
const NESTING_LIMIT: usize = 12;
/// Parts beyond which the rest is not looked at (the command then counts as unreadable).
const PART_LIMIT: usize = 2_000;

/// What keeps a command from being read before it runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Obstacle {
    /// The text is no shell command, or too long or too deep to look at.
    Unparsable,
    /// A command or process substitution.
    Substitution,
    /// A variable that is not known.
    Variable,
    /// `$'…'` and `$"…"`.
    Escapes,
    /// `{a,b}`.
    Braces,
    /// A here-document whose text is expanded.
    Heredoc,
    /// `( )`, `{ }`, functions, `case`, `coproc`, arithmetic commands.
    Group,
    /// `eval`, `exec`, `source`, `watch` and the like, and `find` with actions.
    Evaluator,
    /// White space outside ASCII.
    UnicodeBlank,
}

impl Obstacle {
    /// What people read.
    pub fn text(self) -> &'static str {
        match self {
            Self::Unparsable => "the command cannot be parsed",
            Self::Substitution => "it holds a command or process substitution",
            Self::Variable => "it uses a variable whose value is not known",
            Self::Escapes => "it uses `$'…'` escapes",
            Self::Braces => "it uses brace expansion",
            Self::Heredoc => "it holds a here-document that is expanded",
            Self::Group => "it holds a group, function or case",
            Self::Evaluator => "it runs text or another program that cannot be checked",
            Self::UnicodeBlank => "it holds white space outside ASCII",
        }
    }
}

/// One word.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Word {
    /// As written.
    pub raw: String,
    /// Without quotes, home expanded; `None` when the value is not known before it runs.
    pub value: Option<String>,
    /// Whether it has unquoted `*`, `?` or `[`.
    pub glob: bool,
    /// Whether it begins with `~`.
    pub tilde: bool,
    /// Whether it has any expansion (`$HOME` included).
    pub expands: bool,
}

impl Word {
    /// Its value, or the text as written.
    pub fn text(&self) -> &str {
        self.value.as_deref().unwrap_or(&self.raw)
    }
}

/// A redirection to or from a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Redirect {
    /// Whether it writes.
    pub writes: bool,
    /// The file.
    pub target: Word,
}

/// One simple command.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Part {
    /// Assignments before the name.
    pub assignments: Vec<(String, Word)>,
    /// The name and the arguments.
    pub words: Vec<Word>,
    /// Its redirections.
    pub redirects: Vec<Redirect>,
    /// The text from the first word to the last, as written; the name without its quotes.
    pub source: String,
    /// Whether it stands inside a substitution, group or function: allow rules do not reach there.
    pub nested: bool,
}

impl Part {
    /// The name without quotes.
    pub fn name(&self) -> &str {
        self.words.first().map_or("", Word::text)
    }
}

/// A command taken apart.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Script {
    /// The simple commands, in order of their text.
    pub parts: Vec<Part>,
    /// What hides its effect; sorted, without duplicates.
    pub obstacles: Vec<Obstacle>,
    /// Whether a part runs in the background.
    pub background: bool,
}

impl Script {
    /// Whether everything it does can be read.
    pub fn is_readable(&self) -> bool {
        self.obstacles.is_empty()
    }
}

/// Takes a command apart. Total; `home` is what `~` and `$HOME` stand for.
pub fn decompose(text: &str, home: &str) -> Script {
    let mut walk = Walk { home, script: Script::default(), variables: Vec::new(), source: text };
    if text.chars().any(|c| !c.is_ascii() && c.is_whitespace()) {
        walk.obstacle(Obstacle::UnicodeBlank);
    }
    walk.text(text, false, 0);
    walk.script.obstacles.sort_unstable();
    walk.script.obstacles.dedup();
    walk.script
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(text: &str) -> Vec<String> {
        decompose(text, "/h").parts.iter().map(|part| part.name().to_owned()).collect()
    }

    #[test]
    fn parts_of_compound_commands() {
        assert_eq!(names("foo a && bar; baz | qux"), ["foo", "bar", "baz", "qux"]);
        assert_eq!(names("if ls; then pwd; fi"), ["ls", "pwd"]);
        assert_eq!(names("echo $(foo a) `bar`"), ["echo", "foo", "bar"]);
        assert_eq!(names("x=baz; $x a"), ["", "baz"]);
        assert_eq!(names("b''az a"), ["baz"]);
        assert_eq!(names("\\baz a"), ["baz"]);
        assert_eq!(names("foo a\nbaz"), ["foo", "baz"]);
        assert_eq!(names("time foo a"), ["time"]);
    }

    #[test]
    fn obstacles() {
        let has = |text: &str, obstacle| decompose(text, "/h").obstacles.contains(&obstacle);
        assert!(has("foo $(ls)", Obstacle::Substitution));
        assert!(has("foo <(ls)", Obstacle::Substitution));
        assert!(has("echo $X", Obstacle::Variable) && has("echo \"${X}\"", Obstacle::Variable));
        assert!(has("echo {a,b}", Obstacle::Braces));
        assert!(has("(ls)", Obstacle::Group) && has("{ ls; }", Obstacle::Group));
        assert!(has("f() { ls; }; f", Obstacle::Group));
        assert!(has("cat <<EOF\nhi\nEOF", Obstacle::Heredoc));
        assert!(has("foo 'unterminated", Obstacle::Unparsable));
        assert!(has("echo $'a'", Obstacle::Escapes));
        for text in
            ["echo $HOME", "echo $((1+2))", "cat <<'EOF'\n$X\nEOF", "foo <<< hi", "ls # c", "[[ -f x ]]"]
        {
            assert!(decompose(text, "/h").is_readable(), "{text}: {:?}", decompose(text, "/h").obstacles);
        }
        assert!(decompose("git commit -m \"$(cat <<'EOF'\nmsg\nEOF\n)\"", "/h").is_readable());
    }

    #[test]
    fn redirections() {
        let script = decompose("foo a > out.txt 2>&1 < in 3>o4 &> both", "/h");
        let targets: Vec<(bool, &str)> =
            script.parts[0].redirects.iter().map(|r| (r.writes, r.target.text())).collect();
        assert_eq!(targets, [(true, "out.txt"), (false, "in"), (true, "o4"), (true, "both")]);
    }

    #[test]
    fn sources_keep_blanks() {
        let script = decompose("foo  bar # c", "/h");
        assert_eq!(script.parts[0].source, "foo  bar");
        assert_eq!(decompose("'foo' bar", "/h").parts[0].source, "foo bar");
        assert_eq!(decompose("foo 'bar'", "/h").parts[0].source, "foo 'bar'");
    }
}
