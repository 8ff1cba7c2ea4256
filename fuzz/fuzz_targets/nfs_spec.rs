#![no_main]

#[path = "../properties/nfs_spec.rs"]
mod nfs_spec;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| nfs_spec::check(bytes));
