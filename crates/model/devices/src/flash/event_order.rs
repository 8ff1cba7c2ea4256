//! What happens inside a flash device, in order, with what no host sees apart.
//!
//! Most events of a drive that collects end a move or an erase. Nothing of those is visible before the next read or
//! program ends, so that the device's owner need not call it for each.

use events::event_queue::EventQueue;
use events::time::Time;

/// A number of a die's works, which is done unless that has been interrupted.
#[derive(Clone, Copy, Debug)]
pub(super) struct DieWork {
    pub(super) die: u32,
    pub(super) work: u32,
}

/// Two queues whose events come in one order: by time, then as they were put in.
#[derive(Clone, Debug)]
pub(super) struct FlashEvents<E> {
    seen: EventQueue<E>,
    inner: EventQueue<DieWork>,
    number: u64,
}

impl<E: Copy + From<DieWork>> FlashEvents<E> {
    pub(super) fn new() -> FlashEvents<E> {
        FlashEvents { seen: EventQueue::new(), inner: EventQueue::new(), number: 0 }
    }

    #[inline]
    pub(super) fn put(&mut self, at: Time, event: E) {
        self.seen.put_by(at, &mut self.number, event);
    }

    /// Of an event that no host sees.
    #[inline]
    pub(super) fn put_inner(&mut self, at: Time, event: DieWork) {
        self.inner.put_by(at, &mut self.number, event);
    }

    /// When something can be seen: an inner event leads to nothing visible for `after_ns`.
    #[inline]
    pub(super) fn next_at(&self, after_ns: Time) -> Option<Time> {
        let inner = self.inner.next_at().map(|at| at + after_ns);
        [self.seen.next_at(), inner].into_iter().flatten().min()
    }

    #[inline]
    pub(super) fn take_until(&mut self, now: Time) -> Option<(Time, E)> {
        if self.is_inner_next() {
            let is_due = self.inner.next_at().is_some_and(|at| at <= now);
            let (at, work) = is_due.then(|| self.inner.take()).flatten()?;
            return Some((at, work.into()));
        }
        let is_due = self.seen.next_at().is_some_and(|at| at <= now);
        is_due.then(|| self.seen.take()).flatten()
    }

    /// The next event, if it is an inner one, and earlier than `now`.
    #[inline]
    pub(super) fn take_inner_before(&mut self, now: Time) -> Option<(Time, DieWork)> {
        match self.inner.next_at() {
            Some(at) if at < now && self.is_inner_next() => self.inner.take(),
            _ => None,
        }
    }

    fn is_inner_next(&self) -> bool {
        match (self.inner.next_key(), self.seen.next_key()) {
            (Some(inner), Some(seen)) => inner < seen,
            (inner, _) => inner.is_some(),
        }
    }
}
