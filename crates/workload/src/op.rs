//! One read, write or sync, as a job offers it.

use crate::spec::Time;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OpKind {
    Read,
    Write,
    Fsync,
    Fdatasync,
}

impl OpKind {
    pub fn is_sync(self) -> bool {
        matches!(self, OpKind::Fsync | OpKind::Fdatasync)
    }
}

/// One operation. A sync has offset 0 and 0 bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Op {
    pub kind: OpKind,
    /// Index into the phase's files.
    pub file: u32,
    pub offset: u64,
    pub bytes: u32,
    /// Latency counts from here: the intended start with open arrival, otherwise the `now` of `next`.
    pub due: Time,
}
