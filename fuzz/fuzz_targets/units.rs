#![no_main]

#[path = "../properties/units.rs"]
mod units;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| units::check(bytes));
