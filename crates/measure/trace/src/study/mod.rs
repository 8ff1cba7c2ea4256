//! What a trace shows, in one pass over its events and with memory that does not grow with it.

mod arrivals;
mod bursts;
mod device;
mod figures;
mod group;
mod keyed_values;
mod labels;
mod layers;
mod maps;
mod pass;
mod reuse;
mod seeks;
mod slowest_requests;
mod values;

pub use bursts::BurstFigures;
pub use figures::{DeviceFigures, LayerFigures, TraceFigures};
pub use group::{Group, GroupFigures, Quantiles};
pub use maps::Maps;
pub use pass::Study;
pub use reuse::ReuseFigures;
pub use slowest_requests::{SlowRequest, TaskAhead};
