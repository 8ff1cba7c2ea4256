#![forbid(unsafe_code)]
#![deny(missing_docs)]
//! The simulated machine, whole. Pure: time, seed and bytes are arguments; mechanisms are state machines without I/O.

pub mod drive_name;
pub mod key_reader;
pub mod machine;
pub mod model;
pub mod probe;
pub mod world;

pub use block_layer::scheduler::spec::time_tunables_ns;
pub use events::SpecError;
