//! The probe `extents`: where a simulated filesystem has put its files, as the host's probe reports it.

use trace::event::Device;
use trace::extents::{Bounds, Examinations, Extent, FileMap, LayoutRefusal, Method};

use filesystems::allocator::{self, BLOCK_BYTES};

/// A file of the model.
#[derive(Clone, Debug)]
pub struct FileExtents {
    /// The drive that it lies on.
    pub device: Device,
    /// Size of the file.
    pub size_bytes: u64,
    /// In the order of the file, in blocks of `BLOCK_BYTES`.
    pub extents: Vec<allocator::Extent>,
}

const ENOENT: i32 = 2;

/// Of files by their paths; None of one that no phase has made. What is written and still without a place, where the
/// filesystem delays allocation, is in no extent.
pub fn examined(files: Vec<(String, Option<FileExtents>)>, bounds: Bounds) -> Examinations {
    let maps = files.into_iter().map(|(path, file)| {
        let map = file.map(|file| map_of(&file, bounds.extents_max));
        let refused = || LayoutRefusal { errno: ENOENT, absent: "no phase has made this file".to_owned() };
        (path, map.ok_or_else(refused))
    });
    Examinations::of(maps.collect(), bounds.listed_max)
}

fn map_of(file: &FileExtents, extents_max: usize) -> FileMap {
    let extents = file.extents.iter().take(extents_max).map(|extent| Extent {
        logical: extent.logical * BLOCK_BYTES,
        physical: Some(extent.physical * BLOCK_BYTES),
        length: extent.blocks * BLOCK_BYTES,
        flags: 0,
    });
    FileMap {
        method: Method::Model,
        device: file.device.to_string(),
        size_bytes: file.size_bytes,
        block_bytes: BLOCK_BYTES,
        complete: file.extents.len() < extents_max,
        extents: extents.collect(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{json, to_value};

    use super::*;

    /// Two writers whose blocks alternate.
    fn alternating(first: u64) -> FileExtents {
        let extents = (0..10).map(|block| allocator::Extent { logical: block, physical: first + 2 * block, blocks: 1 });
        FileExtents { device: Device::new(259, 1), size_bytes: 12 * BLOCK_BYTES, extents: extents.collect() }
    }

    #[test]
    fn a_simulated_file_is_told_as_a_hosts() {
        let files = vec![
            ("a".to_owned(), Some(alternating(100))),
            ("b".to_owned(), Some(alternating(101))),
            ("c".to_owned(), None),
        ];
        let bounds = Bounds { extents_max: 100, listed_max: 2, method: None };
        let report = to_value(examined(files, bounds)).unwrap();
        let first = &report["files"][0];
        assert_eq!(first["extents"], 10);
        assert_eq!(first["hole_bytes"], 2 * BLOCK_BYTES);
        assert_eq!(first["listed"], json!([[0, 409_600, 4096, []], [4096, 417_792, 4096, []]]));
        assert_eq!((&first["method"], &first["device"]), (&json!("model"), &json!("259:1")));
        assert_eq!(report["files"][2]["absent"], "no phase has made this file");
        let together = &report["interleaving"][0];
        assert_eq!((&together["switches"], &together["share"]), (&json!(19), &json!(1.0)));
    }
}
