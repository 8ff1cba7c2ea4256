//! Servers with a line before them, first come, first served; and workers that have to be woken for theirs.

use std::collections::VecDeque;

use events::station::{Station, Violation};
use events::time::Time;

#[derive(Clone, Debug)]
pub(super) struct Fifo<T> {
    servers: usize,
    waiting: VecDeque<(Time, T)>,
    served: Vec<(Time, T)>,
    station: Station,
}

/// A completion queue's worker: sleeps when the queue is empty, and takes all that is there once it is awake.
#[derive(Clone, Debug)]
pub(super) struct Worker<T> {
    fifo: Fifo<T>,
    state: State,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Asleep,
    Waking,
    Awake,
}

impl<T: Copy + PartialEq> Fifo<T> {
    pub(super) fn new(servers: u16) -> Fifo<T> {
        Fifo {
            servers: usize::from(servers),
            waiting: VecDeque::new(),
            served: Vec::with_capacity(usize::from(servers)),
            station: Station::default(),
        }
    }

    #[inline]
    pub(super) fn arrive(&mut self, now: Time, item: T) {
        self.station.enter(now);
        self.waiting.push_back((now, item));
    }

    /// The next one, if a server is free for it.
    #[inline]
    pub(super) fn start(&mut self) -> Option<T> {
        if self.served.len() == self.servers {
            return None;
        }
        let next = self.waiting.pop_front()?;
        self.served.push(next);
        Some(next.1)
    }

    /// Who would be next, if a server is free.
    #[inline]
    pub(super) fn next(&self) -> Option<T> {
        let is_free = self.served.len() < self.servers;
        self.waiting.front().filter(|_| is_free).map(|&(_, item)| item)
    }

    /// Panics if it is not being served: the caller has lost count.
    #[inline]
    pub(super) fn finish(&mut self, now: Time, item: T) {
        let place = self.served.iter().position(|&(_, served)| served == item);
        let (since, _) = self.served.swap_remove(place.expect("it is being served"));
        self.station.leave(now, since);
    }

    /// Who is being served if there is one server.
    #[inline]
    pub(super) fn current(&self) -> Option<T> {
        self.served.first().map(|&(_, item)| item)
    }

    #[cfg(test)]
    pub(super) fn served(&self) -> usize {
        self.served.len()
    }

    pub(super) fn is_idle(&self) -> bool {
        self.waiting.is_empty() && self.served.is_empty()
    }

    pub(super) fn check(&self, name: &str, now: Time) -> Result<(), Violation> {
        if self.served.len() > self.servers {
            return Err(Violation {
                station: name.to_owned(),
                what: format!("{} served by {}", self.served.len(), self.servers),
            });
        }
        let inside = self.waiting.iter().chain(&self.served);
        self.station.check(name, now, inside.map(|&(since, _)| since))
    }
}

impl<T: Copy + PartialEq> Worker<T> {
    pub(super) fn new() -> Worker<T> {
        Worker { fifo: Fifo::new(1), state: State::Asleep }
    }

    /// Whether it has to be woken for this one.
    #[inline]
    pub(super) fn arrive(&mut self, now: Time, item: T) -> bool {
        self.fifo.arrive(now, item);
        let asleep = self.state == State::Asleep;
        if asleep {
            self.state = State::Waking;
        }
        asleep
    }

    #[inline]
    pub(super) fn woken(&mut self) {
        self.state = State::Awake;
    }

    /// The next one; None: it works, wakes, or went to sleep just now.
    #[inline]
    pub(super) fn start(&mut self) -> Option<T> {
        if self.state != State::Awake {
            return None;
        }
        if self.fifo.is_idle() {
            self.state = State::Asleep;
        }
        self.fifo.start()
    }

    #[inline]
    pub(super) fn finish(&mut self, now: Time) -> T {
        let item = self.fifo.current().expect("it works on one");
        self.fifo.finish(now, item);
        item
    }

    #[inline]
    pub(super) fn current(&self) -> Option<T> {
        self.fifo.current()
    }

    pub(super) fn check(&self, name: &str, now: Time) -> Result<(), Violation> {
        self.fifo.check(name, now)
    }
}
