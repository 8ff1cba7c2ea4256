//! What /proc says at intervals, read by a thread of its own: CPUs, and memory with writeback.

pub mod cpu;
pub mod memory;

mod columns;
mod frequency;
mod kernel_file;
mod pairs;
mod series;
mod stat;
mod ticker;
mod vm;
