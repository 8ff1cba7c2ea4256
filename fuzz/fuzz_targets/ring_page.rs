#![no_main]

#[path = "../properties/ring_page.rs"]
mod ring_page;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| ring_page::check(bytes));
