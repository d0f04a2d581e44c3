//! A file that the user named, as it was read.

use super::{CliError, Io};
use std::path::Path;
use windtunnel_model::place::Place;

/// A file as it was read.
pub(crate) struct Source {
    /// As the user named it.
    pub(crate) name: String,
    /// Its text.
    pub(crate) text: String,
}

impl Source {
    pub(crate) fn read(io: &mut Io<'_>, path: &Path) -> Result<Self, CliError> {
        let name = path.display().to_string();
        if name == "-" {
            let mut text = String::new();
            io.stdin.read_to_string(&mut text)?;
            return Ok(Self { name: "stdin".to_owned(), text });
        }
        let full = io.cwd.join(path);
        let text = crate::files::read_text(&full).map_err(|source| CliError::File { path: full, source })?;
        Ok(Self { name, text })
    }

    /// The place of an RFC 6901 pointer.
    pub(crate) fn at(&self, pointer: &str) -> Place {
        Place::at_pointer(self.name.as_str(), &self.text, pointer)
    }
}
