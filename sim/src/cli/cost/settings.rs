//! `cost --project`: what the project's settings say about loading and about the skills listing (context-cost 2.1, 3.1).

use crate::gate::load::{FoundFile, hierarchy, is_trusted};
use serde::Serialize;
use serde_json::Value;
use std::path::Path;
use windtunnel_model::gate::rule::Behaviour;
use windtunnel_model::profile::Profile;
use windtunnel_model::sources::merge::merge;
use windtunnel_model::sources::settings::load;

/// What the settings in force change, each with where it is written.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub(super) struct InForce {
    /// `ENABLE_TOOL_SEARCH` of the `env` in force.
    pub(super) tool_search: Option<String>,
    /// `CLAUDE_CODE_DISABLE_EXPERIMENTAL_BETAS` is set.
    pub(super) betas_disabled: bool,
    /// `ANTHROPIC_BASE_URL` names another host than the vendor's own.
    pub(super) foreign_host: bool,
    /// A deny rule names the search tool.
    pub(super) search_denied: bool,
    /// `skillListingMaxDescChars`, in characters.
    pub(super) description_cap: Option<usize>,
    /// `skillListingBudgetFraction`, in hundredths of a percent.
    pub(super) budget_basis_points: Option<u64>,
    /// `SLASH_COMMAND_TOOL_CHAR_BUDGET`, in characters.
    pub(super) budget_chars: Option<u64>,
    /// What was taken from where, in words; empty where no file says anything of it.
    pub(super) said: Vec<String>,
}

/// Reads the settings files of a project and a home. A file that is dropped as a whole says nothing; `lint` tells why.
pub(super) fn read(project: &Path, home: Option<&Path>, profile: &Profile) -> InForce {
    let files = hierarchy(project, home, None);
    let trusted = home.is_some_and(|home| is_trusted(home, &project.to_string_lossy()));
    let parameters = &profile.settings;
    let loaded: Vec<_> =
        files.iter().map(|file| load(file.level, &file.name, &file.text, parameters).0).collect();
    // In print mode a project's `env` counts before the folder is trusted (sources-and-sandbox 9).
    let (merged, _) = merge(&loaded, trusted, false, parameters);
    let mut in_force = InForce::default();
    let mut said = Vec::new();
    for (name, value) in &merged.env {
        let mut take = |into: &mut Option<String>| {
            *into = Some(value.clone());
            said.push(format!("env {name}={value}"));
        };
        match name.as_str() {
            "ENABLE_TOOL_SEARCH" => take(&mut in_force.tool_search),
            "CLAUDE_CODE_DISABLE_EXPERIMENTAL_BETAS" if is_set(value) => {
                in_force.betas_disabled = true;
                said.push(format!("env {name}={value}"));
            }
            "ANTHROPIC_BASE_URL" if !value.contains("://api.anthropic.com") => {
                in_force.foreign_host = true;
                said.push(format!("env {name}={value}"));
            }
            "SLASH_COMMAND_TOOL_CHAR_BUDGET" => {
                in_force.budget_chars = value.trim().parse().ok();
                said.push(format!("env {name}={value}"));
            }
            _ => {}
        }
    }
    if let Some(rule) =
        merged.rules.iter().find(|rule| rule.behaviour == Behaviour::Deny && rule.text == "ToolSearch")
    {
        in_force.search_denied = true;
        said.push(format!("deny rule `{}` ({})", rule.text, rule.level.word()));
    }
    if let Some((value, file)) = highest(&files, "skillListingMaxDescChars", Value::as_u64) {
        in_force.description_cap = usize::try_from(value).ok();
        said.push(format!("skillListingMaxDescChars {value} ({file})"));
    }
    if let Some((value, file)) = highest(&files, "skillListingBudgetFraction", Value::as_f64)
        && (0.0..=1.0).contains(&value)
    {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a share of one, in hundredths of a percent"
        )]
        let points = (value * 10_000.0).round() as u64;
        in_force.budget_basis_points = Some(points);
        said.push(format!("skillListingBudgetFraction {value} ({file})"));
    }
    in_force.said = said;
    in_force
}

fn is_set(value: &str) -> bool {
    !matches!(value.trim().to_ascii_lowercase().as_str(), "" | "0" | "false" | "no" | "off")
}

/// The value of a key in the highest file that has it: files come lowest first.
fn highest<T>(files: &[FoundFile], key: &str, read: impl Fn(&Value) -> Option<T>) -> Option<(T, String)> {
    files.iter().rev().find_map(|file| {
        let document: Value = serde_json::from_str(&file.text).ok()?;
        Some((read(document.get(key)?)?, file.name.clone()))
    })
}
