//! What makes a specification impossible, and how it is said.

use crate::fixture::uniform_reads;
use workload::check::check;
use workload::spec::{Arrival, JobSpec, Pattern, Spacing};

type Change = fn(&mut JobSpec);

#[test]
fn each_impossible_key_is_named() {
    assert_eq!(check(&uniform_reads(), &[1 << 20]), Ok(()));
    let changes: [(&str, Change); 18] = [
        ("files", |spec| spec.files.clear()),
        ("files", |spec| spec.files = vec![1]),
        ("length_bytes", |spec| spec.length_bytes += 1),
        ("length_bytes", |spec| spec.length_bytes = 4095),
        ("length_bytes", |spec| spec.offset_bytes = u64::MAX - 4095),
        ("blocks", |spec| spec.blocks.clear()),
        ("blocks", |spec| spec.blocks[0].bytes = 0),
        ("blocks", |spec| spec.blocks[0].weight = f64::NAN),
        ("align_bytes", |spec| spec.align_bytes = 0),
        ("offset_bytes", |spec| (spec.offset_bytes, spec.length_bytes) = (512, 8192)),
        ("pattern", |spec| spec.pattern = Pattern::Strided { stride_bytes: 100, one_lap: false, blocks_done: 0 }),
        ("pattern", |spec| spec.pattern = Pattern::Zipf { theta: -1.0 }),
        ("read_share", |spec| spec.read_share = 1.5),
        ("queue_depth", |spec| spec.queue_depth = 0),
        ("arrival", |spec| spec.arrival = Arrival::Closed { think_ns: 1, think_every: 0 }),
        ("arrival", |spec| {
            spec.arrival = Arrival::Open { rate_per_s: 0.0, spacing: Spacing::Poisson };
        }),
        ("until", |spec| spec.until.ops = None),
        ("until", |spec| spec.until.bytes = Some(100)),
    ];
    for (key, change) in changes {
        let mut spec = uniform_reads();
        change(&mut spec);
        assert_eq!(check(&spec, &[1 << 20]).map_err(|error| error.key), Err(key), "{spec:?}");
    }
}

#[test]
fn an_error_is_one_clear_line() {
    let mut spec = uniform_reads();
    spec.length_bytes = 2 << 20;
    assert_eq!(
        check(&spec, &[1 << 20]).unwrap_err().to_string(),
        "job \"job\": length_bytes: 2097152 bytes from offset 0 reach past the end of file 0 (1048576 bytes)"
    );
}
