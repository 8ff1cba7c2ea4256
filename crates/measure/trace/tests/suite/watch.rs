//! A recording that is watched while it is made: pages of CPUs in any order.

use std::collections::BTreeMap;

use crate::support::{fixture, format, in_order, page_format, text};
use trace::event::Step;
use trace::recording::Item;
use trace::tracepoints::{BlockDecoder, EVENTS};
use trace::watch::Watch;

/// The slowest request of the recording, from its first bio to its end, by all events in the order of time.
fn slowest() -> u64 {
    let formats: Vec<_> = EVENTS.iter().map(|one| format(one.name)).collect();
    let decoder = BlockDecoder::new(EVENTS, &formats).expect("formats of a real kernel");
    let (mut queued, mut issued, mut slowest) = (BTreeMap::new(), BTreeMap::new(), 0);
    in_order("block", |cpu, item| {
        let Item::Record(raw) = item else {
            return;
        };
        let Ok(Some(event)) = decoder.decode(cpu as u16, &raw) else {
            return;
        };
        let key = (event.device, event.sector, event.op);
        match event.step {
            Step::Queue => {
                queued.entry(key).or_insert(event.at_ns);
            }
            Step::BackMerge | Step::RequestMerge => {
                queued.remove(&key);
            }
            Step::Issue => {
                let since = queued.remove(&key).unwrap_or(event.at_ns);
                issued.insert(key, since);
            }
            Step::Complete => {
                let since = issued.remove(&key).unwrap_or(event.at_ns);
                slowest = slowest.max(event.at_ns - since);
            }
            _ => {}
        }
    });
    slowest
}

fn watched(limit_ns: u64, cpus: &[u16]) -> Option<u64> {
    let names = EVENTS.iter().map(|one| text(&format!("formats/{}.txt", one.name)));
    let formats: Vec<String> = names.collect();
    let formats: Vec<&str> = formats.iter().map(String::as_str).collect();
    let header = text("formats/header_page.txt");
    let mut watch = Watch::new(&header, &formats, limit_ns).expect("formats of a real kernel");
    let mut found = None;
    for &cpu in cpus {
        let bytes = std::fs::read(fixture(&format!("block.cpu{cpu}.raw"))).expect("a fixture");
        for page in bytes.chunks(page_format().subbuffer_bytes()) {
            found = found.max(watch.add(cpu, page));
        }
    }
    found
}

#[test]
fn a_request_that_is_too_slow_is_seen_whichever_cpu_is_read_first() {
    let slowest = slowest();
    assert!(slowest > 0);
    for cpus in [[0, 1], [1, 0]] {
        let found = watched(slowest, &cpus).expect("the slowest is slow enough");
        assert!(found >= slowest, "{found} {slowest}");
    }
    assert_eq!(watched(10_000_000_000, &[0, 1]), None);
}
