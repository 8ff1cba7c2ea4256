//! Several files of one trace as one stream, in the order of time.

use super::order::Order;
use super::stream::Reader;
use super::trace_info::{ReadError, TraceInfo};
use crate::event::TraceEvent;

/// Files of the CPUs, each in order by itself.
pub(crate) struct MergedFiles {
    parts: Vec<Part>,
    about: TraceInfo,
    batch: Vec<TraceEvent>,
    order: Order,
    finished: bool,
}

struct Part {
    reader: Box<dyn Reader>,
    events: Vec<TraceEvent>,
    begin: usize,
    /// The latest time in `events`, wherever it stands. Once all parts are up to the earliest of these, its part is
    /// empty.
    newest_ns: u64,
    ended: bool,
    names_devices: bool,
}

impl MergedFiles {
    pub(crate) fn new(readers: Vec<Box<dyn Reader>>, about: TraceInfo) -> MergedFiles {
        let parts = readers.into_iter().map(|reader| Part {
            reader,
            events: Vec::new(),
            begin: 0,
            newest_ns: 0,
            ended: false,
            names_devices: false,
        });
        MergedFiles { parts: parts.collect(), about, batch: Vec::new(), order: Order::default(), finished: false }
    }

    /// All that no part can have anything before.
    fn gather(&mut self) -> Result<bool, ReadError> {
        if let [part] = &mut self.parts[..] {
            part.fill(&mut self.about)?;
            std::mem::swap(&mut self.batch, &mut part.events);
            return Ok(!part.ended);
        }
        let mut frontier_ns = u64::MAX;
        for part in &mut self.parts {
            if part.fill(&mut self.about)? {
                let times = part.events.iter().map(|event| event.at_ns);
                part.newest_ns = times.max().unwrap_or(0);
            }
            if !part.ended {
                frontier_ns = frontier_ns.min(part.newest_ns);
            }
        }
        for part in &mut self.parts {
            let events = &part.events[part.begin..];
            let count = events.iter().position(|event| event.at_ns > frontier_ns).unwrap_or(events.len());
            self.batch.extend_from_slice(&events[..count]);
            part.begin += count;
        }
        if !self.batch.is_sorted_by_key(|event| event.at_ns) {
            // Runs that are in order by themselves: merging them is what this sort does.
            self.batch.sort_by_key(|event| event.at_ns);
        }
        Ok(self.parts.iter().any(|part| !part.done()))
    }
}

impl Part {
    /// Reads on if nothing is left; whether it did.
    fn fill(&mut self, about: &mut TraceInfo) -> Result<bool, ReadError> {
        let filled = self.begin == self.events.len() && !self.ended;
        while self.begin == self.events.len() && !self.ended {
            self.events.clear();
            self.begin = 0;
            self.ended = !self.reader.read(&mut self.events)?;
            self.number_devices(about);
        }
        Ok(filled)
    }

    /// Each file numbers the devices that it names by itself: here one name has one number, whichever file names it.
    fn number_devices(&mut self, about: &mut TraceInfo) {
        let theirs = self.reader.about();
        self.names_devices |= theirs.named_devices() > 0;
        about.devices_numbered |= theirs.devices_numbered;
        if !self.names_devices {
            return;
        }
        let mut latest = None;
        for event in &mut self.events {
            event.device = match latest {
                Some((from, to)) if from == event.device => to,
                _ => {
                    let to = about.device_of(theirs, event.device);
                    latest = Some((event.device, to));
                    to
                }
            };
        }
    }

    fn done(&self) -> bool {
        self.ended && self.begin == self.events.len()
    }
}

impl Reader for MergedFiles {
    fn read(&mut self, events: &mut Vec<TraceEvent>) -> Result<bool, ReadError> {
        if self.finished {
            return Ok(false);
        }
        let more = self.gather()?;
        self.order.pass(&mut self.batch, !more, events);
        self.batch.clear();
        if !more {
            self.finished = true;
            for part in &mut self.parts {
                self.about.merge(std::mem::take(part.reader.about()));
            }
            self.about.events_late += self.order.late;
            self.about.restarts += self.order.restarts;
        }
        Ok(more)
    }

    fn about(&mut self) -> &mut TraceInfo {
        &mut self.about
    }
}
