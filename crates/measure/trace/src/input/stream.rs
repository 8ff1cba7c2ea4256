//! Formats that are read from front to back, a piece at a time.

use std::io::Read;

use super::trace_info::{ReadError, TraceInfo};
use crate::event::TraceEvent;

/// A trace as it is read: events in batches.
pub trait Reader: Send {
    /// Appends some events; false at the end.
    fn read(&mut self, events: &mut Vec<TraceEvent>) -> Result<bool, ReadError>;

    /// What was learnt beside the events; complete at the end.
    fn about(&mut self) -> &mut TraceInfo;
}

/// Makes events of the bytes of one format.
pub(crate) trait Decode: Send {
    /// Takes whole records and yields how many bytes they were; `end`: there are no more bytes.
    fn decode(
        &mut self,
        bytes: &[u8],
        end: bool,
        events: &mut Vec<TraceEvent>,
        about: &mut TraceInfo,
    ) -> Result<usize, ReadError>;
}

/// A decoder and where its bytes come from.
pub(crate) struct DecodedStream<D> {
    input: Box<dyn Read + Send>,
    buffer: Vec<u8>,
    begin: usize,
    end: usize,
    ended: bool,
    /// Its rest is missing.
    cut: bool,
    decoder: D,
    /// The event that came last: its time and CPU.
    latest: (u64, u16),
    about: TraceInfo,
}

/// Large enough that a read's own cost does not count, small enough to stay in a processor's cache.
const PIECE_BYTES: usize = 1 << 18;
/// Nothing that is a record or a line is longer.
pub(crate) const RECORD_BYTES_MAX: usize = 1 << 17;

impl<D: Decode> DecodedStream<D> {
    pub(crate) fn new(input: Box<dyn Read + Send>, decoder: D, about: TraceInfo) -> DecodedStream<D> {
        DecodedStream {
            input,
            buffer: vec![0; PIECE_BYTES + RECORD_BYTES_MAX],
            begin: 0,
            end: 0,
            ended: false,
            cut: false,
            decoder,
            latest: (0, 0),
            about,
        }
    }

    fn fill(&mut self) -> Result<(), ReadError> {
        self.buffer.copy_within(self.begin..self.end, 0);
        (self.begin, self.end) = (0, self.end - self.begin);
        while self.end < PIECE_BYTES && !self.ended {
            match self.input.read(&mut self.buffer[self.end..]) {
                Ok(0) => self.ended = true,
                Ok(count) => self.end += count,
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                // What a damaged archive still gives is read; its rest is missing.
                Err(error) if self.about.records > 0 => {
                    self.about.malformed(|| format!("the file can't be read further: {error}"));
                    self.ended = true;
                    self.cut = true;
                }
                Err(error) => return Err(ReadError(error.to_string())),
            }
        }
        Ok(())
    }
}

impl<D: Decode> Reader for DecodedStream<D> {
    fn read(&mut self, events: &mut Vec<TraceEvent>) -> Result<bool, ReadError> {
        self.fill()?;
        let bytes = &self.buffer[self.begin..self.end];
        let taken = self.decoder.decode(bytes, self.ended, events, &mut self.about)?;
        self.begin += taken;
        if let Some(event) = events.last() {
            self.latest = (event.at_ns, event.cpu);
        }
        if taken == 0 && !self.ended && self.end - self.begin >= RECORD_BYTES_MAX {
            return Err(ReadError(format!(
                "after {} records: a record longer than {RECORD_BYTES_MAX} bytes",
                self.about.records
            )));
        }
        if self.ended && (taken == 0 || self.begin == self.end) {
            if self.begin < self.end {
                let left = self.end - self.begin;
                self.about.malformed(|| format!("the file ends within a record: {left} bytes are left"));
                self.cut = true;
            }
            if self.cut {
                // Other CPUs' files may continue.
                let (since_ns, cpu) = self.latest;
                events.push(TraceEvent::lost(since_ns, u64::MAX, 0, cpu));
            }
            return Ok(false);
        }
        Ok(true)
    }

    fn about(&mut self) -> &mut TraceInfo {
        &mut self.about
    }
}

/// Makes events of the lines of a text.
pub(crate) trait DecodeLine: Send {
    /// A line without its end.
    fn line(&mut self, line: &[u8], events: &mut Vec<TraceEvent>, about: &mut TraceInfo);

    /// No further lines.
    fn end(&mut self, _events: &mut Vec<TraceEvent>, _about: &mut TraceInfo) {}
}

/// A line without its end, without the marks of a mail that quotes it, and without those of code: a fence is empty.
#[inline]
pub(crate) fn plain(line: &[u8]) -> &[u8] {
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    match line.first() {
        Some(b'>') => without_fence(unquoted(line)),
        Some(b'`') => without_fence(line),
        _ => line,
    }
}

#[cold]
fn unquoted(mut line: &[u8]) -> &[u8] {
    while let Some(inner) = line.strip_prefix(b">") {
        line = inner.strip_prefix(b" ").unwrap_or(inner);
    }
    line
}

#[cold]
fn without_fence(line: &[u8]) -> &[u8] {
    let marks = line.iter().take_while(|&&byte| byte == b'`').count();
    match marks {
        0..3 => &line[marks..],
        _ => b"",
    }
}

/// Takes bytes apart into lines.
pub(crate) struct Lines<L>(pub(crate) L);

impl<L: DecodeLine> Decode for Lines<L> {
    fn decode(
        &mut self,
        bytes: &[u8],
        end: bool,
        events: &mut Vec<TraceEvent>,
        about: &mut TraceInfo,
    ) -> Result<usize, ReadError> {
        let mut taken = 0;
        for at in memchr::memchr_iter(b'\n', bytes) {
            self.0.line(plain(&bytes[taken..at]), events, about);
            taken = at + 1;
        }
        if end && taken < bytes.len() {
            self.0.line(plain(&bytes[taken..]), events, about);
            taken = bytes.len();
        }
        if end {
            self.0.end(events, about);
        }
        Ok(taken)
    }
}
