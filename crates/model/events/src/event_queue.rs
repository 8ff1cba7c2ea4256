//! What happens when: events in the order of (time, sequence number), so that a run is a function of its inputs.

use crate::time::Time;

/// Pending events. Two events of one time come in the order in which they were put in.
///
/// A 4-ary heap on a 128-bit key: half the depth of a binary one, and a node's children share a cache line or two.
#[derive(Clone, Debug)]
pub struct EventQueue<E> {
    entries: Vec<Entry<E>>,
    sequence: u64,
    now: Time,
}

#[derive(Clone, Copy, Debug)]
struct Entry<E> {
    /// Time in the high half, sequence number in the low half.
    key: u128,
    event: E,
}

impl<E: Copy> EventQueue<E> {
    /// No events; the time is 0.
    pub fn new() -> EventQueue<E> {
        EventQueue { entries: Vec::new(), sequence: 0, now: 0 }
    }

    /// The time of the event that was taken last.
    #[inline]
    pub fn now(&self) -> Time {
        self.now
    }

    /// Pending events.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether nothing is pending: the simulation is over, or stuck.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Puts an event in; a time that has passed means now.
    #[inline]
    pub fn put(&mut self, at: Time, event: E) {
        let key = u128::from(at.max(self.now)) << 64 | u128::from(self.sequence);
        self.sequence += 1;
        let entry = Entry { key, event };
        let mut place = self.entries.len();
        self.entries.push(entry);
        // The entry is not read back: that would wait for stores that are on their way to memory.
        while place > 0 {
            let parent = (place - 1) / WIDTH;
            if self.entries[parent].key <= key {
                break;
            }
            self.entries[place] = self.entries[parent];
            place = parent;
        }
        self.entries[place] = entry;
    }

    /// Puts an event in by a number that two queues share, so that `next_key` orders the events of both.
    #[inline]
    pub fn put_by(&mut self, at: Time, number: &mut u64, event: E) {
        self.sequence = *number;
        self.put(at, event);
        *number = self.sequence;
    }

    /// Time and sequence number of the next event, which compare as the events do.
    #[inline]
    pub fn next_key(&self) -> Option<u128> {
        self.entries.first().map(|entry| entry.key)
    }

    /// When the next event comes.
    #[inline]
    pub fn next_at(&self) -> Option<Time> {
        self.entries.first().map(|entry| (entry.key >> 64) as Time)
    }

    /// Takes the next event; its time is `now` from here on.
    #[inline]
    pub fn take(&mut self) -> Option<(Time, E)> {
        let last = self.entries.pop()?;
        let first = if self.entries.is_empty() {
            last
        } else {
            let first = std::mem::replace(&mut self.entries[0], last);
            self.sink();
            first
        };
        self.now = (first.key >> 64) as Time;
        Some((self.now, first.event))
    }

    fn sink(&mut self) {
        let entry = self.entries[0];
        let mut at = 0;
        loop {
            let first = at * WIDTH + 1;
            let Some(children) = self
                .entries
                .get(first..(first + WIDTH).min(self.entries.len()))
                .filter(|children| !children.is_empty())
            else {
                break;
            };
            let mut least = 0;
            for child in 1..children.len() {
                if children[child].key < children[least].key {
                    least = child;
                }
            }
            if entry.key <= children[least].key {
                break;
            }
            self.entries[at] = children[least];
            at = first + least;
        }
        self.entries[at] = entry;
    }
}

const WIDTH: usize = 4;

impl<E: Copy> Default for EventQueue<E> {
    fn default() -> Self {
        EventQueue::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn events_come_in_order_of_time_and_then_of_entry(times in prop::collection::vec(0u64..50, 0..300)) {
            let mut events = EventQueue::new();
            for (number, &time) in times.iter().enumerate() {
                events.put(time, number);
            }
            let mut expected: Vec<(Time, usize)> = times.iter().copied().zip(0..).collect();
            expected.sort();
            let taken: Vec<(Time, usize)> = std::iter::from_fn(|| events.take()).collect();
            prop_assert_eq!(taken, expected);
        }

        #[test]
        fn time_never_goes_back(steps in prop::collection::vec((0u64..100, 0usize..4), 1..200)) {
            let mut events = EventQueue::new();
            let mut last = 0;
            for (delay, taken) in steps {
                events.put(delay, ());
                for _ in 0..taken {
                    if let Some((time, ())) = events.take() {
                        prop_assert!(time >= last);
                        last = time;
                    }
                }
            }
        }
    }
}
