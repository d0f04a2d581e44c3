//! The built-in tools: names, schemas, which only read. Their execution is the process world's.

use serde_json::{Value, json};

/// A built-in tool.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum BuiltIn {
    /// Reads a file.
    Read,
    /// Writes a file.
    Write,
    /// Replaces text in a file.
    Edit,
    /// Runs a shell command.
    Bash,
    /// Finds files by pattern.
    Glob,
    /// Searches file contents.
    Grep,
}

impl BuiltIn {
    /// All, in the order of the documents.
    pub const ALL: [Self; 6] = [Self::Read, Self::Write, Self::Edit, Self::Bash, Self::Glob, Self::Grep];

    /// The name that the assistant uses.
    pub fn name(self) -> &'static str {
        match self {
            Self::Read => "Read",
            Self::Write => "Write",
            Self::Edit => "Edit",
            Self::Bash => "Bash",
            Self::Glob => "Glob",
            Self::Grep => "Grep",
        }
    }

    /// The tool of a name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|tool| tool.name() == name)
    }

    /// Whether it never changes anything. Bash depends on its command and counts as changing here.
    pub fn is_read_only(self) -> bool {
        matches!(self, Self::Read | Self::Glob | Self::Grep)
    }

    /// The JSON Schema of its input: the fields that are documented, nothing else allowed.
    pub fn schema(self) -> Value {
        let (required, properties) = match self {
            Self::Read => (
                json!(["file_path"]),
                json!({"file_path": {"type": "string"}, "offset": {"type": "integer"}, "limit": {"type": "integer"}}),
            ),
            Self::Write => (
                json!(["file_path", "content"]),
                json!({"file_path": {"type": "string"}, "content": {"type": "string"}}),
            ),
            Self::Edit => (
                json!(["file_path", "old_string", "new_string"]),
                json!({
                    "file_path": {"type": "string"},
                    "old_string": {"type": "string"},
                    "new_string": {"type": "string"},
                    "replace_all": {"type": "boolean"},
                }),
            ),
            Self::Bash => (
                json!(["command"]),
                json!({
                    "command": {"type": "string"},
                    "timeout": {"type": "number"},
                    "description": {"type": "string"},
                    "run_in_background": {"type": "boolean"},
                }),
            ),
            Self::Glob => {
                (json!(["pattern"]), json!({"pattern": {"type": "string"}, "path": {"type": "string"}}))
            }
            Self::Grep => (
                json!(["pattern"]),
                json!({
                    "pattern": {"type": "string"},
                    "path": {"type": "string"},
                    "glob": {"type": "string"},
                    "output_mode": {"enum": ["content", "files_with_matches", "count"]},
                }),
            ),
        };
        json!({"type": "object", "properties": properties, "required": required, "additionalProperties": false})
    }

    /// What it does, in one line.
    pub fn description(self) -> &'static str {
        match self {
            Self::Read => "Reads a file.",
            Self::Write => "Writes a file.",
            Self::Edit => "Replaces text in a file.",
            Self::Bash => "Runs a shell command.",
            Self::Glob => "Finds files by pattern.",
            Self::Grep => "Searches file contents.",
        }
    }
}
