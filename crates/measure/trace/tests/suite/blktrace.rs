//! What is written as files of blktrace is read back, event for event.

use std::collections::BTreeMap;
use std::sync::Arc;

use proptest::prelude::*;
use trace::event::{Device, Marks, NO_DETAIL, Op, Step, TraceEvent};
use trace::input::{Gaps, Source, TraceInfo, open};
use trace::output::Blktrace;
use trace::request::{Change, Io, RequestTracker};

const DEVICE: Device = Device(8 << 20 | 16);

pub fn event(at_ns: u64, step: Step) -> TraceEvent {
    TraceEvent { device: DEVICE, pid: 7, sector: 2048, sectors: 8, op: Op::Read, ..TraceEvent::new(at_ns, step) }
}

fn written(events: &[TraceEvent]) -> Vec<Vec<u8>> {
    let names = BTreeMap::from([(7, "a name that is too long".to_owned()), (8, "b".to_owned())]);
    let mut files = Blktrace::new(|_| Ok(Vec::new()), names, Some(0));
    for event in events {
        files.event(event).expect("memory");
    }
    files.finish().expect("memory")
}

fn read(files: Vec<Vec<u8>>) -> (Vec<TraceEvent>, TraceInfo) {
    let sources = files.into_iter().map(|file| Source::File(Arc::new(file)));
    let mut reader = open(sources.collect(), None, Gaps::Told).expect("files of blktrace");
    let mut events = Vec::new();
    while reader.read(&mut events).expect("well-formed records") {}
    (events, std::mem::take(reader.about()))
}

/// A record of a real v7 file, little-endian: a completed read of 8 sectors at 2048.
#[test]
fn a_record_lies_as_the_kernel_lays_it() {
    let files = written(&[event(0x0102, Step::Complete)]);
    let record = &files[0][files[0].len() - 48..];
    let mut expected = vec![0x07, 0x74, 0x61, 0x65, 1, 0, 0, 0, 0x02, 0x01, 0, 0, 0, 0, 0, 0];
    expected.extend([0, 8, 0, 0, 0, 0, 0, 0, 0, 16, 0, 0, 8, 0, 0x81, 0]);
    expected.extend([7, 0, 0, 0, 16, 0, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    assert_eq!(record, expected);
}

#[test]
fn there_is_a_file_for_each_cpu_and_each_names_its_tasks_once() {
    const NOTE: usize = 48;
    let on_cpu_2 = TraceEvent { cpu: 2, pid: 9, ..event(20, Step::Queue) };
    let files = written(&[event(10, Step::Queue), event(11, Step::Queue), on_cpu_2]);
    // The wall clock, a name, two events; the wall clock; the wall clock and an event of a task without a name.
    let lengths: Vec<usize> = files.iter().map(Vec::len).collect();
    assert_eq!(lengths, [NOTE + 8 + NOTE + 16 + 2 * NOTE, NOTE + 8, NOTE + 8 + NOTE]);
    let (events, about) = read(files);
    assert_eq!(events.len(), 3);
    assert_eq!(about.names.get(&7).map(String::as_str), Some("a name that is "));
    assert_eq!(about.names.get(&9), None);
}

#[test]
fn what_a_scheduler_says_is_a_note_that_takes_no_number() {
    let mut files = Blktrace::new(|_| Ok(Vec::new()), BTreeMap::new(), Some(0));
    files.event(&event(1, Step::Queue)).expect("memory");
    files.message(&event(2, Step::Message), "cfq arm_idle").expect("memory");
    files.event(&event(3, Step::Issue)).expect("memory");
    let files = files.finish().expect("memory");
    let text = String::from_utf8_lossy(&files[0]).into_owned();
    assert!(text.contains("cfq arm_idle"));
    let (events, _) = read(files);
    let steps: Vec<Step> = events.iter().map(|event| event.step).collect();
    assert_eq!(steps, [Step::Queue, Step::Issue]);
}

pub fn events() -> impl Strategy<Value = Vec<TraceEvent>> {
    events_and(&[])
}

/// The kernel's own, and these.
fn events_and(more: &[Step]) -> impl Strategy<Value = Vec<TraceEvent>> + use<> {
    let of_kernels = [
        Step::Queue,
        Step::GetRequest,
        Step::Sleep,
        Step::BackMerge,
        Step::FrontMerge,
        Step::Insert,
        Step::Issue,
        Step::Requeue,
        Step::Complete,
        Step::Plug,
        Step::Unplug,
        Step::TimerUnplug,
        Step::Split,
    ];
    let step = prop::sample::select([&of_kernels, more].concat());
    let place = (any::<u64>(), 0u32..1 << 23);
    let op = prop::sample::select(vec![Op::Read, Op::Write, Op::Discard, Op::Flush, Op::Other]);
    let marks = [Marks::SYNC, Marks::READ_AHEAD, Marks::METADATA, Marks::FUA];
    let marks = prop::sample::subsequence(marks.to_vec(), 0..=4).prop_map(|marks| {
        let all = marks.into_iter();
        all.fold(Marks::default(), |all, mark| all.with(mark))
    });
    let of_events = (0..1000u64, 0..4u16, 6..10u32, place, op, marks, any::<i16>(), (step, any::<u64>()), 0..3u32);
    let event = of_events.prop_map(|(at_ns, cpu, pid, (sector, sectors), op, marks, error, (step, argument), disk)| {
        match step {
            Step::Lost => {
                let until_ns = at_ns + argument % 2000;
                return TraceEvent::lost(at_ns, until_ns, u64::from(sectors), cpu);
            }
            Step::Restart => return TraceEvent::new(at_ns, step),
            _ => {}
        }
        let tells = matches!(step, Step::Unplug | Step::TimerUnplug | Step::Split);
        TraceEvent {
            at_ns,
            sector,
            argument: if tells { argument } else { 0 },
            sectors,
            device: Device::new(8, 16 * disk),
            detail: NO_DETAIL,
            pid,
            cpu,
            error,
            step,
            op,
            marks,
        }
    });
    prop::collection::vec(event, 0..60).prop_map(|mut events| {
        events.sort_by_key(|event| event.at_ns);
        events
    })
}

/// What follows from events: each request, with its reported times.
fn requests(events: &[TraceEvent]) -> Vec<Io> {
    let mut follow = RequestTracker::default();
    let mut ios = Vec::new();
    for event in events {
        follow.add(event, |_, change| {
            if let Change::Ended { io, .. } = change {
                ios.push(*io);
            }
        });
    }
    ios
}

/// Two tasks write side by side, and the scheduler joins their requests; then the second place is written again.
#[test]
fn a_request_that_joined_another_leaves_nothing_behind() {
    let of =
        |sector: u64, pid: u32, at_ns: u64, step: Step| TraceEvent { sector, pid, op: Op::Write, ..event(at_ns, step) };
    let mut events = Vec::new();
    for round in 0..100 {
        let now = |ns: u64| round * 1000 + ns;
        for (pid, sector) in [(1, 2048), (2, 2056)] {
            events.push(of(sector, pid, now(u64::from(pid)), Step::Queue));
            events.push(of(sector, pid, now(10 + u64::from(pid)), Step::GetRequest));
            events.push(of(sector, pid, now(20 + u64::from(pid)), Step::Insert));
        }
        events.push(of(2056, 2, now(30), Step::RequestMerge));
        for (at_ns, step) in [(40, Step::Issue), (90, Step::Complete)] {
            events.push(TraceEvent { sectors: 16, ..of(2048, 1, now(at_ns), step) });
        }
        for (at_ns, step) in [(100, Step::Queue), (110, Step::GetRequest), (120, Step::Issue), (130, Step::Complete)] {
            events.push(of(2056, 3, now(at_ns), step));
        }
    }
    events.sort_by_key(|event| event.at_ns);
    let (again, _) = read(written(&events));
    assert_eq!(requests(&again), requests(&events));
    assert_eq!(again.len(), events.len());
    let known = requests(&again).iter().filter(|io| io.stages()[3].is_some()).count();
    assert_eq!(known, 200);
    assert_eq!(requests(&again)[0].merged, 1);
}

/// A device without requests reports the ends of bios; for others they only repeat what is known.
#[test]
fn bios_that_end_by_themselves_are_ends_in_the_files_too() {
    let mut files = Blktrace::new(|_| Ok(Vec::new()), BTreeMap::new(), Some(0));
    let events = [event(10, Step::Queue), event(50, Step::BioComplete), event(60, Step::BioComplete)];
    let mut follow = RequestTracker::default();
    for event in &events {
        follow.add(event, |_, change| {
            if matches!(change, Change::Ended { .. }) {
                files.ends();
            }
        });
        files.event(event).expect("memory");
    }
    let (again, _) = read(files.finish().expect("memory"));
    assert_eq!(again.len(), 2);
    assert_eq!(requests(&again)[0].stages()[3], Some(40));
}

#[test]
fn lines_of_ios_become_events_in_the_order_of_time() {
    let line = |at_ns: u64, argument: u64, waited_us: u32| TraceEvent {
        argument,
        detail: waited_us,
        sector: at_ns,
        ..event(at_ns, Step::DeviceDone)
    };
    let lines = [
        line(3_000_000_000, 10, NO_DETAIL),
        line(4_000_000_000, 2_000_000_000, 7),
        line(9_000_000_000, 5_500_000_000, 0),
    ];
    let (again, about) = read(written(&lines));
    assert_eq!((about.restarts, about.events_late), (0, 0));
    let key = |io: &Io| (io.sector, io.queued_ns, io.issued_ns, io.completed_ns);
    let found: Vec<_> = requests(&again).iter().map(key).collect();
    assert_eq!(found, requests(&lines).iter().map(key).collect::<Vec<_>>());
}

proptest! {
    #[test]
    fn events_are_read_back(events in events_and(&[Step::Lost, Step::Restart])) {
        prop_assume!(!events.is_empty());
        let (mut found, _) = read(written(&events));
        let key = |event: &TraceEvent| (event.at_ns, event.cpu);
        let mut expected = events.clone();
        found.sort_by_key(key);
        expected.sort_by_key(key);
        prop_assert_eq!(found, expected);
    }
}
