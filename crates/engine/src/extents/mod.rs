//! Where files lie on their device: each file's extents, and how several files interleave.
//!
//! [`examine`] asks the kernel by FIEMAP, else, as root, block by block by FIBMAP.

mod fibmap;
mod fiemap;
mod interleave;

use std::fs::File;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

pub use interleave::Interleaving;

/// A part of a file that lies in one piece.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extent {
    /// Offset in the file, in bytes.
    pub logical: u64,
    /// Offset on the device, in bytes; None where the filesystem has not decided it, or has it nowhere of its own. Of
    /// btrfs an offset in its own space of addresses, which chunks map to devices.
    pub physical: Option<u64>,
    /// In bytes.
    pub length: u64,
    /// As FIEMAP has them (linux/fiemap.h), of those that [`FLAGS`] names.
    pub flags: u32,
}

/// What FIEMAP may say of an extent, by the name that the record has for it.
pub const FLAGS: [(&str, u32); 5] = [
    ("unwritten", 0x800),
    ("delayed", 0x4),
    ("shared", 0x2000),
    ("inline", 0x200),
    ("encoded", 0x8),
];

#[derive(Debug, Serialize)]
pub struct Examined {
    pub files: Vec<Examination>,
    /// Of each device, the files on it that have extents.
    pub interleaving: Vec<Interleaving>,
}

#[derive(Debug, Serialize)]
pub struct Examination {
    pub path: String,
    #[serde(flatten)]
    pub found: Found,
}

#[derive(Debug, Serialize)]
#[serde(untagged)]
pub enum Found {
    Layout(Layout),
    Refused { errno: i32, absent: String },
}

/// One file. Extents that touch, in the file and on the device, count as one: filesystems cut them at lengths of their
/// own.
#[derive(Debug, Serialize)]
pub struct Layout {
    pub method: Method,
    /// `major:minor` of the filesystem.
    pub device: String,
    pub size_bytes: u64,
    pub block_bytes: u64,
    pub extents: u64,
    /// Before those that touch were put together.
    pub extents_of_filesystem: u64,
    /// Whether these are all of them: fewer than [`Bounds::extents_max`].
    pub complete: bool,
    pub mapped_bytes: u64,
    /// Of the file's size, not mapped. None where not all extents were read.
    pub hole_bytes: Option<u64>,
    /// Mapped behind the file's end.
    pub beyond_end_bytes: u64,
    /// By flag, the bytes of the extents that have it.
    pub bytes_by_flag: Vec<(&'static str, u64)>,
    /// The first of them: offset in the file, on the device, length, flags.
    pub listed: Vec<(u64, Option<u64>, u64, Vec<&'static str>)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Method {
    Fiemap,
    Fibmap,
}

/// How much is looked at, and how much of it is told.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Bounds {
    /// Of each file: no more extents are read; the layout then ends there.
    pub extents_max: usize,
    /// Of each file: extents that are listed.
    pub listed_max: usize,
    /// Asks by this call only; else by FIEMAP, and by FIBMAP where that is not known.
    pub method: Option<Method>,
}

/// Flushes each file's dirty pages first, so that what was delayed has its place.
pub fn examine(paths: &[PathBuf], bounds: Bounds) -> Examined {
    let mut maps: Vec<Option<Map>> = Vec::new();
    let mut files = Vec::new();
    for path in paths {
        let (found, map) = match Map::of(path, bounds) {
            Ok(map) => (Found::Layout(map.layout(bounds.listed_max)), Some(map)),
            Err(error) => (Found::refused(&error), None),
        };
        let path = path.to_string_lossy().into_owned();
        files.push(Examination { path, found });
        maps.push(map);
    }
    let known: Vec<(&str, &[Extent])> = maps
        .iter()
        .flatten()
        .map(|map| (map.device.as_str(), map.extents.as_slice()))
        .collect();
    Examined {
        interleaving: interleave::by_device(&known),
        files,
    }
}

impl Found {
    fn refused(error: &io::Error) -> Found {
        let errno = error.raw_os_error().unwrap_or(0);
        let remedy = match errno {
            libc::EOPNOTSUPP | libc::ENOTTY => "; this filesystem has no extents to show",
            libc::EPERM => "; FIEMAP is not known here and FIBMAP needs CAP_SYS_RAWIO: run as root",
            _ => "",
        };
        Found::Refused {
            errno,
            absent: format!("{error}{remedy}"),
        }
    }
}

/// All extents of a file, in its order.
struct Map {
    method: Method,
    device: String,
    size_bytes: u64,
    block_bytes: u64,
    extents_of_filesystem: u64,
    complete: bool,
    extents: Vec<Extent>,
}

impl Map {
    fn of(path: &Path, bounds: Bounds) -> io::Result<Map> {
        let extents_max = bounds.extents_max;
        let file = File::open(path)?;
        let metadata = file.metadata()?;
        let by_block = || {
            // FIBMAP tells nothing of a block that is still to be placed.
            file.sync_all()?;
            fibmap::extents(&file, metadata.size(), extents_max)
        };
        let (method, extents) = match bounds.method {
            Some(Method::Fibmap) => (Method::Fibmap, by_block()?),
            method => match fiemap::extents(&file, extents_max) {
                Err(error) if method.is_none() && unknown(&error) => {
                    // EINVAL there means that the filesystem has no blocks to show: the first answer says it better.
                    let blocks = by_block().map_err(|second| match second.raw_os_error() {
                        Some(libc::EINVAL) => error,
                        _ => second,
                    })?;
                    (Method::Fibmap, blocks)
                }
                extents => (Method::Fiemap, extents?),
            },
        };
        Ok(Map {
            method,
            device: device_name(metadata.dev()),
            size_bytes: metadata.size(),
            block_bytes: fibmap::block_bytes(&file).unwrap_or(metadata.blksize()),
            extents_of_filesystem: extents.len() as u64,
            complete: extents.len() < extents_max,
            extents: touching_together(extents),
        })
    }

    fn layout(&self, listed_max: usize) -> Layout {
        let sum = |lengths: &mut dyn Iterator<Item = u64>| lengths.sum::<u64>();
        let mapped_bytes = sum(&mut self.extents.iter().map(|extent| extent.length));
        let end = |extent: &Extent| extent.logical.saturating_add(extent.length);
        let beyond =
            |extent: &Extent| end(extent).saturating_sub(extent.logical.max(self.block_end()));
        let beyond_end_bytes = sum(&mut self.extents.iter().map(beyond));
        let with = |flag: u32| {
            let having = self.extents.iter().filter(move |one| one.flags & flag != 0);
            having.map(|extent| extent.length).sum::<u64>()
        };
        Layout {
            method: self.method,
            device: self.device.clone(),
            size_bytes: self.size_bytes,
            block_bytes: self.block_bytes,
            extents: self.extents.len() as u64,
            extents_of_filesystem: self.extents_of_filesystem,
            complete: self.complete,
            mapped_bytes,
            hole_bytes: self.complete.then(|| {
                self.block_end()
                    .saturating_sub(mapped_bytes - beyond_end_bytes)
            }),
            beyond_end_bytes,
            bytes_by_flag: FLAGS
                .iter()
                .map(|(name, flag)| (*name, with(*flag)))
                .filter(|(_, bytes)| *bytes > 0)
                .collect(),
            listed: self
                .extents
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

/// The filesystem does not know the call.
fn unknown(error: &io::Error) -> bool {
    matches!(
        error.raw_os_error(),
        Some(libc::EOPNOTSUPP | libc::ENOTTY | libc::ENOSYS)
    )
}

fn touching_together(extents: Vec<Extent>) -> Vec<Extent> {
    let mut together: Vec<Extent> = Vec::with_capacity(extents.len());
    for extent in extents {
        match together.last_mut() {
            Some(last) if last.touches(&extent) => last.length += extent.length,
            _ => together.push(extent),
        }
    }
    together
}

impl Extent {
    fn touches(&self, next: &Extent) -> bool {
        let place = |extent: &Extent| extent.physical;
        self.flags == next.flags
            && self.logical + self.length == next.logical
            && place(self).map(|at| at + self.length) == place(next)
            && place(self).is_some()
    }
}

fn names(flags: u32) -> Vec<&'static str> {
    FLAGS
        .iter()
        .filter(|(_, flag)| flags & flag != 0)
        .map(|(name, _)| *name)
        .collect()
}

fn device_name(dev: u64) -> String {
    format!("{}:{}", libc::major(dev), libc::minor(dev))
}

#[cfg(test)]
mod tests;
