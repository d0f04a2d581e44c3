//! The gate over a scenario's settings, as the session asks it.

use serde_json::Value;
use windtunnel_model::agent_loop::RuleAnswer;
use windtunnel_model::gate::facts::MemoryFiles;
use windtunnel_model::gate::permission::{AskKind, Permission, Policy, permission};
use windtunnel_model::gate::workspace::Workspace;
use windtunnel_model::profile::Profile;
use windtunnel_model::session::Rules;

/// The gate over a scenario's settings.
#[derive(Debug)]
pub(super) struct SettingsRules {
    pub(super) policy: Policy,
    pub(super) workspace: Workspace,
    pub(super) files: MemoryFiles,
    pub(super) profile: Profile,
}

impl Rules for SettingsRules {
    fn answer(&self, tool: &str, input: &Value) -> RuleAnswer {
        match permission(&self.policy, &self.workspace, &self.files, tool, input).permission {
            Permission::Allow => RuleAnswer::Allow,
            Permission::Deny => RuleAnswer::Deny,
            Permission::Ask(AskKind::Rule | AskKind::Safety | AskKind::Plan | AskKind::Refusal) => {
                RuleAnswer::AskByRule
            }
            // A classifier that cannot be reached is an ask that nobody answers.
            Permission::Ask(AskKind::WorkingDirectory | AskKind::Other) | Permission::Check => {
                RuleAnswer::AskByDefault
            }
        }
    }

    fn condition(&self, condition: &str, tool: &str, input: &Value) -> bool {
        windtunnel_model::gate::condition::holds(
            condition,
            tool,
            input,
            &self.workspace,
            &self.profile.gate,
            &self.profile.hooks,
        )
    }
}
