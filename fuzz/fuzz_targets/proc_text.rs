#![no_main]

#[path = "../properties/proc_text.rs"]
mod proc_text;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| proc_text::check(bytes));
