//! Places in users' files: file, line and column of the part that a message is about.

use jsonc_parser::{CollectOptions, ParseOptions, ast};
use serde::{Deserialize, Serialize};

/// A place in a file: what every finding, error and `decided_by` names. Lines and columns count from 1.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Place {
    /// The file as the user named it.
    pub file: String,
    /// Line, from 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<u32>,
    /// Column in characters, from 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub column: Option<u32>,
}

impl Place {
    /// A place that is a whole file.
    pub fn file(file: impl Into<String>) -> Self {
        Self { file: file.into(), line: None, column: None }
    }

    /// The place of byte `offset` of `text`, the content of `file`.
    pub fn at_offset(file: impl Into<String>, text: &str, offset: usize) -> Self {
        let mut end = offset.min(text.len());
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        let before = text.get(..end).unwrap_or(text);
        let line = before.matches('\n').count() + 1;
        let column = before.rsplit('\n').next().unwrap_or("").chars().count() + 1;
        Self { file: file.into(), line: u32::try_from(line).ok(), column: u32::try_from(column).ok() }
    }

    /// The place of the value that an RFC 6901 JSON `pointer` names inside `text`; the deepest existing ancestor where
    /// the value itself is missing; the whole file where `text` is not JSON.
    ///
    /// ```
    /// use windtunnel_model::place::Place;
    /// let text = "{\n  \"deny\": [\"Write\",\n    \"Edit\"]\n}";
    /// let place = Place::at_pointer("settings.json", text, "/deny/1");
    /// assert_eq!((place.line, place.column), (Some(3), Some(5)));
    /// ```
    pub fn at_pointer(file: impl Into<String>, text: &str, pointer: &str) -> Self {
        let file = file.into();
        match offset_of_pointer(text, pointer) {
            Some(offset) => Self::at_offset(file, text, offset),
            None => Self::file(file),
        }
    }
}

impl std::fmt::Display for Place {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.file)?;
        if let Some(line) = self.line {
            write!(f, ":{line}")?;
            if let Some(column) = self.column {
                write!(f, ":{column}")?;
            }
        }
        Ok(())
    }
}

/// The byte offset at which the value named by `pointer` starts, or that of its deepest existing ancestor.
///
/// Callers parse the text with serde_json first, whose depth limit (128) bounds the recursion here; a text that is
/// nested deeper gives `None`.
pub fn offset_of_pointer(text: &str, pointer: &str) -> Option<usize> {
    if nesting(text) > 128 {
        return None;
    }
    let parsed =
        jsonc_parser::parse_to_ast(text, &CollectOptions::default(), &ParseOptions::default()).ok()?;
    let mut value = parsed.value?;
    for part in pointer.split('/').skip(1) {
        let part = part.replace("~1", "/").replace("~0", "~");
        let next = match value {
            ast::Value::Object(ref mut object) => object
                .properties
                .iter()
                .position(|p| p.name.as_str() == part)
                .map(|i| object.properties.swap_remove(i).value),
            ast::Value::Array(ref mut array) => part
                .parse::<usize>()
                .ok()
                .filter(|i| *i < array.elements.len())
                .map(|i| array.elements.swap_remove(i)),
            _ => None,
        };
        match next {
            Some(next) => value = next,
            None => break,
        }
    }
    Some(jsonc_parser::common::Ranged::range(&value).start)
}

/// The deepest nesting of brackets outside strings: a bound for recursive parsers.
pub fn nesting(text: &str) -> usize {
    let (mut depth, mut deepest, mut in_string, mut escaped) = (0usize, 0usize, false, false);
    for byte in text.bytes() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if in_string => escaped = true,
            b'"' => in_string = !in_string,
            b'{' | b'[' if !in_string => {
                depth += 1;
                deepest = deepest.max(depth);
            }
            b'}' | b']' if !in_string => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    deepest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_value_gives_its_deepest_ancestor() {
        let text = "{\n \"a\": {\"b\": 1}\n}";
        assert_eq!(Place::at_pointer("f", text, "/a/c/d").line, Some(2));
        assert_eq!(Place::at_pointer("f", "not json", "/a").line, None);
    }

    #[test]
    fn deep_nesting_is_refused_not_recursed_into() {
        let text = "[".repeat(100_000);
        assert_eq!(offset_of_pointer(&text, "/0"), None);
    }
}
