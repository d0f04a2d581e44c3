//! The scenarios that ship, embedded in the binary.

use super::load::{Loaded, ScenarioError, parse};
use include_dir::{Dir, include_dir};

static SCENARIOS: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/../scenarios");

/// All shipped scenarios, in the order of their paths.
///
/// # Errors
/// When one cannot be parsed; a test sees to it that none is.
pub fn all() -> Result<Vec<Loaded>, Box<ScenarioError>> {
    let mut files = Vec::new();
    collect(&SCENARIOS, &mut files);
    files.sort();
    files.into_iter().map(|(path, text)| parse(&format!("scenarios/{path}"), text.to_owned())).collect()
}

fn collect(dir: &'static Dir<'static>, files: &mut Vec<(String, &'static str)>) {
    for file in dir.files() {
        let path = file.path().display().to_string();
        if path.ends_with(".json")
            && !path.ends_with(".schema.json")
            && let Some(text) = file.contents_utf8()
        {
            files.push((path, text));
        }
    }
    for dir in dir.dirs() {
        collect(dir, files);
    }
}
