//! What is read of a system at intervals: series in bounded memory, and where its CPUs' time goes.

pub mod columns;
pub mod cpu;
pub mod series;
