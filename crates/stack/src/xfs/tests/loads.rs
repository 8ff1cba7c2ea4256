//! Files of loads on XFS.

use super::*;
use crate::allocator::{Allocator, Full};
use crate::block::Priority;
use crate::world::{FileLayout, FileSpec, GroupSpec, Path};

const FILES: u32 = 4;

#[derive(Clone, Debug)]
enum Step {
    Reserve(u32, u64, u64),
    Allocate(u32, u64, u64),
    Close(u32),
    Replace(u32),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let block = prop_oneof![0u64..40, 900u64..1100, 0u64..3000];
    let length = prop_oneof![1u64..4, 1u64..40, 1u64..700];
    let step = prop_oneof![
        6 => (0..FILES, block.clone(), length.clone()).prop_map(|(f, b, n)| Step::Reserve(f, b, n)),
        9 => (0..FILES, block, length).prop_map(|(f, b, n)| Step::Allocate(f, b, n)),
        1 => (0..FILES).prop_map(Step::Close),
        1 => (0..FILES).prop_map(Step::Replace),
    ];
    prop::collection::vec(step, 1..100)
}

fn bare(blocks: u64, ag_count: u32) -> Mounted {
    let spec = XfsSpec {
        blocks,
        log_blocks: 512,
        ..filesystem(ag_count)
    };
    Mounted::new(2, 2_000_000_000, &spec, Allocation::Direct, false).unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// No block is given twice or lost, a block stays where it is, and what was asked for is there.
    #[test]
    fn every_block_of_a_load_has_one_owner(steps in steps(), ag_count in 1u32..4) {
        let mut fs = bare(u64::from(ag_count) * 4096, ag_count);
        (0..FILES).for_each(|file| fs.create(file, file % 2));
        let all = fs.free_blocks();
        for step in steps {
            match step {
                Step::Reserve(file, block, blocks) => {
                    let _ = fs.reserve(file, block, blocks);
                }
                Step::Allocate(file, block, blocks) => {
                    let before = fs.extents(file);
                    let result = fs.allocate(0, file, block, blocks);
                    for extent in before {
                        let now = fs.map(file, extent.logical).map(|(at, _)| at);
                        prop_assert_eq!(now, Some(extent.physical), "a mapped block stays where it is");
                    }
                    let is_there = (block..block + blocks).all(|at| fs.map(file, at).is_some());
                    prop_assert!(is_there || result == Err(Full));
                }
                Step::Close(file) => fs.close(file),
                Step::Replace(file) => {
                    fs.remove(file);
                    fs.create(file, file % 2);
                }
            }
            let mut runs: Vec<(u64, u64)> = (0..FILES)
                .flat_map(|file| fs.extents(file))
                .map(|extent| (extent.physical, extent.blocks))
                .collect();
            runs.sort_unstable();
            for pair in runs.windows(2) {
                prop_assert!(pair[0].0 + pair[0].1 <= pair[1].0, "given twice: {pair:?}");
            }
            let of_files = fs.files.check().unwrap() + fs.loads.blocks();
            prop_assert!(fs.volume.check(of_files).is_ok());
        }
        (0..FILES).for_each(|file| fs.remove(file));
        prop_assert_eq!(fs.loads.delayed_blocks(), 0);
        (0..FILES).for_each(|file| fs.create(file, file % 2));
        prop_assert_eq!(fs.free_blocks(), all);
    }
}

#[test]
fn writers_that_take_turns_get_long_pieces() {
    let mut fs = bare(1 << 18, 2);
    for file in 0..2 {
        fs.create(file, 0);
    }
    // Each is written back 64 KiB at a time.
    for piece in 0..512 {
        for file in 0..2 {
            fs.reserve(file, piece * 16, 16).unwrap();
            fs.allocate(0, file, piece * 16, 16).unwrap();
        }
    }
    let extents = fs.extents(0).len();
    assert!((5..20).contains(&extents), "{extents}");
    fs.close(0);
    fs.close(1);
    assert_eq!(fs.loads.blocks(), 2 * 512 * 16);
}

#[test]
fn what_was_written_together_gets_its_place_together() {
    let mut fs = bare(1 << 18, 2);
    fs.create(0, 0);
    fs.reserve(0, 0, 20_000).unwrap();
    fs.allocate(0, 0, 0, 1024).unwrap();
    let found = fs.extents(0);
    assert_eq!((found.len(), found[0].blocks), (1, 20_000));
    assert_eq!(fs.loads.delayed_blocks(), 0);
}

#[test]
fn a_write_that_has_no_room_is_refused_before_it_is_written_back() {
    let mut fs = bare(4096, 1);
    fs.create(0, 0);
    assert_eq!(fs.reserve(0, 0, 5_000), Err(Full));
    assert_eq!(fs.reserve(0, 0, 3_000), Ok(()));
    assert_eq!(fs.reserve(0, 3_000, 1_000), Err(Full));
    assert_eq!(fs.allocate(0, 0, 0, 3_000), Ok(()));
}

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
        machine
            .0
            .begin_metadata(0, &phase(2, 100, changes), None)
            .unwrap();
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
