//! What threads report while they run, and what they are ordered to do.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::Relaxed};

use crate::marker::Window;

#[derive(Debug)]
pub struct PhaseState {
    pub stop: AtomicBool,
    /// Some job is done: where a phase that ends with its first job ends.
    pub first_done: AtomicBool,
    /// Jobs whose end stops the others and that are not done yet; 0: the others stop.
    to_stop: AtomicUsize,
    pub groups: Vec<Progress>,
    pub window: Window,
}

/// One group's counters, on cache lines of their own.
#[derive(Debug, Default)]
#[repr(align(128))]
pub struct Progress {
    ops: AtomicU64,
    bytes: AtomicU64,
    errors: AtomicU64,
    /// An f64; NaN when no bound determines it.
    fraction: AtomicU64,
}

#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Counts {
    pub ops: u64,
    pub bytes: u64,
    pub errors: u64,
    pub fraction: Option<f64>,
}

impl PhaseState {
    /// `to_stop`: after how many ends of jobs that stop the others they are stopped.
    pub fn new(groups: usize, to_stop: usize) -> PhaseState {
        PhaseState {
            stop: AtomicBool::new(false),
            first_done: AtomicBool::new(false),
            to_stop: AtomicUsize::new(to_stop),
            groups: (0..groups).map(|_| Progress::default()).collect(),
            window: Window::new(groups),
        }
    }

    /// A job is done; `stops`: its end stops the others.
    pub fn job_done(&self, stops: bool) {
        self.first_done.store(true, Relaxed);
        if stops {
            let _ = self.to_stop.fetch_update(Relaxed, Relaxed, |left| left.checked_sub(1));
        }
    }

    /// Whether jobs that have no end yet are to stop, because others are done.
    pub fn others_are_done(&self) -> bool {
        self.to_stop.load(Relaxed) == 0
    }

    /// The counts of all groups; the fraction is the furthest-behind group's.
    pub fn counts(&self) -> Counts {
        let groups = self.groups.iter().map(Progress::load);
        groups
            .reduce(|a, b| Counts {
                ops: a.ops + b.ops,
                bytes: a.bytes + b.bytes,
                errors: a.errors + b.errors,
                fraction: a.fraction.zip(b.fraction).map(|(a, b)| a.min(b)),
            })
            .unwrap_or_default()
    }
}

impl Progress {
    pub fn store(&self, counts: Counts) {
        self.ops.store(counts.ops, Relaxed);
        self.bytes.store(counts.bytes, Relaxed);
        self.errors.store(counts.errors, Relaxed);
        self.fraction.store(counts.fraction.unwrap_or(f64::NAN).to_bits(), Relaxed);
    }

    fn load(&self) -> Counts {
        let fraction = f64::from_bits(self.fraction.load(Relaxed));
        Counts {
            ops: self.ops.load(Relaxed),
            bytes: self.bytes.load(Relaxed),
            errors: self.errors.load(Relaxed),
            fraction: (!fraction.is_nan()).then_some(fraction),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_whole_is_the_sum_and_as_far_as_the_last_group() {
        let shared = PhaseState::new(2, usize::MAX);
        shared.groups[0].store(Counts { ops: 1, bytes: 10, errors: 0, fraction: Some(0.5) });
        shared.groups[1].store(Counts { ops: 2, bytes: 20, errors: 3, fraction: Some(0.25) });
        assert_eq!(shared.counts(), Counts { ops: 3, bytes: 30, errors: 3, fraction: Some(0.25) });
        shared.groups[0].store(Counts::default());
        assert_eq!(shared.counts().fraction, None);
    }

    #[test]
    fn the_others_stop_when_as_many_are_done_as_it_takes() {
        let shared = PhaseState::new(1, 2);
        shared.job_done(true);
        shared.job_done(false);
        assert!(!shared.others_are_done());
        shared.job_done(true);
        shared.job_done(true);
        assert!(shared.others_are_done());
    }
}
