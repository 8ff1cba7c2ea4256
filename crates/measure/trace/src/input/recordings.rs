//! Recordings that follow one another in a file, each whole by itself.

use std::collections::VecDeque;

use super::merged_files::MergedFiles;
use super::stream::Reader;
use super::trace_info::{ReadError, TraceInfo};
use crate::event::{Step, TraceEvent};

/// Reads one after the other; nothing of one continues in the next.
pub(crate) struct Recordings {
    /// Those that are not read yet, the present one first.
    parts: VecDeque<MergedFiles>,
    /// The last event's time.
    reached_ns: u64,
    /// Added to the times of the present one: its clock began before the end of the one before.
    shift_ns: u64,
    /// Nothing of the present one was read yet, and it is not the first.
    begins: bool,
    about: TraceInfo,
}

/// So that nobody takes two recordings for one.
const BETWEEN_NS: u64 = 1_000_000_000;

impl Recordings {
    pub(crate) fn new(mut first: MergedFiles) -> Recordings {
        Recordings {
            about: TraceInfo::of(first.about().format.clone()),
            parts: VecDeque::from([first]),
            reached_ns: 0,
            shift_ns: 0,
            begins: false,
        }
    }

    pub(crate) fn push(&mut self, next: MergedFiles) {
        self.parts.push_back(next);
    }
}

impl Reader for Recordings {
    fn read(&mut self, events: &mut Vec<TraceEvent>) -> Result<bool, ReadError> {
        let Some(part) = self.parts.front_mut() else {
            return Ok(false);
        };
        let before = events.len();
        let more = part.read(events)?;
        if let Some(first) = events.get(before).filter(|_| self.begins) {
            self.shift_ns = match first.at_ns >= self.reached_ns {
                true => 0,
                false => self.reached_ns - first.at_ns + BETWEEN_NS,
            };
            events.insert(before, TraceEvent::new(self.reached_ns, Step::Restart));
            self.about.restarts += 1;
            self.begins = false;
        }
        let of_the_part = events[before..].iter_mut().filter(|event| event.step != Step::Restart);
        for event in of_the_part.filter(|_| self.shift_ns > 0) {
            event.at_ns = event.at_ns.saturating_add(self.shift_ns);
            if event.step == Step::Lost {
                event.argument = event.argument.saturating_add(self.shift_ns);
            }
        }
        let times = events[before..].iter().map(|event| event.at_ns);
        self.reached_ns = times.fold(self.reached_ns, u64::max);
        if !more {
            self.about.merge(std::mem::take(part.about()));
            self.parts.pop_front();
            self.begins = true;
        }
        Ok(!self.parts.is_empty())
    }

    fn about(&mut self) -> &mut TraceInfo {
        &mut self.about
    }
}
