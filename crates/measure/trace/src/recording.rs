//! Sub-buffers of several CPUs as one stream of records, in the order of time.
//!
//! Each CPU's own sub-buffers are in order. One of each CPU is kept, and a record is decoded where it lies when its
//! turn has come: nothing is copied, and what was just read is still in the processor's cache.

use std::ops::Range;

use crate::page::{LostEvents, Page, PageError, PageFormat, RawEvent, Walk};

/// The sub-buffers of all CPUs, merged by time.
#[derive(Clone, Debug)]
pub struct Recording {
    format: PageFormat,
    streams: Vec<Stream>,
    /// The time of each stream's next item; after `until_ns` if there is none.
    heads_ns: Vec<u64>,
}

/// What comes out of a recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Item<'a> {
    /// A record, still in its sub-buffer.
    Record(RawEvent<'a>),
    /// Events of this CPU are missing before this time.
    Lost(u64, LostEvents),
    /// A sub-buffer, or its rest, that could not be understood.
    Garbled(PageError),
}

#[derive(Clone, Debug)]
struct Stream {
    bytes: Vec<u8>,
    /// The place of the events in `bytes`.
    data: Range<usize>,
    walk: Walk,
    next: Option<RecordingPart>,
    /// The latest time until now. An event that goes back in time gets the time of the event before it: a stream's
    /// order is the order of recording.
    reached_ns: u64,
}

#[derive(Clone, Debug)]
enum RecordingPart {
    /// Where it lies in the data.
    Record(Range<usize>),
    Lost(LostEvents),
    Garbled(PageError),
}

impl Recording {
    /// `streams`: one per CPU, numbered from 0.
    pub fn new(format: PageFormat, streams: usize) -> Recording {
        let stream = Stream {
            bytes: vec![0; format.subbuffer_bytes()],
            data: 0..0,
            walk: Walk::from(0),
            next: None,
            reached_ns: 0,
        };
        Recording { format, streams: vec![stream; streams], heads_ns: vec![0; streams] }
    }

    /// Hands over all items before `until_ns`; of equal times, those of the lowest stream first. `read` fills a buffer
    /// with the next sub-buffer of a stream and returns how many bytes that is: 0 when nothing before `until_ns` will
    /// come of it any more.
    pub fn drain(
        &mut self,
        until_ns: u64,
        mut read: impl FnMut(usize, &mut [u8]) -> usize,
        mut each: impl FnMut(usize, Item<'_>),
    ) {
        for (index, stream) in self.streams.iter_mut().enumerate() {
            self.heads_ns[index] = stream.head_ns(&self.format, until_ns, |page| read(index, page));
        }
        loop {
            let (first, others_ns) = two_earliest(&self.heads_ns);
            let Some(stream) = self.streams.get_mut(first) else {
                return;
            };
            let mut head_ns = self.heads_ns[first];
            if head_ns >= until_ns {
                return;
            }
            let others_ns = others_ns.min(until_ns);
            // At least once: of equal times, the lowest stream's goes first.
            loop {
                if let Some(item) = stream.take(head_ns) {
                    each(first, item);
                }
                head_ns = stream.head_ns(&self.format, until_ns, |page| read(first, page));
                if head_ns >= others_ns {
                    break;
                }
            }
            self.heads_ns[first] = head_ns;
        }
    }
}

/// The first of the earliest, and the time of the next.
#[inline]
fn two_earliest(heads_ns: &[u64]) -> (usize, u64) {
    let (mut first, mut first_ns, mut second_ns) = (0, u64::MAX, u64::MAX);
    for (index, &head_ns) in heads_ns.iter().enumerate() {
        if head_ns < first_ns {
            second_ns = first_ns;
            (first, first_ns) = (index, head_ns);
        } else {
            second_ns = second_ns.min(head_ns);
        }
    }
    (first, second_ns)
}

impl Stream {
    /// When the next item is; `until_ns` when there is none before.
    #[inline]
    fn head_ns(&mut self, format: &PageFormat, until_ns: u64, mut read: impl FnMut(&mut [u8]) -> usize) -> u64 {
        while self.next.is_none() {
            let data = &self.bytes[self.data.clone()];
            if let Some(event) = self.walk.next(data) {
                self.next = Some(match event {
                    Ok((at_ns, record)) => {
                        self.reached_ns = self.reached_ns.max(at_ns);
                        RecordingPart::Record(record)
                    }
                    Err(error) => RecordingPart::Garbled(error),
                });
                break;
            }
            if !self.turn_page(format, &mut read) {
                self.reached_ns = self.reached_ns.max(until_ns);
                break;
            }
        }
        self.reached_ns
    }

    /// False when there is no page.
    #[cold]
    fn turn_page(&mut self, format: &PageFormat, read: impl FnOnce(&mut [u8]) -> usize) -> bool {
        let length = read(&mut self.bytes).min(self.bytes.len());
        if length == 0 {
            return false;
        }
        (self.data, self.walk) = (0..0, Walk::from(0));
        match Page::decode(&self.bytes[..length], format) {
            Ok(page) => {
                self.reached_ns = self.reached_ns.max(page.started_ns);
                self.data = format.events_of(&page);
                self.walk = Walk::from(page.started_ns);
                self.next = page.lost.map(RecordingPart::Lost);
            }
            Err(error) => self.next = Some(RecordingPart::Garbled(error)),
        }
        true
    }

    #[inline]
    fn take(&mut self, at_ns: u64) -> Option<Item<'_>> {
        Some(match self.next.take()? {
            RecordingPart::Record(record) => {
                Item::Record(RawEvent { at_ns, record: &self.bytes[self.data.clone()][record] })
            }
            RecordingPart::Lost(lost) => Item::Lost(at_ns, lost),
            RecordingPart::Garbled(error) => Item::Garbled(error),
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn format() -> PageFormat {
        let text = "\tfield: u64 timestamp;\toffset:0;\tsize:8;\tsigned:0;\n\
                    \tfield: local_t commit;\toffset:8;\tsize:8;\tsigned:1;\n\
                    \tfield: char data;\toffset:16;\tsize:4080;\tsigned:1;\n";
        PageFormat::parse(text).expect("the format of 64-bit kernels")
    }

    /// A sub-buffer with events at these times; a record is the event's number.
    fn page(first: u32, times_ns: &[u64]) -> Vec<u8> {
        let mut before_ns = times_ns[0];
        let events = times_ns.iter().zip(first..).map(|(at_ns, number)| {
            let header = ((at_ns - before_ns) as u32) << 5 | 1;
            before_ns = *at_ns;
            [header.to_le_bytes(), number.to_le_bytes()].concat()
        });
        let data: Vec<u8> = events.flatten().collect();
        let header = [times_ns[0], data.len() as u64].map(u64::to_le_bytes);
        [header.concat(), data].concat()
    }

    /// Drains up to each of these times, with sub-buffers of this many events; those not before a time are not there
    /// yet.
    fn drained(streams: &[Vec<u64>], events: usize, untils_ns: &[u64]) -> Vec<(u64, usize, u32)> {
        let pages = |times: &Vec<u64>| -> Vec<(u64, Vec<u8>)> {
            let chunks = times.chunks(events).enumerate();
            let pages = chunks.map(|(index, times)| (times[0], page((index * events) as u32, times)));
            pages.collect()
        };
        let mut pages: Vec<_> = streams.iter().map(|times| pages(times).into_iter().peekable()).collect();
        let mut recording = Recording::new(format(), streams.len());
        let mut found = Vec::new();
        for &until_ns in untils_ns {
            let read = |stream: usize, buffer: &mut [u8]| {
                let written = pages[stream].next_if(|(began_ns, _)| *began_ns < until_ns);
                let page = written.map(|(_, page)| page).unwrap_or_default();
                buffer[..page.len()].copy_from_slice(&page);
                page.len()
            };
            recording.drain(until_ns, read, |stream, item| {
                let Item::Record(raw) = item else { panic!("{item:?}") };
                assert!(raw.at_ns < until_ns);
                let number = raw.record.try_into().map(u32::from_le_bytes);
                found.push((raw.at_ns, stream, number.expect("four bytes")));
            });
        }
        found
    }

    proptest! {
        #[test]
        fn everything_leaves_once_and_in_order(
            mut streams in prop::collection::vec(prop::collection::vec(0..50u64, 0..30), 1..4),
            events in 1..5usize, mut untils_ns in prop::collection::vec(0..60u64, 0..5),
        ) {
            streams.iter_mut().for_each(|times| times.sort_unstable());
            untils_ns.sort_unstable();
            untils_ns.push(u64::MAX);
            let found = drained(&streams, events, &untils_ns);
            let mut expected: Vec<_> = streams.iter().enumerate().flat_map(|(stream, times)| {
                times.iter().zip(0..).map(move |(&at_ns, number)| (at_ns, stream, number))
            }).collect();
            expected.sort_unstable();
            prop_assert_eq!(found, expected);
        }

        #[test]
        fn any_bytes_end(pages in prop::collection::vec(prop::collection::vec(any::<u8>(), 1..64), 0..8)) {
            let mut pages = pages.into_iter();
            let mut recording = Recording::new(format(), 2);
            let read = |_: usize, buffer: &mut [u8]| {
                let page = pages.next().unwrap_or_default();
                buffer[..page.len()].copy_from_slice(&page);
                page.len()
            };
            let mut reached_ns = 0;
            recording.drain(u64::MAX, read, |_, item| {
                if let Item::Record(raw) = item {
                    assert!(raw.at_ns >= reached_ns);
                    reached_ns = raw.at_ns;
                }
            });
        }
    }

    #[test]
    fn a_clock_that_goes_back_does_not_break_the_order() {
        let pages = [page(0, &[10, 12]), page(2, &[7, 20])];
        let mut pages = pages.iter();
        let read = |_: usize, buffer: &mut [u8]| {
            let page = pages.next().map_or(&[][..], Vec::as_slice);
            buffer[..page.len()].copy_from_slice(page);
            page.len()
        };
        let mut times_ns = Vec::new();
        Recording::new(format(), 1).drain(u64::MAX, read, |_, item| {
            if let Item::Record(raw) = item {
                times_ns.push(raw.at_ns);
            }
        });
        assert_eq!(times_ns, [10, 12, 12, 20]);
    }
}
