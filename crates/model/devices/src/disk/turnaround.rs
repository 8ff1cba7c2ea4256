//! What the mechanism needs between two transfers that do not continue one another, however near they are.

use block_layer::Sector;
use events::time::Time;

/// After the last transfer.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Turnaround {
    /// The sector with which it would continue.
    next: Sector,
    /// When it may begin elsewhere.
    elsewhere_at: Time,
}

impl Turnaround {
    pub(super) fn after(next: Sector, elsewhere_at: Time) -> Turnaround {
        Turnaround { next, elsewhere_at }
    }

    /// When a transfer from that sector on can be prepared that would otherwise be at `ready_at`.
    #[inline]
    pub(super) fn ready_at(&self, start: Sector, ready_at: Time) -> Time {
        if start == self.next { ready_at } else { ready_at.max(self.elsewhere_at) }
    }
}
