//! What time it is on the machine, and what happens when.

use super::cpus::Reminder;
use block_layer::TaskId;
use events::event_queue::EventQueue;
use events::time::Time;

pub(super) struct Clock {
    now: Time,
    events: EventQueue<Event>,
    /// When some I/O last ended.
    progressed_at: Time,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum Event {
    /// The CPUs have something to do by themselves.
    Cpus,
    /// The CPUs have asked for a call now.
    Reminder(Reminder),
    /// A CPU goes offline, or comes back.
    Online(u16, bool),
    Drive(u16),
    Mount(u16),
    /// The filesystem of the drive.
    Filesystem(u16),
    /// Processes that sort.
    Swap,
    Wake(TaskId),
    Cache,
    /// Whoever runs the world is asked whether to stop.
    StopPoll,
}

impl Clock {
    pub(super) fn new() -> Clock {
        Clock { now: 0, events: EventQueue::new(), progressed_at: 0 }
    }

    #[inline]
    pub(super) fn now(&self) -> Time {
        self.now
    }

    /// It is that time from here on.
    #[inline]
    pub(super) fn go_to(&mut self, at: Time) {
        self.now = at;
    }

    #[inline]
    pub(super) fn put(&mut self, at: Time, event: Event) {
        self.events.put(at, event);
    }

    #[inline]
    pub(super) fn next_at(&self) -> Option<Time> {
        self.events.next_at()
    }

    #[inline]
    pub(super) fn take(&mut self) -> Option<(Time, Event)> {
        self.events.take()
    }

    /// Some I/O has ended, or a task that waited for none has come back.
    #[inline]
    pub(super) fn progressed(&mut self, now: Time) {
        self.progressed_at = now;
    }

    /// How long, at that time, no I/O has ended.
    #[inline]
    pub(super) fn without_progress(&self, at: Time) -> Time {
        at.saturating_sub(self.progressed_at)
    }
}
