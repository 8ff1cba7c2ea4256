//! What a replay takes from events: each I/O once, on either side of the block layer.

use trace::event::{Device, Marks, Op, Step, TraceEvent};
use trace::input::TraceInfo;
use trace::schedule::Arrivals;
use workload::job::OpKind;
use workload::traced::{Schedule, Side, TraceChoice};

fn choice(side: Side) -> TraceChoice {
    TraceChoice { paths: Vec::new(), table: None, side, device: None, from_ns: 0, length_ns: None }
}

fn event(at_ns: u64, step: Step, op: Op, sector: u64, sectors: u32) -> TraceEvent {
    TraceEvent { op, sector, sectors, device: Device::new(8, 0), pid: 7, ..TraceEvent::new(at_ns, step) }
}

fn scheduled(choice: &TraceChoice, events: &[TraceEvent]) -> Schedule {
    let mut arrivals = Arrivals::new(choice);
    for event in events {
        arrivals.add(event).expect("few I/Os");
    }
    arrivals.finish(choice, &TraceInfo::default()).expect("some I/Os")
}

fn fua(event: TraceEvent) -> TraceEvent {
    TraceEvent { marks: Marks::FUA, ..event }
}

/// Two bios that became one request, a durable write, and a flush that is still in flight at the end.
fn events() -> Vec<TraceEvent> {
    vec![
        event(100, Step::Queue, Op::Read, 0, 8),
        event(110, Step::GetRequest, Op::Read, 0, 8),
        event(200, Step::Queue, Op::Read, 8, 8),
        event(210, Step::BackMerge, Op::Read, 8, 8),
        fua(event(300, Step::Queue, Op::Write, 64, 16)),
        fua(event(310, Step::GetRequest, Op::Write, 64, 16)),
        event(400, Step::Issue, Op::Read, 0, 16),
        fua(event(410, Step::Issue, Op::Write, 64, 16)),
        event(900, Step::Complete, Op::Read, 0, 16),
        fua(event(950, Step::Complete, Op::Write, 64, 16)),
        event(960, Step::Queue, Op::Discard, 0, 1 << 18),
        event(965, Step::Issue, Op::Discard, 0, 1 << 18),
        event(970, Step::Complete, Op::Discard, 0, 1 << 18),
        event(980, Step::Issue, Op::Flush, 0, 0),
        // No device is so large, and no I/O so long.
        event(990, Step::Arrival, Op::Read, u64::MAX - 8, 8),
        event(995, Step::Arrival, Op::Write, 0, u32::MAX),
    ]
}

type Row = (u64, Option<u64>, u64, u32, OpKind);

fn rows(schedule: &Schedule) -> Vec<Row> {
    let row = |io: &workload::traced::ScheduledIo| {
        let took = io.ended_ns().map(|end| end - io.at_ns);
        (io.at_ns, took, io.sector, io.sectors, io.kind)
    };
    schedule.ios.iter().map(row).collect()
}

#[test]
fn the_issued_side_has_requests_and_what_had_not_ended() {
    let schedule = scheduled(&choice(Side::Issued), &events());
    let expected: Vec<Row> = vec![
        (0, Some(500), 0, 16, OpKind::Read),
        (10, Some(540), 64, 16, OpKind::DurableWrite),
        (565, Some(5), 0, 1 << 18, OpKind::Discard),
        (580, None, 0, 0, OpKind::Fdatasync),
    ];
    assert_eq!(rows(&schedule), expected);
    assert_eq!(schedule.left_out, 2);
    let process = &schedule.processes[0];
    assert_eq!((process.pid, process.ios, process.depth_max), (7, 4, 2));
    assert_eq!((process.flushes, process.discards), (2, 1));
    assert_eq!(schedule.devices[0].extent_bytes, 128 << 20);
    // Buffers are for reads and writes.
    assert_eq!(schedule.largest_bytes(), 16 * 512);
    assert_eq!(schedule.touched(0, 4096), [0, 1, 8, 9]);
}

#[test]
fn the_queued_side_has_bios_that_end_with_their_request() {
    let schedule = scheduled(&choice(Side::Queued), &events());
    let expected: Vec<Row> = vec![
        (0, Some(800), 0, 8, OpKind::Read),
        (100, Some(700), 8, 8, OpKind::Read),
        (200, Some(650), 64, 16, OpKind::DurableWrite),
        (860, Some(10), 0, 1 << 18, OpKind::Discard),
    ];
    assert_eq!(rows(&schedule), expected);
}

#[test]
fn zeroes_that_carry_no_data_are_no_writes() {
    let zeroes = |event| TraceEvent { marks: Marks::ZEROES, ..event };
    let events = [
        zeroes(event(100, Step::Queue, Op::Write, 8, 1 << 20)),
        zeroes(event(200, Step::Issue, Op::Write, 8, 1 << 20)),
        zeroes(event(300, Step::Complete, Op::Write, 8, 1 << 20)),
    ];
    for (side, took) in [(Side::Issued, 100), (Side::Queued, 200)] {
        let schedule = scheduled(&choice(side), &events);
        let expected = [(0, Some(took), 8, 1 << 20, OpKind::WriteZeroes)];
        assert_eq!(rows(&schedule), expected);
        let process = &schedule.processes[0];
        assert_eq!((process.writes, process.discards), (0, 1));
    }
}

#[test]
fn a_bio_in_two_requests_ends_with_the_later_one() {
    let split = TraceEvent { argument: 8, ..event(110, Step::Split, Op::Read, 0, 0) };
    let schedule = scheduled(
        &choice(Side::Queued),
        &[
            event(100, Step::Queue, Op::Read, 0, 16),
            split,
            event(200, Step::Issue, Op::Read, 0, 8),
            event(210, Step::Issue, Op::Read, 8, 8),
            event(500, Step::Complete, Op::Read, 8, 8),
            event(700, Step::Complete, Op::Read, 0, 8),
        ],
    );
    assert_eq!(rows(&schedule), [(0, Some(600), 0, 16, OpKind::Read)]);
}

#[test]
fn a_part_of_the_trace_begins_at_its_own_first_arrival() {
    let part = TraceChoice { from_ns: 305, length_ns: Some(100), ..choice(Side::Issued) };
    let schedule = scheduled(&part, &events());
    assert_eq!(rows(&schedule), [(0, Some(540), 64, 16, OpKind::DurableWrite)]);
    let other = TraceChoice { device: Some("8:16".into()), ..choice(Side::Issued) };
    let refused = Arrivals::new(&other).finish(&other, &TraceInfo::default());
    assert!(refused.is_err_and(|error| error.0.contains("8:16")));
}

#[test]
fn a_flush_that_is_asked_for_and_the_drivers_own_are_one() {
    let marked = |marks, event| TraceEvent { marks, ..event };
    let asked = [Step::Queue, Step::GetRequest];
    let mut events: Vec<TraceEvent> =
        (100..).zip(asked).map(|(at_ns, step)| marked(Marks::PREFLUSH, event(at_ns, step, Op::Write, 0, 0))).collect();
    events.extend([
        event(200, Step::Issue, Op::Flush, 0, 0),
        event(300, Step::Complete, Op::Flush, 0, 0),
        event(310, Step::Complete, Op::Write, 0, 0),
    ]);
    let flush = |at_ns, took_ns| vec![(at_ns, Some(took_ns), 0, 0, OpKind::Fdatasync)];
    // Both begin at the first that is offered.
    assert_eq!(rows(&scheduled(&choice(Side::Issued), &events)), flush(0, 100));
    assert_eq!(scheduled(&choice(Side::Queued), &events).ios.len(), 1);
}

#[test]
fn a_write_that_the_driver_was_not_told_to_make_durable_is_a_plain_one_there() {
    let events = [
        fua(event(100, Step::Queue, Op::Write, 8, 8)),
        fua(event(101, Step::GetRequest, Op::Write, 8, 8)),
        event(200, Step::Issue, Op::Write, 8, 8),
        event(300, Step::Complete, Op::Write, 8, 8),
        event(310, Step::Issue, Op::Flush, 0, 0),
        event(400, Step::Complete, Op::Flush, 0, 0),
        fua(event(500, Step::Queue, Op::Write, 8, 8)),
        fua(event(510, Step::Issue, Op::Write, 8, 8)),
        event(600, Step::Complete, Op::Write, 8, 8),
    ];
    let kinds = |side| -> Vec<OpKind> {
        let schedule = scheduled(&choice(side), &events);
        schedule.ios.iter().map(|io| io.kind).collect()
    };
    let issued = [OpKind::Write, OpKind::Fdatasync, OpKind::DurableWrite];
    assert_eq!(kinds(Side::Issued), issued);
    assert_eq!(kinds(Side::Queued), [OpKind::DurableWrite; 2]);
}
