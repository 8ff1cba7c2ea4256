#![deny(missing_docs)]
//! The load engine: offers a phase's operations to the kernel and reports the results.
//!
//! [`start`] checks, opens and begins; the [`Handle`] it returns shows progress, stops, and yields the
//! [record](workload::record).

pub mod error;
pub mod extents;
pub mod features;
pub mod handle;
mod hinted_files;
mod hybrid_poll;
pub mod marker;
pub mod memory;
pub mod metadata;
pub mod panics;
pub mod probe;
pub mod schedule_file;
pub mod sorter;
pub mod trace_file;

mod affinity;
mod backend;
mod batch;
mod beneath;
mod buffers;
mod build;
mod caches;
mod call_flags;
mod clock;
mod contents;
mod files;
mod group;
mod io_log;
mod namespace;
mod nvme_command;
mod outcome;
mod placement;
mod progress;
mod queue;
mod registered_wait;
mod setup;
mod sleep;
mod usage;
mod worker;
mod write_hint;
mod zones;

pub use build::BUILD_PROFILE;
pub use clock::calibrate as calibrate_clock;
pub use clock::unix_ns;
pub use error::{RunError, StartError};
pub use features::{Features, features};
pub use handle::{Handle, start};
pub use memory::Memory;
pub use sorter::{Sort, SortSpec};
