//! What a job costs: nanoseconds per operation of `next` + `completed`, and of a timeline's `record`, without any I/O.
//!
//! `cargo run --release -p iolab-workload --example cost`
#![allow(clippy::disallowed_types, reason = "a benchmark needs a clock")]

#[path = "../tests/suite/fixture/mod.rs"]
mod fixture;

use std::hint::black_box;
use std::time::Instant;

use workload::job::{Job, JobStep, Op};
use workload::spec::{Arrival, BlockSize, FileOrder, JobSpec, Pattern, Spacing, Sync, SyncKind};
use workload::timeline::Timeline;

const OPS: u64 = 200_000;
const QUEUE_DEPTH: u32 = 32;
const FILE_BYTES: u64 = 16 << 30;
const REPEATS: usize = 50;

fn main() {
    println!("{:<28} {:>10} {:>14}", "job", "job ns/op", "with timeline");
    for (name, spec) in cases() {
        println!("{name:<28} {:>10.1} {:>14.1}", best(&spec, false), best(&spec, true));
    }
}

fn cases() -> Vec<(&'static str, JobSpec)> {
    let with = |change: fn(&mut JobSpec)| {
        let mut spec = uniform_reads();
        change(&mut spec);
        spec
    };
    vec![
        ("uniform reads", uniform_reads()),
        ("sequential reads", with(|spec| spec.pattern = Pattern::Sequential)),
        ("backward reads", with(|spec| spec.pattern = Pattern::Backward)),
        (
            "strided reads",
            with(|spec| spec.pattern = Pattern::Strided { stride_bytes: 1 << 20, one_lap: false, blocks_done: 0 }),
        ),
        ("zipf 1.1 reads", with(|spec| spec.pattern = Pattern::Zipf { theta: 1.1 })),
        ("permutation reads", with(|spec| spec.pattern = Pattern::Permutation { blocks_done: 0 })),
        ("uniform 70 % reads", with(|spec| spec.read_share = 0.7)),
        (
            "uniform writes, fsync/1000",
            with(|spec| {
                spec.read_share = 0.0;
                spec.sync = Some(Sync { kind: SyncKind::Fsync, every_writes: 1000, when_idle: false });
            }),
        ),
        (
            "uniform, three sizes",
            with(|spec| {
                spec.blocks = [4096, 16384, 65536].map(|bytes| BlockSize { bytes, weight: 1.0 }).into();
            }),
        ),
        (
            "uniform, 8 files at random",
            with(|spec| {
                spec.files = (0..8).collect();
                spec.file_order = FileOrder::Random;
            }),
        ),
        ("uniform, thinking", with(|spec| spec.arrival = Arrival::Closed { think_ns: 1, think_every: 1 })),
        (
            "uniform, open constant",
            with(|spec| {
                spec.arrival = Arrival::Open { rate_per_s: 1e9, spacing: Spacing::Constant };
            }),
        ),
        (
            "uniform, open Poisson",
            with(|spec| {
                spec.arrival = Arrival::Open { rate_per_s: 1e9, spacing: Spacing::Poisson };
            }),
        ),
    ]
}

fn uniform_reads() -> JobSpec {
    let mut spec = fixture::uniform_reads();
    spec.length_bytes = FILE_BYTES;
    spec.queue_depth = QUEUE_DEPTH;
    spec.until.ops = Some(OPS);
    spec
}

/// The fastest of a few runs: the one that was disturbed least.
fn best(spec: &JobSpec, with_timeline: bool) -> f64 {
    (0..REPEATS).map(|_| run(spec, with_timeline)).fold(f64::INFINITY, f64::min)
}

/// Fills the queue, then completes all of it, oldest first, as an engine that reaps in batches does.
fn run(spec: &JobSpec, with_timeline: bool) -> f64 {
    let mut job = Job::new(spec, &[FILE_BYTES; 8]).expect("a sound specification");
    let mut timeline = Timeline::new(0, 100_000_000);
    let mut in_flight: Vec<Op> = Vec::with_capacity(QUEUE_DEPTH as usize);
    let mut now = 0;
    let started = Instant::now();
    loop {
        now += 50;
        match job.next(now) {
            JobStep::Io(op) => {
                in_flight.push(op);
                continue;
            }
            JobStep::Done => break,
            JobStep::WaitUntil(_) | JobStep::WaitForCompletion => {}
        }
        black_box(&mut in_flight);
        for op in in_flight.drain(..) {
            now += 50;
            job.completed(now, &op, Ok(op.bytes));
            if with_timeline {
                timeline.record(now, op.kind, op.bytes, now - op.due.min(now));
            }
        }
    }
    let elapsed_ns = started.elapsed().as_nanos() as f64;
    black_box(timeline.finish(now));
    elapsed_ns / OPS as f64
}
