//! What the scheduler knows of tasks: how long they think between requests, how far apart these are, whether they exit.

use crate::block::Sector;
use crate::scheduler::anticipatory::tunables::Version;

/// A mean that forgets: 1.0 is 256, and each new sample counts an eighth (in the first version a quarter).
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Mean {
    samples: u64,
    total: u64,
    mean: u64,
}

impl Mean {
    pub(super) fn add(&mut self, version: Version, value: u64) {
        let keep = match version {
            Version::First => 3,
            Version::Linux2_6_32 => 7,
        };
        self.samples = (keep * self.samples + 256) / (keep + 1);
        self.total = (keep * self.total + 256 * value) / (keep + 1);
        self.mean = (self.total + 128) / self.samples;
    }

    pub(super) fn get(&self) -> Option<u64> {
        (self.samples > 0).then_some(self.mean)
    }

    fn samples(&self) -> u64 {
        self.samples
    }
}

#[derive(Clone, Debug, Default)]
pub(super) struct Habits {
    pub(super) queued: u32,
    pub(super) dispatched: u32,
    /// Where its last request ended.
    pub(super) last_sector: Option<Sector>,
    /// When its last request completed, in ticks.
    pub(super) last_end: Option<u64>,
    pub(super) think: Mean,
    pub(super) seek: Mean,
    pub(super) exited: bool,
}

impl Habits {
    /// A request at that sector, now. Distances are clipped so that one long way does not hide many short ones.
    pub(super) fn note_seek(&mut self, version: Version, start: Sector) {
        let Some(last) = self.last_sector else {
            return;
        };
        let few = match version {
            Version::First => 400,
            Version::Linux2_6_32 => 60,
        };
        let beyond = if self.seek.samples() <= few {
            2 * 1024 * 1024
        } else {
            2 * 1024 * 64
        };
        let limit = self.seek.get().unwrap_or(0) * 4 + beyond;
        self.seek.add(version, last.abs_diff(start).min(limit));
    }
}

/// What is true of tasks that are not known yet. Probabilities: 1.0 is 256.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Strangers {
    /// That a task exits instead of going on.
    pub(super) exit: u64,
    /// That, when one has, nobody continues where it stopped.
    pub(super) no_cooperation: u64,
    pub(super) think: Mean,
    pub(super) seek: Mean,
}

/// One more observation of something that did, or did not, happen.
pub(super) fn observe(probability: &mut u64, happened: bool) {
    *probability = (7 * *probability + if happened { 256 } else { 0 }) / 8;
}
