#![forbid(unsafe_code)]
#![deny(missing_docs)]
//! The simulated machine's filesystems: where blocks of files lie (`allocator`), XFS with its log (`xfs`), and ext2, ext3
//! and ext4 with their metadata and journal (`ext`).

pub mod actor;
pub mod allocator;
pub mod effect;
pub mod ext;
pub mod filesystem;
mod program;
pub mod switches;
pub mod xfs;
