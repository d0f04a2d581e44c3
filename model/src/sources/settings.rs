//! One settings file: reading it is total, and what it costs to get a part wrong is a parameter.
//!
//! Source: gate-and-hooks, section 3.1; corpus, section 3 ("what a mistake does"); proposition B8; invariant I-LOAD:
//! whatever is written in a configuration is either in force or reported.

use crate::finding::{Finding, Severity};
use crate::gate::mode::Mode;
use crate::hooks::event::Event;
use crate::hooks::handler::{self, Cost, Defect, HooksConfig, pointer_part};
use crate::place::Place;
use crate::profile::settings::SettingsParameters;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// The levels of settings, lowest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    /// A plugin or other bundle.
    Plugin,
    /// `~/.claude/settings.json`.
    User,
    /// `.claude/settings.json` of the project.
    Project,
    /// `.claude/settings.local.json` of the project.
    Local,
    /// `--settings`, `--allowedTools`, `--disallowedTools`, `--add-dir`.
    Flag,
    /// Added during the session (by a permission answer).
    Session,
    /// The administrator's file.
    Managed,
}

impl Level {
    /// The word in messages.
    pub fn word(self) -> &'static str {
        match self {
            Self::Plugin => "plugin",
            Self::User => "user",
            Self::Project => "project",
            Self::Local => "local",
            Self::Flag => "command line",
            Self::Session => "session",
            Self::Managed => "managed",
        }
    }
}

/// One entry of a list, with its JSON pointer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// As it was written.
    pub text: String,
    /// Where.
    pub pointer: String,
}

/// The part of one settings file that the gate and the hooks need, and the whole of it as JSON.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Its level.
    pub level: Level,
    /// Its name, as people know it.
    pub file: String,
    /// Its text, for places.
    pub text: String,
    /// Why nothing in it applies; `None` when it is in force.
    pub dropped: Option<String>,
    /// `permissions.allow`.
    pub allow: Vec<Entry>,
    /// `permissions.ask`.
    pub ask: Vec<Entry>,
    /// `permissions.deny`.
    pub deny: Vec<Entry>,
    /// `permissions.additionalDirectories`.
    pub additional_directories: Vec<Entry>,
    /// `permissions.defaultMode`.
    pub default_mode: Option<Mode>,
    /// `permissions.disableBypassPermissionsMode` is `disable`.
    pub disable_bypass: bool,
    /// `permissions.disableAutoMode` (or the root key) is `disable`.
    pub disable_auto: bool,
    /// `useAutoModeDuringPlan`.
    pub auto_during_plan: Option<bool>,
    /// `hooks`.
    pub hooks: HooksConfig,
    /// `disableAllHooks`.
    pub disable_all_hooks: Option<bool>,
    /// `allowManagedHooksOnly`.
    pub managed_hooks_only: bool,
    /// `allowManagedPermissionRulesOnly`.
    pub managed_rules_only: bool,
    /// `allowedHttpHookUrls`; `None` when every address may be called.
    pub allowed_http_urls: Option<Vec<String>>,
    /// `env`.
    pub env: Vec<(String, String)>,
    /// The whole file.
    pub root: Value,
    /// Every defect, in the order of the file.
    pub defects: Vec<Defect>,
}

impl Settings {
    fn empty(level: Level, file: &str, text: &str) -> Self {
        Self {
            level,
            file: file.to_owned(),
            text: text.to_owned(),
            dropped: None,
            allow: Vec::new(),
            ask: Vec::new(),
            deny: Vec::new(),
            additional_directories: Vec::new(),
            default_mode: None,
            disable_bypass: false,
            disable_auto: false,
            auto_during_plan: None,
            hooks: HooksConfig::default(),
            disable_all_hooks: None,
            managed_hooks_only: false,
            managed_rules_only: false,
            allowed_http_urls: None,
            env: Vec::new(),
            root: Value::Null,
            defects: Vec::new(),
        }
    }

    /// The place of a JSON pointer in this file.
    pub fn place(&self, pointer: &str) -> Place {
        Place::at_pointer(&self.file, &self.text, pointer)
    }
}

/// Reads one settings file. Total: any text gives settings, with what was wrong as findings.
pub fn load(
    level: Level,
    file: &str,
    text: &str,
    parameters: &SettingsParameters,
) -> (Settings, Vec<Finding>) {
    let mut settings = Settings::empty(level, file, text);
    let json = text.trim_start_matches('\u{feff}');
    let root = match serde_json::from_str::<Value>(json) {
        Ok(root) => root,
        Err(_) if json.trim().is_empty() => Value::Object(Map::new()),
        Err(error) => {
            let lenient = with_comments(json);
            match lenient {
                Some(value) if !parameters.comments_drop_file.value && value.is_object() => value,
                _ => {
                    let why = format!("not valid JSON: {error}");
                    settings.dropped = Some(why.clone());
                    let line = u32::try_from(error.line()).ok();
                    let column = u32::try_from(error.column()).ok();
                    let finding = dropped_finding(&why, count_denies(&lenient.unwrap_or_default()))
                        .with_place(Place { file: file.to_owned(), line, column });
                    return (settings, vec![finding]);
                }
            }
        }
    };
    let mut defects = Vec::new();
    if let Value::Object(fields) = &root {
        read_root(fields, &mut settings, &mut defects);
    } else {
        defects.push(Defect::new("settings-not-an-object", "", "the file is not a JSON object", Cost::File));
    }
    settings.root = root;
    let drops = parameters.wrong_shape_drops_file.value
        && !(level == Level::Managed && parameters.managed_drops_part_only.value);
    let mut findings = Vec::new();
    if drops && let Some(worst) = defects.iter().find(|defect| defect.cost == Cost::File) {
        let why = worst.message.clone();
        let denies = settings.deny.len();
        findings.push(dropped_finding(&why, denies).with_place(settings.place(&worst.pointer)));
        let root = std::mem::take(&mut settings.root);
        settings = Settings { dropped: Some(why), root, ..Settings::empty(level, file, text) };
    }
    findings.extend(defects.iter().map(|defect| defect_finding(defect, &settings)));
    settings.defects = defects;
    (settings, findings)
}

/// A text as JSON with comments and trailing commas; `None` when it is not even that.
pub fn with_comments(text: &str) -> Option<Value> {
    // The lenient parser recurses without a limit of its own.
    if crate::place::nesting(text) > 128 {
        return None;
    }
    jsonc_parser::parse_to_serde_value::<Value>(text, &jsonc_parser::ParseOptions::default()).ok()
}

fn count_denies(root: &Value) -> usize {
    root.pointer("/permissions/deny").and_then(Value::as_array).map_or(0, Vec::len)
}

fn dropped_finding(why: &str, denies: usize) -> Finding {
    let lost = match denies {
        0 => String::new(),
        1 => "; 1 deny rule is lost with it".to_owned(),
        n => format!("; {n} deny rules are lost with it"),
    };
    Finding::new(
        "settings-file-dropped",
        Severity::Error,
        format!("nothing in this file applies: {why}{lost}"),
        "one part of the wrong shape makes the harness drop the whole file without a word, its deny rules and hooks included",
    )
    .with_remedy("correct that part; until then treat every rule and hook of this file as absent")
}

fn defect_finding(defect: &Defect, settings: &Settings) -> Finding {
    let (severity, why) = match defect.cost {
        Cost::File => (Severity::Error, "the harness expects another shape here"),
        Cost::Part => (Severity::Warning, "the harness ignores this part without a word"),
    };
    let remedy = match defect.id {
        "unknown-event" => "use a documented event name, in its exact case",
        "unknown-group-field" | "unknown-handler-field" => "remove it, or move it where it belongs",
        "unusable-rule" => "write the rule as `Tool` or `Tool(specifier)`",
        _ => "write it in the documented shape",
    };
    Finding::new(defect.id, severity, defect.message.clone(), why)
        .with_place(settings.place(&defect.pointer))
        .with_remedy(remedy)
}

#[derive(Clone, Copy)]
enum Shape {
    Text,
    Number,
    Boolean,
    Object,
    List,
}

/// Root keys whose type is checked, from the settings reference and the files of the corpus.
const KNOWN: &[(&str, Shape)] = &[
    ("model", Shape::Text),
    ("cleanupPeriodDays", Shape::Number),
    ("env", Shape::Object),
    ("permissions", Shape::Object),
    ("statusLine", Shape::Object),
    ("outputStyle", Shape::Text),
    ("language", Shape::Text),
    ("apiKeyHelper", Shape::Text),
    ("awsAuthRefresh", Shape::Text),
    ("awsCredentialExport", Shape::Text),
    ("otelHeadersHelper", Shape::Text),
    ("forceLoginMethod", Shape::Text),
    ("includeCoAuthoredBy", Shape::Boolean),
    ("attribution", Shape::Object),
    ("disableAllHooks", Shape::Boolean),
    ("allowManagedHooksOnly", Shape::Boolean),
    ("allowManagedPermissionRulesOnly", Shape::Boolean),
    ("useAutoModeDuringPlan", Shape::Boolean),
    ("alwaysThinkingEnabled", Shape::Boolean),
    ("spinnerTipsEnabled", Shape::Boolean),
    ("enableAllProjectMcpServers", Shape::Boolean),
    ("enabledMcpjsonServers", Shape::List),
    ("disabledMcpjsonServers", Shape::List),
    ("allowedMcpServers", Shape::List),
    ("deniedMcpServers", Shape::List),
    ("allowedHttpHookUrls", Shape::List),
    ("httpHookAllowedEnvVars", Shape::List),
    ("companyAnnouncements", Shape::List),
    ("enabledPlugins", Shape::Object),
    ("extraKnownMarketplaces", Shape::Object),
    ("sandbox", Shape::Object),
    ("fileSuggestion", Shape::Object),
];

fn fits(shape: Shape, value: &Value) -> bool {
    match shape {
        Shape::Text => value.is_string(),
        Shape::Number => value.is_number(),
        Shape::Boolean => value.is_boolean(),
        Shape::Object => value.is_object(),
        Shape::List => value.is_array(),
    }
}

fn shape_word(shape: Shape) -> &'static str {
    match shape {
        Shape::Text => "a string",
        Shape::Number => "a number",
        Shape::Boolean => "a boolean",
        Shape::Object => "an object",
        Shape::List => "an array",
    }
}

fn read_root(fields: &Map<String, Value>, settings: &mut Settings, defects: &mut Vec<Defect>) {
    for (name, value) in fields {
        let pointer = format!("/{}", pointer_part(name));
        if let Some((_, shape)) = KNOWN.iter().find(|(known, _)| known == name) {
            if !fits(*shape, value) {
                let message = format!("`{name}` is not {}", shape_word(*shape));
                defects.push(Defect::new("key-wrong-type", pointer, message, Cost::File));
                continue;
            }
        } else if let Some(event) = Event::from_name(name) {
            let cost = if event == Event::PreToolUse { Cost::File } else { Cost::Part };
            let message = format!("`{name}` stands at the root; hooks belong under `hooks`");
            defects.push(Defect::new("event-at-root", pointer, message, cost));
        } else if name != "hooks" && looks_like_groups(value) {
            let message = format!("`{name}` holds hook groups outside `hooks`");
            defects.push(Defect::new("groups-at-root", pointer, message, Cost::File));
        }
    }
    let flag = |name: &str| fields.get(name).and_then(Value::as_bool);
    settings.disable_all_hooks = flag("disableAllHooks");
    settings.managed_hooks_only = flag("allowManagedHooksOnly").unwrap_or(false);
    settings.managed_rules_only = flag("allowManagedPermissionRulesOnly").unwrap_or(false);
    settings.auto_during_plan = flag("useAutoModeDuringPlan");
    settings.allowed_http_urls = fields
        .get("allowedHttpHookUrls")
        .and_then(Value::as_array)
        .map(|urls| urls.iter().filter_map(Value::as_str).map(str::to_owned).collect());
    if let Some(Value::Object(env)) = fields.get("env") {
        settings.env = env
            .iter()
            .map(|(name, value)| {
                (name.clone(), value.as_str().map_or_else(|| value.to_string(), str::to_owned))
            })
            .collect();
    }
    if let Some(hooks) = fields.get("hooks") {
        settings.hooks = handler::parse(hooks, "/hooks", defects);
    }
    if fields.get("disableAutoMode").and_then(Value::as_str) == Some("disable") {
        settings.disable_auto = true;
    }
    if let Some(Value::Object(permissions)) = fields.get("permissions") {
        read_permissions(permissions, settings, defects);
    }
}

/// An array of objects with non-empty `hooks`.
fn looks_like_groups(value: &Value) -> bool {
    value.as_array().is_some_and(|groups| {
        groups.iter().any(|g| g.get("hooks").and_then(Value::as_array).is_some_and(|hooks| !hooks.is_empty()))
    })
}

fn read_permissions(fields: &Map<String, Value>, settings: &mut Settings, defects: &mut Vec<Defect>) {
    for (name, value) in fields {
        let pointer = format!("/permissions/{}", pointer_part(name));
        match name.as_str() {
            "allow" | "ask" | "deny" | "additionalDirectories" => {
                let Value::Array(items) = value else {
                    let message = format!("`permissions.{name}` is not an array");
                    defects.push(Defect::new("key-wrong-type", pointer, message, Cost::File));
                    continue;
                };
                let mut entries = Vec::new();
                for (i, item) in items.iter().enumerate() {
                    let pointer = format!("{pointer}/{i}");
                    match item.as_str() {
                        Some(text) => entries.push(Entry { text: text.to_owned(), pointer }),
                        None => {
                            let message = format!("an entry of `permissions.{name}` is not a string");
                            defects.push(Defect::new("unusable-rule", pointer, message, Cost::Part));
                        }
                    }
                }
                match name.as_str() {
                    "allow" => settings.allow = entries,
                    "ask" => settings.ask = entries,
                    "deny" => settings.deny = entries,
                    _ => settings.additional_directories = entries,
                }
            }
            "defaultMode" => match value.as_str().and_then(Mode::from_name) {
                Some(mode) => settings.default_mode = Some(mode),
                None => {
                    let message = format!("`defaultMode` is {value}, which is no mode");
                    defects.push(Defect::new("unknown-mode", pointer, message, Cost::File));
                }
            },
            "disableBypassPermissionsMode" => settings.disable_bypass = value.as_str() == Some("disable"),
            "disableAutoMode" => settings.disable_auto |= value.as_str() == Some("disable"),
            _ => {
                let message = format!("`permissions` has no key `{name}`");
                defects.push(Defect::new("unknown-permission-key", pointer, message, Cost::Part));
            }
        }
    }
}
