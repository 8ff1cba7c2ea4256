//! What `trace.dat` and `perf.data` hold about the kernel that wrote them: formats of its events and of its buffers.

use std::io::Read;

use super::trace_info::{ReadError, TraceInfo};
use crate::format::EventFormat;
use crate::page::PageFormat;

/// Reads numbers and texts one after the other.
pub(crate) struct Cursor<R>(pub(crate) R);

/// Formats, symbols and such: no kernel has more.
const SECTION_BYTES_MAX: u64 = 64 << 20;
const SYSTEMS_MAX: u32 = 10_000;

impl<R: Read> Cursor<R> {
    pub(crate) fn bytes(&mut self, count: u64) -> Result<Vec<u8>, ReadError> {
        if count > SECTION_BYTES_MAX {
            return Err(ReadError(format!("a section of {count} bytes in its header")));
        }
        let mut bytes = Vec::new();
        // What is not there is not allocated.
        let read = (&mut self.0).take(count).read_to_end(&mut bytes);
        match read {
            Ok(read) if read as u64 == count => Ok(bytes),
            Ok(_) => Err(ReadError("it ends within its header".into())),
            Err(error) => Err(ReadError(error.to_string())),
        }
    }

    pub(crate) fn skip(&mut self, count: u64) -> Result<(), ReadError> {
        self.bytes(count).map(drop)
    }

    pub(crate) fn u16(&mut self) -> Result<u16, ReadError> {
        let bytes = self.bytes(2)?;
        Ok(u16::from_le_bytes([bytes[0], bytes[1]]))
    }

    pub(crate) fn u32(&mut self) -> Result<u32, ReadError> {
        let bytes = self.bytes(4)?;
        Ok(u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]))
    }

    pub(crate) fn u64(&mut self) -> Result<u64, ReadError> {
        Ok(u64::from(self.u32()?) | u64::from(self.u32()?) << 32)
    }

    /// Up to a NUL.
    pub(crate) fn text(&mut self) -> Result<String, ReadError> {
        let mut text = Vec::new();
        loop {
            match self.bytes(1)?[0] {
                0 => return Ok(String::from_utf8_lossy(&text).into_owned()),
                byte if text.len() < 4096 => text.push(byte),
                _ => return Err(ReadError("a text without an end in its header".into())),
            }
        }
    }

    /// `name\0` and a text whose length is a 64-bit number.
    pub(crate) fn named(&mut self) -> Result<String, ReadError> {
        self.text()?;
        let length = self.u64()?;
        Ok(String::from_utf8_lossy(&self.bytes(length)?).into_owned())
    }

    /// The formats of the tracers' own events, which are not ours.
    pub(crate) fn skip_tracers(&mut self) -> Result<(), ReadError> {
        for _ in 0..self.u32()?.min(SYSTEMS_MAX) {
            let length = self.u64()?;
            self.skip(length)?;
        }
        Ok(())
    }

    /// The formats of the events of `block`.
    pub(crate) fn formats(&mut self, about: &mut TraceInfo) -> Result<Vec<EventFormat>, ReadError> {
        let mut formats = Vec::new();
        for _ in 0..self.u32()?.min(SYSTEMS_MAX) {
            let system = self.text()?;
            for _ in 0..self.u32()?.min(SYSTEMS_MAX) {
                let length = self.u64()?;
                let text = self.bytes(length)?;
                if system != "block" {
                    continue;
                }
                match EventFormat::parse(&String::from_utf8_lossy(&text)) {
                    Ok(format) => formats.push(format),
                    Err(error) => about.malformed(|| error.to_string()),
                }
            }
        }
        Ok(formats)
    }

    /// Lines `PID NAME`, with 64 bits of length before them.
    pub(crate) fn names(&mut self, about: &mut TraceInfo) -> Result<(), ReadError> {
        let length = self.u64()?;
        let text = self.bytes(length)?;
        for line in text.split(|&byte| byte == b'\n') {
            let Some(blank) = line.iter().position(|&byte| byte == b' ') else {
                continue;
            };
            if let Some(pid) = super::words::number(&line[..blank]) {
                about.rename(pid as u32, &line[blank + 1..]);
            }
        }
        Ok(())
    }
}

/// The text of `header_page` as a format.
pub(crate) fn page_format(text: &str) -> Result<PageFormat, ReadError> {
    PageFormat::parse(text).map_err(|error| ReadError(error.to_string()))
}
