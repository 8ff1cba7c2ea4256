//! The system calls of a metadata load, and what records call them.

/// A system call to make (`FsyncAgain`: three of them, which count as one).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Call {
    /// mkdir of a subdirectory.
    MakeDirectory {
        /// The subdirectory's number, from 0.
        directory: u32,
    },
    /// Make the file and keep it open for the calls up to `Close`.
    Create(FilePosition),
    /// Write to the open file, after what it already holds.
    Write {
        /// Bytes of this call.
        bytes: u32,
    },
    /// Fsync of the open file.
    Fsync,
    /// Close of the open file.
    Close,
    /// Sync of the whole system, sync(2).
    SystemSync,
    /// Open by name, fsync, close.
    FsyncAgain(FilePosition),
    /// Unlink by name.
    Unlink(FilePosition),
    /// Nothing is left to do.
    Done,
}

/// Where a file lies; its name is [`MetadataJob::write_name`]'s.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FilePosition {
    /// The file's number in the thread, from 0.
    pub file: u64,
    /// The number of its subdirectory; None: directly in the thread's directory.
    pub subdirectory: Option<u32>,
}

/// Names of the operations in records, in the order of all arrays by operation.
pub const OP_NAMES: [&str; OPS] = ["mkdir", "create", "write", "fsync", "system_sync", "close", "unlink"];
/// The number of operations.
pub const OPS: usize = 7;
/// The index of `create` in `OP_NAMES`.
pub const CREATE: usize = 1;
/// The index of `write` in `OP_NAMES`.
pub const WRITE: usize = 2;

impl Call {
    /// The place of its operation in `OP_NAMES`.
    #[inline(always)]
    pub fn op(self) -> usize {
        match self {
            Call::MakeDirectory { .. } => 0,
            Call::Create(_) => CREATE,
            Call::Write { .. } => WRITE,
            Call::Fsync | Call::FsyncAgain(_) => 3,
            Call::SystemSync | Call::Done => 4,
            Call::Close => 5,
            Call::Unlink(_) => 6,
        }
    }

    /// Whether it takes space.
    pub fn grows(self) -> bool {
        matches!(self, Call::MakeDirectory { .. } | Call::Create(_) | Call::Write { .. } | Call::Fsync)
    }
}
