//! Who is in whose way: operations in flight, for jobs that must not race with themselves.

use crate::job::{Op, OpKind};

/// The reads and writes in flight. Lists are as long as the queue is deep, so a scan is fast enough.
#[derive(Clone, Debug, Default)]
pub(crate) struct Exclusion {
    in_flight: Vec<Claim>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Claim {
    file: u32,
    start: u64,
    end: u64,
    writes: bool,
}

impl Exclusion {
    /// Whether `op` overlaps an operation in flight and one of the two writes.
    pub fn conflicts(&self, op: &Op) -> bool {
        let wanted = Claim::of(op);
        self.in_flight.iter().any(|held| {
            held.file == wanted.file
                && held.start < wanted.end
                && wanted.start < held.end
                && (held.writes || wanted.writes)
        })
    }

    pub fn claim(&mut self, op: &Op) {
        self.in_flight.push(Claim::of(op));
    }

    pub fn release(&mut self, op: &Op) {
        let claim = Claim::of(op);
        if let Some(index) = self.in_flight.iter().position(|held| *held == claim) {
            self.in_flight.swap_remove(index);
        }
    }
}

impl Claim {
    fn of(op: &Op) -> Claim {
        Claim {
            file: op.file,
            start: op.offset,
            end: op.offset + u64::from(op.bytes),
            writes: op.kind == OpKind::Write,
        }
    }
}
