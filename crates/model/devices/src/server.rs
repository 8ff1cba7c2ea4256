//! Servers that take what comes in order of arrival. When each piece of work ends is known when it arrives.

use block_layer::SECTOR_BYTES;
use events::time::{SECOND, Time};

/// Identical servers with one queue before them.
#[derive(Clone, Debug)]
pub(super) struct Servers {
    free_at: Vec<Time>,
}

/// Moves data at a rate, a piece after the other.
#[derive(Clone, Debug)]
pub(super) struct Link {
    ns_per_sector: f64,
    /// What each piece takes in addition.
    piece_ns: Time,
    free_at: Time,
}

impl Servers {
    pub(super) fn new(count: u32) -> Servers {
        Servers { free_at: vec![0; count as usize] }
    }

    /// When work that arrives at `now` is done.
    #[inline]
    pub(super) fn serve(&mut self, now: Time, work_ns: Time) -> Time {
        let soonest = self.free_at.iter_mut().min().expect("at least one server, as specified");
        *soonest = now.max(*soonest) + work_ns;
        *soonest
    }
}

impl Link {
    pub(super) fn new(bytes_per_s: u64) -> Link {
        Link { ns_per_sector: SECTOR_BYTES as f64 * SECOND as f64 / bytes_per_s as f64, piece_ns: 0, free_at: 0 }
    }

    /// Each piece takes this long, besides what its data take.
    pub(super) fn with_pieces_of(self, piece_ns: Time) -> Link {
        Link { piece_ns, ..self }
    }

    /// When data that are ready at `now` have crossed.
    #[inline]
    pub(super) fn carry(&mut self, now: Time, sectors: u64) -> Time {
        self.free_at = now.max(self.free_at) + self.carry_ns(sectors);
        self.free_at
    }

    /// How long they take by themselves.
    #[inline]
    pub(super) fn carry_ns(&self, sectors: u64) -> Time {
        self.piece_ns + (sectors as f64 * self.ns_per_sector) as Time
    }

    #[inline]
    pub(super) fn free_at(&self) -> Time {
        self.free_at
    }

    /// Nothing crosses before `at`.
    #[inline]
    pub(super) fn keep_until(&mut self, at: Time) {
        self.free_at = self.free_at.max(at);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_servers_work_at_once_and_the_third_waits() {
        let mut servers = Servers::new(2);
        assert_eq!(servers.serve(0, 10), 10);
        assert_eq!(servers.serve(1, 10), 11);
        assert_eq!(servers.serve(2, 10), 20);
    }

    #[test]
    fn a_link_carries_at_its_rate() {
        let mut link = Link::new(512_000_000);
        assert_eq!(link.carry(0, 100), 100_000);
        assert_eq!(link.carry(50_000, 100), 200_000);
    }
}
