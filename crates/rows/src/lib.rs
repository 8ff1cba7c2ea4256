#![forbid(unsafe_code)]
#![deny(missing_docs)]
//! Sums over the rows of text files that are too large to keep: whoever reads the file hands over pieces of whole lines,
//! on as many threads as there are, and merges what each piece came to. Pure: bytes are arguments.

pub mod groups;
pub mod io_log;

mod entry;

/// A line that is not as the others: `offset` is where it starts in the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unread {
    /// In bytes from the start of the file.
    pub offset: u64,
}
