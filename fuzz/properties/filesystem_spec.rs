//! Any JSON is a filesystem or an error that names what is wrong; in one that is accepted no block belongs to two files,
//! and all come back.

use std::collections::BTreeSet;

use filesystems::allocator::FilesystemSpec;

/// Larger ones are only checked: their groups take memory.
const BLOCKS_MAX: u64 = 1 << 18;
const FILES: u32 = 4;
const ROUNDS: u64 = 20;

pub fn check(bytes: &[u8]) {
    let Ok(spec) = serde_json::from_slice::<FilesystemSpec>(bytes) else {
        return;
    };
    match spec.check() {
        Ok(()) if spec.blocks <= BLOCKS_MAX => write(&spec),
        Ok(()) => (),
        Err(impossible) => assert!(!impossible.key.is_empty() && !impossible.what.is_empty()),
    }
}

/// Files that grow in turn, some with holes, until nothing is left or enough was seen.
fn write(spec: &FilesystemSpec) {
    let mut filesystem = spec.build().expect("it was checked");
    for file in 0..FILES {
        filesystem.create(file, file % 2);
    }
    let all = filesystem.free_blocks();
    'full: for round in 0..ROUNDS {
        for file in 0..FILES {
            let block = round * (u64::from(file) + 1) * 5;
            if filesystem.allocate(file, file, block, 5).is_err() {
                break 'full;
            }
        }
    }
    let mut taken = BTreeSet::new();
    for file in 0..FILES {
        for extent in filesystem.extents(file) {
            for block in extent.physical..extent.physical + extent.blocks {
                assert!(block < spec.blocks, "{block} is beyond the end");
                assert!(taken.insert(block), "{block} belongs to one file");
            }
        }
    }
    (0..FILES).for_each(|file| filesystem.remove(file));
    assert!(filesystem.free_blocks() <= all, "no more is free than there was");
}
