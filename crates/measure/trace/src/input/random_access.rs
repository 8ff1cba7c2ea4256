//! Files that are read here and there.

use std::io;
use std::sync::Arc;

/// Bytes that can be read from any place.
pub trait ReadAt: Send + Sync {
    /// Fills the buffer from there, or as much as there is.
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize>;

    /// How many bytes there are.
    fn length(&self) -> u64;
}

impl ReadAt for Vec<u8> {
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        let from = usize::try_from(offset).unwrap_or(usize::MAX).min(self.len());
        let count = buffer.len().min(self.len() - from);
        buffer[..count].copy_from_slice(&self[from..from + count]);
        Ok(count)
    }

    fn length(&self) -> u64 {
        self.len() as u64
    }
}

/// A file without its beginning.
pub(crate) struct FileTail {
    pub(crate) file: Arc<dyn ReadAt>,
    pub(crate) at: u64,
}

impl ReadAt for FileTail {
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        self.file.read_at(self.at.saturating_add(offset), buffer)
    }

    fn length(&self) -> u64 {
        self.file.length().saturating_sub(self.at)
    }
}

/// Part of a file, read from front to back.
pub(crate) struct Range {
    file: Arc<dyn ReadAt>,
    at: u64,
    end: u64,
}

impl Range {
    pub(crate) fn of(file: &Arc<dyn ReadAt>, at: u64, bytes: u64) -> Range {
        let end = at.saturating_add(bytes).min(file.length());
        Range { file: Arc::clone(file), at: at.min(end), end }
    }
}

impl io::Read for Range {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let left = usize::try_from(self.end - self.at).unwrap_or(usize::MAX);
        let count = left.min(buffer.len());
        let count = self.file.read_at(self.at, &mut buffer[..count])?;
        self.at += count as u64;
        Ok(count)
    }
}
