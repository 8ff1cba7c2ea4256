#![no_main]

#[path = "../properties/trace_input.rs"]
mod trace_input;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| trace_input::check(bytes));
