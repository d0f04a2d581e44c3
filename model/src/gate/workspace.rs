//! Where a session works: its directories, its current directory and its mode.
//!
//! Source: gate-and-hooks, sections 7.3 (paths) and 8 (modes).

use super::facts::Facts;
use super::mode::Mode;
use super::paths;
use super::rules::Bases;
use std::borrow::Cow;

/// Where the session works: what changes from call to call is the current directory and the mode.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Workspace {
    /// The directory the session was started in; absolute and normal.
    pub project: String,
    /// The current directory.
    pub cwd: String,
    /// Home.
    pub home: String,
    /// Additional directories; absolute and normal.
    pub directories: Vec<String>,
    /// The mode in force.
    pub mode: Mode,
    /// Whether auto mode is available, so that plan mode judges with its classifier.
    pub plan_with_auto: bool,
}

impl Workspace {
    /// A workspace in `project` with the given home, in default mode.
    pub fn new(project: &str, home: &str) -> Self {
        Self {
            project: project.to_owned(),
            cwd: project.to_owned(),
            home: home.to_owned(),
            directories: Vec::new(),
            mode: Mode::Default,
            plan_with_auto: true,
        }
    }

    /// Adds a directory as it was written in settings or on the command line.
    pub fn add_directory(&mut self, written: &str) {
        let path = paths::normal(written, &self.project, &self.home).into_owned();
        self.directories.push(path);
    }

    /// The bases of path rules.
    pub fn bases(&self) -> Bases {
        Bases { project: self.project.clone(), home: self.home.clone() }
    }

    /// The absolute, normal form of a path as a tool or command writes it.
    pub fn absolute<'a>(&self, path: &'a str) -> Cow<'a, str> {
        paths::normal(path, &self.cwd, &self.home)
    }

    pub(super) fn contains(&self, path: &str) -> bool {
        paths::is_inside(path, &self.project)
            || self.directories.iter().any(|dir| paths::is_inside(path, dir))
    }

    /// Whether an absolute path and what it resolves to are inside the working directories.
    pub fn is_inside(&self, path: &str, facts: &dyn Facts) -> bool {
        if !self.contains(path) {
            return false;
        }
        let real = facts.real_path(path);
        real == path || self.contains(&real) || self.contains_really(&real, facts)
    }

    /// The working directories may themselves be reached through links.
    fn contains_really(&self, real: &str, facts: &dyn Facts) -> bool {
        std::iter::once(&self.project)
            .chain(&self.directories)
            .any(|dir| paths::is_inside(real, &facts.real_path(dir)))
    }

    /// Whether the classifier judges what nothing else decides.
    pub(super) fn has_classifier(&self) -> bool {
        self.mode == Mode::Auto || (self.mode == Mode::Plan && self.plan_with_auto)
    }
}
