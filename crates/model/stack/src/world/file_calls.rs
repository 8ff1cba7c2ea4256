//! Calls about files themselves: they come, grow, and return their places.

use super::{FileLayout, FileSpec, World};
use block_layer::Direction;
use filesystems::allocator::Extent;
use memory::cache::FileId;

impl World {
    /// One more file, empty if the drive's filesystem allocates; its number. Read-ahead ends with its size.
    pub fn add_file(&mut self, file: FileSpec) -> FileId {
        if let FileLayout::Allocated { directory } = file.place {
            let number = self.vfs.file_count();
            self.with_allocator(file.drive, |allocator| allocator.create(number, directory));
        }
        self.vfs.add_file(file)
    }

    /// The file is a part of its drive, on which there is no filesystem.
    pub fn join_device(&mut self, file: FileId) {
        self.vfs.join_device(file);
    }

    /// The file is to be at least this long.
    pub fn grow_file(&mut self, file: FileId, size_bytes: u64) {
        self.vfs.grow_file(file, size_bytes);
    }

    /// From here on the drive knows what is written to the file by this stream.
    pub fn set_write_stream(&mut self, file: FileId, stream: u8) {
        self.vfs.set_write_stream(file, stream);
    }

    /// That of I/O in this direction.
    pub(super) fn write_stream_of(&self, file: FileId, direction: Direction) -> u8 {
        match direction {
            Direction::Read => 0,
            Direction::Write => self.vfs.write_stream(file),
        }
    }

    /// The file of that number.
    pub fn file(&self, file: FileId) -> &FileSpec {
        self.vfs.file(file)
    }

    /// Where the file lies, in blocks of 4 KiB, as FIEMAP and bmap report it.
    pub fn extents(&self, file: FileId) -> Vec<Extent> {
        self.vfs.extents(file)
    }
}
