//! Who waited for whom: an I/O of a process may have waited for all that completed before it arrived, and for nothing
//! that had not. So it is due when those are done, the one before it has been offered, and the pause after the later of
//! the two is over.

use std::collections::{BTreeMap, BTreeSet};

use crate::op::Op;
use crate::traced::Schedule;
use base::time::Time;

/// The processes of one thread.
#[derive(Clone, Debug)]
pub(super) struct Waits {
    streams: Vec<Stream>,
    /// What is due when, of streams whose next I/O waits for nothing but time.
    due: BTreeSet<(Time, u32)>,
    /// By what its completion will show of it: those that look alike and are due together end in their order.
    in_flight: BTreeMap<(Time, u64, u32), Vec<(u32, u32)>>,
    start: Time,
}

/// One process: its I/Os in the order of arrival.
#[derive(Clone, Debug, Default)]
struct Stream {
    ios: Vec<WaitingIo>,
    next: usize,
    /// By rank: when it was done in the replay.
    done_at: Vec<Option<Time>>,
    /// The first I/Os of the trace, this many, are done, and the last of them at this time.
    done: usize,
    done_last: Time,
    offered_last: Option<Time>,
}

#[derive(Clone, Copy, Debug)]
struct WaitingIo {
    /// In the schedule.
    index: u32,
    /// In the order in which the process's I/Os ended in the trace; None where that is not known.
    rank: Option<u32>,
    /// How many of them have to be done first.
    needs: u32,
    /// What passes after the last that it waits for.
    pause_ns: Time,
}

impl Waits {
    /// `mine` has the processes, by number; `scaled` is a time of the trace in the replay's.
    pub(super) fn new(
        schedule: &Schedule,
        mine: impl Fn(u32) -> bool,
        scaled: impl Fn(Time) -> Time,
        start: Time,
    ) -> Waits {
        let mut of_process: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
        for (index, io) in schedule.ios.iter().enumerate() {
            if mine(io.process) {
                of_process.entry(io.process).or_default().push(index as u32);
            }
        }
        let streams = of_process.into_values().map(|indices| Stream::new(schedule, &indices, &scaled)).collect();
        let mut waits = Waits { streams, due: BTreeSet::new(), in_flight: BTreeMap::new(), start };
        for stream in 0..waits.streams.len() as u32 {
            waits.look(stream);
        }
        waits
    }

    /// When the next one is due; None where only a completion helps, or none is left.
    pub(super) fn opens_at(&self) -> Option<Time> {
        self.due.first().map(|&(at, _)| at)
    }

    /// Takes the one that is due first, offered at `now`: its number in the schedule, and when it was due.
    pub(super) fn take(&mut self, now: Time) -> Option<OfferedIo> {
        let (due, number) = self.due.pop_first()?;
        let stream = &mut self.streams[number as usize];
        let local = stream.next as u32;
        let index = stream.ios[stream.next].index;
        stream.next += 1;
        stream.offered_last = Some(now);
        self.look(number);
        Some(OfferedIo { index, due, owner: (number, local) })
    }

    /// What was taken is in flight as that operation.
    pub(super) fn started(&mut self, op: &Op, owner: (u32, u32)) {
        self.in_flight.entry(key(op)).or_default().push(owner);
    }

    /// The operation is done.
    pub(super) fn completed(&mut self, now: Time, op: &Op) {
        let Some(alike) = self.in_flight.get_mut(&key(op)) else {
            return;
        };
        let (number, local) = alike.remove(0);
        if alike.is_empty() {
            self.in_flight.remove(&key(op));
        }
        let stream = &mut self.streams[number as usize];
        let was_blocked = !stream.is_due();
        if let Some(rank) = stream.ios[local as usize].rank {
            stream.done_at[rank as usize] = Some(now);
        }
        if was_blocked {
            self.look(number);
        }
    }

    /// Puts the stream's next I/O among those that are due, if what it waits for is done.
    fn look(&mut self, number: u32) {
        let start = self.start;
        let stream = &mut self.streams[number as usize];
        stream.advance();
        if let Some(at) = stream.due_at(start) {
            self.due.insert((at, number));
        }
    }
}

/// An I/O that is offered.
#[derive(Clone, Copy, Debug)]
pub(super) struct OfferedIo {
    pub(super) index: u32,
    pub(super) due: Time,
    pub(super) owner: (u32, u32),
}

fn key(op: &Op) -> (Time, u64, u32) {
    (op.due, op.offset, op.bytes)
}

impl Stream {
    fn new(schedule: &Schedule, indices: &[u32], scaled: &impl Fn(Time) -> Time) -> Stream {
        let io = |index: u32| &schedule.ios[index as usize];
        let mut ends: Vec<(Time, u32)> =
            (0..).zip(indices).filter_map(|(local, &index)| Some((io(index).ended_ns()?, local))).collect();
        ends.sort_unstable();
        let mut ranks = vec![None; indices.len()];
        for (rank, &(_, local)) in (0..).zip(&ends) {
            ranks[local as usize] = Some(rank);
        }
        let mut before: Time = 0;
        let mut needs = 0;
        let ios = indices.iter().zip(ranks).map(|(&index, rank)| {
            let at = io(index).at_ns;
            while ends.get(needs).is_some_and(|&(end, _)| end <= at) {
                before = before.max(ends[needs].0);
                needs += 1;
            }
            let pause_ns = scaled(at - before.min(at));
            before = before.max(at);
            WaitingIo { index, rank, needs: needs as u32, pause_ns }
        });
        Stream { ios: ios.collect(), done_at: vec![None; ends.len()], ..Stream::default() }
    }

    /// Whether the next one waits for nothing but time.
    fn is_due(&self) -> bool {
        self.ios.get(self.next).is_some_and(|next| self.done >= next.needs as usize)
    }

    /// Counts what is done, as far as the next one needs it.
    fn advance(&mut self) {
        let Some(next) = self.ios.get(self.next) else {
            return;
        };
        while self.done < next.needs as usize
            && let Some(at) = self.done_at[self.done]
        {
            self.done_last = self.done_last.max(at);
            self.done += 1;
        }
    }

    fn due_at(&self, start: Time) -> Option<Time> {
        let next = self.ios.get(self.next)?;
        self.is_due().then(|| {
            let since = self.offered_last.unwrap_or(start).max(self.done_last);
            since.saturating_add(next.pause_ns)
        })
    }
}
