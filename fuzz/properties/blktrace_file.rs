//! Any bytes are a file of blktrace or an error; what is read of them can be written again, and is read again the same.

use std::collections::BTreeMap;
use std::sync::Arc;

use trace::event::{Step, TraceEvent};
use trace::ftrace::Text;
use trace::input::{Gaps, Source, open};
use trace::output::Blktrace;

/// A set has a file for each CPU up to the largest.
const CPUS: u16 = 64;

pub fn check(bytes: &[u8]) {
    if bytes.get(1..4) != Some(b"tae") {
        return;
    }
    let mut events = events_of(vec![bytes.to_vec()]);
    // A file has a number for each record and none for a loss; no order holds across recordings.
    events.retain(|event| event.cpu < CPUS && !matches!(event.step, Step::Lost | Step::Restart));
    let mut files = Blktrace::new(|_| Ok(Vec::new()), BTreeMap::new(), Some(0));
    let mut text = Text::new(BTreeMap::new());
    for event in &events {
        files.event(event).expect("memory");
        text.add(event);
    }
    let remaps = events.iter().filter(|event| event.step == Step::Remap);
    let lines = text.finish().lines().count();
    assert!(lines + remaps.count() >= events.len());
    let again = events_of(files.finish().expect("memory"));
    let of = |event: &TraceEvent| (event.at_ns, event.cpu, event.step, event.sector, event.sectors, event.op);
    let (mut found, mut expected): (Vec<_>, Vec<_>) = (again.iter().map(of).collect(), events.iter().map(of).collect());
    found.sort_unstable();
    expected.sort_unstable();
    assert_eq!(found, expected);
}

/// Until an error, if there is one.
fn events_of(files: Vec<Vec<u8>>) -> Vec<TraceEvent> {
    let sources = files.into_iter().map(|file| Source::File(Arc::new(file)));
    let mut events = Vec::new();
    if let Ok(mut reader) = open(sources.collect(), None, Gaps::Told) {
        while let Ok(true) = reader.read(&mut events) {}
    }
    events
}
