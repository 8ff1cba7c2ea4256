//! The kernel's performance monitor: counters, and samplers of kernel stacks.

mod counter;
mod event;
pub mod record;
mod ring;
mod stacks;

pub use counter::{Count, Counter};
pub use event::{Kind, Rate, Scope};
pub use stacks::{Losses, Samplers, StackSample, Stacks};
