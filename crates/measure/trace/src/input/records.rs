//! What the records of block tracepoints hold, and what is wrong with them.

use super::trace_info::TraceInfo;
use crate::event::TraceEvent;
use crate::format::{EventFormat, FormatError};
use crate::page::RawEvent;
use crate::tracepoints::BlockDecoder;

/// Makes events of such records.
pub(crate) struct Records {
    decoder: BlockDecoder,
}

impl Records {
    /// `formats` may hold others; an error states that there are none of block events at all.
    pub(crate) fn new(formats: &[EventFormat]) -> Result<Records, FormatError> {
        Ok(Records { decoder: BlockDecoder::new(&[], formats)? })
    }

    /// Appends the events of a record.
    #[inline]
    pub(crate) fn read(&self, cpu: u16, raw: &RawEvent<'_>, events: &mut Vec<TraceEvent>, about: &mut TraceInfo) {
        about.records += 1;
        match self.decoder.decode_named(cpu, raw) {
            Ok(Some((event, name))) => {
                if let Some(name) = name {
                    about.name(event.pid, name);
                }
                events.push(event);
            }
            Ok(None) => about.records_skipped += 1,
            Err(error) => about.malformed(|| error.to_string()),
        }
    }
}
