//! Merging settings files: lists unite over all levels, scalars take the highest level that sets them, hooks add up.
//!
//! Source: sources-and-sandbox, section 1; gate-and-hooks, sections 3.5 and 7.1.

use super::settings::{Entry, Level, Settings};
use crate::finding::{Finding, Severity};
use crate::gate::mode::Mode;
use crate::gate::rule::Behaviour;
use crate::hooks::select::{HookSource, HookTable};
use crate::place::Place;
use crate::profile::settings::SettingsParameters;

/// A rule as written, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourcedRule {
    /// The list it stands in.
    pub behaviour: Behaviour,
    /// As it was written.
    pub text: String,
    /// The level of its file.
    pub level: Level,
    /// The index of its file in [`Merged::files`].
    pub file: usize,
    /// Its JSON pointer.
    pub pointer: String,
}

/// What all files say together.
#[derive(Clone, Debug, Default)]
pub struct Merged {
    /// Name and text of each file, for places.
    pub files: Vec<(String, String)>,
    /// The rules in force, lowest level first.
    pub rules: Vec<SourcedRule>,
    /// The project's allow rules that do not count until its folder is trusted.
    pub waiting: Vec<SourcedRule>,
    /// Additional directories in force, as written.
    pub additional_directories: Vec<String>,
    /// The highest `defaultMode`.
    pub default_mode: Option<Mode>,
    /// Whether bypass mode is switched off.
    pub disable_bypass: bool,
    /// Whether auto mode is switched off.
    pub disable_auto: bool,
    /// Whether plan mode judges with auto mode's classifier.
    pub auto_during_plan: bool,
    /// The hooks in force.
    pub hooks: HookTable,
    /// Addresses that HTTP hooks may call; `None` is any.
    pub allowed_http_urls: Option<Vec<String>>,
    /// The `env` in force: the highest level wins per name.
    pub env: Vec<(String, String)>,
}

impl Merged {
    /// The place of a rule.
    pub fn place(&self, rule: &SourcedRule) -> Option<Place> {
        let (file, text) = self.files.get(rule.file)?;
        if rule.pointer.is_empty() {
            return Some(Place::file(file));
        }
        Some(Place::at_pointer(file, text, &rule.pointer))
    }

    /// Adds a rule that comes from no file.
    pub fn push_rule(&mut self, behaviour: Behaviour, text: &str, level: Level, origin: &str) {
        let file = self.files.iter().position(|(name, _)| name == origin).unwrap_or_else(|| {
            self.files.push((origin.to_owned(), String::new()));
            self.files.len() - 1
        });
        self.rules.push(SourcedRule {
            behaviour,
            text: text.to_owned(),
            level,
            file,
            pointer: String::new(),
        });
    }
}

/// Merges files, in any order. `trusted`: the project's folder was trusted. `hooks_only_managed`: `--bare`.
pub fn merge(
    files: &[Settings],
    trusted: bool,
    hooks_only_managed: bool,
    parameters: &SettingsParameters,
) -> (Merged, Vec<Finding>) {
    let mut order: Vec<&Settings> = files.iter().collect();
    order.sort_by_key(|settings| settings.level);
    let mut merged = Merged { auto_during_plan: true, ..Merged::default() };
    let mut findings = Vec::new();
    let managed_rules_only = order.iter().any(|s| s.level == Level::Managed && s.managed_rules_only);
    let managed_hooks_only =
        hooks_only_managed || order.iter().any(|s| s.level == Level::Managed && s.managed_hooks_only);
    let disabled = |managed: bool| {
        order
            .iter()
            .rev()
            .filter(|s| (s.level == Level::Managed) == managed)
            .find_map(|s| s.disable_all_hooks)
            .unwrap_or(false)
    };
    let (none_run, managed_run_only) = (disabled(true), disabled(false) || managed_hooks_only);
    for settings in order.iter().copied() {
        let file = merged.files.len();
        merged.files.push((settings.file.clone(), settings.text.clone()));
        let is_managed = settings.level == Level::Managed;
        let waits =
            settings.level == Level::Project && !trusted && parameters.project_allow_needs_trust.value;
        if is_managed || !managed_rules_only {
            let lists: [(Behaviour, &[Entry]); 3] = [
                (Behaviour::Deny, &settings.deny),
                (Behaviour::Ask, &settings.ask),
                (Behaviour::Allow, if waits { &[] } else { &settings.allow }),
            ];
            let sourced = |behaviour: Behaviour, entry: &Entry| SourcedRule {
                behaviour,
                text: entry.text.clone(),
                level: settings.level,
                file,
                pointer: entry.pointer.clone(),
            };
            for (behaviour, entries) in lists {
                merged.rules.extend(entries.iter().map(|entry| sourced(behaviour, entry)));
            }
            if waits {
                merged.waiting.extend(settings.allow.iter().map(|entry| sourced(Behaviour::Allow, entry)));
            }
        }
        if waits {
            if let Some(first) = settings.allow.first() {
                findings.push(
                    Finding::new(
                        "allow-waits-for-trust",
                        Severity::Note,
                        format!("{} allow rules of the project wait for trust", settings.allow.len()),
                        "until the folder is trusted, allow rules and additional directories of the project are ignored",
                    )
                    .with_place(settings.place(&first.pointer)),
                );
            }
        } else {
            merged
                .additional_directories
                .extend(settings.additional_directories.iter().map(|e| e.text.clone()));
        }
        let widens = matches!(settings.default_mode, Some(Mode::Bypass | Mode::Auto));
        if let Some(mode) = settings.default_mode
            && !(settings.level == Level::Project && widens && parameters.project_cannot_widen_mode.value)
        {
            merged.default_mode = Some(mode);
        }
        merged.disable_bypass |= settings.disable_bypass;
        merged.disable_auto |= settings.disable_auto;
        if let Some(value) = settings.auto_during_plan {
            merged.auto_during_plan = value;
        }
        if let Some(urls) = &settings.allowed_http_urls {
            merged.allowed_http_urls.get_or_insert_with(Vec::new).extend(urls.iter().cloned());
        }
        for (name, value) in &settings.env {
            merged.env.retain(|(known, _)| known != name);
            merged.env.push((name.clone(), value.clone()));
        }
        if !none_run && (is_managed || !managed_run_only) && !settings.hooks.events.is_empty() {
            merged.hooks.sources.push(HookSource {
                level: settings.level,
                file: settings.file.clone(),
                config: settings.hooks.clone(),
            });
        }
    }
    (merged, findings)
}
