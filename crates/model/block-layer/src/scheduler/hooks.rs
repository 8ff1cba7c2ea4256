//! What a scheduler of blk-mq costs CPUs: its hooks, and the locks that they take.
//!
//! Source: `Documentation/block/bfq-iosched.rst` of 4.20 and later: insertion, dispatch and completion of a request together
//! take 1.9 us with BFQ and 0.7 us with mq-deadline on an i7-2760QM of 2.4 GHz, all under one lock; here as cycles of that
//! clock. Where the locks are is in `mq-deadline.c`, `bfq-iosched.c` and `kyber-iosched.c` of 5.10. How the hooks share
//! the time, what looking for a merge costs, all of Kyber's costs, and how many cache lines come with a lock are inferred.

use events::time::{SECOND, Time};

/// The cost of one request, in cycles; each part but Kyber's insertion is under the lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hooks {
    /// Looking for a request that a bio could join.
    pub merge_cycles: u32,
    /// Taking a request in.
    pub insert_cycles: u32,
    /// Choosing one for the device.
    pub dispatch_cycles: u32,
    /// Hearing that one is done.
    pub complete_cycles: u32,
    /// What a CPU has to hold for that.
    pub lock: HookLock,
    /// Cache lines of what the lock protects, itself included.
    pub lines: u16,
}

/// The extent of a scheduler's lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HookLock {
    /// One for the drive.
    Drive,
    /// One for each hardware queue; the lines are the drive's (Kyber's tokens).
    HardwareQueue,
}

impl Hooks {
    /// No scheduler: what blk-mq itself does is in the cost of a call.
    pub const NONE: Hooks = Hooks {
        merge_cycles: 0,
        insert_cycles: 0,
        dispatch_cycles: 0,
        complete_cycles: 0,
        lock: HookLock::HardwareQueue,
        lines: 0,
    };

    /// 0.7 us: sorting in, and choosing from sorted and FIFO lists.
    pub const MQ_DEADLINE: Hooks = Hooks {
        merge_cycles: 200,
        insert_cycles: 840,
        dispatch_cycles: 840,
        complete_cycles: 0,
        lock: HookLock::Drive,
        lines: 4,
    };

    /// 1.9 us: the same by queue, with the service tree, budgets and the peak rate.
    pub const BFQ: Hooks = Hooks {
        merge_cycles: 300,
        insert_cycles: 1_824,
        dispatch_cycles: 1_824,
        complete_cycles: 912,
        lock: HookLock::Drive,
        lines: 8,
    };

    /// FIFOs of CPUs and hardware queues, and tokens from a bitmap of the drive.
    pub const KYBER: Hooks = Hooks {
        merge_cycles: 100,
        insert_cycles: 200,
        dispatch_cycles: 400,
        complete_cycles: 150,
        lock: HookLock::HardwareQueue,
        lines: 1,
    };

    /// The cost of a request's whole way, for CPUs that count no cycles: at 2.4 GHz unless they have a clock.
    pub fn request_ns(&self, clock_hz: Option<u64>) -> Time {
        let parts = [self.merge_cycles, self.insert_cycles, self.dispatch_cycles, self.complete_cycles];
        let cycles: u64 = parts.into_iter().map(u64::from).sum();
        cycles * SECOND / clock_hz.unwrap_or(MEASURED_AT_HZ)
    }

    /// Before a request is at the device: what its call has to do.
    pub fn submit_cycles(&self) -> u32 {
        self.merge_cycles + self.insert_cycles + self.dispatch_cycles
    }
}

const MEASURED_AT_HZ: u64 = 2_400_000_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hooks_take_what_was_measured() {
        let hooks_ns = |hooks: Hooks| {
            let without = Hooks { merge_cycles: 0, ..hooks };
            without.request_ns(None)
        };
        assert_eq!(hooks_ns(Hooks::MQ_DEADLINE), 700);
        assert_eq!(hooks_ns(Hooks::BFQ), 1_900);
        assert_eq!(hooks_ns(Hooks::NONE), 0);
        let at_4_8_ghz = Hooks::BFQ.request_ns(Some(4_800_000_000));
        assert_eq!(at_4_8_ghz, Hooks::BFQ.request_ns(None) / 2);
    }
}
