#![forbid(unsafe_code)]
#![deny(missing_docs)]
//! The simulated machine's filesystems: where blocks of files lie (`allocator`), and XFS with its log (`xfs`).

pub mod allocator;
pub mod xfs;
