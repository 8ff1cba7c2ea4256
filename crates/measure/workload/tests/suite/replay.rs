//! A replay on devices that a test makes up: as fast as the traced one, faster, or stuck.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::sync::Arc;

use crate::fixture::uniform_reads;
use base::time::Time;
use proptest::prelude::*;
use workload::job::{Job, JobStep, Op, OpKind};
use workload::replay::ReplayRecord;
use workload::spec::{JobBounds, JobSpec};
use workload::traced::{Mapping, Process, ReplaySpec, Schedule, ScheduledIo, Side, Timing, TraceChoice, TracedDevice};

const FILE_BYTES: u64 = 1 << 30;

/// Arrival, duration and process of each I/O; each has its own place, by which a test knows it again.
fn schedule(ios: &[(Time, Time, u32)]) -> Schedule {
    let mut sorted = ios.to_vec();
    sorted.sort_unstable();
    let first_ns = sorted[0].0;
    let ios: Vec<ScheduledIo> = (0..)
        .zip(&sorted)
        .map(|(number, &(at_ns, took_ns, process))| ScheduledIo {
            at_ns: at_ns - first_ns,
            took_ns,
            sector: number * 8,
            sectors: 8,
            process,
            device: 0,
            kind: OpKind::Read,
        })
        .collect();
    let device = TracedDevice { name: "8:0".into(), extent_bytes: ios.len() as u64 * 4096, ios: ios.len() as u64 };
    let processes = (0..=3).map(|pid| Process {
        pid,
        name: String::new(),
        ios: 0,
        reads: 0,
        writes: 0,
        flushes: 0,
        discards: 0,
        depth_max: 0,
    });
    Schedule::new(ios, vec![device], processes.collect(), 0)
}

fn job_of(schedule: &Schedule, timing: Timing, time_scale: f64, queue_depth: u32) -> JobSpec {
    JobSpec {
        length_bytes: FILE_BYTES,
        queue_depth,
        align_bytes: 512,
        until: JobBounds::of_ops(schedule.ios.len() as u64),
        replay: Some(ReplaySpec {
            trace: TraceChoice {
                paths: vec!["trace".into()],
                table: None,
                side: Side::Issued,
                device: None,
                from_ns: 0,
                length_ns: None,
            },
            digest: schedule.digest().to_owned(),
            timing,
            time_scale,
            mapping: Mapping::Wrap,
            region_bytes: 1 << 20,
            thread: 0,
            threads: 1,
            flushes: false,
            discards: false,
            schedule: Some(Arc::new(schedule.clone())),
        }),
        ..uniform_reads()
    }
}

/// When each I/O was offered and done, by its number.
struct ReplayResult {
    offered: BTreeMap<usize, Time>,
    done: BTreeMap<usize, Time>,
    order: Vec<usize>,
    record: ReplayRecord,
}

/// Runs the job on a device that takes this long for an I/O.
fn play(spec: &JobSpec, took: impl Fn(usize) -> Time) -> ReplayResult {
    let mut job = Job::new(spec, &[FILE_BYTES]).expect("a sound specification");
    let mut now = 0;
    let mut in_flight: BinaryHeap<Reverse<(Time, usize)>> = BinaryHeap::new();
    let mut ops: BTreeMap<usize, Op> = BTreeMap::new();
    let (mut offered, mut done, mut order) = (BTreeMap::new(), BTreeMap::new(), Vec::new());
    loop {
        let until = match job.next(now) {
            JobStep::Io(op) => {
                let number = (op.offset / 4096) as usize;
                assert!(op.due <= now && ops.insert(number, op).is_none());
                offered.insert(number, now);
                order.push(number);
                in_flight.push(Reverse((now + took(number), number)));
                continue;
            }
            JobStep::WaitUntil(at) => Some(at),
            JobStep::WaitForCompletion => None,
            JobStep::Done => break,
        };
        assert_eq!(job.next_wakeup(), until);
        let next = in_flight.peek().map(|Reverse((at, _))| *at);
        now = until.into_iter().chain(next).min().expect("something will happen");
        if next == Some(now) {
            let Reverse((_, number)) = in_flight.pop().expect("it was looked at");
            done.insert(number, now);
            job.completed(now, &ops[&number], Ok(4096));
        }
    }
    assert!(in_flight.is_empty());
    ReplayResult { offered, done, order, record: job.replayed().expect("it replays") }
}

fn ios() -> impl Strategy<Value = Vec<(Time, Time, u32)>> {
    prop::collection::vec((0..50_000u64, 1..9_000u64, 0..4u32), 1..120)
}

proptest! {
    #[test]
    fn recorded_times_are_kept_whatever_the_device_does(
        ios in ios(), scale in prop::sample::select(vec![0.5, 1.0, 3.0]), took in 1..1_000_000u64,
    ) {
        let schedule = schedule(&ios);
        let played = play(&job_of(&schedule, Timing::Recorded, scale, 4096), |_| took);
        prop_assert_eq!(played.order, (0..schedule.ios.len()).collect::<Vec<_>>());
        for (number, io) in schedule.ios.iter().enumerate() {
            prop_assert_eq!(played.offered[&number], (io.at_ns as f64 * scale) as u64);
        }
        prop_assert_eq!(played.record.arrivals_late, 0);
    }

    #[test]
    fn on_the_traced_device_what_depends_comes_when_it_came(ios in ios()) {
        let schedule = schedule(&ios);
        let spec = job_of(&schedule, Timing::Dependent, 1.0, 4096);
        let played = play(&spec, |number| schedule.ios[number].took_ns);
        for (number, io) in schedule.ios.iter().enumerate() {
            prop_assert_eq!(played.offered[&number], io.at_ns);
        }
        let distance = played.record.depth_distance.expect("the trace tells its ends");
        prop_assert!(distance < 1e-9, "{distance}");
    }

    #[test]
    fn on_any_device_nothing_comes_before_what_it_waited_for(ios in ios(), took in 1..30_000u64) {
        let schedule = schedule(&ios);
        let played = play(&job_of(&schedule, Timing::Dependent, 1.0, 4096), |number| 1 + (took * (number as u64 + 7)) % 9973);
        for (number, io) in schedule.ios.iter().enumerate() {
            for (before, other) in schedule.ios.iter().enumerate() {
                let waited = other.process == io.process && other.at_ns + other.took_ns <= io.at_ns;
                prop_assert!(!waited || played.done[&before] <= played.offered[&number]);
            }
        }
    }

    #[test]
    fn threads_share_the_trace_without_loss(ios in ios(), threads in 1..5u32, dependent: bool) {
        let schedule = schedule(&ios);
        let timing = if dependent { Timing::Dependent } else { Timing::Recorded };
        let mut seen = Vec::new();
        for thread in 0..threads {
            let mut spec = job_of(&schedule, timing, 1.0, 64);
            let replay = spec.replay.as_mut().expect("it replays");
            (replay.thread, replay.threads) = (thread, threads);
            seen.extend(play(&spec, |_| 10).order);
        }
        seen.sort_unstable();
        prop_assert_eq!(seen, (0..schedule.ios.len()).collect::<Vec<_>>());
    }
}

#[test]
fn a_discard_may_be_larger_than_its_file_and_one_that_is_refused_is_counted() {
    let mut schedule = schedule(&[(0, 5, 0), (10, 5, 0)]);
    schedule.ios[1].kind = OpKind::Discard;
    schedule.ios[1].sectors = 1 << 22;
    let schedule = Schedule::new(schedule.ios, schedule.devices, schedule.processes, 0);
    assert_eq!(schedule.largest_bytes(), 4096);
    let spec = job_of(&schedule, Timing::Recorded, 1.0, 4);
    let mut job = Job::new(&spec, &[FILE_BYTES]).expect("a sound specification");
    let JobStep::Io(read) = job.next(0) else {
        panic!("the read is due");
    };
    job.completed(5, &read, Ok(4096));
    let JobStep::Io(discard) = job.next(10) else {
        panic!("the discard is due");
    };
    assert_eq!((discard.kind, discard.offset), (OpKind::Discard, 0));
    assert_eq!((u64::from(discard.bytes), discard.result()), (FILE_BYTES, 0));
    job.refused(20, &discard);
    assert_eq!(job.next(20), JobStep::Done);
    let record = job.replayed().expect("it replays");
    assert_eq!((record.arrivals, record.refused), (2, 1));
}

#[test]
fn a_faster_device_ends_a_dependent_replay_sooner_and_a_recorded_one_not() {
    let ios: Vec<_> = (0..100).map(|number| (number * 1_000, 900, 0)).collect();
    let schedule = schedule(&ios);
    let last = |timing| {
        let played = play(&job_of(&schedule, timing, 1.0, 16), |_| 100);
        played.offered[&99]
    };
    assert_eq!(last(Timing::Recorded), 99_000);
    assert_eq!(last(Timing::Dependent), 99 * 200);
}

#[test]
fn what_finds_the_queue_full_is_late_and_counted() {
    let ios: Vec<_> = (0..100).map(|number| (number * 1_000, 500, 0)).collect();
    let schedule = schedule(&ios);
    let played = play(&job_of(&schedule, Timing::Recorded, 1.0, 1), |_| 1_000_000);
    assert_eq!((played.record.arrivals, played.record.arrivals_late), (100, 99));
    let recorded = played.record.recorded_rate_per_s.expect("a hundred arrivals");
    let replayed = played.record.replayed_rate_per_s.expect("a hundred arrivals");
    assert!((recorded - 1e6).abs() < 1.0 && (replayed - 1e3).abs() < 1.0);
}

#[test]
fn another_trace_and_none_are_refused() {
    let schedule = schedule(&[(0, 1, 0)]);
    let mut spec = job_of(&schedule, Timing::Recorded, 1.0, 1);
    let replay = spec.replay.as_mut().expect("it replays");
    replay.digest = "0".repeat(16);
    let refused = Job::new(&spec, &[FILE_BYTES]).expect_err("another digest");
    assert!(refused.message.contains("not the trace that the run began with"));
    spec.replay.as_mut().expect("it replays").schedule = None;
    let refused = Job::new(&spec, &[FILE_BYTES]).expect_err("no schedule");
    assert!(refused.message.contains("was not read"));
}

#[test]
fn a_stop_waits_for_what_is_in_flight_only() {
    let schedule = schedule(&[(0, 10, 0), (5, 10, 0), (50, 10, 0)]);
    let mut job = Job::new(&job_of(&schedule, Timing::Recorded, 1.0, 8), &[FILE_BYTES]).expect("sound");
    let JobStep::Io(op) = job.next(0) else { panic!("the first is due") };
    assert_eq!(job.next(1), JobStep::WaitUntil(5));
    job.stop();
    assert_eq!((job.next(60), job.in_flight()), (JobStep::WaitForCompletion, 1));
    job.completed(70, &op, Ok(4096));
    assert_eq!(job.next(70), JobStep::Done);
}
