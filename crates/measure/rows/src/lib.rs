#![forbid(unsafe_code)]
#![deny(missing_docs)]
//! What Python is too slow to read of text files. `groups` and `io_log` sum the rows of files that are too large to keep:
//! the caller hands over pieces of whole lines, on as many threads as there are, and merges the sums. `toml_lines` finds
//! the line of each key of a TOML file. Pure: bytes are arguments.

pub mod groups;
pub mod io_log;
pub mod toml_lines;

mod entry;

pub use entry::digits;

/// A line that is not as the others: `offset` is where it starts in the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnreadLine {
    /// In bytes from the start of the file.
    pub offset: u64,
}
