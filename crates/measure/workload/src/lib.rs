#![forbid(unsafe_code)]
#![deny(missing_docs)]
//! What a job does next, the [`phase`] it belongs to, and the [`record`] of what was measured. Pure: time, seed and bytes
//! are arguments.

pub mod assemble;
pub mod check;
pub mod check_phase;
pub mod job;
pub mod job_error;
pub mod limits;
pub mod location;
pub mod measure;
pub mod metadata;
pub mod pattern;
pub mod phase;
pub mod record;
pub mod replay;
pub mod spec;
pub mod steady;
pub mod timeline;
pub mod traced;
pub mod verify;

mod course;
pub mod depth_search;
mod early_end;
mod exclusion;
mod files;
mod mix;
mod op;
mod pacing;
mod ranks;
mod syncs;
pub mod until_steady;
mod zipf;
mod zones;
