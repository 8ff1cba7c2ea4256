#![no_main]

#[path = "../properties/blktrace_file.rs"]
mod blktrace_file;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| blktrace_file::check(bytes));
