//! Facts about files, which the gate asks and the world answers: it never looks itself (decisions, 3).

use std::collections::BTreeMap;

/// Answers about the file system. Paths are absolute and lexically normal.
pub trait Facts {
    /// The path with every symbolic link in it resolved, as far as it exists.
    fn real_path(&self, path: &str) -> String;
    /// Whether the path itself is a symbolic link.
    fn is_symlink(&self, path: &str) -> bool;
    /// Whether something exists there.
    fn exists(&self, path: &str) -> bool;
    /// The text of a file; `None` when there is none or it is not text.
    fn text(&self, path: &str) -> Option<String>;
}

/// No files at all: every path is what it says.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoFiles;

impl Facts for NoFiles {
    fn real_path(&self, path: &str) -> String {
        path.to_owned()
    }

    fn is_symlink(&self, _: &str) -> bool {
        false
    }

    fn exists(&self, _: &str) -> bool {
        false
    }

    fn text(&self, _: &str) -> Option<String> {
        None
    }
}

/// Files in memory, for tests and closed scenarios.
#[derive(Clone, Debug, Default)]
pub struct MemoryFiles {
    /// Texts by absolute path.
    pub files: BTreeMap<String, String>,
    /// Targets of symbolic links by absolute path; absolute, too.
    pub links: BTreeMap<String, String>,
}

impl Facts for MemoryFiles {
    fn real_path(&self, path: &str) -> String {
        let mut path = path.to_owned();
        // Links may point to links; a cycle ends after as many steps as there are links.
        for _ in 0..=self.links.len() {
            let link = self.links.iter().find(|(link, _)| {
                path.strip_prefix(link.as_str()).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
            });
            match link {
                Some((link, target)) => path = format!("{target}{}", path.get(link.len()..).unwrap_or("")),
                None => break,
            }
        }
        path
    }

    fn is_symlink(&self, path: &str) -> bool {
        self.links.contains_key(path)
    }

    fn exists(&self, path: &str) -> bool {
        let real = self.real_path(path);
        let below = format!("{real}/");
        self.files.keys().any(|file| *file == real || file.starts_with(&below))
    }

    fn text(&self, path: &str) -> Option<String> {
        self.files.get(&self.real_path(path)).cloned()
    }
}
