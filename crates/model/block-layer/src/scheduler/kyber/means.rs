//! Kyber of 4.12 to 4.19: the mean latencies of reads and of sync writes, and what follows from them for the tokens.
//!
//! Source: `block/kyber-iosched.c` of 4.14.

use events::time::{MILLISECOND, Time};

/// How a mean stands to its target.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Status {
    /// Twice the target, or more.
    Awful,
    Bad,
    Good,
    /// Half of the target, or less.
    Great,
}

/// Latencies of each domain at the device, from a slow request on for a while.
#[derive(Clone, Debug, Default)]
pub(super) struct Means {
    /// While latencies are added up: until when.
    pub(super) until: Option<Time>,
    sums: [Sum; 3],
}

#[derive(Clone, Copy, Debug, Default)]
struct Sum {
    samples: u64,
    total_ns: Time,
}

/// After one slow request.
const FIRST_NS: Time = 10 * MILLISECOND;
/// While the targets are missed, or other requests still have fewer tokens.
const AGAIN_NS: Time = 100 * MILLISECOND;

impl Means {
    /// A request has taken this time at the device. `target_ns`: None, of other requests.
    pub(super) fn record(&mut self, now: Time, domain: usize, took_ns: Time, target_ns: Option<Time>) {
        if self.until.is_some() {
            let sum = &mut self.sums[domain];
            sum.samples += 1;
            sum.total_ns += took_ns;
        } else if target_ns.is_some_and(|target_ns| took_ns > target_ns) {
            self.until = Some(now + FIRST_NS);
        }
    }

    /// The time is over (`kyber_stat_timer_fn`): the tokens from now on, of reads, sync writes and others.
    pub(super) fn adjust(
        &mut self,
        now: Time,
        targets_ns: [Time; 2],
        depth: [u32; 3],
        depth_max: [u32; 3],
    ) -> [u32; 3] {
        let status = |domain: usize| self.sums[domain].status(targets_ns[domain]);
        let (read, write) = (status(0), status(1));
        let has_others = self.sums[2].samples > 0;
        self.sums = Default::default();
        let mut new = [
            between(depth[0], read, write),
            between(depth[1], write, read),
            of_others(depth[2], read, write, has_others),
        ];
        for (depth, most) in new.iter_mut().zip(depth_max) {
            *depth = (*depth).clamp(1, most);
        }
        let is_bad = |status: Option<Status>| status.is_some_and(|status| status <= Status::Bad);
        let goes_on = is_bad(read) || is_bad(write) || new[2] < depth_max[2];
        self.until = goes_on.then_some(now + AGAIN_NS);
        new
    }
}

impl Sum {
    /// `kyber_lat_status`. None: no request of the domain has completed.
    fn status(self, target_ns: Time) -> Option<Status> {
        let mean_ns = self.total_ns.checked_div(self.samples)?;
        Some(if mean_ns >= 2 * target_ns {
            Status::Awful
        } else if mean_ns > target_ns {
            Status::Bad
        } else if mean_ns <= target_ns / 2 {
            Status::Great
        } else {
            Status::Good
        })
    }
}

/// Reads and sync writes (`kyber_adjust_rw_depth`): a kind that meets its target gives up tokens if the other misses
/// its own.
fn between(depth: u32, this: Option<Status>, other: Option<Status>) -> u32 {
    use Status::{Awful, Bad, Good, Great};
    let less = |part: u32| depth - (depth / part).max(1);
    match (this, other) {
        (None, _) => depth,
        (Some(_), None) => depth + 1,
        (Some(Good | Great), Some(Good | Great)) | (Some(Bad | Awful), Some(Bad | Awful)) => depth,
        (Some(Good), Some(Awful)) => less(4),
        (Some(Good), _) => less(8),
        (Some(Great), Some(Awful)) => depth / 2,
        (Some(Great), _) => less(4),
        (Some(Awful), Some(Great)) => depth + 2,
        (Some(Awful | Bad), _) => depth + 1,
    }
}

/// Others are held back only if neither reads nor sync writes do well (`kyber_adjust_other_depth`).
fn of_others(depth: u32, read: Option<Status>, write: Option<Status>, has_samples: bool) -> u32 {
    match read.max(write) {
        None => depth + 2,
        Some(_) if !has_samples => depth,
        Some(Status::Great) => depth + 2,
        Some(Status::Good) => depth + 1,
        Some(Status::Bad) => depth - (depth / 4).max(1),
        Some(Status::Awful) => depth / 2,
    }
}
