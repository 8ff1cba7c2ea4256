//! The operations that are simulated.

/// An NFS operation on data. Others are not simulated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// READ.
    Read,
    /// WRITE.
    Write,
}
