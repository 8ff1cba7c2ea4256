//! A trace's I/Os offered once more: when they arrived, or when what they waited for is done; where they were, or where a
//! smaller device has room for them; and how faithful that was.

mod fidelity;
mod places;
mod player;
mod waits;

pub use fidelity::{LATE_NS, ReplayRecord};
pub(crate) use player::Replay;
