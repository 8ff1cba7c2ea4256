//! What is called, how large its messages are, and how they are put before the device.

use super::operation::Operation;
use kernels::rpcrdma::TransportRules;

/// One RPC call that a thread makes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Call {
    /// The caller's, handed back with the result.
    pub tag: u64,
    /// What the server is to do.
    pub operation: Operation,
    /// How much of the file's data, from the start of a page on; at most `DATA_BYTES_MAX`.
    pub data_bytes: u32,
}

/// How a call's message reaches the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Placement {
    /// Copied behind the head: these many bytes.
    PulledUp {
        /// Data and padding.
        copied_bytes: u32,
    },
    /// These many fragments, pages and the tail, mapped one by one until the Send is done.
    Mapped {
        /// Scatter/gather elements besides the head.
        fragments: u16,
    },
    /// The data are registered, and the server reads them.
    DataChunk {
        /// Pages that are registered.
        pages: u16,
    },
    /// All of the message is registered, and the server reads it (`RDMA_NOMSG`).
    MessageChunk {
        /// Pages that are registered.
        pages: u16,
    },
}

/// How the data of a reply come back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Return {
    /// In the message; the receive worker copies the data out.
    Inline,
    /// The server writes the data to registered pages.
    DataChunk { pages: u16 },
    /// The server writes the whole reply to registered pages.
    MessageChunk { pages: u16 },
}

/// The largest `rsize` and `wsize` (`NFS_MAX_FILE_IO_SIZE`).
pub const DATA_BYTES_MAX: u32 = 1 << 20;

const PAGE_BYTES: u32 = 4096;

/// The sizes of NFSv3 with AUTH_SYS, as published: 1172 and 140 bytes for a call, 136 and 1152 for a reply, with
/// 1024 bytes of data. Handle and credential are the mount's.
const WRITE_CALL_BYTES: u32 = 148;
const READ_CALL_BYTES: u32 = 140;
const WRITE_REPLY_BYTES: u32 = 136;
const READ_REPLY_BYTES: u32 = 128;

/// Transport header, buffer, and the tail (`RPCRDMA_MIN_SEND_SGES`).
const FRAGMENTS_BESIDE_PAGES: u32 = 3;

/// `RPCRDMA_MAX_HDR_SEGS`: what a header has room for.
const HEADER_SEGMENTS: u32 = 16;
/// `rpcrdma_max_call_header_size` and `rpcrdma_max_reply_header_size`, in bytes.
const CALL_HEADER_BYTES: u32 = 52 + 24 * HEADER_SEGMENTS;
const REPLY_HEADER_BYTES: u32 = 36 + 16 * HEADER_SEGMENTS;

impl Call {
    /// The call body L: head, data, and what pads them to a multiple of four.
    pub fn body_bytes(&self) -> u32 {
        self.head_bytes() + self.sent_bytes() + self.pad_bytes()
    }

    /// The length of the reply's RPC message, padding included.
    pub fn reply_bytes(&self) -> u32 {
        match self.operation {
            Operation::Read => READ_REPLY_BYTES + self.data_bytes.next_multiple_of(4),
            Operation::Write => WRITE_REPLY_BYTES,
        }
    }

    /// What the encoder asks for: the head alone, data stay in their pages.
    pub(super) fn head_bytes(&self) -> u32 {
        match self.operation {
            Operation::Read => READ_CALL_BYTES,
            Operation::Write => WRITE_CALL_BYTES,
        }
    }

    /// The condition of `rpcrdma_marshal_req`: a message that goes inline is pulled up, by a kernel that does, if it is
    /// shorter than the send buffer.
    pub fn placement(&self, rules: &TransportRules, send_buffer_bytes: u32) -> Placement {
        let sent_bytes = self.sent_bytes();
        let pages = sent_bytes.div_ceil(PAGE_BYTES);
        let fits = self.body_bytes() <= rules.inline_bytes.saturating_sub(CALL_HEADER_BYTES);
        let few = pages == 0 || pages + FRAGMENTS_BESIDE_PAGES <= u32::from(rules.send_fragments_max);
        if fits && few {
            return if rules.pull_up && self.body_bytes() < send_buffer_bytes {
                Placement::PulledUp { copied_bytes: sent_bytes + self.pad_bytes() }
            } else {
                Placement::Mapped { fragments: (pages + u32::from(self.pad_bytes() > 0)) as u16 }
            };
        }
        let is_write = self.operation == Operation::Write;
        if rules.data_placement && is_write {
            return Placement::DataChunk { pages: pages as u16 };
        }
        Placement::MessageChunk { pages: (pages + 1) as u16 }
    }

    pub(super) fn reply(&self, rules: &TransportRules) -> Return {
        if self.reply_bytes() <= rules.inline_bytes.saturating_sub(REPLY_HEADER_BYTES) {
            return Return::Inline;
        }
        let pages = self.data_bytes.div_ceil(PAGE_BYTES);
        if rules.data_placement {
            Return::DataChunk { pages: pages as u16 }
        } else {
            Return::MessageChunk { pages: (pages + 1) as u16 }
        }
    }

    fn sent_bytes(&self) -> u32 {
        match self.operation {
            Operation::Read => 0,
            Operation::Write => self.data_bytes,
        }
    }

    fn pad_bytes(&self) -> u32 {
        self.sent_bytes().next_multiple_of(4) - self.sent_bytes()
    }
}

impl Placement {
    /// Pages that are registered for the server.
    pub(super) fn chunk_pages(self) -> u16 {
        match self {
            Placement::DataChunk { pages } | Placement::MessageChunk { pages } => pages,
            Placement::PulledUp { .. } | Placement::Mapped { .. } => 0,
        }
    }
}

impl Return {
    pub(super) fn chunk_pages(self) -> u16 {
        match self {
            Return::Inline => 0,
            Return::DataChunk { pages } | Return::MessageChunk { pages } => pages,
        }
    }
}
