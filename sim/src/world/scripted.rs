//! The scripted world: each request has one answer, at one virtual time. Events happen in the order of their time; at
//! one time, in the order of the choices.

use super::closed::{Choice, Request, WorldState};
use super::outcome::{Outcome, Recorder};
use super::player::Player;
use crate::scenario::compile::Compiled;

/// No run takes more steps than this; one that would is reported as not ended.
pub const MAX_STEPS: u32 = 2_000;

/// Runs a compiled scenario. The session is started anew.
pub fn run(compiled: &mut Compiled) -> Outcome {
    let Compiled { session, world, scripts, .. } = compiled;
    session.restart();
    let mut recorder = Recorder::default();
    let mut player = Player::default();
    let mut state = WorldState::default();
    let mut choices: Vec<Choice> = Vec::new();
    let mut due: Vec<(Request, f64)> = Vec::new();
    let mut answered_wrongly: Vec<Request> = Vec::new();
    let mut now = 0.0;
    for _ in 0..MAX_STEPS {
        world.choices(session.config(), session.state(), &state, &mut choices);
        choices.retain(|choice| choice.alternative == 0 && !answered_wrongly.contains(&choice.request));
        due.retain(|(request, _)| choices.iter().any(|choice| choice.request == *request));
        for choice in &choices {
            if !due.iter().any(|(request, _)| *request == choice.request) {
                let from = if choice.request == Request::Interrupt { 0.0 } else { now };
                due.push((choice.request, from + choice.seconds));
            }
        }
        let time = |choice: &Choice| {
            due.iter().find(|(request, _)| *request == choice.request).map_or(now, |(_, time)| *time)
        };
        // `min_by` keeps the first of equals: the order of the choices.
        let Some(choice) = choices.iter().min_by(|a, b| time(a).total_cmp(&time(b))).copied() else { break };
        now = time(&choice).max(now);
        due.retain(|(request, _)| *request != choice.request);
        let input = player.label(session, world, &state, scripts, &choice);
        let before = *session.state();
        let at_ms = milliseconds(now);
        match session.step(input, Some(at_ms)) {
            Ok(step) => {
                let unchanged = before == *session.state();
                if let Request::Call(slot) = choice.request {
                    // An answer under a wrong id leaves the call open: it is not given again.
                    answered_wrongly.retain(|request| *request != choice.request);
                    if unchanged {
                        answered_wrongly.push(Request::Call(slot));
                    }
                }
                if session.state().count == 0 {
                    answered_wrongly.clear();
                }
                world.apply(session.config(), &before, &choice, &mut state);
                player.hear(&step.outputs);
                recorder.step(step);
            }
            Err(error) => {
                recorder.rejected(error.to_string());
                break;
            }
        }
    }
    recorder.finish(session)
}

/// Seconds of virtual time as whole milliseconds.
fn milliseconds(seconds: f64) -> u64 {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "bounded by the loader: days"
    )]
    let milliseconds = (seconds * 1000.0).round() as u64;
    milliseconds
}
