//! What decoders of events have in common: which events they want, and which of them a record is.

use crate::format::{EventFormat, Field, FormatError};
use crate::page::RawEvent;

/// An event to record: tracefs `events/SYSTEM/NAME`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wanted {
    pub system: &'static str,
    pub name: &'static str,
    /// Without it there is nothing to analyse; without the others something is missing.
    pub required: bool,
}

/// Finds the layout of a record by its `common_type`.
#[derive(Clone, Debug)]
pub(crate) struct Layouts<L> {
    id: Field,
    layouts: Vec<(u16, String, L)>,
}

impl<L> Layouts<L> {
    /// `layout` makes what is kept of each format; None of a format that is not wanted.
    pub(crate) fn new(
        wanted: &[Wanted],
        formats: &[EventFormat],
        layout: impl Fn(&EventFormat) -> Result<Option<L>, FormatError>,
    ) -> Result<Layouts<L>, FormatError> {
        let missing = |wanted: &&Wanted| {
            wanted.required && !formats.iter().any(|format| format.name == wanted.name)
        };
        if let Some(missing) = wanted.iter().find(missing) {
            return Err(FormatError::NoEvent(missing.name.to_owned()));
        }
        let first = formats
            .first()
            .ok_or(FormatError::NoEvent("any".to_owned()))?;
        let id = first.number(&["common_type"])?;
        let mut layouts = Vec::new();
        for format in formats {
            // The kernel writes the common fields of all events alike.
            if format.number(&["common_type"])? != id {
                return Err(FormatError::NoField {
                    event: format.name.clone(),
                    fields: vec![format!("common_type at byte {}", id.offset)],
                });
            }
            if let Some(layout) = layout(format)? {
                layouts.push((format.id, format.name.clone(), layout));
            }
        }
        Ok(Layouts { id, layouts })
    }

    /// Reads the record with its layout; None if it is of an event that is not wanted.
    #[inline]
    pub(crate) fn read<T>(
        &self,
        raw: &RawEvent<'_>,
        read: impl Fn(&L, &[u8]) -> Option<T>,
    ) -> Result<Option<T>, FormatError> {
        let record = raw.record;
        let id = self.id.unsigned(record);
        let Some((_, name, layout)) = self
            .layouts
            .iter()
            .find(|(known, _, _)| Some(u64::from(*known)) == id)
        else {
            return Ok(None);
        };
        let too_short = || FormatError::ShortRecord {
            event: name.clone(),
            length: record.len(),
        };
        read(layout, record).map(Some).ok_or_else(too_short)
    }
}
