//! Memory pressure: processes that sort more than there is memory, a swap area, and reclaim as kernels do it.
//!
//! [`SortProcesses`] runs them all. Every page is simulated: which process touches it when (`quicksort`), where it is (`pages`),
//! its slot in the area (`slots`), and how a kernel chooses what to take away (`reclaim`). The area lies on a drive of
//! the machine, whose CPUs the processes share with whatever else it does.

mod effect;
mod pages;
mod quicksort;
mod reclaim;
mod slots;
mod sort_processes;
mod spec;
mod task;

pub use effect::Effect;
pub use reclaim::ReclaimKind;
pub use sort_processes::{Results, SortProcesses, SortResult};
pub use spec::{SortLoad, SwapSpec};

/// The number of a page in all processes' memory, one after the other.
type PageNumber = u32;
