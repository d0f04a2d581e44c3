//! From the syntax tree to parts, redirections and obstacles.

use super::parse::{is_within_limits, parse, slice_chars};
use super::words::plain_word;
use super::{NESTING_LIMIT, Obstacle, PART_LIMIT, Part, Redirect, Script, Word};
use brush_parser::ast;

/// A walk over one command; it gathers the script.
pub(super) struct Walk<'a> {
    pub(super) home: &'a str,
    pub(super) script: Script,
    /// Values given earlier in the same command.
    pub(super) variables: Vec<(String, Option<String>)>,
    pub(super) source: &'a str,
}

impl Walk<'_> {
    pub(super) fn obstacle(&mut self, obstacle: Obstacle) {
        self.script.obstacles.push(obstacle);
    }

    pub(super) fn text(&mut self, text: &str, nested: bool, depth: usize) {
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
}
