//! From events to requests: each with the time at which it was where, as far as the events determine it.
//!
//! The tracepoints name no request: what an event is about is found by its sectors, its operation and, while the submitter
//! still runs, its task. Where two could be meant, neither's time is told from there on; where events are missing, nothing
//! that could have ended in them is paired with what comes after. So a time that is told is exact.

mod follow;
mod io;
mod joining;
mod turn;
mod under_way;

pub use follow::{Follow, Unknown};
pub use io::{Io, Stage, Stages};
