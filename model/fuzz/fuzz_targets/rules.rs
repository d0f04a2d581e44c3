//! Any text is a rule, and deciding with it ends.
#![no_main]
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| windtunnel_model::gate::fuzzing::rule(text));
