#![no_main]

#[path = "../properties/perf_ring.rs"]
mod perf_ring;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| perf_ring::check(bytes));
