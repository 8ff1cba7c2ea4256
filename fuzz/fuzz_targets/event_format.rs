#![no_main]

#[path = "../properties/event_format.rs"]
mod event_format;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| event_format::check(bytes));
