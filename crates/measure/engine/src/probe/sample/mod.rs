//! The content of /proc at intervals, read by a thread of its own: CPUs, and memory with writeback.

pub mod cpu;
pub mod io_cost;
pub mod memory;
pub mod pairs;
pub mod stat;
pub mod vm;

mod frequency;
mod kernel_file;
mod ticker;

use trace::sample::series;
