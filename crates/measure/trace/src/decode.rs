//! What decoders of events have in common: which events they want, and which of them a record is.

use crate::format::{EventFormat, FormatError, Number};
use crate::page::RawEvent;

/// An event to record: tracefs `events/SYSTEM/NAME`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WantedEvent {
    /// The subsystem, such as `block`.
    pub system: &'static str,
    /// The event, such as `block_rq_issue`.
    pub name: &'static str,
    /// Without it there is nothing to analyse; without the others something is missing.
    pub required: bool,
}

/// Finds the layout of a record by its `common_type`.
#[derive(Clone, Debug)]
pub(crate) struct Layouts<L> {
    id: Number,
    /// By `common_type`, up to the largest that is wanted: where in `layouts`.
    index: Vec<u8>,
    layouts: Vec<(String, L)>,
}

/// The place of a type that is not wanted.
const NONE: u8 = u8::MAX;

impl<L> Layouts<L> {
    /// `layout` makes what is kept of each format; None of a format that is not wanted.
    pub(crate) fn new(
        wanted: &[WantedEvent],
        formats: &[EventFormat],
        layout: impl Fn(&EventFormat) -> Result<Option<L>, FormatError>,
    ) -> Result<Layouts<L>, FormatError> {
        let missing =
            |wanted: &&WantedEvent| wanted.required && !formats.iter().any(|format| format.name == wanted.name);
        if let Some(missing) = wanted.iter().find(missing) {
            return Err(FormatError::NoEvent(missing.name.to_owned()));
        }
        let first = formats.first().ok_or(FormatError::NoEvent("any".to_owned()))?;
        let id = Number::of(first, &["common_type"])?;
        let (mut index, mut layouts) = (Vec::new(), Vec::new());
        for format in formats {
            // The kernel writes the common fields of all events alike.
            if Number::of(format, &["common_type"])? != id {
                return Err(FormatError::NoField {
                    event: format.name.clone(),
                    fields: vec!["common_type where the other events have it".to_owned()],
                });
            }
            let Some(layout) = layout(format)? else {
                continue;
            };
            let number = usize::from(format.id);
            index.resize(index.len().max(number + 1), NONE);
            if index[number] == NONE {
                index[number] = layouts.len() as u8;
            }
            layouts.push((format.name.clone(), layout));
        }
        Ok(Layouts { id, index, layouts })
    }

    /// Reads the record with its layout; None if it is of an event that is not wanted.
    #[inline]
    pub(crate) fn read<'a, T>(
        &self,
        raw: &RawEvent<'a>,
        read: impl Fn(&L, &'a [u8]) -> Option<T>,
    ) -> Result<Option<T>, FormatError> {
        let record = raw.record;
        let id = self.id.read(record).and_then(|id| usize::try_from(id).ok());
        let index = id.and_then(|id| self.index.get(id));
        let Some((name, layout)) = index.and_then(|&index| self.layouts.get(usize::from(index))) else {
            return Ok(None);
        };
        let too_short = || FormatError::ShortRecord { event: name.clone(), length: record.len() };
        read(layout, record).map(Some).ok_or_else(too_short)
    }
}
