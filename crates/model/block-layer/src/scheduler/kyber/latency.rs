//! How long requests of one domain took, in quarters of what they should.

use events::time::{SECOND, Time};

const BUCKETS: usize = 8;
/// From this bucket on a latency is above its target.
const SLOW: usize = 4;
/// Enough to judge by; with fewer, a second after the first.
const SAMPLES: u32 = 500;

type Histogram = [u32; BUCKETS];

#[derive(Clone, Debug, Default)]
pub(super) struct Latencies {
    /// From the request's making to its completion.
    total: Histogram,
    /// From its being issued.
    device: Histogram,
    /// When few samples have to do. One for both histograms, as in the kernel, so that a look at the one may put the
    /// look at the other off.
    judged_at: Option<Time>,
    /// The total's 99th percentile when nothing was slow, to be used once when something is.
    remembered: Option<usize>,
}

impl Latencies {
    /// `add_latency_sample`.
    pub(super) fn record(&mut self, total_ns: Time, device_ns: Time, target_ns: Time) {
        self.total[bucket(total_ns, target_ns)] += 1;
        self.device[bucket(device_ns, target_ns)] += 1;
    }

    /// Whether one request in ten took longer at the device than it should.
    pub(super) fn device_is_slow(&mut self, now: Time) -> bool {
        percentile(&mut self.device, &mut self.judged_at, 90, now).is_some_and(|bucket| bucket >= SLOW)
    }

    /// By what to multiply the domain's depth, in quarters; None: leave it.
    pub(super) fn quarters_of_target(&mut self, now: Time, congested: bool) -> Option<u32> {
        let seen = percentile(&mut self.total, &mut self.judged_at, 99, now);
        let bucket = if congested {
            let remembered = self.remembered.take();
            seen.or(remembered)
        } else {
            if seen.is_some() {
                self.remembered = seen;
            }
            seen
        }?;
        (congested || bucket >= SLOW).then_some(bucket as u32 + 1)
    }
}

fn bucket(latency_ns: Time, target_ns: Time) -> usize {
    let quarter = (target_ns / 4).max(1);
    (latency_ns.saturating_sub(1) / quarter).min(BUCKETS as u64 - 1) as usize
}

/// The bucket of that percentile, once there are enough samples (`calculate_percentile`); the histogram then starts anew.
fn percentile(histogram: &mut Histogram, judged_at: &mut Option<Time>, percent: u32, now: Time) -> Option<usize> {
    let samples: u32 = histogram.iter().sum();
    if samples == 0 {
        return None;
    }
    let at = *judged_at.get_or_insert(now + SECOND);
    if samples < SAMPLES && now < at {
        return None;
    }
    *judged_at = None;
    let mut left = (samples * percent).div_ceil(100);
    let found = histogram[..BUCKETS - 1].iter().position(|&count| {
        let here = count >= left;
        left = left.saturating_sub(count);
        here
    });
    *histogram = [0; BUCKETS];
    Some(found.unwrap_or(BUCKETS - 1))
}
