#![no_main]

#[path = "../properties/filesystem_spec.rs"]
mod filesystem_spec;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| filesystem_spec::check(bytes));
