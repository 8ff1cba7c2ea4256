//! How many requests are where, over time.

use super::report::{Columns, Series};
use crate::intervals::{Absorb, Intervals};

#[derive(Clone, Debug)]
pub(super) struct Levels {
    started_ns: u64,
    intervals: Intervals<Interval>,
    /// Requests that the driver has, and bios and requests that wait to be issued, since `since_ns`.
    in_device: u64,
    waiting: u64,
    since_ns: u64,
}

#[derive(Clone, Debug, Default)]
struct Interval {
    /// Requests times nanoseconds.
    depth_ns: u128,
    depth_max: u64,
    waiting_ns: u128,
    completed: u64,
    bytes: u64,
    merges: u64,
}

impl Levels {
    pub(super) fn new(started_ns: u64, interval_ns: u64) -> Levels {
        Levels {
            started_ns,
            intervals: Intervals::new(started_ns, interval_ns),
            in_device: 0,
            waiting: 0,
            since_ns: started_ns,
        }
    }

    pub(super) fn change(&mut self, now_ns: u64, in_device: i64, waiting: i64) {
        let (depth, waited) = (self.in_device, self.waiting);
        self.intervals.spread(self.since_ns, now_ns, |interval, length_ns| {
            interval.depth_ns += u128::from(depth) * u128::from(length_ns);
            interval.waiting_ns += u128::from(waited) * u128::from(length_ns);
            interval.depth_max = interval.depth_max.max(depth);
        });
        self.since_ns = self.since_ns.max(now_ns);
        self.in_device = self.in_device.saturating_add_signed(in_device);
        self.waiting = self.waiting.saturating_add_signed(waiting);
    }

    pub(super) fn merged(&mut self, now_ns: u64) {
        self.intervals.at(now_ns).merges += 1;
    }

    pub(super) fn completed(&mut self, now_ns: u64, bytes: u64) {
        let interval = self.intervals.at(now_ns);
        interval.completed += 1;
        interval.bytes += bytes;
    }

    pub(super) fn transferred(&mut self, now_ns: u64, bytes: u64) {
        self.intervals.at(now_ns).bytes += bytes;
    }

    /// Mean and maximum of requests that the driver has; nothing more comes after `ended_ns`.
    pub(super) fn depth(&mut self, ended_ns: u64) -> (f64, u64) {
        self.change(ended_ns, 0, 0);
        let items = self.intervals.items();
        let depth_ns: u128 = items.iter().map(|item| item.depth_ns).sum();
        let elapsed_ns = ended_ns.saturating_sub(self.started_ns);
        let mean = if elapsed_ns > 0 { depth_ns as f64 / elapsed_ns as f64 } else { 0.0 };
        (mean, items.iter().map(|item| item.depth_max).max().unwrap_or(0))
    }

    pub(super) fn series(&self, ended_ns: u64) -> Series {
        let elapsed_ns = ended_ns.saturating_sub(self.started_ns);
        let (at_ns, width_ns) = (self.intervals.starts_ns(), self.intervals.width_ns());
        let lengths_ns = at_ns.iter().map(|start_ns| elapsed_ns.saturating_sub(*start_ns).clamp(1, width_ns));
        let lengths_ns: Vec<f64> = lengths_ns.map(|length_ns| length_ns as f64).collect();
        let items = || self.intervals.items().iter().zip(&lengths_ns);
        let mean = |total: fn(&Interval) -> f64| items().map(|(item, length_ns)| total(item) / length_ns).collect();
        let rate = |count: fn(&Interval) -> u64| {
            items().map(|(item, length_ns)| count(item) as f64 * NS_PER_S / length_ns).collect()
        };
        Series {
            columns: Columns {
                length_s: lengths_ns.iter().map(|length_ns| length_ns / NS_PER_S).collect(),
                queue_depth: mean(|item| item.depth_ns as f64),
                queue_depth_max: items().map(|(item, _)| item.depth_max).collect(),
                requests_waiting: mean(|item| item.waiting_ns as f64),
                requests_completed_per_s: rate(|item| item.completed),
                bytes_completed_per_s: rate(|item| item.bytes),
                merges_per_s: rate(|item| item.merges),
            },
            at_ns,
        }
    }
}

impl Absorb for Interval {
    fn absorb(&mut self, later: Interval) {
        self.depth_ns += later.depth_ns;
        self.depth_max = self.depth_max.max(later.depth_max);
        self.waiting_ns += later.waiting_ns;
        self.completed += later.completed;
        self.bytes += later.bytes;
        self.merges += later.merges;
    }
}

const NS_PER_S: f64 = 1e9;
