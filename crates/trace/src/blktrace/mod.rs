//! Files of blktrace, version 7, as blkparse and btt read them: one for each CPU, of records without a header before them.
//!
//! Source: note on block-trace formats (`include/uapi/linux/blktrace_api.h`, blktrace 1.2.0). Version 8 has other records and is
//! refused.

mod action;
mod file_set;
mod record;

pub use file_set::{FileSet, WallTime};
pub use record::{Malformed, Note, Record, Records};
