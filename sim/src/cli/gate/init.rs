//! `windtunnel gate test --init`: a draft of expectations for the settings of a folder.

use crate::cli::{CliError, Io};
use serde_json::{Value, json};
use windtunnel_model::gate::diff::decide;
use windtunnel_model::gate::examples::{caught, near_miss};
use windtunnel_model::gate::pipeline::Session;

/// Prints the draft in the short form: for each rule a call that it catches and a near miss that it does not, with what
/// the gate says now. People look it over and keep it.
///
/// # Errors
/// When stdout is gone.
pub fn print(session: &Session, io: &mut Io<'_>) -> Result<(), CliError> {
    let mut calls: Vec<Value> = Vec::new();
    let mut expect = serde_json::Map::new();
    let mut known: Vec<(String, Value)> = Vec::new();
    for (index, (behaviour, pattern)) in session.policy.rules.patterns.iter().enumerate() {
        for (word, example) in
            [("caught", caught(pattern, &session.policy.tools)), ("near", near_miss(pattern))]
        {
            let Some(example) = example else { continue };
            let call = (example.tool.clone(), example.input.clone());
            if known.contains(&call) {
                continue;
            }
            known.push(call);
            let id = format!("{}-{index}-{word}", behaviour.word());
            let outcome = decide(session, &example.tool, &example.input);
            expect.insert(id.clone(), outcome.word().into());
            calls.push(json!([id, example.tool, example.input]));
        }
    }
    let draft = json!({"calls": calls, "expect": expect});
    serde_json::to_writer_pretty(&mut *io.stdout, &draft)?;
    writeln!(io.stdout)?;
    Ok(())
}
