//! Traces in forms that other programs read.

mod blktrace;
mod iolog;
mod perfetto;
pub(crate) mod record;
pub(crate) mod remark;
mod reorder_buffer;
mod rows;

pub use blktrace::Blktrace;
pub use iolog::{IoLog, Side};
pub use perfetto::Perfetto;
pub use rows::{ROW_COLUMNS, Rows};
