//! Prompts as commands, resources as two tools (M7; mcp.md 3.9).

use super::names::sanitise;
use serde_json::{Map, Value, json};

/// The tool that lists resources; offered when some server has resources, needs no permission.
pub const LIST_RESOURCES: &str = "ListMcpResourcesTool";
/// The tool that reads one.
pub const READ_RESOURCE: &str = "ReadMcpResourceTool";

/// The command of a prompt: `/mcp__<server>__<prompt>`. A prompt whose name has a blank cannot be called, since the
/// command line is split at blanks.
pub fn command(server: &str, prompt: &str) -> String {
    format!("/mcp__{}__{}", sanitise(server), prompt)
}

/// Why a command sends nothing.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CommandError {
    /// No prompt has this command.
    #[error("no prompt has the command `{0}`")]
    Unknown(String),
    /// A required argument is missing.
    #[error("the argument `{0}` is missing")]
    Missing(String),
}

/// The `prompts/get` of a command line: the prompt's name and its arguments, blank-separated and positional.
///
/// # Errors
/// When no prompt matches or a required argument is missing; nothing is sent then.
pub fn prompt_request(line: &str, server: &str, prompts: &[Value]) -> Result<Value, CommandError> {
    let mut words = line.split_whitespace();
    let head = words.next().unwrap_or_default();
    let name = |prompt: &Value| prompt.get("name").and_then(Value::as_str).map(str::to_owned);
    let found = prompts.iter().find(|prompt| name(prompt).is_some_and(|name| command(server, &name) == head));
    let prompt = found.ok_or_else(|| CommandError::Unknown(head.to_owned()))?;
    let mut arguments = Map::new();
    for argument in prompt.get("arguments").and_then(Value::as_array).into_iter().flatten() {
        let key = argument.get("name").and_then(Value::as_str).unwrap_or_default();
        match words.next() {
            Some(word) => {
                arguments.insert(key.to_owned(), word.into());
            }
            None if argument.get("required") == Some(&Value::Bool(true)) => {
                return Err(CommandError::Missing(key.to_owned()));
            }
            None => {}
        }
    }
    Ok(json!({"name": name(prompt), "arguments": arguments}))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn m7_prompts_become_commands() {
        let prompts = [
            json!({"name": "review", "arguments": [{"name": "file", "required": true}, {"name": "style"}]}),
            json!({"name": "two words"}),
        ];
        assert_eq!(
            prompt_request("/mcp__my_srv__review a.rs", "my.srv", &prompts),
            Ok(json!({"name": "review", "arguments": {"file": "a.rs"}}))
        );
        assert_eq!(
            prompt_request("/mcp__my_srv__review", "my.srv", &prompts),
            Err(CommandError::Missing("file".into()))
        );
        assert!(prompt_request("/mcp__my_srv__two words", "my.srv", &prompts).is_err());
    }
}
