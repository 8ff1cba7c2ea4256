#![no_main]

#[path = "../properties/rows.rs"]
mod rows;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| rows::check(bytes));
