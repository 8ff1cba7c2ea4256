//! Traces of block I/O in any of their forms: recognised by what they hold, read as a stream of events in the order of
//! time.

mod blkparse;
mod blktrace;
mod columns;
mod compression;
mod event_text;
mod header;
mod merged_files;
mod order;
mod perf_data;
mod public;
mod random_access;
mod recognise;
mod recordings;
mod records;
mod stream;
mod tables;
mod trace_dat;
mod trace_info;
mod vscsi;
mod words;

pub use blkparse::Gaps;
pub use columns::{Column, Layout, Operations};
pub use compression::of as unpacked;
pub use random_access::ReadAt;
pub use recognise::{Source, open};
pub use stream::Reader;
pub use trace_info::{ReadError, TraceInfo};
