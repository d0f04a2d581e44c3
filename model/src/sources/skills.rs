//! Skills as files: the frontmatter of a SKILL.md (or of a command file) and what of it the listing uses
//! (000, definition 5.1; context-cost 3).

use serde_json::Value;

/// A skill as its file states it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Skill {
    /// The name that it is invoked by: the `name` field, else the folder's name.
    pub name: String,
    /// The description; the first paragraph of the body where the frontmatter has none.
    pub description: String,
    /// `when_to_use`.
    pub when_to_use: String,
    /// `disable-model-invocation`: then it is not listed either.
    pub model_invocable: bool,
    /// `user-invocable`.
    pub user_invocable: bool,
    /// `context: fork`.
    pub fork: bool,
    /// `allowed-tools`, as a list.
    pub allowed_tools: Vec<String>,
    /// The body.
    pub body: String,
    /// What is wrong with the file, in words.
    pub faults: Vec<String>,
}

impl Skill {
    /// The text that is listed, uncut: description and `when_to_use` joined by ` - `.
    pub fn listed_text(&self) -> String {
        match (self.description.is_empty(), self.when_to_use.is_empty()) {
            (_, true) => self.description.clone(),
            (true, false) => self.when_to_use.clone(),
            (false, false) => format!("{} - {}", self.description, self.when_to_use),
        }
    }
}

/// Reads a SKILL.md that stands in a folder called `folder`. Total: what cannot be read is a fault of the skill.
pub fn read_skill(folder: &str, text: &str) -> Skill {
    let mut skill =
        Skill { name: folder.to_owned(), model_invocable: true, user_invocable: true, ..Skill::default() };
    let (front, body) = split(text);
    body.clone_into(&mut skill.body);
    match front {
        None => skill.faults.push("no frontmatter".to_owned()),
        Some(front) => match serde_saphyr::from_str::<Value>(front) {
            Ok(Value::Object(fields)) => take_fields(&mut skill, &fields),
            Ok(Value::Null) => {}
            Ok(_) => skill.faults.push("the frontmatter is not a map of fields".to_owned()),
            Err(error) => {
                let first = error.to_string();
                let first = first.lines().next().unwrap_or_default();
                skill.faults.push(format!("the frontmatter is not YAML: {first}"));
            }
        },
    }
    if skill.description.is_empty() {
        first_paragraph(&skill.body).clone_into(&mut skill.description);
    }
    skill
}

fn take_fields(skill: &mut Skill, fields: &serde_json::Map<String, Value>) {
    let text =
        |key: &str| fields.get(key).and_then(Value::as_str).map(str::trim).unwrap_or_default().to_owned();
    let truth = |key: &str| match fields.get(key) {
        Some(Value::Bool(value)) => Some(*value),
        Some(Value::String(word)) if word == "true" => Some(true),
        Some(Value::String(word)) if word == "false" => Some(false),
        _ => None,
    };
    let name = text("name");
    if !name.is_empty() {
        skill.name = name;
    }
    skill.description = text("description");
    skill.when_to_use = text("when_to_use");
    skill.model_invocable = !truth("disable-model-invocation").unwrap_or(false);
    skill.user_invocable = truth("user-invocable").unwrap_or(true);
    skill.fork = text("context") == "fork";
    skill.allowed_tools = match fields.get("allowed-tools") {
        Some(Value::Array(list)) => list.iter().filter_map(Value::as_str).map(str::to_owned).collect(),
        Some(Value::String(list)) => split_tools(list),
        _ => Vec::new(),
    };
}

/// `Bash(git add *), Read` or `Read Grep`: separated by commas or blanks outside parentheses.
fn split_tools(list: &str) -> Vec<String> {
    let mut tools = vec![String::new()];
    let mut depth = 0_usize;
    for character in list.chars() {
        match character {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            ',' | ' ' | '\t' | '\n' if depth == 0 => {
                tools.push(String::new());
                continue;
            }
            _ => {}
        }
        if let Some(last) = tools.last_mut() {
            last.push(character);
        }
    }
    tools.retain(|tool| !tool.is_empty());
    tools
}

/// The frontmatter between the two lines `---`, and what comes after it.
fn split(text: &str) -> (Option<&str>, &str) {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let Some(rest) = text.strip_prefix("---\n").or_else(|| text.strip_prefix("---\r\n")) else {
        return (None, text);
    };
    let mut at = 0;
    for line in rest.split_inclusive('\n') {
        if line.trim_end() == "---" {
            return (rest.get(..at), rest.get(at + line.len()..).unwrap_or_default());
        }
        at += line.len();
    }
    (None, text)
}

/// The first paragraph that is no heading, as one line.
fn first_paragraph(body: &str) -> String {
    body.split("\n\n")
        .map(str::trim)
        .find(|paragraph| !paragraph.is_empty() && !paragraph.starts_with('#'))
        .map(|paragraph| paragraph.split_whitespace().collect::<Vec<_>>().join(" "))
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_read_and_the_body_is_apart() {
        let skill = read_skill(
            "folder",
            "---\nname: greet\ndescription: Says hello\nwhen_to_use: at the door\nallowed-tools: Bash(git add *), Read\ndisable-model-invocation: true\ncontext: fork\n---\n# Body\n",
        );
        assert_eq!(
            (skill.name.as_str(), skill.listed_text().as_str()),
            ("greet", "Says hello - at the door")
        );
        assert_eq!(skill.allowed_tools, ["Bash(git add *)", "Read"]);
        assert!(!skill.model_invocable && skill.user_invocable && skill.fork);
        assert_eq!((skill.body.as_str(), skill.faults.len()), ("# Body\n", 0));
    }

    #[test]
    fn what_cannot_be_read_is_a_fault_and_the_first_paragraph_stands_in() {
        let skill = read_skill("nofm", "# Title\n\nFirst paragraph\nas description.\n\nMore.\n");
        assert_eq!(
            (skill.name.as_str(), skill.description.as_str()),
            ("nofm", "First paragraph as description.")
        );
        assert_eq!(skill.faults, ["no frontmatter"]);
        let skill = read_skill("bad", "---\ndescription: a: b: c\n---\nBody.\n");
        assert_eq!(skill.faults.len(), 1);
        assert_eq!(skill.description, "Body.");
    }

    #[test]
    fn no_text_makes_it_panic() {
        for text in
            ["", "---", "---\n", "---\n---", "---\n---\n", "\u{feff}---\n[]\n---\n", "---\n\t: [\n---\n"]
        {
            let _ = read_skill("x", text);
        }
    }
}
