//! Taking a shell command apart: its parts, redirections and everything that hides what it would do.
//!
//! The grammar is `brush-parser`'s; this module turns its tree into the few things that rules look at. Source:
//! gate-and-hooks, section 7.2. Work is capped: texts that are long or deeply nested are not parsed and count as
//! unreadable.

use brush_parser::ast;
use brush_parser::word::{self, Parameter, ParameterExpr, TildeExpr, WordPiece, WordPieceWithSource};
use brush_parser::{ParserOptions, TokenizerOptions};

/// Characters beyond which a text is not parsed.
const LENGTH_LIMIT: usize = 20_000;
/// Nesting of brackets, quotes and substitutions beyond which a text is not parsed.
const NESTING_LIMIT: usize = 12;
/// Compound keywords beyond which a text is not parsed.
const KEYWORD_LIMIT: usize = 48;
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

struct Walk<'a> {
    home: &'a str,
    script: Script,
    /// Values given earlier in the same command.
    variables: Vec<(String, Option<String>)>,
    source: &'a str,
}

impl Walk<'_> {
    fn obstacle(&mut self, obstacle: Obstacle) {
        self.script.obstacles.push(obstacle);
    }

    fn text(&mut self, text: &str, nested: bool, depth: usize) {
        if text.trim().is_empty() {
            return;
        }
        let program = if depth > NESTING_LIMIT || !is_within_limits(text) { None } else { parse(text) };
        match program {
            Some(program) => {
                for list in &program.complete_commands {
                    self.list(list, nested, depth);
                }
            }
            None => {
                self.obstacle(Obstacle::Unparsable);
                self.crude_parts(text, nested);
            }
        }
    }

    /// What cannot be parsed is still split at operators, for deny and ask rules only.
    fn crude_parts(&mut self, text: &str, _nested: bool) {
        for piece in
            text.split(['\n', ';', '|', '&']).filter(|piece| !piece.trim().is_empty()).take(PART_LIMIT)
        {
            let words: Vec<Word> = piece
                .split_ascii_whitespace()
                .map(|raw| Word { raw: raw.to_owned(), value: Some(raw.to_owned()), ..Word::default() })
                .collect();
            self.script.parts.push(Part {
                source: piece.trim().to_owned(),
                words,
                nested: true,
                ..Part::default()
            });
        }
    }

    fn list(&mut self, list: &ast::CompoundList, nested: bool, depth: usize) {
        for ast::CompoundListItem(and_or, separator) in &list.0 {
            if matches!(separator, ast::SeparatorOperator::Async) {
                self.script.background = true;
            }
            self.pipeline(&and_or.first, nested, depth);
            for next in &and_or.additional {
                match next {
                    ast::AndOr::And(pipeline) | ast::AndOr::Or(pipeline) => {
                        self.pipeline(pipeline, nested, depth)
                    }
                }
            }
        }
    }

    fn pipeline(&mut self, pipeline: &ast::Pipeline, nested: bool, depth: usize) {
        for (i, command) in pipeline.seq.iter().enumerate() {
            let first = self.script.parts.len();
            self.command(command, nested, depth);
            // `time` is a keyword of the grammar, and a wrapper to the rules.
            if i == 0
                && pipeline.timed.is_some()
                && let Some(part) = self.script.parts.get_mut(first)
            {
                part.words.insert(0, plain_word("time"));
                part.source = format!("time {}", part.source);
            }
        }
    }

    fn command(&mut self, command: &ast::Command, nested: bool, depth: usize) {
        if self.script.parts.len() >= PART_LIMIT {
            self.obstacle(Obstacle::Unparsable);
            return;
        }
        match command {
            ast::Command::Simple(simple) => self.simple(simple, nested, depth),
            ast::Command::Compound(compound, redirects) => {
                self.compound(compound, nested, depth);
                if let Some(redirects) = redirects {
                    let mut part = Part { nested, ..Part::default() };
                    for redirect in &redirects.0 {
                        self.redirect(redirect, &mut part, depth);
                    }
                    if !part.redirects.is_empty() {
                        self.script.parts.push(part);
                    }
                }
            }
            ast::Command::Function(function) => {
                self.obstacle(Obstacle::Group);
                self.compound(&function.body.0, true, depth);
            }
            ast::Command::ExtendedTest(test, _) => self.test(&test.expr, depth, 0),
        }
    }

    fn compound(&mut self, compound: &ast::CompoundCommand, nested: bool, depth: usize) {
        use ast::CompoundCommand as C;
        match compound {
            C::BraceGroup(group) => {
                self.obstacle(Obstacle::Group);
                self.list(&group.list, true, depth);
            }
            C::Subshell(group) => {
                self.obstacle(Obstacle::Group);
                self.list(&group.list, true, depth);
            }
            C::Arithmetic(_) => self.obstacle(Obstacle::Group),
            C::ArithmeticForClause(clause) => {
                self.obstacle(Obstacle::Group);
                self.list(&clause.body.list, true, depth);
            }
            C::ForClause(clause) => {
                for value in clause.values.iter().flatten() {
                    self.word(&value.value, depth);
                }
                self.variables.push((clause.variable_name.clone(), None));
                self.list(&clause.body.list, nested, depth);
            }
            C::CaseClause(clause) => {
                self.obstacle(Obstacle::Group);
                self.word(&clause.value.value, depth);
                for case in &clause.cases {
                    if let Some(list) = &case.cmd {
                        self.list(list, true, depth);
                    }
                }
            }
            C::IfClause(clause) => {
                self.list(&clause.condition, nested, depth);
                self.list(&clause.then, nested, depth);
                for branch in clause.elses.iter().flatten() {
                    if let Some(condition) = &branch.condition {
                        self.list(condition, nested, depth);
                    }
                    self.list(&branch.body, nested, depth);
                }
            }
            C::WhileClause(clause) | C::UntilClause(clause) => {
                self.list(&clause.0, nested, depth);
                self.list(&clause.1.list, nested, depth);
            }
            C::Coprocess(clause) => {
                self.obstacle(Obstacle::Group);
                self.command(&clause.body, true, depth);
            }
        }
    }

    fn test(&mut self, expr: &ast::ExtendedTestExpr, depth: usize, level: usize) {
        use ast::ExtendedTestExpr as E;
        if level > 64 {
            self.obstacle(Obstacle::Unparsable);
            return;
        }
        match expr {
            E::And(a, b) | E::Or(a, b) => {
                self.test(a, depth, level + 1);
                self.test(b, depth, level + 1);
            }
            E::Not(a) | E::Parenthesized(a) => self.test(a, depth, level + 1),
            E::UnaryTest(_, word) => {
                self.word(&word.value, depth);
            }
            E::BinaryTest(_, a, b) => {
                self.word(&a.value, depth);
                self.word(&b.value, depth);
            }
        }
    }

    fn simple(&mut self, simple: &ast::SimpleCommand, nested: bool, depth: usize) {
        // Its own substitutions come after it, as their text would.
        let index = self.script.parts.len();
        self.script.parts.push(Part { nested, ..Part::default() });
        let mut part = Part { nested, ..Part::default() };
        let (mut start, mut end) = (None, None);
        let mut interrupted = false;
        let mut note = |word: &ast::Word, part: &Part| {
            if let Some(span) = &word.loc {
                if start.is_none() && part.words.len() == 1 {
                    start = Some(span.end.index);
                }
                end = Some(span.end.index);
            }
        };
        for item in simple.prefix.iter().flat_map(|prefix| &prefix.0) {
            self.item(item, &mut part, depth);
        }
        if let Some(name) = &simple.word_or_name {
            let word = self.word(&name.value, depth);
            part.words.push(word);
            note(name, &part);
        }
        for item in simple.suffix.iter().flat_map(|suffix| &suffix.0) {
            match item {
                ast::CommandPrefixOrSuffixItem::Word(word)
                | ast::CommandPrefixOrSuffixItem::AssignmentWord(_, word) => {
                    let read = self.word(&word.value, depth);
                    part.words.push(read);
                    note(word, &part);
                }
                other => {
                    interrupted = true;
                    self.item(other, &mut part, depth);
                }
            }
        }
        part.source = match (part.words.first(), start, end) {
            (None, ..) => String::new(),
            (Some(name), Some(start), Some(end)) if !interrupted && depth == 0 => {
                let rest = slice_chars(self.source, start, end).unwrap_or("");
                format!("{}{rest}", name.text())
            }
            (Some(name), ..) => {
                let mut text = name.text().to_owned();
                for word in part.words.iter().skip(1) {
                    text.push(' ');
                    text.push_str(&word.raw);
                }
                text
            }
        };
        if part.words.is_empty() {
            for (name, value) in &part.assignments {
                self.variables.push((name.clone(), value.value.clone()));
            }
        }
        if part.redirects.is_empty() && part.words.is_empty() && part.assignments.is_empty() {
            self.script.parts.remove(index);
        } else if let Some(slot) = self.script.parts.get_mut(index) {
            *slot = part;
        }
    }

    fn item(&mut self, item: &ast::CommandPrefixOrSuffixItem, part: &mut Part, depth: usize) {
        match item {
            ast::CommandPrefixOrSuffixItem::IoRedirect(redirect) => self.redirect(redirect, part, depth),
            ast::CommandPrefixOrSuffixItem::Word(word) => {
                let word = self.word(&word.value, depth);
                part.words.push(word);
            }
            ast::CommandPrefixOrSuffixItem::AssignmentWord(assignment, _) => {
                let name = match &assignment.name {
                    ast::AssignmentName::VariableName(name)
                    | ast::AssignmentName::ArrayElementName(name, _) => name,
                };
                let value = match &assignment.value {
                    ast::AssignmentValue::Scalar(word) => self.word(&word.value, depth),
                    ast::AssignmentValue::Array(items) => {
                        for (_, word) in items {
                            self.word(&word.value, depth);
                        }
                        Word { raw: "(…)".to_owned(), ..Word::default() }
                    }
                };
                part.assignments.push((name.clone(), value));
            }
            ast::CommandPrefixOrSuffixItem::ProcessSubstitution(_, shell) => {
                self.obstacle(Obstacle::Substitution);
                self.list(&shell.list, true, depth + 1);
            }
        }
    }

    fn redirect(&mut self, redirect: &ast::IoRedirect, part: &mut Part, depth: usize) {
        match redirect {
            ast::IoRedirect::File(_, kind, target) => {
                let writes =
                    !matches!(kind, ast::IoFileRedirectKind::Read | ast::IoFileRedirectKind::DuplicateInput);
                match target {
                    ast::IoFileRedirectTarget::Filename(word) => {
                        let target = self.word(&word.value, depth);
                        part.redirects.push(Redirect { writes, target });
                    }
                    ast::IoFileRedirectTarget::Fd(_) => {}
                    ast::IoFileRedirectTarget::Duplicate(word) => {
                        let target = self.word(&word.value, depth);
                        let is_descriptor =
                            target.text().trim_end_matches('-').chars().all(|c| c.is_ascii_digit());
                        if !is_descriptor {
                            part.redirects.push(Redirect { writes, target });
                        }
                    }
                    ast::IoFileRedirectTarget::ProcessSubstitution(_, shell) => {
                        self.obstacle(Obstacle::Substitution);
                        self.list(&shell.list, true, depth + 1);
                    }
                }
            }
            ast::IoRedirect::HereDocument(_, document) => {
                if document.requires_expansion {
                    self.obstacle(Obstacle::Heredoc);
                }
            }
            ast::IoRedirect::HereString(_, word) => {
                self.word(&word.value, depth);
            }
            ast::IoRedirect::OutputAndError(word, _) => {
                let target = self.word(&word.value, depth);
                part.redirects.push(Redirect { writes: true, target });
            }
        }
    }

    /// Reads one word and notes what it hides.
    fn word(&mut self, raw: &str, depth: usize) -> Word {
        let is_plain = raw.bytes().all(|b| {
            b.is_ascii_alphanumeric()
                || matches!(b, b'-' | b'_' | b'.' | b'/' | b'=' | b':' | b',' | b'+' | b'@' | b'%')
        });
        if is_plain {
            return plain_word(raw);
        }
        let mut word = Word { raw: raw.to_owned(), ..Word::default() };
        let Ok(pieces) = word::parse(raw, &options()) else {
            self.obstacle(Obstacle::Unparsable);
            return word;
        };
        let mut value = Some(String::new());
        self.pieces(&pieces, false, depth, &mut word, &mut value);
        word.value = value;
        word
    }

    fn pieces(
        &mut self,
        pieces: &[WordPieceWithSource],
        quoted: bool,
        depth: usize,
        word: &mut Word,
        value: &mut Option<String>,
    ) {
        for piece in pieces {
            match &piece.piece {
                WordPiece::Text(text) => {
                    if !quoted {
                        word.glob |= text.contains(['*', '?', '[']) && text != "[";
                        if has_braces(text) {
                            self.obstacle(Obstacle::Braces);
                            *value = None;
                        }
                    }
                    push(value, text);
                }
                WordPiece::SingleQuotedText(text) => push(value, text),
                WordPiece::AnsiCQuotedText(_) => {
                    self.obstacle(Obstacle::Escapes);
                    *value = None;
                }
                WordPiece::DoubleQuotedSequence(inner) => self.pieces(inner, true, depth, word, value),
                WordPiece::GettextDoubleQuotedSequence(inner) => {
                    self.obstacle(Obstacle::Escapes);
                    self.pieces(inner, true, depth, word, value);
                }
                WordPiece::TildeExpansion(TildeExpr::Home) => {
                    word.tilde = true;
                    word.expands = true;
                    let home = self.home.to_owned();
                    push(value, &home);
                }
                WordPiece::TildeExpansion(_) => {
                    word.tilde = true;
                    word.expands = true;
                    *value = None;
                }
                WordPiece::ParameterExpansion(expression) => {
                    word.expands = true;
                    self.parameter(expression, value);
                }
                WordPiece::CommandSubstitution(text) if is_quoted_heredoc(text) => push(value, "text"),
                WordPiece::CommandSubstitution(text) | WordPiece::BackquotedCommandSubstitution(text) => {
                    word.expands = true;
                    *value = None;
                    self.obstacle(Obstacle::Substitution);
                    self.text(text, true, depth + 1);
                }
                WordPiece::EscapeSequence(text) => push(value, text.strip_prefix('\\').unwrap_or(text)),
                WordPiece::ArithmeticExpression(expression) => {
                    word.expands = true;
                    if expression.value.contains("$(") || expression.value.contains('`') {
                        self.obstacle(Obstacle::Substitution);
                    }
                    *value = None;
                }
            }
        }
    }

    fn parameter(&mut self, expression: &ParameterExpr, value: &mut Option<String>) {
        if let ParameterExpr::Parameter { parameter: Parameter::Named(name), indirect: false } = expression {
            if name == "HOME" {
                let home = self.home.to_owned();
                push(value, &home);
                return;
            }
            if let Some((_, known)) = self.variables.iter().rev().find(|(known, _)| known == name) {
                // Deny and ask rules see the value; allow rules do not rely on it.
                match known.clone() {
                    Some(known) => push(value, &known),
                    None => *value = None,
                }
                self.obstacle(Obstacle::Variable);
                return;
            }
        }
        self.obstacle(Obstacle::Variable);
        *value = None;
    }
}

fn push(value: &mut Option<String>, text: &str) {
    if let Some(value) = value {
        value.push_str(text);
    }
}

fn plain_word(text: &str) -> Word {
    Word { raw: text.to_owned(), value: Some(text.to_owned()), ..Word::default() }
}

/// `{a,b}` or `{1..3}` in unquoted text.
fn has_braces(text: &str) -> bool {
    text.split('{')
        .skip(1)
        .filter_map(|rest| rest.split_once('}'))
        .any(|(inside, _)| inside.contains(',') || inside.contains(".."))
}

/// `cat <<'EOF' … EOF`: text that nothing expands, the usual form of long commit messages.
fn is_quoted_heredoc(text: &str) -> bool {
    let Some(rest) = text.trim().strip_prefix("cat") else { return false };
    let Some(rest) = rest.trim_start().strip_prefix("<<") else { return false };
    let rest = rest.strip_prefix('-').unwrap_or(rest).trim_start();
    let Some((tag, body)) = rest.split_once('\n') else { return false };
    let tag = tag.trim();
    let Some(tag) = tag
        .strip_prefix('\'')
        .and_then(|t| t.strip_suffix('\''))
        .or_else(|| tag.strip_prefix('"').and_then(|t| t.strip_suffix('"')))
        .or_else(|| tag.strip_prefix('\\'))
    else {
        return false;
    };
    let mut lines = body.lines().skip_while(|line| line.trim_start_matches('\t') != tag);
    lines.next().is_some() && lines.all(|line| line.trim().is_empty())
}

fn options() -> ParserOptions {
    ParserOptions::default()
}

fn parse(text: &str) -> Option<ast::Program> {
    let tokenizer = TokenizerOptions::default();
    let tokens = brush_parser::uncached_tokenize_str(text, &tokenizer).ok()?;
    brush_parser::parse_tokens(&tokens, &options()).ok()
}

/// Bounds on what a recursive, backtracking parser is given.
fn is_within_limits(text: &str) -> bool {
    if text.len() > LENGTH_LIMIT {
        return false;
    }
    let (mut depth, mut deepest, mut backquotes) = (0_usize, 0_usize, 0_usize);
    for byte in text.bytes() {
        match byte {
            b'(' | b'{' => {
                depth += 1;
                deepest = deepest.max(depth);
            }
            b')' | b'}' => depth = depth.saturating_sub(1),
            b'`' => backquotes += 1,
            _ => {}
        }
    }
    let keywords = text
        .split(|c: char| !c.is_ascii_alphanumeric() && c != '_' && c != '!')
        .filter(|word| {
            matches!(
                *word,
                "if" | "while"
                    | "until"
                    | "for"
                    | "case"
                    | "select"
                    | "function"
                    | "coproc"
                    | "time"
                    | "!"
                    | "do"
                    | "then"
                    | "elif"
            )
        })
        .count();
    deepest <= NESTING_LIMIT && backquotes <= 2 * NESTING_LIMIT && keywords <= KEYWORD_LIMIT
}

/// The text between two character positions.
fn slice_chars(text: &str, start: usize, end: usize) -> Option<&str> {
    if text.is_ascii() {
        return text.get(start..end);
    }
    let at = |n: usize| text.char_indices().nth(n).map_or(text.len(), |(i, _)| i);
    text.get(at(start)..at(end))
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
