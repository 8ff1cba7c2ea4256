//! A small file of /proc or /sys that is read again and again.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

/// Kept open: opening costs more than reading.
#[derive(Debug)]
pub struct KernelFile {
    file: File,
    buffer: Vec<u8>,
}

/// The kernel makes a whole seq_file in one call if it fits, so that its numbers belong together.
const FIRST_BYTES: usize = 32 << 10;

impl KernelFile {
    pub fn open(path: &Path) -> io::Result<KernelFile> {
        Ok(KernelFile { file: File::open(path)?, buffer: vec![0; FIRST_BYTES] })
    }

    /// Its present content.
    pub fn read(&mut self) -> io::Result<&str> {
        let mut length = 0;
        loop {
            let count = self.file.read_at(&mut self.buffer[length..], length as u64)?;
            if count == 0 {
                break;
            }
            length += count;
            if length == self.buffer.len() {
                self.buffer.resize(2 * length, 0);
            }
        }
        std::str::from_utf8(&self.buffer[..length]).map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))
    }
}
