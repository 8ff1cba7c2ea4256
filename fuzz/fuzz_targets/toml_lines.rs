#![no_main]

#[path = "../properties/toml_lines.rs"]
mod toml_lines;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| toml_lines::check(bytes));
