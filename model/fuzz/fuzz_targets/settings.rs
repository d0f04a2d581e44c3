//! Any text is a settings file.
#![no_main]
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| windtunnel_model::gate::fuzzing::settings(text));
