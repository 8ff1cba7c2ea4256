#![no_main]

#[path = "../properties/xfs_spec.rs"]
mod xfs_spec;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| xfs_spec::check(bytes));
