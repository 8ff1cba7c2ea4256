//! What the crates' own tests try the properties on: the seeds, whole and with a few bytes changed.

use std::path::Path;

use proptest::prelude::*;

pub fn seeds(target: &str) -> Vec<Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
        .ancestors()
        .map(|above| above.join("fuzz/seeds").join(target))
        .find(|folder| folder.is_dir())
        .expect("the crate is in the repository");
    let entries = std::fs::read_dir(&folder).expect("the seeds are in the repository");
    let mut paths: Vec<_> = entries.map(|entry| entry.expect("a seed").path()).collect();
    paths.sort();
    let read = |path| std::fs::read(path).expect("a readable seed");
    paths.iter().map(read).collect()
}

/// A seed with a few bytes replaced, and perhaps its end cut off.
pub fn changed_seed(target: &str) -> impl Strategy<Value = Vec<u8>> + use<> {
    let changes = prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..6);
    let end = prop::option::of(any::<prop::sample::Index>());
    (prop::sample::select(seeds(target)), changes, end).prop_map(|(mut bytes, changes, end)| {
        // Most of a long seed, a page, is unused: changes at its beginning tell more.
        let changed = bytes.len().min(512);
        for (index, byte) in changes {
            bytes[index.index(changed)] = byte;
        }
        if let Some(end) = end {
            bytes.truncate(end.index(bytes.len()));
        }
        bytes
    })
}
