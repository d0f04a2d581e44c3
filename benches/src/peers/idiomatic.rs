//! The toy loop as one writes it in Rust without thinking of speed: enums, a `Vec` of calls, a `BTreeSet` of grants.
//! Same semantics and numbers as `windtunnel::explore::toys::call_loop`.

use stateright::{Model, Property};
use std::collections::BTreeSet;

/// A tool.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Tool {
    /// Reads.
    Read,
    /// Searches.
    Search,
    /// Writes.
    Write,
    /// Runs.
    Run,
}

const TOOLS: [Tool; 4] = [Tool::Read, Tool::Search, Tool::Write, Tool::Run];

/// How a call ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum End {
    /// With a result.
    Ok,
    /// With an error result.
    IsError,
    /// With a protocol error.
    ProtocolError,
    /// Without an answer.
    NoAnswer,
    /// A hook blocked it.
    Blocked,
    /// A rule denied it.
    Denied,
    /// A person rejected it.
    Rejected,
}

/// Where a call is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Phase {
    /// It waits for its hook.
    Hook,
    /// It waits for its rule.
    Rule,
    /// It waits for the person.
    Question,
    /// It runs.
    Running,
    /// It ended.
    Ended(End),
}

/// A call.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Call {
    tool: Tool,
    phase: Phase,
}

/// The state.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct State {
    turn: u8,
    over: bool,
    grants: BTreeSet<Tool>,
    errors: u8,
    calls: Vec<Call>,
}

/// What happens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// The assistant ends.
    End,
    /// The assistant calls these tools.
    Emit(Vec<Tool>),
    /// The results go back.
    NextTurn,
    /// A hook exits 0, 2, 1, or times out.
    Hook(usize, HookOutcome),
    /// A rule is looked at.
    Rule(usize, Decision),
    /// The person answers.
    Answer(usize, Answer),
    /// The tool ends.
    Finish(usize, End),
}

/// What a hook did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HookOutcome {
    /// Exit 0.
    Zero,
    /// Exit 2.
    Two,
    /// Exit 1.
    One,
    /// No exit in time.
    Timeout,
}

/// What the rules say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    /// Allow.
    Allow,
    /// Ask.
    Ask,
    /// Deny.
    Deny,
    /// Nothing.
    None,
}

/// What the person says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// This once.
    Once,
    /// From now on.
    Always,
    /// No.
    Reject,
}

/// The loop.
#[derive(Clone, Debug)]
pub struct Loop {
    /// The most turns.
    pub turns: u8,
}

impl Model for Loop {
    type State = State;
    type Action = Action;

    fn init_states(&self) -> Vec<State> {
        vec![State { turn: 0, over: false, grants: BTreeSet::new(), errors: 0, calls: Vec::new() }]
    }

    fn actions(&self, state: &State, actions: &mut Vec<Action>) {
        if state.over {
            return;
        }
        if state.calls.is_empty() {
            actions.push(Action::End);
            if state.turn < self.turns {
                for a in TOOLS {
                    actions.push(Action::Emit(vec![a]));
                    for b in TOOLS {
                        actions.push(Action::Emit(vec![a, b]));
                        for c in TOOLS {
                            actions.push(Action::Emit(vec![a, b, c]));
                        }
                    }
                }
            }
            return;
        }
        if state.calls.iter().all(|call| matches!(call.phase, Phase::Ended(_))) {
            actions.push(Action::NextTurn);
            return;
        }
        for (index, call) in state.calls.iter().enumerate() {
            match call.phase {
                Phase::Hook => actions.extend(
                    [HookOutcome::Zero, HookOutcome::Two, HookOutcome::One, HookOutcome::Timeout]
                        .map(|outcome| Action::Hook(index, outcome)),
                ),
                Phase::Rule => actions.extend(
                    [Decision::Allow, Decision::Ask, Decision::Deny, Decision::None]
                        .map(|decision| Action::Rule(index, decision)),
                ),
                Phase::Question => actions.extend(
                    [Answer::Once, Answer::Always, Answer::Reject]
                        .map(|answer| Action::Answer(index, answer)),
                ),
                Phase::Running => actions.extend(
                    [End::Ok, End::IsError, End::ProtocolError, End::NoAnswer]
                        .map(|end| Action::Finish(index, end)),
                ),
                Phase::Ended(_) => {}
            }
        }
    }

    fn next_state(&self, last: &State, action: Action) -> Option<State> {
        let mut state = last.clone();
        match action {
            Action::End => state.over = true,
            Action::Emit(tools) => {
                state.calls = tools.into_iter().map(|tool| Call { tool, phase: Phase::Hook }).collect();
            }
            Action::NextTurn => {
                state.turn += 1;
                state.calls.clear();
            }
            Action::Hook(index, outcome) => {
                state.calls[index].phase = match outcome {
                    HookOutcome::Two => Phase::Ended(End::Blocked),
                    _ => Phase::Rule,
                };
            }
            Action::Rule(index, decision) => {
                let tool = state.calls[index].tool;
                let asked = if state.grants.contains(&tool) { Phase::Running } else { Phase::Question };
                state.calls[index].phase = match decision {
                    Decision::Allow => Phase::Running,
                    Decision::Ask => asked,
                    Decision::Deny => Phase::Ended(End::Denied),
                    Decision::None if matches!(tool, Tool::Read | Tool::Search) => Phase::Running,
                    Decision::None => asked,
                };
            }
            Action::Answer(index, answer) => {
                state.calls[index].phase = match answer {
                    Answer::Once => Phase::Running,
                    Answer::Always => {
                        let tool = state.calls[index].tool;
                        state.grants.insert(tool);
                        Phase::Running
                    }
                    Answer::Reject => Phase::Ended(End::Rejected),
                };
            }
            Action::Finish(index, end) => {
                state.errors = if end == End::Ok { 0 } else { (state.errors + 1).min(3) };
                state.calls[index].phase = Phase::Ended(end);
            }
        }
        Some(state)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![Property::always("turn limit", |model: &Self, state: &State| state.turn <= model.turns)]
    }
}
