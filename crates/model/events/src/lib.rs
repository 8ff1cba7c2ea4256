#![forbid(unsafe_code)]
#![deny(missing_docs)]
//! What every part of the simulated machine is built on. Pure: time and seeds are arguments; each part is a state machine.

pub mod component;
pub mod event_queue;
pub mod slab;
pub mod smp;
pub mod station;
pub mod time;

pub use base::spec_error;
pub use base::spec_error::SpecError;
pub use component::Component;
