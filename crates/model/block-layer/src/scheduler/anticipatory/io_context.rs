//! The scheduler's statistics of tasks: think times between requests, their distances, whether tasks exit.

use crate::scheduler::mean::Mean;
use crate::{Request, Sector};

/// A new sample replaces an eighth of a mean.
const KEEP: u64 = 7;

#[derive(Clone, Debug, Default)]
pub(super) struct IoContext {
    pub(super) queued: u32,
    /// Where its last sync request ended.
    last_sector: Option<Sector>,
    /// When its last sync request completed, in ticks.
    pub(super) last_end: Option<u64>,
    pub(super) think: Mean,
    pub(super) seek: Mean,
    pub(super) exited: bool,
}

impl IoContext {
    /// A sync request of the task, or one that does as well as its own (`as_update_thinktime`, `as_update_seekdist`): how
    /// long it thought, in ticks up to `cap`, and how far it went.
    pub(super) fn learn(&mut self, request: &Request, now: u64, cap: u64, strangers: &mut UnknownTaskStatistics) {
        let last_sector = self.last_sector.replace(request.end());
        if last_sector.is_none() && self.last_end.is_none() {
            return;
        }
        let think = match self.last_end {
            Some(last) if self.queued == 0 => now.saturating_sub(last).min(cap),
            _ => 0,
        };
        if self.think.get().is_none() {
            strangers.think.add(think);
            observe(&mut strangers.exit, false);
        }
        self.think.add(KEEP, think);
        let distance = last_sector.unwrap_or(0).abs_diff(request.start);
        if self.seek.get().is_none() {
            strangers.seek.add(distance);
        }
        self.seek.add(KEEP, distance.min(self.seek_max()));
    }

    /// Distances are clipped so that one long way does not hide many short ones.
    fn seek_max(&self) -> u64 {
        let beyond = if self.seek.samples() <= 60 { 2 * 1024 * 1024 } else { 2 * 1024 * 64 };
        self.seek.get().unwrap_or(0) * 4 + beyond
    }
}

/// What is true of tasks that are not known yet. Probabilities: 1.0 is 256.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct UnknownTaskStatistics {
    /// That a task exits instead of going on.
    pub(super) exit: u64,
    /// That, when one has, nobody continues where it stopped.
    pub(super) no_cooperation: u64,
    pub(super) think: FirstMean,
    pub(super) seek: FirstMean,
}

/// A mean of first samples, which grows from nothing: an eighth of each counts.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct FirstMean(u64);

impl FirstMean {
    fn add(&mut self, value: u64) {
        self.0 = (7 * self.0 + 256 * value) / 8;
    }

    pub(super) fn get(self) -> u64 {
        self.0 / 256
    }
}

/// One more observation of something that did, or did not, happen.
pub(super) fn observe(probability: &mut u64, happened: bool) {
    *probability = (7 * *probability + if happened { 256 } else { 0 }) / 8;
}
