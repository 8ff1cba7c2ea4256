//! Where files lie on their device: each file's extents, and how several files interleave.
//!
//! Pure: the caller brings the extents, from a kernel or a model.

mod interleave;
#[cfg(test)]
mod tests;

use serde::{Deserialize, Serialize};

pub use interleave::Interleaving;

/// A part of a file that lies in one piece.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extent {
    /// Offset in the file, in bytes.
    pub logical: u64,
    /// Offset on the device, in bytes; None if the filesystem has not decided it, or has it nowhere of its own. Of
    /// btrfs an offset in its own space of addresses, which chunks map to devices.
    pub physical: Option<u64>,
    /// In bytes.
    pub length: u64,
    /// As FIEMAP has them (linux/fiemap.h), of those that [`FLAGS`] names.
    pub flags: u32,
}

/// FIEMAP's flags of an extent, by the name that the record has for it.
pub const FLAGS: [(&str, u32); 5] =
    [("unwritten", 0x800), ("delayed", 0x4), ("shared", 0x2000), ("inline", 0x200), ("encoded", 0x8)];

/// Where several files lie.
#[derive(Debug, Serialize, schemars::JsonSchema)]
pub struct Examinations {
    /// Each file, in the order asked.
    pub files: Vec<Examination>,
    /// The files with extents on each device.
    pub interleaving: Vec<Interleaving>,
}

/// What is known of one file.
#[derive(Debug, Serialize, schemars::JsonSchema)]
pub struct Examination {
    /// The path under which it was asked for.
    pub path: String,
    /// Its extents, or why there are none.
    #[serde(flatten)]
    pub found: LayoutResult,
}

/// A file's extents, or why they are not known.
#[derive(Debug, Serialize, schemars::JsonSchema)]
#[serde(untagged)]
pub enum LayoutResult {
    /// They were read.
    Layout(Layout),
    /// They could not be read.
    Refused(LayoutRefusal),
}

/// Why a file's extents are not known.
#[derive(Clone, Debug, Serialize, schemars::JsonSchema)]
pub struct LayoutRefusal {
    /// The kernel's error number, positive.
    pub errno: i32,
    /// The reason, and what would grant it.
    pub absent: String,
}

/// One file. Extents that touch, in the file and on the device, count as one: filesystems cut them at lengths of their
/// own.
#[derive(Debug, Serialize, schemars::JsonSchema)]
pub struct Layout {
    /// How they were read.
    pub method: Method,
    /// `major:minor` of the filesystem.
    pub device: String,
    /// The file's size.
    pub size_bytes: u64,
    /// The filesystem's block size.
    pub block_bytes: u64,
    /// Extents, those that touch counted as one.
    pub extents: u64,
    /// Before those that touch were put together.
    pub extents_of_filesystem: u64,
    /// Whether these are all of them: fewer than [`Bounds::extents_max`].
    pub complete: bool,
    /// Sum of the extents' lengths.
    pub mapped_bytes: u64,
    /// The part of the file's size that is not mapped; None if not all extents were read.
    pub hole_bytes: Option<u64>,
    /// Mapped behind the file's end.
    pub beyond_end_bytes: u64,
    /// By flag, the bytes of the extents that have it.
    pub bytes_by_flag: Vec<(&'static str, u64)>,
    /// The first of them: offset in the file, on the device, length, flags.
    pub listed: Vec<(u64, Option<u64>, u64, Vec<&'static str>)>,
}

/// How a filesystem is asked for a file's extents.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Method {
    /// FS_IOC_FIEMAP: extents with flags.
    Fiemap,
    /// FIBMAP: block by block, for filesystems without the other.
    Fibmap,
    /// A simulated filesystem was asked, which has no such calls.
    #[serde(skip_deserializing)]
    Model,
}

/// How much is examined, and how much of it is reported.
#[derive(Clone, Copy, Debug, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Bounds {
    /// The extents of each file that are read at most; the layout then ends there.
    pub extents_max: usize,
    /// The extents of each file that are listed at most.
    pub listed_max: usize,
    /// Asks by this call only; else by FIEMAP, and by FIBMAP if that is not supported.
    pub method: Option<Method>,
}

/// All extents of a file, in its order, as the filesystem reports them.
#[derive(Clone, Debug)]
pub struct FileMap {
    /// How they were read.
    pub method: Method,
    /// `major:minor` of the filesystem.
    pub device: String,
    /// The file's size.
    pub size_bytes: u64,
    /// The filesystem's block size.
    pub block_bytes: u64,
    /// Whether these are all.
    pub complete: bool,
    /// As they were read, not put together.
    pub extents: Vec<Extent>,
}

impl Examinations {
    /// The extents of files by their paths; an error states why a file has none. At most `listed_max` extents of each
    /// file are listed.
    pub fn of(files: Vec<(String, Result<FileMap, LayoutRefusal>)>, listed_max: usize) -> Examinations {
        let mut known: Vec<(String, Vec<Extent>)> = Vec::new();
        let mut examined = Vec::new();
        for (path, map) in files {
            let found = match map {
                Ok(map) => {
                    let extents = touching_together(&map.extents);
                    let layout = map.layout(&extents, listed_max);
                    known.push((map.device, extents));
                    LayoutResult::Layout(layout)
                }
                Err(refused) => LayoutResult::Refused(refused),
            };
            examined.push(Examination { path, found });
        }
        let known: Vec<(&str, &[Extent])> =
            known.iter().map(|(device, extents)| (device.as_str(), extents.as_slice())).collect();
        Examinations { files: examined, interleaving: interleave::by_device(&known) }
    }
}

impl FileMap {
    /// `extents`: with those that touch put together.
    fn layout(&self, extents: &[Extent], listed_max: usize) -> Layout {
        let sum = |lengths: &mut dyn Iterator<Item = u64>| lengths.sum::<u64>();
        let mapped_bytes = sum(&mut extents.iter().map(|extent| extent.length));
        let end = |extent: &Extent| extent.logical.saturating_add(extent.length);
        let beyond = |extent: &Extent| end(extent).saturating_sub(extent.logical.max(self.block_end()));
        let beyond_end_bytes = sum(&mut extents.iter().map(beyond));
        let with = |flag: u32| {
            let having = extents.iter().filter(move |one| one.flags & flag != 0);
            having.map(|extent| extent.length).sum::<u64>()
        };
        Layout {
            method: self.method,
            device: self.device.clone(),
            size_bytes: self.size_bytes,
            block_bytes: self.block_bytes,
            extents: extents.len() as u64,
            extents_of_filesystem: self.extents.len() as u64,
            complete: self.complete,
            mapped_bytes,
            hole_bytes: self.complete.then(|| self.block_end().saturating_sub(mapped_bytes - beyond_end_bytes)),
            beyond_end_bytes,
            bytes_by_flag: FLAGS
                .iter()
                .map(|(name, flag)| (*name, with(*flag)))
                .filter(|(_, bytes)| *bytes > 0)
                .collect(),
            listed: extents
                .iter()
                .take(listed_max)
                .map(|one| (one.logical, one.physical, one.length, names(one.flags)))
                .collect(),
        }
    }

    /// Where the block ends that has the file's last byte.
    fn block_end(&self) -> u64 {
        self.size_bytes.next_multiple_of(self.block_bytes.max(1))
    }
}

fn touching_together(extents: &[Extent]) -> Vec<Extent> {
    let mut together: Vec<Extent> = Vec::with_capacity(extents.len());
    for extent in extents {
        match together.last_mut() {
            Some(last) if last.touches(extent) => last.length += extent.length,
            _ => together.push(*extent),
        }
    }
    together
}

impl Extent {
    /// Whether the other continues where this one ends, in the file and on the device, and is alike.
    pub fn touches(&self, next: &Extent) -> bool {
        let place = |extent: &Extent| extent.physical;
        self.flags == next.flags
            && self.logical + self.length == next.logical
            && place(self).map(|at| at + self.length) == place(next)
            && place(self).is_some()
    }
}

fn names(flags: u32) -> Vec<&'static str> {
    FLAGS.iter().filter(|(_, flag)| flags & flag != 0).map(|(name, _)| *name).collect()
}
