//! Reading a scenario: every error names file, line and column, what was found, what was expected, and a hint.

use super::{SCENARIO_VERSION, Scenario};
use std::path::{Path, PathBuf};
use windtunnel_model::place::{Place, nesting};
use windtunnel_model::profile::{ProfileName, UnknownProfileError};

/// The largest scenario file that is read, in bytes.
pub const MAX_BYTES: u64 = 4 * 1024 * 1024;

/// Why a scenario cannot be read or run.
#[derive(Debug, thiserror::Error)]
#[error("{place}: {message}")]
pub struct ScenarioError {
    /// Where.
    pub place: Place,
    /// What was found, and what was expected.
    pub message: String,
    /// What may help.
    pub hint: Option<String>,
    /// The line of the place, where it is short enough to be shown.
    pub line: Option<String>,
}

/// The longest line that an error shows, in bytes.
const SHOWN_LINE: usize = 200;

impl ScenarioError {
    /// An error about a file as a whole.
    pub fn file(file: &str, message: impl Into<String>, hint: Option<&str>) -> Box<Self> {
        Box::new(Self {
            place: Place::file(file),
            message: message.into(),
            hint: hint.map(str::to_owned),
            line: None,
        })
    }

    /// An error at the value that a JSON pointer names.
    pub fn at_pointer(file: &str, text: &str, pointer: &str, message: impl Into<String>) -> Box<Self> {
        Self::at(Place::at_pointer(file, text, pointer), text, message)
    }

    fn at(place: Place, text: &str, message: impl Into<String>) -> Box<Self> {
        let number = place.line.and_then(|line| usize::try_from(line).ok()?.checked_sub(1));
        let line = number.and_then(|number| text.lines().nth(number));
        let line = line.filter(|line| line.len() <= SHOWN_LINE).map(str::to_owned);
        Box::new(Self { place, message: message.into(), hint: None, line })
    }

    /// The same with a hint.
    #[must_use]
    pub fn with_hint(mut self: Box<Self>, hint: impl Into<String>) -> Box<Self> {
        self.hint = Some(hint.into());
        self
    }
}

/// A scenario with where it comes from.
#[derive(Clone, Debug)]
pub struct Loaded {
    /// Its id: the path without folders above the given one and without `.json`.
    pub id: String,
    /// The file as the user named it; for an embedded one, `scenarios/…`.
    pub file: String,
    /// Its text, for messages.
    pub text: String,
    /// The scenario.
    pub scenario: Scenario,
}

impl Loaded {
    /// The profiles in which it is run: the one asked for, else those that it names, else `documented` (decisions 11).
    ///
    /// # Errors
    /// When it names a profile that does not exist.
    pub fn profiles(&self, asked: Option<ProfileName>) -> Result<Vec<ProfileName>, UnknownProfileError> {
        if let Some(profile) = asked {
            return Ok(vec![profile]);
        }
        let named = &self.scenario.profiles;
        if named.is_empty() {
            return Ok(vec![ProfileName::Documented]);
        }
        named.iter().map(|name| name.parse()).collect()
    }
}

/// Reads scenarios from files and folders (recursively; `*.json` except the schema), in the order of their paths.
///
/// # Errors
/// Every file that cannot be read, one error each.
pub fn load_paths(paths: &[PathBuf], cwd: &Path) -> Result<Vec<Loaded>, Vec<ScenarioError>> {
    let (mut loaded, mut errors) = (Vec::new(), Vec::new());
    for path in paths {
        let absolute = cwd.join(path);
        if absolute.is_dir() {
            let mut files = Vec::new();
            collect(&absolute, 0, &mut files);
            files.sort();
            if files.is_empty() {
                errors.push(*ScenarioError::file(
                    &path.display().to_string(),
                    "a folder without scenario files (*.json)",
                    Some("`windtunnel new NAME` writes one"),
                ));
            }
            for file in files {
                let shown = path.join(file.strip_prefix(&absolute).unwrap_or(&file));
                load_one(&shown, &file, &mut loaded, &mut errors);
            }
        } else {
            load_one(path, &absolute, &mut loaded, &mut errors);
        }
    }
    if errors.is_empty() { Ok(loaded) } else { Err(errors) }
}

/// Folders nested deeper than this are left out: a link to a folder above makes an endless tree.
const MAX_FOLDERS: usize = 16;

fn collect(folder: &Path, depth: usize, files: &mut Vec<PathBuf>) {
    let Ok(entries) = std::fs::read_dir(folder) else { return };
    for entry in entries.filter_map(Result::ok) {
        let path = entry.path();
        let is_link = entry.file_type().is_ok_and(|kind| kind.is_symlink());
        if path.is_dir() && !is_link && depth < MAX_FOLDERS {
            collect(&path, depth + 1, files);
        } else if path.extension().is_some_and(|extension| extension == "json")
            && !path.file_name().is_some_and(|name| name.to_string_lossy().ends_with(".schema.json"))
        {
            files.push(path);
        }
    }
}

fn load_one(shown: &Path, path: &Path, loaded: &mut Vec<Loaded>, errors: &mut Vec<ScenarioError>) {
    let file = shown.display().to_string();
    match read(path, &file).and_then(|text| parse(&file, text)) {
        Ok(scenario) => loaded.push(scenario),
        Err(error) => errors.push(*error),
    }
}

fn read(path: &Path, file: &str) -> Result<String, Box<ScenarioError>> {
    let cannot = |error: std::io::Error| {
        ScenarioError::file(
            file,
            format!("cannot be read: {error}"),
            Some("expected a scenario file or a folder"),
        )
    };
    let metadata = std::fs::metadata(path).map_err(cannot)?;
    if !metadata.is_file() {
        return Err(ScenarioError::file(
            file,
            "not a regular file",
            Some("expected a scenario file or a folder"),
        ));
    }
    let size = metadata.len();
    if size > MAX_BYTES {
        return Err(ScenarioError::file(
            file,
            format!("{size} bytes, expected at most {MAX_BYTES}"),
            Some("keep large payloads out of scenarios: a server script can make them (`giant`)"),
        ));
    }
    let bytes = crate::files::read(path).map_err(cannot)?;
    String::from_utf8(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        ScenarioError::file(file, format!("byte {at} is not UTF-8, expected a JSON text in UTF-8"), None)
    })
}

/// Parses the text of a scenario.
///
/// # Errors
/// What is wrong, where, and what was expected.
pub fn parse(file: &str, text: String) -> Result<Loaded, Box<ScenarioError>> {
    if nesting(&text) > 100 {
        return Err(ScenarioError::file(
            file,
            "nested deeper than 100 levels, expected a flat scenario",
            None,
        ));
    }
    let mut json = serde_json::Deserializer::from_str(&text);
    let scenario: Scenario = serde_path_to_error::deserialize(&mut json).map_err(|error| {
        let path = error.path().to_string();
        describe(file, &text, &path, error.inner())
    })?;
    json.end().map_err(|error| describe(file, &text, ".", &error))?;
    if scenario.version != SCENARIO_VERSION {
        return Err(ScenarioError::at_pointer(
            file,
            &text,
            "/version",
            format!("found version {}, expected {SCENARIO_VERSION}", scenario.version),
        ));
    }
    let id = file.strip_suffix(".json").unwrap_or(file);
    let id = id.split_once("scenarios/").map_or(id, |(_, rest)| rest).trim_start_matches("./").to_owned();
    Ok(Loaded { id, file: file.to_owned(), text, scenario })
}

fn describe(file: &str, text: &str, path: &str, error: &serde_json::Error) -> Box<ScenarioError> {
    let line = u32::try_from(error.line()).ok().filter(|line| *line > 0);
    let column = u32::try_from(error.column()).ok().filter(|column| *column > 0);
    let place = Place { file: file.to_owned(), line, column };
    let full = error.to_string();
    let message = full.rsplit_once(" at line ").map_or(full.as_str(), |(message, _)| message);
    let message =
        if path == "." || path.is_empty() { message.to_owned() } else { format!("in `{path}`: {message}") };
    let hint = match error.classify() {
        serde_json::error::Category::Syntax => {
            "the file is not JSON; comments and trailing commas are not JSON either"
        }
        serde_json::error::Category::Eof => "the file ends too early: a bracket or a quote is not closed",
        serde_json::error::Category::Data if message.contains("unknown field") => {
            "see `windtunnel scenario schema` for the fields; settings and servers have fields of their own"
        }
        _ => "see `windtunnel scenario schema`",
    };
    ScenarioError::at(place, text, message).with_hint(hint)
}
