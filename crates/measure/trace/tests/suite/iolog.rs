//! A log of I/Os as fio replays it, written and read back: times to the microsecond, of reads, writes, discards, flushes.

use std::sync::Arc;

use base::SECTOR_BYTES;
use proptest::prelude::*;
use trace::event::{Device, Op, Step, TraceEvent};
use trace::input::{Gaps, Source, open};
use trace::output::{IoLog, Side};

fn read(log: Vec<u8>) -> Vec<TraceEvent> {
    let mut reader = open(vec![Source::File(Arc::new(log))], None, Gaps::Told).expect("a log of fio");
    let mut events = Vec::new();
    while reader.read(&mut events).expect("lines of a log") {}
    let about = std::mem::take(reader.about());
    assert_eq!(about.malformed, 0, "{:?}", about.first_malformed);
    events
}

proptest! {
    #[test]
    fn ios_are_read_back(
        ios in prop::collection::vec(
            (
                0..10_000_000u64,
                prop::sample::select(vec![Op::Read, Op::Write, Op::Discard, Op::Flush]),
                0..u64::MAX / SECTOR_BYTES / 4,
                1u32..1 << 16,
                0u32..3,
            ),
            1..100,
        ),
    ) {
        let mut events: Vec<TraceEvent> = ios
            .into_iter()
            .map(|(at_ns, op, sector, sectors, minor)| TraceEvent {
                device: Device::new(8, minor),
                sector: if op == Op::Flush { 0 } else { sector },
                sectors: if op == Op::Flush { 0 } else { sectors },
                op,
                ..TraceEvent::new(at_ns, Step::Queue)
            })
            .collect();
        events.sort_by_key(|event| event.at_ns);
        let mut out = Vec::new();
        let mut log = IoLog::new(&mut out, Side::Queued, "/dev/sda").expect("memory");
        for event in &events {
            log.event(event).expect("memory");
        }
        log.finish(10_000_000).expect("memory");
        let began_ns = events[0].at_ns;
        let of = |event: &TraceEvent, began_ns: u64| {
            ((event.at_ns - began_ns) / 1000, event.op, event.sector, event.sectors)
        };
        let found: Vec<_> = read(out).iter().map(|event| of(event, 0)).collect();
        let expected: Vec<_> = events.iter().map(|event| of(event, began_ns)).collect();
        prop_assert_eq!(found, expected);
    }
}
