//! Send contexts: a ring of what was posted and is not known to be done, and which Sends ask for a completion.

use super::task::TaskId;
use events::time::Time;

#[derive(Clone, Debug)]
pub(super) struct SendRing {
    contexts: Vec<SendContext>,
    /// The last one that was taken, and the last one that came back.
    head: u16,
    tail: u16,
    /// Unsignalled Sends between two signalled ones (`re_send_batch`), and those left.
    batch: u16,
    unsignalled_left: u16,
}

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct SendContext {
    /// Whose fragments have to be unmapped, if any.
    pub(super) mapped: Option<(TaskId, u16)>,
    pub(super) signalled_since: Option<Time>,
}

/// `RPCRDMA_MAX_BC_REQUESTS`, as the ring counts it.
const BESIDE_SLOTS: u16 = 2;

impl SendRing {
    pub(super) fn new(slots: u16) -> SendRing {
        let batch = slots / 8;
        SendRing {
            contexts: vec![SendContext::default(); usize::from(slots + BESIDE_SLOTS)],
            head: 0,
            tail: 0,
            batch,
            unsignalled_left: batch,
        }
    }

    /// A full ring keeps one context empty, to differ from an empty ring.
    #[inline]
    pub(super) fn has_room(&self) -> bool {
        self.after(self.head) != self.tail
    }

    /// `rpcrdma_sendctx_get_locked`.
    #[inline]
    pub(super) fn take(&mut self, mapped: Option<(TaskId, u16)>) -> u16 {
        debug_assert!(self.has_room());
        self.head = self.after(self.head);
        self.contexts[usize::from(self.head)] = SendContext { mapped, signalled_since: None };
        self.head
    }

    /// Whether this Send reports its completion: when something is mapped, and otherwise when the batch is over.
    #[inline]
    pub(super) fn signals(&mut self, now: Time, context: u16) -> bool {
        let context = &mut self.contexts[usize::from(context)];
        if context.mapped.is_some() || self.unsignalled_left == 0 {
            self.unsignalled_left = self.batch;
            context.signalled_since = Some(now);
            return true;
        }
        self.unsignalled_left -= 1;
        false
    }

    /// Whether the context, or one before it, has not come back.
    #[inline]
    pub(super) fn holds(&self, last: u16) -> bool {
        self.tail != last
    }

    /// The oldest one comes back (`rpcrdma_sendctx_put_locked`).
    #[inline]
    pub(super) fn release_oldest(&mut self) -> SendContext {
        self.tail = self.after(self.tail);
        std::mem::take(&mut self.contexts[usize::from(self.tail)])
    }

    /// Fragments of the contexts up to `last`.
    #[inline]
    pub(super) fn fragments_until(&self, last: u16) -> u16 {
        let mut at = self.tail;
        let mut fragments = 0;
        while at != last {
            at = self.after(at);
            fragments += self.contexts[usize::from(at)].mapped.map_or(0, |(_, count)| count);
        }
        fragments
    }

    pub(super) fn signalled_since(&self) -> impl Iterator<Item = Time> {
        self.contexts.iter().filter_map(|context| context.signalled_since)
    }

    #[inline]
    fn after(&self, context: u16) -> u16 {
        let next = context + 1;
        if usize::from(next) == self.contexts.len() { 0 } else { next }
    }
}
