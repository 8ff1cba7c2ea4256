//! Traces in forms that other programs read.

mod blktrace;
mod in_order;
mod iolog;
mod perfetto;
pub(crate) mod record;
pub(crate) mod remark;
mod rows;

pub use blktrace::Blktrace;
pub use iolog::{IoLog, Side};
pub use perfetto::Perfetto;
pub use rows::{ROW_COLUMNS, Rows};
