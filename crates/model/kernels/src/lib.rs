#![forbid(unsafe_code)]
#![deny(missing_docs)]
//! Kernels by version: which variant of each mechanism a release has. The mechanisms themselves are in the crates above.
//!
//! Sources: the pages of docs/model/sources/README.md, which name the versions that were read. If a change lies between two of
//! them, the version given here is inferred.

pub mod cache;
pub mod completion;
pub mod dirty_limits;
pub mod files;
pub mod filesystems;
pub mod hardware_queue;
pub mod queue;
pub mod read_ahead;
pub mod release;
pub mod rpcrdma;
pub mod schedulers;
pub mod scheduling;
pub mod submission;
pub mod swap;
pub mod version;

pub use release::Kernel;
