//! What was counted and timed of the block events of a probe: [`crate::request`] determines which request each is
//! about.

mod analysis;
mod levels;
mod measures;
mod report;

pub use analysis::Analysis;
pub use report::{Activities, Activity, BlockReport, Columns, Conservation, DeviceReport, Series};
