//! Streams of several CPUs as one, in the order of time.
//!
//! Each CPU's own stream is in order. What may still come is known by its watermark, a time before which nothing will
//! come any more; an event leaves as soon as no CPU can come before it. Memory is what lies between the watermarks of
//! the first and the last CPU.

use std::collections::VecDeque;

/// `T` is whatever a reader makes of an event.
#[derive(Clone, Debug)]
pub struct Merge<T> {
    streams: Vec<Stream<T>>,
}

#[derive(Clone, Debug)]
struct Stream<T> {
    waiting: VecDeque<(u64, T)>,
    /// Nothing before this time will come.
    watermark_ns: u64,
}

impl<T> Merge<T> {
    /// `streams`: one per CPU, numbered from 0.
    pub fn new(streams: usize) -> Merge<T> {
        let stream = || Stream {
            waiting: VecDeque::new(),
            watermark_ns: 0,
        };
        Merge {
            streams: (0..streams).map(|_| stream()).collect(),
        }
    }

    /// The next event of a stream. One that goes back in time is taken as of the time of the one before: a stream's
    /// order is the order of recording.
    pub fn push(&mut self, stream: usize, at_ns: u64, event: T) {
        let stream = &mut self.streams[stream];
        stream.watermark_ns = stream.watermark_ns.max(at_ns);
        stream.waiting.push_back((stream.watermark_ns, event));
    }

    /// Nothing before `at_ns` will come from this stream: when its buffer was found empty, the time before the look.
    pub fn advance(&mut self, stream: usize, at_ns: u64) {
        let stream = &mut self.streams[stream];
        stream.watermark_ns = stream.watermark_ns.max(at_ns);
    }

    /// Nothing will come from this stream any more: recording has ended, or its CPU went offline.
    pub fn end(&mut self, stream: usize) {
        self.advance(stream, u64::MAX);
    }

    /// The earliest event, once no stream can come before it; of equal times, the one of the lowest stream. The time,
    /// the stream and the event.
    pub fn pop(&mut self) -> Option<(u64, usize, T)> {
        let first = |stream: &Stream<T>| match stream.waiting.front() {
            Some((at_ns, _)) => (*at_ns, true),
            None => (stream.watermark_ns, false),
        };
        let heads = self.streams.iter().enumerate();
        let ((at_ns, waiting), index) = heads
            .map(|(index, stream)| (first(stream), index))
            .min_by_key(|&((at_ns, _), index)| (at_ns, index))?;
        if !waiting {
            return None;
        }
        let (_, event) = self.streams[index].waiting.pop_front()?;
        Some((at_ns, index, event))
    }

    /// Events that wait for other streams.
    pub fn waiting(&self) -> usize {
        self.streams.iter().map(|stream| stream.waiting.len()).sum()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn everything_leaves_once_and_in_order(streams in prop::collection::vec(
            prop::collection::vec(0..50u64, 0..30), 1..4
        ), order in prop::collection::vec(any::<prop::sample::Index>(), 0..100)) {
            let sorted: Vec<Vec<u64>> = streams.iter().map(|times| {
                let mut times = times.clone();
                times.sort_unstable();
                times
            }).collect();
            let mut merge = Merge::new(sorted.len());
            let mut fed = vec![0; sorted.len()];
            let mut left = Vec::new();
            for index in order {
                let stream = index.index(sorted.len());
                match sorted[stream].get(fed[stream]) {
                    Some(&at_ns) => merge.push(stream, at_ns, (stream, fed[stream])),
                    None => merge.end(stream),
                }
                fed[stream] += 1;
                left.extend(std::iter::from_fn(|| merge.pop()));
            }
            for (stream, times) in sorted.iter().enumerate() {
                for (index, &at_ns) in times.iter().enumerate().skip(fed[stream]) {
                    merge.push(stream, at_ns, (stream, index));
                }
                merge.end(stream);
            }
            left.extend(std::iter::from_fn(|| merge.pop()));
            prop_assert_eq!(merge.waiting(), 0);
            let mut expected: Vec<_> = sorted.iter().enumerate().flat_map(|(stream, times)| {
                times.iter().enumerate().map(move |(index, &at_ns)| (at_ns, stream, (stream, index)))
            }).collect();
            expected.sort_unstable();
            let times = |events: &[(u64, usize, (usize, usize))]| events.iter().map(|event| event.0).collect::<Vec<_>>();
            prop_assert_eq!(times(&left), times(&expected));
            left.sort_unstable();
            prop_assert_eq!(left, expected);
        }
    }

    #[test]
    fn an_event_waits_for_the_stream_that_may_still_come_before_it() {
        let mut merge = Merge::new(2);
        merge.push(0, 10, 'a');
        assert_eq!(merge.pop(), None);
        merge.advance(1, 9);
        assert_eq!(merge.pop(), None);
        merge.push(1, 9, 'b');
        assert_eq!(merge.pop(), Some((9, 1, 'b')));
        merge.advance(1, 11);
        assert_eq!(merge.pop(), Some((10, 0, 'a')));
    }

    #[test]
    fn a_clock_that_goes_back_does_not_break_the_order() {
        let mut merge = Merge::new(1);
        merge.push(0, 10, 'a');
        merge.push(0, 7, 'b');
        assert_eq!(merge.pop(), Some((10, 0, 'a')));
        assert_eq!(merge.pop(), Some((10, 0, 'b')));
    }
}
