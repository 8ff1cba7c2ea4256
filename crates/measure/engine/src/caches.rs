//! A cold start: what was written is on the device, and no page of it in memory.

use std::io;

use crate::error::StartError;
use crate::files::OpenFile;
use crate::setup::PreparedGroup;

/// Drops all caches if that is permitted, otherwise the files' own pages. Failures are noted.
pub fn drop_caches(groups: &[PreparedGroup]) -> Result<Vec<String>, StartError> {
    let files = || groups.iter().flat_map(|group| group.files.iter().flatten());
    for file in files() {
        sync(file).map_err(|error| StartError::os(&error, "can't sync before dropping caches", &file.path))?;
    }
    if std::fs::write("/proc/sys/vm/drop_caches", "3").is_ok() {
        return Ok(Vec::new());
    }
    files().for_each(forget_pages);
    Ok(vec!["only the files' own pages were dropped from memory: dropping all caches needs root".into()])
}

fn sync(file: &OpenFile) -> io::Result<()> {
    match file.file.sync_all() {
        // What has no data to sync, like the null engine's files.
        Err(error) if error.raw_os_error() == Some(libc::EINVAL) => Ok(()),
        other => other,
    }
}

fn forget_pages(file: &OpenFile) {
    let (base, size) = (file.base as libc::off_t, file.size as libc::off_t);
    // SAFETY: advice on a descriptor; no memory is involved.
    unsafe { libc::posix_fadvise(file.fd(), base, size, libc::POSIX_FADV_DONTNEED) };
}
