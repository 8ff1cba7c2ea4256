//! The events that a tapped queue emits.

use super::RequestQueue;
use crate::event::Tap;
use crate::pool::Pool;
use crate::{EventKind, QueueEvent, RequestId};
use events::time::Time;

impl RequestQueue {
    /// From now on events are kept for `take_events`, which has to be called now and then, under that number for the
    /// drive; the messages of the scheduler are among them.
    pub fn tap(&mut self, drive: u16) {
        self.tap.open(drive, self.plug.is_plugged());
        self.scheduler.keep_messages(true);
    }

    /// No more events are kept.
    pub fn untap(&mut self) {
        self.tap = Tap::default();
        self.scheduler.keep_messages(false);
    }

    /// Appends the events since the last time, in the order in which they happened.
    pub fn take_events(&mut self, into: &mut Vec<QueueEvent>) {
        self.tap.drain(into);
    }

    /// The caller that unplugs does not report when: the event is emitted with the next step, which unplugging leads to
    /// at once. `by`: the request with which the queue was plugged.
    #[inline]
    pub(super) fn emit_plug(&mut self, now: Time, by_timer: bool, by: Option<RequestId>) {
        if self.tap.is_on() {
            let requests = self.pools.iter().map(Pool::allocated).sum();
            let by = by.map(|id| &self.requests[id]);
            self.tap.plug(now, self.plug.is_plugged(), requests, by_timer, by);
        }
    }

    #[inline]
    pub(super) fn emit_request(&mut self, now: Time, kind: EventKind, id: RequestId) {
        if self.tap.is_on() {
            self.tap.request(now, kind, &self.requests[id]);
        }
    }

    #[inline]
    pub(super) fn emit_messages(&mut self) {
        if self.tap.is_on() {
            self.tap.drain_messages(self.scheduler.as_mut());
        }
    }
}
