//! Any text is a command, and taking it apart ends.
#![no_main]
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| windtunnel_model::gate::fuzzing::command(text));
