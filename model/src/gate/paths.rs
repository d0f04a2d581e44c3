//! Paths: normal forms, path rules in gitignore terms, protected paths and critical removals.
//!
//! Source: gate-and-hooks, sections 7.3 and 7.6.

use super::rule::Behaviour;
use ignore::gitignore::{Gitignore, GitignoreBuilder};
use std::borrow::Cow;

/// The absolute, lexically normal form of `path`: `~` is home, what is relative is below `cwd`, `.` and `..` are gone.
pub fn normal<'a>(path: &'a str, cwd: &str, home: &str) -> Cow<'a, str> {
    let is_normal = path.starts_with('/')
        && !path.contains("//")
        && !path.contains("/.")
        && (path.len() == 1 || !path.ends_with('/'));
    if is_normal {
        return Cow::Borrowed(path);
    }
    let joined = if path.starts_with('/') {
        path.to_owned()
    } else if path == "~" {
        home.to_owned()
    } else if let Some(rest) = path.strip_prefix("~/") {
        format!("{home}/{rest}")
    } else {
        format!("{cwd}/{path}")
    };
    let mut parts: Vec<&str> = Vec::new();
    for part in joined.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop();
            }
            part => parts.push(part),
        }
    }
    Cow::Owned(format!("/{}", parts.join("/")))
}

/// Whether `path` is `dir` or below it; both normal.
pub fn is_inside(path: &str, dir: &str) -> bool {
    dir == "/" || path.strip_prefix(dir).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// A path pattern split into where it is anchored and what gitignore has to match below.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PathPattern {
    /// Where it is anchored.
    pub anchor: Anchor,
    /// The gitignore line.
    pub line: String,
}

/// Where a path pattern is anchored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Anchor {
    /// The root of the file system (`//…`).
    Root,
    /// Home (`~/…`).
    Home,
    /// The root of the file's own level (`/…`).
    Level,
    /// The working directory.
    Cwd,
}

impl PathPattern {
    /// Reads the specifier of a path rule.
    ///
    /// # Errors
    /// Why it can match nothing.
    pub fn parse(specifier: &str, behaviour: Behaviour) -> Result<Self, &'static str> {
        if specifier.is_empty() {
            return Err("an empty path matches nothing");
        }
        if specifier.starts_with('!') {
            return Err("negated patterns match nothing");
        }
        if specifier.starts_with('#') {
            return Err("gitignore reads this as a comment");
        }
        if specifier.starts_with(' ') {
            return Err("a blank before the path is part of the pattern");
        }
        if specifier.split('/').any(|part| part == "..") {
            return Err("a pattern with `..` matches nothing");
        }
        let (anchor, rest) = if let Some(rest) = specifier.strip_prefix("//") {
            (Anchor::Root, format!("/{rest}"))
        } else if let Some(rest) = specifier.strip_prefix("~/") {
            (Anchor::Home, format!("/{rest}"))
        } else if specifier.starts_with('/') {
            (Anchor::Level, specifier.to_owned())
        } else {
            (Anchor::Cwd, specifier.strip_prefix("./").unwrap_or(specifier).to_owned())
        };
        // A trailing `/**` of a deny or ask rule stands for the directory itself, so it holds at any depth.
        let line = match rest.strip_suffix("/**") {
            Some(dir) if behaviour != Behaviour::Allow && !dir.is_empty() => dir.to_owned(),
            _ => rest,
        };
        // Braces are no alternatives here, but they are for the matcher.
        let line = line.replace('{', "\\{").replace('}', "\\}");
        Ok(Self { anchor, line })
    }
}

/// Path rules with one anchor directory, compiled together.
#[derive(Clone, Debug)]
struct Group {
    base: String,
    matcher: Gitignore,
    rules: Vec<(String, u32)>,
}

/// Path rules of one kind and behaviour.
#[derive(Clone, Debug, Default)]
pub struct PathSet {
    groups: Vec<Group>,
}

impl PathSet {
    /// Compiles patterns with their base directory and the index of their rule. Lines that gitignore cannot read are
    /// left out; [`line_is_usable`] says so beforehand.
    pub fn compile(mut patterns: Vec<(String, String, u32)>, ignore_case: bool) -> Self {
        patterns.sort_by(|a, b| a.0.cmp(&b.0));
        let mut groups: Vec<Group> = Vec::new();
        let mut rest = patterns.into_iter().peekable();
        while let Some((base, line, rule)) = rest.next() {
            let mut builder = builder(ignore_case);
            let mut rules = Vec::new();
            let mut add = |builder: &mut GitignoreBuilder, line: String, rule| {
                if builder.add_line(None, &line).is_ok() {
                    rules.push((line, rule));
                }
            };
            add(&mut builder, line, rule);
            while let Some((_, line, rule)) = rest.next_if(|(next, ..)| *next == base) {
                add(&mut builder, line, rule);
            }
            if let Ok(matcher) = builder.build() {
                groups.push(Group { base, matcher, rules });
            }
        }
        Self { groups }
    }

    /// The rule that covers an absolute, normal path.
    pub fn matches(&self, path: &str) -> Option<u32> {
        self.groups.iter().find_map(|group| {
            let rest = if group.base == "/" {
                path.strip_prefix('/')?
            } else {
                path.strip_prefix(group.base.as_str())?.strip_prefix('/')?
            };
            if rest.is_empty() {
                return None;
            }
            match group.matcher.matched_path_or_any_parents(rest, false) {
                ignore::Match::Ignore(glob) => {
                    group.rules.iter().find(|(line, _)| line == glob.original()).map(|(_, rule)| *rule)
                }
                _ => None,
            }
        })
    }

    /// Whether there is no rule.
    pub fn is_empty(&self) -> bool {
        self.groups.is_empty()
    }
}

fn builder(ignore_case: bool) -> GitignoreBuilder {
    // The root is empty: what is matched is relative already.
    let mut builder = GitignoreBuilder::new("");
    let _ = builder.case_insensitive(ignore_case);
    builder
}

/// Whether gitignore can read the line.
pub fn line_is_usable(line: &str, ignore_case: bool) -> bool {
    let mut builder = builder(ignore_case);
    builder.add_line(None, line).is_ok() && builder.build().is_ok_and(|built| built.num_ignores() == 1)
}

/// Directories whose content is protected, at any depth.
const PROTECTED_DIRS: [&str; 10] = [
    ".git",
    ".vscode",
    ".idea",
    ".husky",
    ".cargo",
    ".devcontainer",
    ".yarn",
    ".mvn",
    ".claude",
    ".config/git",
];

/// Files that are protected, at any depth.
const PROTECTED_FILES: [&str; 27] = [
    ".gitconfig",
    ".gitmodules",
    ".bashrc",
    ".bash_profile",
    ".bash_login",
    ".bash_logout",
    ".profile",
    ".zshrc",
    ".zshenv",
    ".zprofile",
    ".zlogin",
    ".zlogout",
    ".envrc",
    ".npmrc",
    ".yarnrc",
    ".yarnrc.yml",
    "bunfig.toml",
    ".bazelrc",
    ".pre-commit-config.yaml",
    "lefthook.yml",
    "lefthook.yaml",
    "gradle-wrapper.properties",
    ".devcontainer.json",
    ".ripgreprc",
    "pyrightconfig.json",
    ".mcp.json",
    ".claude.json",
];

/// Whether writing the path needs a question in every mode but bypass (gate-and-hooks, section 7.6); case is ignored.
pub fn is_protected(path: &str) -> bool {
    // Nothing is protected without one of these letters: most paths end here.
    if !path.contains("/.") && !PROTECTED_FILES.iter().any(|file| ends_with_ignoring_case(path, file)) {
        return false;
    }
    let lower = path.to_ascii_lowercase();
    let mut parts: Vec<&str> = lower.split('/').filter(|part| !part.is_empty()).collect();
    // The exception: `.claude/worktrees` and what is below, judged by what stands below it.
    if let Some(at) = parts.windows(2).position(|pair| pair == [".claude", "worktrees"]) {
        parts.drain(..(at + 2).min(parts.len()));
    }
    let last = parts.last().copied().unwrap_or("");
    PROTECTED_FILES.contains(&last)
        || parts.iter().any(|part| PROTECTED_DIRS.contains(part))
        || parts.windows(2).any(|pair| pair == [".config", "git"])
}

fn ends_with_ignoring_case(path: &str, file: &str) -> bool {
    path.len()
        .checked_sub(file.len())
        .and_then(|start| path.get(start..))
        .is_some_and(|end| end.eq_ignore_ascii_case(file))
}

/// Whether removing the path is critical: the root, its children, home, the working directory and its parents.
pub fn is_critical_removal(path: &str, cwd: &str, home: &str) -> bool {
    let depth = path.split('/').filter(|part| !part.is_empty()).count();
    depth <= 1 || path == home || is_inside(cwd, path)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The table of gate-and-hooks, section 7.3, allow column and the deny column's differences.
    #[test]
    fn path_patterns_of_the_table() {
        let covers = |specifier: &str, behaviour: Behaviour, path: &str| {
            let Ok(pattern) = PathPattern::parse(specifier, behaviour) else { return false };
            let base = match pattern.anchor {
                Anchor::Root => "/",
                Anchor::Home => "/home/u",
                Anchor::Level => "/home/u/.claude",
                Anchor::Cwd => "/w",
            };
            PathSet::compile(vec![(base.to_owned(), pattern.line, 0)], true).matches(path).is_some()
        };
        use Behaviour::{Allow, Deny};
        for specifier in ["a.txt", "./a.txt", "*.txt", "?.txt", "[ab].txt", "**", "./**", "**/*", "A.TXT"] {
            assert!(covers(specifier, Allow, "/w/a.txt"), "{specifier}");
            assert!(covers(specifier, Allow, "/w/sub/a.txt"), "{specifier}");
            assert!(!covers(specifier, Allow, "/x/a.txt"), "{specifier}");
        }
        for specifier in ["src", "src/", "**/src/**"] {
            assert!(covers(specifier, Allow, "/w/src/d/new.ts"), "{specifier}");
            assert!(covers(specifier, Allow, "/w/vendor/pkg/src/new.js"), "{specifier}");
        }
        assert!(covers("src/*", Allow, "/w/src/d/new.ts") && !covers("src/*", Deny, "/w/vendor/src/new.js"));
        for specifier in ["src/**", "./src/**"] {
            assert!(covers(specifier, Allow, "/w/src/d/new.ts"), "{specifier}");
            assert!(!covers(specifier, Allow, "/w/vendor/pkg/src/new.js"), "{specifier}");
            assert!(covers(specifier, Deny, "/w/vendor/pkg/src/new.js"), "{specifier}");
        }
        assert!(
            covers("src/new.ts", Allow, "/w/src/new.ts") && !covers("src/new.ts", Allow, "/w/src/d/new.ts")
        );
        assert!(covers("src/*.ts", Deny, "/w/src/new.ts") && !covers("src/*.ts", Deny, "/w/src/d/new.ts"));
        assert!(covers("src/**/new.ts", Allow, "/w/src/d/new.ts"));
        assert!(covers("//**", Deny, "/x") && covers("~/d/*", Allow, "/home/u/d/x"));
        assert!(!covers("/a.txt", Allow, "/w/a.txt") && covers("/src/**", Deny, "/home/u/.claude/src/q"));
        for specifier in ["{a,b}.txt", "../o.txt", " a.txt ", "!a.txt", "sub/../a.txt"] {
            assert!(
                !covers(specifier, Allow, "/w/a.txt") && !covers(specifier, Deny, "/w/a.txt"),
                "{specifier}"
            );
        }
    }

    #[test]
    fn protected_paths_of_the_table() {
        for path in ["/w/.git/config", "/w/sub/.git/x", "/w/.GIT/config", "/w/.claude/x", "/w/.config/git/x"]
        {
            assert!(is_protected(path), "{path}");
        }
        for path in ["/w/.npmrc", "/w/lefthook.yml", "/w/gradle-wrapper.properties", "/w/.mcp.json"] {
            assert!(is_protected(path), "{path}");
        }
        for path in [
            "/w/.claude/worktrees/x/y",
            "/w/.gitignore",
            "/w/.github/x",
            "/w/.env",
            "/w/.ssh/x",
            "/w/Makefile",
        ] {
            assert!(!is_protected(path), "{path}");
        }
    }

    #[test]
    fn critical_removals() {
        for path in ["/", "/etc", "/home/u", "/w/p", "/w"] {
            assert!(is_critical_removal(path, "/w/p", "/home/u"), "{path}");
        }
        assert!(!is_critical_removal("/etc/x/y", "/w/p", "/home/u"));
    }

    #[test]
    fn normal_forms() {
        assert_eq!(normal("a/../b", "/w", "/h"), "/w/b");
        assert_eq!(normal("~/x", "/w", "/h"), "/h/x");
        assert_eq!(normal("../../..", "/w", "/h"), "/");
        assert_eq!(normal("/a//b/./c/", "/w", "/h"), "/a/b/c");
    }
}
