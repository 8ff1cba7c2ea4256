//! The kernel's ring buffer, one sub-buffer at a time: what a read of `per_cpu/cpuN/trace_pipe_raw` gives.
//!
//! Layout: include/linux/ring_buffer.h and kernel/trace/ring_buffer.c (checked for 5.10 to 6.18), little-endian. A
//! sub-buffer is a time stamp, a commit word and events of a 32-bit header each: 5 bits `type_len`, 27 bits of
//! nanoseconds since the event before.

use std::ops::Range;

use crate::format::{Field, FormatError, fields};

/// Where a sub-buffer keeps its parts: tracefs `events/header_page`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PageFormat {
    timestamp: Field,
    commit: Field,
    data: Field,
}

/// A decoded sub-buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Page<'a> {
    /// Time of the sub-buffer, from which its events count.
    pub started_ns: u64,
    /// What this CPU lost right before this sub-buffer: the buffer was full.
    pub lost: Option<LostEvents>,
    data: &'a [u8],
}

/// How many events are missing before a sub-buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LostEvents {
    /// As many events.
    Events(u64),
    /// The sub-buffer had no room for their number.
    Uncounted,
}

/// A record as the kernel wrote it: `common_type` identifies the event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RawEvent<'a> {
    /// On the clock of the ring buffer, in nanoseconds.
    pub at_ns: u64,
    /// May be up to 3 bytes longer than what was written: lengths are multiples of 4.
    pub record: &'a [u8],
}

/// Why a sub-buffer can't be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PageError {
    /// It is shorter than its header.
    #[error("a sub-buffer of {bytes} bytes is shorter than its header of {header} bytes")]
    NoHeader {
        /// Its length.
        bytes: usize,
        /// The header's length.
        header: usize,
    },
    /// Its commit word exceeds its size.
    #[error("a sub-buffer says that it holds {committed} bytes and has room for {room}")]
    Overcommitted {
        /// Bytes that it claims to hold.
        committed: usize,
        /// Bytes that there are.
        room: usize,
    },
    /// An event reaches beyond what is committed.
    #[error("an event at byte {at} of a sub-buffer reaches beyond its {committed} bytes")]
    Truncated {
        /// Where the event begins, in bytes.
        at: usize,
        /// Bytes that the sub-buffer holds.
        committed: usize,
    },
}

impl PageFormat {
    /// Reads the text of `events/header_page`.
    pub fn parse(text: &str) -> Result<PageFormat, FormatError> {
        let fields = fields(text, HEADER)?;
        let field = |name: &str| {
            fields
                .get(name)
                .copied()
                .ok_or_else(|| FormatError::NoField { event: HEADER.to_owned(), fields: vec![name.to_owned()] })
        };
        let number = |name: &str| match field(name)? {
            found if matches!(found.size, 4 | 8) => Ok(found),
            found => {
                Err(FormatError::NotANumber { event: HEADER.to_owned(), field: name.to_owned(), size: found.size })
            }
        };
        Ok(PageFormat { timestamp: number("timestamp")?, commit: number("commit")?, data: field("data")? })
    }

    /// Bytes of a whole sub-buffer: how many to read at once. The kernel's `buffer_subbuf_size_kb` may make it larger
    /// than a memory page; `header_page` of the same instance has the size.
    pub fn subbuffer_bytes(&self) -> usize {
        self.data.end()
    }

    /// Where the events of a page lie in its sub-buffer.
    pub(crate) fn events_of(&self, page: &Page<'_>) -> Range<usize> {
        self.data.offset..self.data.offset + page.data.len()
    }
}

impl<'a> Page<'a> {
    /// Decodes the header of a sub-buffer; what was read of it, at least the committed part.
    pub fn decode(bytes: &'a [u8], format: &PageFormat) -> Result<Page<'a>, PageError> {
        let header = format.data.offset;
        let too_short = PageError::NoHeader { bytes: bytes.len(), header };
        let room = bytes.get(header..).ok_or(too_short)?;
        let started_ns = format.timestamp.unsigned(bytes).ok_or(too_short)?;
        let commit = format.commit.unsigned(bytes).ok_or(too_short)?;
        let committed = (commit & COMMITTED) as usize;
        let data = room.get(..committed).ok_or(PageError::Overcommitted { committed, room: room.len() })?;
        let lost = match (commit & MISSED_EVENTS != 0, commit & MISSED_STORED != 0) {
            (false, _) => None,
            (true, false) => Some(LostEvents::Uncounted),
            (true, true) => {
                // The number follows the data, as a word of the same size as the commit word, and is not counted in it.
                let stored = Field { offset: committed, ..format.commit };
                Some(stored.unsigned(room).map_or(LostEvents::Uncounted, LostEvents::Events))
            }
        };
        Ok(Page { started_ns, lost, data })
    }

    /// The events in the order of recording. After an error there are no more.
    pub fn events(&self) -> Events<'a> {
        Events { data: self.data, walk: Walk::from(self.started_ns) }
    }
}

/// Walks through the events of a sub-buffer.
#[derive(Clone, Debug)]
pub struct Events<'a> {
    data: &'a [u8],
    walk: Walk,
}

impl<'a> Iterator for Events<'a> {
    type Item = Result<RawEvent<'a>, PageError>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        let event = self.walk.next(self.data)?;
        Some(event.map(|(at_ns, record)| RawEvent { at_ns, record: &self.data[record] }))
    }
}

/// How far a sub-buffer's events have been walked through.
#[derive(Clone, Debug)]
pub(crate) struct Walk {
    at: usize,
    now_ns: u64,
}

impl Walk {
    pub(crate) fn from(started_ns: u64) -> Walk {
        Walk { at: 0, now_ns: started_ns }
    }

    /// The next event's time and where in `data` its record lies.
    #[inline]
    pub(crate) fn next(&mut self, data: &[u8]) -> Option<Result<(u64, Range<usize>), PageError>> {
        while self.at < data.len() {
            match self.step(data) {
                Ok(Some(record)) => return Some(Ok((self.now_ns, record))),
                Ok(None) => {}
                Err(error) => {
                    self.at = data.len();
                    return Some(Err(error));
                }
            }
        }
        None
    }

    /// None of what is no record: a time, what was discarded, the padding at the end.
    #[inline]
    fn step(&mut self, data: &[u8]) -> Result<Option<Range<usize>>, PageError> {
        let header = self.word(data, 0)?;
        let (type_len, delta_ns) = (header & TYPE_LEN, u64::from(header >> DELTA_SHIFT));
        if !(1..PADDING).contains(&type_len) {
            return self.special(data, type_len, delta_ns);
        }
        let record = self.take(data, WORD, type_len as usize * WORD)?;
        self.now_ns = self.now_ns.wrapping_add(delta_ns);
        Ok(Some(record))
    }

    fn special(&mut self, data: &[u8], type_len: u32, delta_ns: u64) -> Result<Option<Range<usize>>, PageError> {
        match type_len {
            PADDING if delta_ns == 0 => {
                self.at = data.len();
                Ok(None)
            }
            PADDING => {
                let length = self.word(data, WORD)? as usize;
                self.take(data, WORD, length)?;
                // A discarded event keeps its own time, except that 0 became 1 to distinguish it from the end's
                // padding.
                self.now_ns = self.now_ns.wrapping_add(if delta_ns == 1 { 0 } else { delta_ns });
                Ok(None)
            }
            TIME_EXTEND | TIME_STAMP => {
                let time_ns = u64::from(self.word(data, WORD)?) << DELTA_BITS | delta_ns;
                self.take(data, WORD, WORD)?;
                self.now_ns = match type_len {
                    TIME_EXTEND => self.now_ns.wrapping_add(time_ns),
                    _ => absolute(time_ns, self.now_ns),
                };
                Ok(None)
            }
            // A long record: its length, counted with the word that holds it, comes first.
            _ => {
                let counted = self.word(data, WORD)? as usize;
                let length = counted.checked_sub(WORD).ok_or(self.truncated(data))?;
                let record = self.take(data, 2 * WORD, length)?;
                self.now_ns = self.now_ns.wrapping_add(delta_ns);
                Ok(Some(record))
            }
        }
    }

    #[inline]
    fn word(&self, data: &[u8], offset: usize) -> Result<u32, PageError> {
        let start = self.at + offset;
        let bytes = data.get(start..start + WORD);
        let bytes = bytes.and_then(|bytes| bytes.try_into().ok());
        bytes.map(u32::from_le_bytes).ok_or(self.truncated(data))
    }

    /// What lies `offset` bytes into the event, and goes on to the next one: they start at multiples of 4.
    #[inline]
    fn take(&mut self, data: &[u8], offset: usize, length: usize) -> Result<Range<usize>, PageError> {
        let start = self.at + offset;
        let taken = start..start + length;
        if taken.end > data.len() {
            return Err(self.truncated(data));
        }
        self.at = start + length.next_multiple_of(WORD);
        Ok(taken)
    }

    fn truncated(&self, data: &[u8]) -> PageError {
        PageError::Truncated { at: self.at, committed: data.len() }
    }
}

/// An absolute time stamp has 59 bits; the upper five come from the time before.
fn absolute(low_ns: u64, before_ns: u64) -> u64 {
    let upper = before_ns & !ABSOLUTE;
    if upper == 0 {
        return low_ns;
    }
    let at_ns = low_ns & ABSOLUTE | upper;
    if at_ns < before_ns { at_ns.wrapping_add(ABSOLUTE + 1) } else { at_ns }
}

const HEADER: &str = "header_page";
const MISSED_EVENTS: u64 = 1 << 31;
const MISSED_STORED: u64 = 1 << 30;
const COMMITTED: u64 = (1 << 27) - 1;

const WORD: usize = 4;
const DELTA_BITS: u32 = 27;
const DELTA_SHIFT: u32 = 5;
const TYPE_LEN: u32 = (1 << DELTA_SHIFT) - 1;
const PADDING: u32 = 29;
const TIME_EXTEND: u32 = 30;
const TIME_STAMP: u32 = 31;
const ABSOLUTE: u64 = (1 << 59) - 1;
