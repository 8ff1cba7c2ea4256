//! What it costs to make sense of a recording of block events or of scheduler events: nanoseconds per event of each step,
//! each with those before it.
//!
//! `cargo run --release -p iolab-trace --example cost -- DIRECTORY block`: in the directory `block.cpu0.raw`, ... and
//! `formats`, as in `tests/fixtures`; for figures that mean something, some hundred thousand events.
#![allow(clippy::disallowed_types, reason = "a benchmark needs a clock")]

use std::hint::black_box;
use std::path::{Path, PathBuf};
use std::time::Instant;

use trace::block;
use trace::decode::WantedEvent;
use trace::format::EventFormat;
use trace::page::{PageFormat, RawEvent};
use trace::recording::{Item, Recording};
use trace::sched::{self, SchedDecoder};
use trace::tracepoints::{self, BlockDecoder};

const REPEATS: usize = 15;
const INTERVAL_NS: u64 = 100_000_000;

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let [_, directory, name] = &arguments[..] else {
        panic!("expected DIRECTORY and block or sched");
    };
    let input = Input::read(directory, name);
    match name.as_str() {
        "block" => block_events(&input),
        _ => scheduler_events(&input),
    }
}

fn block_events(input: &Input) {
    let decoder = BlockDecoder::new(tracepoints::EVENTS, &input.formats(tracepoints::EVENTS)).expect("formats");
    input.measure(
        "merged",
        || (),
        |_, cpu, raw| {
            black_box((cpu, raw.at_ns));
        },
    );
    input.measure(
        "decoded",
        || (),
        |_, cpu, raw| {
            black_box(decoder.decode(cpu as u16, raw)).expect("a whole record");
        },
    );
    let analysis = || block::Analysis::new(input.started_ns(), INTERVAL_NS);
    input.measure("analysed", analysis, |analysis, cpu, raw| {
        if let Some(event) = decoder.decode(cpu as u16, raw).expect("a whole record") {
            analysis.add(&event);
        }
    });
}

fn scheduler_events(input: &Input) {
    let decoder = SchedDecoder::new(&input.formats(sched::EVENTS)).expect("formats");
    input.measure(
        "merged",
        || (),
        |_, cpu, raw| {
            black_box((cpu, raw.at_ns));
        },
    );
    input.measure(
        "decoded",
        || (),
        |_, cpu, raw| {
            black_box(decoder.decode(cpu, raw)).expect("a whole record");
        },
    );
    let analysis = || sched::Analysis::new(input.started_ns(), INTERVAL_NS);
    input.measure("analysed", analysis, |analysis, cpu, raw| {
        if let Some(event) = decoder.decode(cpu, raw).expect("a whole record") {
            analysis.add(&event);
        }
    });
}

struct Input {
    directory: PathBuf,
    page_format: PageFormat,
    /// The bytes of each CPU.
    bytes: Vec<Vec<u8>>,
}

impl Input {
    fn read(directory: &str, name: &str) -> Input {
        let directory = Path::new(directory).to_owned();
        let cpus = (0..).map(|cpu| std::fs::read(directory.join(format!("{name}.cpu{cpu}.raw"))));
        let header = format_text(&directory, "header_page");
        Input {
            page_format: PageFormat::parse(&header).expect("header_page"),
            bytes: cpus.map_while(Result::ok).collect(),
            directory,
        }
    }

    fn formats(&self, wanted: &[WantedEvent]) -> Vec<EventFormat> {
        let text = |wanted: &WantedEvent| format_text(&self.directory, wanted.name);
        wanted.iter().map(|wanted| EventFormat::parse(&text(wanted)).expect("a format")).collect()
    }

    /// The best of some times.
    fn measure<S>(&self, what: &str, state: impl Fn() -> S, mut each: impl FnMut(&mut S, u32, &RawEvent<'_>)) {
        let mut best = (f64::INFINITY, 0);
        for _ in 0..REPEATS {
            let (mut state, mut events) = (state(), 0u64);
            let began = Instant::now();
            self.replay(|cpu, raw| {
                events += 1;
                each(&mut state, cpu, raw);
            });
            let ns_per_event = began.elapsed().as_nanos() as f64 / events.max(1) as f64;
            black_box(state);
            best = (best.0.min(ns_per_event), events);
        }
        println!("{what:<10} {:>6.1} ns of each of {} events", best.0, best.1);
    }

    fn replay(&self, mut each: impl FnMut(u32, &RawEvent<'_>)) {
        let size = self.page_format.subbuffer_bytes();
        let mut pages: Vec<_> = self.bytes.iter().map(|bytes| bytes.chunks(size)).collect();
        let read = |cpu: usize, buffer: &mut [u8]| {
            let page = pages[cpu].next().unwrap_or_default();
            buffer[..page.len()].copy_from_slice(page);
            page.len()
        };
        let mut recording = Recording::new(self.page_format, self.bytes.len());
        recording.drain(u64::MAX, read, |cpu, item| {
            if let Item::Record(raw) = item {
                each(cpu as u32, &raw);
            }
        });
    }

    fn started_ns(&self) -> u64 {
        let mut started_ns = u64::MAX;
        self.replay(|_, raw| started_ns = started_ns.min(raw.at_ns));
        started_ns
    }
}

fn format_text(directory: &Path, name: &str) -> String {
    let path = directory.join("formats").join(format!("{name}.txt"));
    std::fs::read_to_string(path).expect("a format file")
}
