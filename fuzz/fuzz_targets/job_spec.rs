#![no_main]

#[path = "../properties/job_spec.rs"]
mod job_spec;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| job_spec::check(bytes));
