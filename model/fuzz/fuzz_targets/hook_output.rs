//! Any text is the output of a hook.
#![no_main]
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| windtunnel_model::gate::fuzzing::hook_output(text));
