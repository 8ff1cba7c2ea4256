//! What reaches a drive under the rules of its queue, as traces show it.

use serde_json::{Value, json};

use block_layer::{Direction, EventKind, QueueEvent};
use events::time::SECOND;
use stack::machine::MachineSpec;
use stack::world::{FileLayout, FileSpec, GroupSpec, Path, PhaseSpec, World};
use workload::spec::{Arrival, BlockSize, FileOrder, JobBounds, JobSpec, Pattern};

const FILE_BYTES: u64 = 64 << 20;

/// One device that takes no time to speak of, under a machine of four simple CPUs.
fn world(kernel: &str, drive: &Value) -> World {
    let mut whole = json!({
        "device": { "kind": "null", "capacity_bytes": 1 << 30, "latency_ns": 20_000, "queue_depth": 32 },
    });
    let given = drive.as_object().expect("a table").clone();
    whole.as_object_mut().expect("a table").extend(given);
    let machine = json!({
        "kernel": kernel,
        "cpus": {
            "count": 4, "time_slice_ns": 4_000_000, "call_ns": 1000, "completion_ns": 1000,
            "page_copy_ns": 300, "jitter": 0.0
        },
        "memory": { "bytes": 256 << 20 },
        "drives": [whole],
    });
    let spec = MachineSpec::from_json(machine).expect("a possible machine");
    let mut world = spec.build().expect("it builds");
    world.add_file(FileSpec {
        name: "file".to_owned(),
        drive: 0,
        size_bytes: FILE_BYTES,
        place: FileLayout::Contiguous(0),
    });
    world
}

fn group(path: Path, read_share: f64, bytes: u32) -> GroupSpec {
    let job = JobSpec {
        name: String::new(),
        files: vec![0],
        file_order: FileOrder::Sequential,
        pattern: Pattern::Sequential,
        read_share,
        blocks: vec![BlockSize { bytes, weight: 1.0 }],
        align_bytes: u64::from(bytes),
        offset_bytes: 0,
        length_bytes: FILE_BYTES,
        queue_depth: 1,
        arrival: Arrival::Closed { think_ns: 0, think_every: 1 },
        until: JobBounds { ops: None, bytes: Some(FILE_BYTES), duration_ns: None },
        sync: None,
        sync_at_end: read_share < 1.0,
        dsync_every: None,
        osync_every: None,
        commits: false,
        seed: 1,
        scatter_seed: None,
        writes: None,
        start_ns: None,
        depth_search: None,
        steady_state: None,
        replay: None,
    };
    GroupSpec { polls: false, batch: None, path, cgroup: 0, priority: Default::default(), cpus: None, jobs: vec![job] }
}

/// The events of a whole phase.
fn events(mut world: World, groups: Vec<GroupSpec>) -> Vec<QueueEvent> {
    let phase = PhaseSpec {
        groups,
        files: vec![0],
        warm_up_ns: 0,
        interval_ns: SECOND,
        ends_with_first: false,
        stops_with: None,
        seed: 1,
    };
    world.tap();
    world.begin_phase(&phase).expect("a possible phase");
    world.run(|_| true);
    world.check().expect("Little's law and conservation");
    let mut events = Vec::new();
    world.take_events(&mut events);
    events
}

fn largest(events: &[QueueEvent], kind: EventKind) -> u32 {
    let of_kind = events.iter().filter(|event| event.kind == kind);
    of_kind.map(|event| event.sectors).max().expect("some")
}

#[test]
fn no_bio_and_no_request_is_larger_than_the_queue_takes() {
    let ways = [(Path::Direct, 1.0), (Path::Direct, 0.0), (Path::Buffered, 1.0), (Path::Buffered, 0.0)];
    for (kernel, queue, most) in [
        ("2.5.59", json!({}), 248),
        ("2.6.35", json!({ "read_ahead_kb": 2048 }), 1024),
        ("6.1", json!({ "read_ahead_kb": 2048, "max_sectors_kb": 128 }), 256),
        ("6.1", json!({ "read_ahead_kb": 2048, "max_segments": 16 }), 128),
    ] {
        for (path, read_share) in ways {
            let world = world(kernel, &json!({ "queue": queue.clone() }));
            let events = events(world, vec![group(path, read_share, 1 << 20)]);
            for kind in [EventKind::Queue, EventKind::Issue] {
                let found = largest(&events, kind);
                assert!(found <= most, "{kernel} {queue} {path:?} {read_share}: {found}");
            }
        }
    }
}

/// What the group writes under that kernel is all known to be waited for, or none of it.
fn assert_all_sync(kernel: &str, group: GroupSpec, is: bool) {
    let events = events(world(kernel, &json!({})), vec![group]);
    let inserted = events.iter().filter(|event| event.kind == EventKind::Insert);
    let sync: Vec<bool> = inserted.map(|event| event.sync).collect();
    assert!(!sync.is_empty() && sync.iter().all(|&sync| sync == is), "{kernel}");
}

#[test]
fn old_kernels_do_not_tell_schedulers_that_direct_writes_are_waited_for() {
    for (kernel, is) in [("2.6.10", false), ("2.6.11", true), ("6.1", true)] {
        assert_all_sync(kernel, group(Path::Direct, 0.0, 65_536), is);
    }
}

#[test]
fn of_an_fsync_schedulers_see_that_somebody_waits_until_2_6_17_and_from_2_6_30_on() {
    for (kernel, is) in [("2.6.17", true), ("2.6.24", false), ("2.6.30", true)] {
        let mut few = group(Path::Buffered, 0.0, 65_536);
        few.jobs[0].until.bytes = Some(1 << 20);
        assert_all_sync(kernel, few, is);
    }
}

#[test]
fn a_large_write_goes_out_in_the_largest_requests() {
    let world = world("6.1", &json!({ "queue": { "max_sectors_kb": 128 } }));
    let events = events(world, vec![group(Path::Direct, 0.0, 1 << 20)]);
    let issued = events.iter().filter(|event| event.kind == EventKind::Issue);
    let sizes: Vec<u32> =
        issued.inspect(|event| assert_eq!(event.direction, Direction::Write)).map(|event| event.sectors).collect();
    assert_eq!(sizes, vec![256; (FILE_BYTES / (128 << 10)) as usize]);
}
