//! Recorded fixtures: `fixtures/record.sh` made them.

use std::path::{Path, PathBuf};

use trace::format::EventFormat;
use trace::page::{Lost, Page, PageFormat, RawEvent};

pub const CPUS: u32 = 2;

pub fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/fixtures")
        .join(name)
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

/// What was lost before a sub-buffer, and its events.
pub enum Item {
    Lost(Lost),
    Event(u64, Vec<u8>),
}

/// Everything that was recorded on one CPU.
pub fn recorded(name: &str, cpu: u32) -> Vec<Item> {
    let bytes = std::fs::read(fixture(&format!("{name}.cpu{cpu}.raw")))
        .expect("a fixture of the repository");
    let format = page_format();
    let pages = bytes.chunks(format.subbuffer_bytes());
    pages
        .flat_map(|bytes| {
            let page = Page::decode(bytes, &format).expect("a page of a real kernel");
            let lost = page.lost.into_iter().map(Item::Lost);
            let events = page.events().map(|event| {
                let RawEvent { at_ns, record } = event.expect("an event of a real kernel");
                Item::Event(at_ns, record.to_vec())
            });
            lost.chain(events.collect::<Vec<_>>()).collect::<Vec<_>>()
        })
        .collect()
}

/// The lines that tracefs printed: CPU, time in microseconds, event, the rest.
pub fn printed(name: &str) -> Vec<(u32, u64, String, String)> {
    text(&format!("{name}.txt"))
        .lines()
        .filter_map(line)
        .collect()
}

/// `  dd-12 [000] ..... 12.345678: event: text`; None of remarks such as `CPU:1 [LOST 12 EVENTS]`.
fn line(line: &str) -> Option<(u32, u64, String, String)> {
    let (_, rest) = line.split_once(" [")?;
    let (cpu, rest) = rest.split_once("] ")?;
    let (_, rest) = rest.split_once(' ')?;
    let (time, rest) = rest.trim_start().split_once(": ")?;
    let (event, rest) = rest.split_once(": ")?;
    let microseconds = time.replace('.', "").parse().ok()?;
    Some((
        cpu.parse().ok()?,
        microseconds,
        event.to_owned(),
        rest.to_owned(),
    ))
}

/// As tracefs prints a time.
pub fn microseconds(at_ns: u64) -> u64 {
    (at_ns + 500) / 1000
}
