#![no_main]

#[path = "../properties/scheduler_spec.rs"]
mod scheduler_spec;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| scheduler_spec::check(bytes));
