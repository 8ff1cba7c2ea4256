//! What every allocator keeps to, whatever is asked of it.

use proptest::prelude::*;

use crate::allocator::{Allocator, FilesystemSpec, Full, GROUP_BLOCKS, Kind};
use memory::cache::FileId;

const FILES: u32 = 5;

#[derive(Clone, Debug)]
enum Call {
    Allocate(u32, FileId, u64, u64),
    Close(FileId),
    Replace(FileId),
}

fn calls() -> impl Strategy<Value = Vec<Call>> {
    let block = prop_oneof![0u64..40, 1000u64..1200, 0u64..3000];
    let length = prop_oneof![1u64..4, 1u64..40, 1u64..700];
    let call = prop_oneof![
        12 => (0u32..40, 0..FILES, block, length).prop_map(|(t, f, b, n)| Call::Allocate(t, f, b, n)),
        1 => (0..FILES).prop_map(Call::Close),
        1 => (0..FILES).prop_map(Call::Replace),
    ];
    proptest::collection::vec(call, 1..120)
}

fn filesystems() -> impl Strategy<Value = FilesystemSpec> {
    let kinds = prop_oneof![
        Just(Kind::Ext2),
        Just(Kind::Ext3),
        Just(Kind::Ext3Windows),
        Just(Kind::Ext4),
        Just(Kind::Contiguous),
    ];
    let blocks = prop_oneof![600u64..2000, Just(2 * GROUP_BLOCKS + 333)];
    (kinds, any::<bool>(), blocks, 0u32..70).prop_map(|(kind, start_colours, blocks, group_metadata_blocks)| {
        FilesystemSpec {
            kind,
            start_colours: start_colours && !matches!(kind, Kind::Ext4 | Kind::Contiguous),
            preallocated_blocks: 0,
            blocks,
            group_metadata_blocks,
            group_inodes: 16384,
        }
    })
}

/// The blocks of all files; none is in two places.
fn mapped(fs: &dyn Allocator) -> Result<u64, TestCaseError> {
    let mut runs: Vec<(u64, u64)> =
        (0..FILES).flat_map(|file| fs.extents(file)).map(|extent| (extent.physical, extent.blocks)).collect();
    runs.sort_unstable();
    for pair in runs.windows(2) {
        prop_assert!(pair[0].0 + pair[0].1 <= pair[1].0, "given twice: {pair:?}");
    }
    Ok(runs.iter().map(|run| run.1).sum())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn no_block_is_given_twice_free_counts_agree_and_removing_gives_all_back(
        spec in filesystems(), calls in calls(),
    ) {
        let mut fs = spec.build().unwrap();
        let all = fs.free_blocks();
        let mut asked = vec![std::collections::BTreeSet::new(); FILES as usize];
        (0..FILES).for_each(|file| fs.create(file, file % 2));
        for call in calls {
            match call {
                Call::Allocate(task, file, block, blocks) => {
                    let before: Vec<_> = fs.extents(file);
                    let result = fs.allocate(task, file, block, blocks);
                    for extent in before {
                        let now = fs.map(file, extent.logical).map(|(at, run)| (at, run >= extent.blocks));
                        prop_assert_eq!(now, Some((extent.physical, true)), "a mapped block stays where it is");
                    }
                    match result {
                        Ok(()) => asked[file as usize].extend(block..block + blocks),
                        Err(Full) => {
                            // What came before the failure stays.
                            let got = (block..block + blocks).filter(|&b| fs.map(file, b).is_some());
                            asked[file as usize].extend(got);
                        }
                    }
                }
                Call::Close(file) => fs.close(file),
                Call::Replace(file) => {
                    fs.remove(file);
                    fs.create(file, file % 2);
                    asked[file as usize].clear();
                }
            }
            let covered = mapped(&*fs)?;
            prop_assert!(fs.free_blocks() + covered <= all);
        }
        for file in 0..FILES {
            let covered: Vec<u64> = fs.extents(file).iter().flat_map(|e| e.logical..e.logical + e.blocks).collect();
            prop_assert_eq!(covered, asked[file as usize].iter().copied().collect::<Vec<u64>>());
            fs.close(file);
        }
        let missing = all - fs.free_blocks() - mapped(&*fs)?;
        let indirect_at_most = if matches!(spec.kind, Kind::Ext4 | Kind::Contiguous) { 0 } else { 5 * u64::from(FILES) };
        prop_assert!(missing <= indirect_at_most, "{missing} blocks are nobody's");
        (0..FILES).for_each(|file| fs.remove(file));
        prop_assert_eq!(fs.free_blocks(), all);
    }
}
