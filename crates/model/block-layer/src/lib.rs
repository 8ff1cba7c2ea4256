#![forbid(unsafe_code)]
#![deny(missing_docs)]
//! The block layer: from bios to requests, and the parts of them that every scheduler and device uses.

pub mod completion;
mod event;
mod hardware;
#[doc(hidden)]
pub mod invariants;
mod io_cost;
mod io_latency;
mod plug;
mod pool;
mod qos;
mod qos_ticket;
mod queue;
mod queue_map;
mod queue_thread;
mod request;
pub mod scheduler;
mod tag_bits;
mod tag_waiters;
mod task_plug;
mod throttle;
mod tick_timer;
mod wbt;

pub use base::SECTOR_BYTES;
pub use event::{EventKind, QueueEvent};
pub use hardware::HardwareRules;
pub use io_cost::{CostModel, CostQos, CostRules};
pub use io_latency::LatencyRules;
pub use qos_ticket::QosTicket;
pub use queue::{AllocateOutcome, Counts, RequestQueue, SubmitOutcome};
pub use queue_map::QueueMap;

pub use request::{
    Bio, BioId, Direction, IoClass, KERNEL_TASKS, Priority, PriorityPolicy, Request, RequestId, Requests, Sector, Side,
    TaskId,
};
pub use tag_bits::TagCounts;
pub use task_plug::{RequestLimits, TaskPlug};
pub use throttle::{Throttle, ThrottleLimits, ThrottleRules};
pub use wbt::WbtRules;
