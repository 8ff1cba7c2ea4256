//! Who is in whose way: operations in flight, for jobs that must not race with themselves.

use crate::op::Op;

/// The reads and writes in flight. Lists are as long as the queue is deep, so a scan is fast enough.
#[derive(Clone, Debug, Default)]
pub(crate) struct Exclusion {
    in_flight: Vec<Claim>,
    /// Drawn, but in the way of an operation in flight.
    held: Option<Op>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Claim {
    file: u32,
    start: u64,
    end: u64,
    writes: bool,
}

impl Exclusion {
    /// The operation that had to wait before, if any: it goes first.
    pub fn take_held(&mut self) -> Option<Op> {
        self.held.take()
    }

    /// Claims the operation's range, or keeps the operation for later when it overlaps one in flight and one of the two
    /// writes. Returns whether it may start.
    pub fn admit(&mut self, op: Op) -> bool {
        let wanted = Claim::of(op);
        if self.in_flight.iter().any(|held| held.conflicts(wanted)) {
            self.held = Some(op);
            return false;
        }
        self.in_flight.push(wanted);
        true
    }

    pub fn release(&mut self, op: Op) {
        let claim = Claim::of(op);
        if let Some(index) = self.in_flight.iter().position(|held| *held == claim) {
            self.in_flight.swap_remove(index);
        }
    }

    pub fn is_holding(&self) -> bool {
        self.held.is_some()
    }
}

impl Claim {
    fn of(op: Op) -> Claim {
        Claim { file: op.file, start: op.offset, end: op.offset + u64::from(op.bytes), writes: op.kind.is_write() }
    }

    fn conflicts(self, other: Claim) -> bool {
        self.file == other.file && self.start < other.end && other.start < self.end && (self.writes || other.writes)
    }
}
