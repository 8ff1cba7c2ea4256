//! Where files lie on their device, as the kernel reports it: by FIEMAP, else, as root, block by block by FIBMAP.

mod fibmap;
mod fiemap;

use std::fs::File;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

pub use trace::extents::Bounds;
use trace::extents::{Examinations, FileMap, LayoutRefusal, Method};

/// Flushes each file's dirty pages first, so that what was delayed has its place.
pub fn examine(paths: &[PathBuf], bounds: Bounds) -> Examinations {
    let files = paths.iter().map(|path| {
        let map = map_of(path, bounds).map_err(|error| refused(&error));
        (path.to_string_lossy().into_owned(), map)
    });
    Examinations::of(files.collect(), bounds.listed_max)
}

fn refused(error: &io::Error) -> LayoutRefusal {
    let errno = error.raw_os_error().unwrap_or(0);
    let remedy = match errno {
        libc::EOPNOTSUPP | libc::ENOTTY => "; this filesystem has no extents to show",
        libc::EPERM => "; FIEMAP is not known here and FIBMAP needs CAP_SYS_RAWIO: run as root",
        _ => "",
    };
    LayoutRefusal { errno, absent: format!("{error}{remedy}") }
}

fn map_of(path: &Path, bounds: Bounds) -> io::Result<FileMap> {
    let extents_max = bounds.extents_max;
    let file = File::open(path)?;
    let metadata = file.metadata()?;
    let by_block = || {
        // FIBMAP reports nothing of a block that is still to be placed.
        file.sync_all()?;
        fibmap::extents(&file, metadata.size(), extents_max)
    };
    let (method, extents) = match bounds.method {
        Some(Method::Fibmap) => (Method::Fibmap, by_block()?),
        method => match fiemap::extents(&file, extents_max) {
            Err(error) if method.is_none() && unknown(&error) => {
                // EINVAL there means that the filesystem has no blocks to show: the first error is the better one.
                let blocks = by_block().map_err(|second| match second.raw_os_error() {
                    Some(libc::EINVAL) => error,
                    _ => second,
                })?;
                (Method::Fibmap, blocks)
            }
            extents => (Method::Fiemap, extents?),
        },
    };
    Ok(FileMap {
        method,
        device: device_name(metadata.dev()),
        size_bytes: metadata.size(),
        block_bytes: fibmap::block_bytes(&file).unwrap_or(metadata.blksize()),
        complete: extents.len() < extents_max,
        extents,
    })
}

/// The filesystem does not support the call.
fn unknown(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EOPNOTSUPP | libc::ENOTTY | libc::ENOSYS))
}

fn device_name(dev: u64) -> String {
    format!("{}:{}", libc::major(dev), libc::minor(dev))
}

#[cfg(test)]
mod tests;
