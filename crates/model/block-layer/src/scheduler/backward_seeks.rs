//! Which of two requests is the better one to go to.

use crate::{RequestId, Requests, Sector};

/// How far back schedulers that serve the nearest go, and what that costs.
#[derive(Clone, Copy, Debug)]
pub struct BackwardSeekRule {
    pub sectors_max: u64,
    /// How many times as far a step backwards counts.
    pub penalty: u64,
}

impl BackwardSeekRule {
    /// Sync before async, metadata before data, then the nearer (`cfq_choose_req`, `bfq_choose_req`).
    pub fn better(
        self,
        requests: &Requests,
        from: Sector,
        one: Option<RequestId>,
        other: Option<RequestId>,
    ) -> Option<RequestId> {
        let (Some(a), Some(b)) = (one, other) else {
            return one.or(other);
        };
        let rank = |id| (requests[id].sync, requests[id].metadata);
        if rank(a) == rank(b) {
            self.nearer(requests, from, one, other)
        } else {
            Some(if rank(a) > rank(b) { a } else { b })
        }
    }

    /// `as_choose_req`.
    pub fn nearer(
        self,
        requests: &Requests,
        from: Sector,
        one: Option<RequestId>,
        other: Option<RequestId>,
    ) -> Option<RequestId> {
        let (Some(a), Some(b)) = (one, other) else {
            return one.or(other);
        };
        if self.first_comes_first(from, requests[a].start, requests[b].start) { one } else { other }
    }

    /// Whether, from a position, the first of two sectors is to be gone to before the second: the nearer, the higher of
    /// equally near ones. Too far back is after all that lies ahead, and then the lower comes first.
    fn first_comes_first(self, from: Sector, first: Sector, second: Sector) -> bool {
        match (self.cost(from, first), self.cost(from, second)) {
            (Some(x), Some(y)) if x != y => x < y,
            (Some(_), Some(_)) => first >= second,
            (x, None) if x.is_some() => true,
            (None, Some(_)) => false,
            _ => first <= second,
        }
    }

    /// None: too far back.
    fn cost(self, from: Sector, start: Sector) -> Option<u64> {
        match from.checked_sub(start) {
            None | Some(0) => Some(start - from),
            Some(back) => (back <= self.sectors_max).then(|| back.saturating_mul(self.penalty)),
        }
    }
}
