//! What a scenario needs besides this program, and whether it is here.

use std::path::{Path, PathBuf};

/// The first need of a list that is not met, with the word why; `None` when all are.
pub fn missing(needs: &[String], npm: &[PathBuf]) -> Option<String> {
    needs.iter().find_map(|need| match need.strip_prefix("npm:") {
        Some(package) => {
            if find_program("node").is_none() {
                return Some(format!("needs Node.js for the npm package {package}: no `node` in PATH"));
            }
            npm_entry(package, npm).is_none().then(|| {
                format!("needs the npm package {package}: `npm install {package}` here or in a folder above")
            })
        }
        None => find_program(need).is_none().then(|| format!("needs `{need}`, which is not in PATH")),
    })
}

/// The script that an npm package's first `bin` entry names, in the nearest `node_modules`.
pub(super) fn npm_entry(package: &str, roots: &[PathBuf]) -> Option<PathBuf> {
    roots.iter().find_map(|root| {
        let folder = root.join("node_modules").join(package);
        let manifest = std::fs::read_to_string(folder.join("package.json")).ok()?;
        let manifest: serde_json::Value = serde_json::from_str(&manifest).ok()?;
        let entry = match manifest.get("bin")? {
            serde_json::Value::String(entry) => entry.clone(),
            serde_json::Value::Object(entries) => entries.values().next()?.as_str()?.to_owned(),
            _ => return None,
        };
        let script = folder.join(entry);
        script.is_file().then_some(script)
    })
}

/// The folders that may hold `node_modules`: this one and those above it.
pub fn npm_roots(cwd: &Path) -> Vec<PathBuf> {
    let mut roots: Vec<PathBuf> = cwd.ancestors().map(Path::to_owned).collect();
    roots.extend(std::env::var_os("WINDTUNNEL_NPM").map(PathBuf::from));
    roots
}

fn find_program(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|folder| folder.join(name)).find(|program| program.is_file())
}
