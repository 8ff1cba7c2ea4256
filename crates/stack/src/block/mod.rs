//! The block layer: from bios to requests, and what every scheduler and device knows of them.

mod event;
mod hardware;
pub mod plug;
pub mod pool;
mod queue;
mod queue_map;
mod request;
mod task_plug;
mod wbt;

pub use event::{EventKind, QueueEvent};
pub use hardware::HardwareRules;
pub use queue::{Counts, Merges, QueueRules, RequestQueue, Submitted};
pub use queue_map::{QueueMap, QueueSpread};

pub use request::{
    Bio, BioId, Direction, IoClass, Priority, Request, RequestId, Requests, SECTOR_BYTES, Sector,
    Side, TaskId,
};
pub use task_plug::TaskPlug;
pub use wbt::WbtRules;
