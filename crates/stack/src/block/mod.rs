//! The block layer: from bios to requests, and what every scheduler and device knows of them.

pub mod plug;
pub mod pool;
mod queue;
mod request;

pub use queue::{Counts, Merges, QueueRules, RequestQueue, Submitted};

pub use request::{
    Bio, BioId, Direction, IoClass, Priority, Request, RequestId, Requests, SECTOR_BYTES, Sector,
    Side, TaskId,
};
