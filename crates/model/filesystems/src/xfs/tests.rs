//! Files of loads: where their blocks go.

use proptest::prelude::*;

use super::*;
use crate::allocator::{Allocator, Full};
use crate::effect::Submitter;

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

fn below(flushes: bool) -> Platform<'static> {
    Platform { flushes, ..some_drive() }
}

fn bare(blocks: u64, ag_count: u32) -> Xfs {
    let spec = XfsSpec { blocks, log_blocks: 512, ..small_filesystem(ag_count) };
    Xfs::new(&below(false), &spec, Allocation::Direct).unwrap()
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

#[test]
fn a_buffer_of_the_log_goes_to_the_drive_behind_a_flush_where_barriers_are_on() {
    for flushes in [false, true] {
        let spec = XfsSpec { blocks: 1 << 18, log_blocks: 512, ..small_filesystem(1) };
        let mut fs = Xfs::new(&below(flushes), &spec, Allocation::Direct).unwrap();
        fs.commit_to_log(vec![1, 2, 3]);
        fs.force_for_nobody();
        let mut effects = Vec::new();
        fs.take_effects(&mut effects);
        let flushed = effects.iter().filter(|effect| matches!(effect, Effect::Flush(_)));
        assert_eq!(flushed.count(), usize::from(flushes));
        if flushes {
            fs.flushed(1, 0);
            fs.take_effects(&mut effects);
        }
        let behind = effects.iter().find_map(|effect| match effect {
            Effect::Io(io) => Some(io.behind_flush),
            _ => None,
        });
        assert_eq!(behind, Some(flushes));
    }
}

#[test]
fn who_forces_the_log_for_its_file_writes_it_itself() {
    for flushes in [false, true] {
        let mut fs = Xfs::new(&below(flushes), &small_filesystem(1), Allocation::Direct).unwrap();
        fs.create(0, 0);
        fs.inode_changes(0);
        assert!(fs.force_for_load(7, 0));
        let mut effects = Vec::new();
        if flushes {
            fs.flushed(1, 0);
        }
        fs.take_effects(&mut effects);
        let by = effects.iter().find_map(|effect| match effect {
            Effect::Io(io) => Some(io.by),
            _ => None,
        });
        assert_eq!(by, Some(Submitter::Load(7)));
    }
}

#[test]
fn kernel_threads_are_called_after_their_drive() {
    let below = Platform { drive: "nvme1n1", device: Device::new(259, 1), ..some_drive() };
    let mut fs = Xfs::new(&below, &small_filesystem(1), Allocation::Direct).unwrap();
    fs.start_flushers();
    let names: Vec<String> = fs.task_names().map(|(_, name)| name).collect();
    assert_eq!(names, ["xfsaild/nvme1n1", "flush-259:1"]);
}
