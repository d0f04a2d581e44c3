//! Facts about files, answered from the real file system.

use std::path::{Path, PathBuf};
use windtunnel_model::gate::Facts;

/// The real file system.
#[derive(Clone, Copy, Debug, Default)]
pub struct Disk;

/// Bytes beyond which a file is not read to look for text in it.
const TEXT_LIMIT: u64 = 16 * 1024 * 1024;

impl Facts for Disk {
    fn real_path(&self, path: &str) -> String {
        let mut existing = PathBuf::from(path);
        let mut rest = Vec::new();
        loop {
            if let Ok(real) = existing.canonicalize() {
                let full = rest.iter().rev().fold(real, |path: PathBuf, part| path.join(part));
                return full.to_string_lossy().into_owned();
            }
            let Some(name) = existing.file_name().map(std::ffi::OsStr::to_owned) else {
                return path.to_owned();
            };
            rest.push(name);
            if !existing.pop() {
                return path.to_owned();
            }
        }
    }

    fn is_symlink(&self, path: &str) -> bool {
        Path::new(path).is_symlink()
    }

    fn exists(&self, path: &str) -> bool {
        Path::new(path).exists()
    }

    fn text(&self, path: &str) -> Option<String> {
        let size = std::fs::metadata(path).ok()?.len();
        if size > TEXT_LIMIT {
            return None;
        }
        std::fs::read_to_string(path).ok()
    }
}
