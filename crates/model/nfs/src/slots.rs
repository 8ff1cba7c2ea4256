//! Request slots with their send buffers, the backlog of tasks that wait for one, and the credits that a server grants.

use std::collections::VecDeque;

use super::task::TaskId;

#[derive(Clone, Debug)]
pub(super) struct Slots {
    /// The last that came back is taken first: its buffer is warm.
    free: Vec<u16>,
    send_buffer_bytes: Vec<u32>,
    backlog: VecDeque<TaskId>,
}

/// The congestion window: as many calls as the last reply granted may be in flight.
#[derive(Clone, Copy, Debug)]
pub(super) struct Credits {
    window: u16,
    used: u16,
}

impl Slots {
    pub(super) fn new(count: u16, send_buffer_bytes: u32) -> Slots {
        Slots {
            free: (0..count).rev().collect(),
            send_buffer_bytes: vec![send_buffer_bytes; usize::from(count)],
            backlog: VecDeque::new(),
        }
    }

    /// `xprt_rdma_alloc_slot`. None: it waits in the backlog.
    #[inline]
    pub(super) fn reserve(&mut self, task: TaskId) -> Option<u16> {
        let slot = self.free.pop();
        if slot.is_none() {
            self.backlog.push_back(task);
        }
        slot
    }

    /// Who has the slot next, if anybody waits (`xprt_rdma_free_slot`).
    #[inline]
    pub(super) fn release(&mut self, slot: u16) -> Option<TaskId> {
        let next = self.backlog.pop_front();
        if next.is_none() {
            self.free.push(slot);
        }
        next
    }

    /// Makes room for what the encoder asks for (`rpcrdma_regbuf_realloc`); a buffer never shrinks. How many bytes were
    /// allocated.
    #[inline]
    pub(super) fn grow(&mut self, slot: u16, bytes: u32) -> u32 {
        let buffer = &mut self.send_buffer_bytes[usize::from(slot)];
        if *buffer >= bytes {
            return 0;
        }
        *buffer = bytes;
        bytes
    }

    pub(super) fn send_buffer_bytes(&self, slot: u16) -> u32 {
        self.send_buffer_bytes[usize::from(slot)]
    }

    pub(super) fn waiting(&self) -> usize {
        self.backlog.len()
    }

    pub(super) fn used(&self) -> usize {
        self.send_buffer_bytes.len() - self.free.len()
    }
}

impl Credits {
    /// One call, until the first reply grants more.
    pub(super) fn new() -> Credits {
        Credits { window: 1, used: 0 }
    }

    #[inline]
    pub(super) fn has_one(&self) -> bool {
        self.used < self.window
    }

    /// `xprt_request_get_cong`.
    #[inline]
    pub(super) fn take(&mut self) {
        self.used += 1;
    }

    #[inline]
    pub(super) fn give_back(&mut self) {
        self.used -= 1;
    }

    #[inline]
    pub(super) fn grant(&mut self, credits: u16) {
        self.window = credits;
    }

    pub(super) fn used(&self) -> u16 {
        self.used
    }
}
