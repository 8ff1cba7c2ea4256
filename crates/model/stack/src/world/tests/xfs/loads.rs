//! Loads beside who makes files, on one machine.

use super::*;
use crate::world::{FileLayout, FileSpec, GroupSpec, Path};
use block_layer::Priority;

/// One writer past the page cache.
fn writer(file: u32, operations: u64) -> PhaseSpec {
    let job = json!({
        "name": "w", "files": [0], "file_order": "sequential", "pattern": { "kind": "sequential" },
        "read_share": 0.0, "blocks": [{ "bytes": 4096, "weight": 1.0 }], "align_bytes": 4096,
        "offset_bytes": 0, "length_bytes": 64 << 20, "queue_depth": 1,
        "arrival": { "kind": "closed", "think_ns": 0, "think_every": 1 },
        "until": { "ops": operations, "bytes": null, "duration_ns": null },
        "sync": null, "sync_at_end": false, "seed": 7
    });
    PhaseSpec {
        groups: vec![GroupSpec {
            polls: false,
            batch: None,
            path: Path::Direct,
            cgroup: 0,
            priority: Priority::default(),
            cpus: None,
            jobs: vec![serde_json::from_value(job).unwrap()],
        }],
        files: vec![file],
        ..PhaseSpec::without_loads(1)
    }
}

fn add_file(machine: &mut Machine) -> u32 {
    machine.0.add_file(FileSpec {
        name: "load".to_owned(),
        drive: 0,
        size_bytes: 64 << 20,
        place: FileLayout::Allocated { directory: 0 },
    })
}

#[test]
fn a_load_and_who_makes_files_share_cpus_and_drive() {
    // One command of a millisecond at a time.
    let files_per_s = |beside: bool| {
        let drive = (1_000_000, 1);
        let cpus = processors(4, true);
        let mut machine = Machine::with_depth(cpus, drive, &filesystem(4), Allocation::Direct);
        let file = add_file(&mut machine);
        let operations = if beside { 1_000 } else { 1 };
        machine.0.begin_phase(&writer(file, operations)).unwrap();
        let changes = json!({ "/job/sync": "before_close" });
        machine.0.begin_metadata(0, &phase(2, 100, changes), None).unwrap();
        machine.0.run(|_| true);
        let results = machine.end();
        machine.0.check().unwrap();
        assert_eq!(files(&results), 200);
        200e9 / elapsed_ns(&results) as f64
    };
    let (alone, beside) = (files_per_s(false), files_per_s(true));
    // Of two that take turns each has half of the drive.
    let ratio = beside / alone;
    assert!((0.4..0.6).contains(&ratio), "{beside} and {alone}");
}
