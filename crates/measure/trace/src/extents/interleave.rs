//! How files lie among one another: along the device, how often does the next extent belong to another file?

use std::collections::BTreeMap;

use serde::Serialize;

use super::Extent;

/// The files of one device. A stretch is what lies between two changes of the file along the device's offsets, gaps
/// aside: a file that nobody interrupts is one stretch, however many extents it has.
#[derive(Clone, Debug, PartialEq, Serialize, schemars::JsonSchema)]
pub struct Interleaving {
    /// `major:minor`.
    pub device: String,
    /// Those that have an extent with a place.
    pub files: u64,
    /// Extents with a place, those that touch counted as one.
    pub extents: u64,
    /// Bytes in these extents.
    pub bytes: u64,
    /// Changes of the file along the device.
    pub switches: u64,
    /// Mean length of the stretches that belong to one file without a break, in bytes.
    pub stretch_bytes_mean: f64,
    /// 0 if each file is one stretch, 1 if each extent is followed by another file's.
    pub share: f64,
}

/// The interleaving on each device. `files` are the device's name and the file's extents; an extent that several files
/// share counts for the first of them.
pub fn by_device(files: &[(&str, &[Extent])]) -> Vec<Interleaving> {
    let mut placed: BTreeMap<&str, Vec<PlacedExtent>> = BTreeMap::new();
    for (file, (device, extents)) in files.iter().enumerate() {
        let own = extents.iter().filter_map(|extent| {
            let (at, length) = (extent.physical?, extent.length);
            Some(PlacedExtent { at, file, length })
        });
        placed.entry(device).or_default().extend(own);
    }
    placed
        .into_iter()
        .filter(|(_, extents)| !extents.is_empty())
        .map(|(device, extents)| interleaving(device, extents))
        .collect()
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct PlacedExtent {
    at: u64,
    file: usize,
    length: u64,
}

fn interleaving(device: &str, mut extents: Vec<PlacedExtent>) -> Interleaving {
    extents.sort_unstable();
    extents.dedup_by_key(|extent| (extent.at, extent.length));
    let changes = extents.windows(2).filter(|pair| pair[0].file != pair[1].file);
    let switches = changes.count() as u64;
    let mut files: Vec<usize> = extents.iter().map(|extent| extent.file).collect();
    files.sort_unstable();
    files.dedup();
    let (files, bytes) = (files.len() as u64, extents.iter().map(|one| one.length).sum());
    let avoidable = extents.len() as u64 - files;
    Interleaving {
        device: device.to_owned(),
        files,
        extents: extents.len() as u64,
        bytes,
        switches,
        stretch_bytes_mean: bytes as f64 / (switches + 1) as f64,
        share: match avoidable {
            0 => 0.0,
            avoidable => (switches + 1 - files) as f64 / avoidable as f64,
        },
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn extent(physical: u64, length: u64) -> Extent {
        Extent { logical: 0, physical: Some(physical), length, flags: 0 }
    }

    #[test]
    fn two_writers_in_turn() {
        let own = |first: u64| (0..50).map(|turn| extent(first + 8192 * turn, 4096)).collect();
        let (ours, theirs): (Vec<_>, Vec<_>) = (own(0), own(4096));
        let found = by_device(&[("7:0", &ours), ("7:0", &theirs)]);
        assert_eq!(found.len(), 1);
        assert_eq!((found[0].switches, found[0].extents), (99, 100));
        assert_eq!((found[0].stretch_bytes_mean, found[0].share), (4096.0, 1.0));
    }

    #[test]
    fn one_after_the_other_is_not_interleaved() {
        let first = [extent(0, 4096), extent(8192, 4096)];
        let second = [extent(65536, 4096), extent(90112, 4096)];
        let found = by_device(&[("7:0", &first), ("7:0", &second)]);
        assert_eq!((found[0].switches, found[0].share), (1, 0.0));
        assert_eq!(found[0].stretch_bytes_mean, 8192.0);
    }

    #[test]
    fn devices_are_apart_and_extents_without_a_place_do_not_count() {
        let nowhere = Extent { physical: None, ..extent(0, 4096) };
        let found = by_device(&[("7:0", &[extent(0, 1)]), ("7:1", &[extent(0, 1)]), ("7:2", &[nowhere])]);
        assert_eq!(found.iter().map(|one| one.files).collect::<Vec<_>>(), [1, 1]);
        assert_eq!(found[0].share, 0.0);
    }

    #[test]
    fn shared_extents_count_once() {
        let shared = [extent(4096, 4096)];
        let found = by_device(&[("0:40", &shared), ("0:40", &shared)]);
        assert_eq!((found[0].files, found[0].extents, found[0].bytes), (1, 1, 4096));
    }

    proptest! {
        #[test]
        fn the_share_is_a_share(places in prop::collection::vec(prop::collection::vec(0u64..500, 0..20), 1..6)) {
            let files: Vec<Vec<Extent>> = places
                .iter()
                .map(|own| own.iter().map(|place| extent(place * 4096, 4096)).collect())
                .collect();
            let named: Vec<(&str, &[Extent])> = files.iter().map(|own| ("7:0", own.as_slice())).collect();
            for found in by_device(&named) {
                prop_assert!((0.0..=1.0).contains(&found.share));
                prop_assert!(found.switches + 1 >= found.files);
                prop_assert!(found.stretch_bytes_mean <= found.bytes as f64);
            }
        }
    }
}
