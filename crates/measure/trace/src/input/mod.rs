//! Traces of block I/O in any of their forms: recognised by what they hold, read as a stream of events in the order of
//! time.

mod about;
mod blkparse;
mod blktrace;
mod columns;
mod compressed;
mod event_text;
mod header;
mod merged;
mod order;
mod perf_data;
mod public;
mod read_at;
mod recognise;
mod recordings;
mod records;
mod streamed;
mod tables;
mod trace_dat;
mod vscsi;
mod words;

pub use about::{About, ReadError};
pub use blkparse::Gaps;
pub use columns::{Column, Layout, Operations};
pub use read_at::ReadAt;
pub use recognise::{Source, open};
pub use streamed::Reader;
