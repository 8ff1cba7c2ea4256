//! The kernel's performance monitor: counters, and samplers of kernel stacks.

mod counter;
mod event;
pub mod record;
mod ring;
mod stacks;

pub(super) use counter::{Count, Counter};
pub(super) use event::{Kind, Rate, Scope};
pub(super) use stacks::{Losses, Samplers, StackSample, Stacks};
