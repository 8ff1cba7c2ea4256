//! Recorded fixtures: `fixtures/record.sh` made them.

use std::path::{Path, PathBuf};

use trace::format::EventFormat;
use trace::page::PageFormat;
use trace::recording::{Item, Recording};

const CPUS: u32 = 2;

pub fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures").join(name)
}

pub fn text(name: &str) -> String {
    std::fs::read_to_string(fixture(name)).expect("a fixture of the repository")
}

pub fn format(event: &str) -> EventFormat {
    EventFormat::parse(&text(&format!("formats/{event}.txt"))).expect("a format of a real kernel")
}

pub fn page_format() -> PageFormat {
    PageFormat::parse(&text("formats/header_page.txt")).expect("a format of a real kernel")
}

/// Everything that was recorded, of all CPUs in the order of time.
pub fn in_order(name: &str, mut each: impl FnMut(u32, Item<'_>)) {
    let format = page_format();
    let bytes = |cpu: u32| std::fs::read(fixture(&format!("{name}.cpu{cpu}.raw")));
    let bytes: Vec<Vec<u8>> = (0..CPUS).map(|cpu| bytes(cpu).expect("a fixture of the repository")).collect();
    let chunks = |bytes| <[u8]>::chunks(bytes, format.subbuffer_bytes());
    let mut pages: Vec<_> = bytes.iter().map(|bytes| chunks(bytes)).collect();
    let read = |cpu: usize, buffer: &mut [u8]| {
        let page = pages[cpu].next().unwrap_or_default();
        buffer[..page.len()].copy_from_slice(page);
        page.len()
    };
    let mut recording = Recording::new(format, bytes.len());
    recording.drain(u64::MAX, read, |cpu, item| each(cpu as u32, item));
}

/// The lines that tracefs printed: CPU, time in microseconds, event, the rest.
pub fn printed(name: &str) -> Vec<(u32, u64, String, String)> {
    lines_of(&text(&format!("{name}.txt")))
}

pub fn lines_of(printed: &str) -> Vec<(u32, u64, String, String)> {
    printed.lines().filter_map(line).collect()
}

/// `  dd-12 [000] ..... 12.345678: event: text`; None of remarks such as `CPU:1 [LOST 12 EVENTS]`.
fn line(line: &str) -> Option<(u32, u64, String, String)> {
    let (_, rest) = line.split_once(" [")?;
    let (cpu, rest) = rest.split_once("] ")?;
    let (_, rest) = rest.split_once(' ')?;
    let (time, rest) = rest.trim_start().split_once(": ")?;
    let (event, rest) = rest.split_once(": ")?;
    let microseconds = time.replace('.', "").parse().ok()?;
    Some((cpu.parse().ok()?, microseconds, event.to_owned(), rest.to_owned()))
}

/// As tracefs prints a time.
pub fn microseconds(at_ns: u64) -> u64 {
    (at_ns + 500) / 1000
}
