#![forbid(unsafe_code)]
#![deny(missing_docs)]
//! The simulated machine. Pure: time, seed and bytes are arguments; mechanisms are state machines without I/O.

pub mod allocator;
pub mod block;
pub mod cache;
pub mod completion;
pub mod component;
pub mod device;
pub mod event_queue;
pub mod machine;
pub mod model;
pub mod nfs;

pub mod probe;
pub mod scheduler;
pub mod slab;
pub mod smp;
mod spec_error;
pub mod station;
pub mod swap;
pub mod time;
pub mod world;
pub mod xfs;

pub use spec_error::SpecError;
