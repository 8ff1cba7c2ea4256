#![no_main]

#[path = "../properties/machine_file.rs"]
mod machine_file;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| machine_file::check(bytes));
