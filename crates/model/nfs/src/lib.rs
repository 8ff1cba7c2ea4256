#![forbid(unsafe_code)]
#![deny(missing_docs)]
//! The NFS client over RDMA (`net/sunrpc/xprtrdma`), and a server behind it: docs/model/nfs-rdma.md.
//!
//! `Mount` is the client with its server, driven as a device is: `submit`, `next_event`, `advance`. `DirectIo` is what
//! threads call it through; `world::mounts` has a machine's tasks do so. Versions that were read: 5.4.291 for `before`,
//! 5.10.198 for `after`.

mod call;
#[cfg(test)]
mod closed_system;
mod counters;
mod cpu;
mod direct;
mod draw;
mod fifo;
#[cfg(test)]
mod invariants;
mod iommu;
mod mount;
mod mountstats;
mod operation;
mod receive;
mod ring;
mod slots;
mod spec;
mod stages;
mod task;
#[cfg(test)]
mod tests;
mod transmit;

pub use call::{Call, DATA_BYTES_MAX, Placement};
pub use counters::{Counters, OperationCounters};
pub use cpu::{Context, CpuTimes};
pub use direct::{DirectIo, Request};
pub use mount::{CompletedCall, Mount};
pub use mountstats::MountPoint;
pub use operation::Operation;
pub use spec::{CostSpec, IommuMode, IommuSpec, NfsSpec, PerOperation, ProcessSpec, ServerSpec, TransportSpec};
