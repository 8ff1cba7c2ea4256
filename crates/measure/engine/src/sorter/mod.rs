//! Sorting as a load on memory: a private mapping filled from a seeded stream and sorted in place, as often as asked.
//!
//! [`Sort::start`] maps and begins; the handle shows progress, stops, and yields the [`SortRecord`]. The interesting
//! case is a mapping larger than the memory that its process may have: every page is touched again at each level of the
//! recursion, until a part fits.

mod pages;
mod quicksort;

use std::sync::Arc;
use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

use base::rng::{Stream, stream};
use serde::{Deserialize, Serialize};

use crate::BUILD_PROFILE;
use crate::clock::{monotonic_ns, unix_ns};
use crate::error::StartError;
use crate::panics;
use crate::usage;
use pages::Pages;
use quicksort::{Stopped, Watch, quicksort};

/// How much is sorted, and how often.
#[derive(Clone, Debug, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SortSpec {
    /// Rounded down to whole numbers of 4 bytes.
    pub bytes: u64,
    /// How often the memory is filled and sorted, at least 1.
    pub passes: u32,
    /// Seeds the numbers.
    pub seed: u64,
}

/// What a sort yielded.
#[derive(Clone, Debug, Serialize, schemars::JsonSchema)]
pub struct SortRecord {
    /// Wall-clock time of the start, in nanoseconds since the Unix epoch.
    pub started_unix_ns: u64,
    /// Nanoseconds from the start to the end of the last pass.
    pub elapsed_ns: u64,
    /// Size of the sorted memory, as used.
    pub bytes: u64,
    /// The times of the passes that were finished.
    pub passes: Vec<PassRecord>,
    /// After each pass the numbers stood in order and were those that had been filled in.
    pub sorted: bool,
    /// Someone called stop().
    pub stopped: bool,
    /// How the engine was compiled: `release` or `debug`.
    pub build_profile: &'static str,
    /// CPU time of the thread in user mode, in nanoseconds.
    pub cpu_user_ns: u64,
    /// CPU time of the thread in the kernel, in nanoseconds.
    pub cpu_system_ns: u64,
    /// Context switches because the thread waited.
    pub context_switches_voluntary: u64,
    /// Context switches because the scheduler took the CPU away.
    pub context_switches_involuntary: u64,
    /// Page faults without I/O.
    pub faults_minor: u64,
    /// Page faults that needed I/O.
    pub faults_major: u64,
}

/// The times of one pass.
#[derive(Clone, Copy, Debug, Serialize, schemars::JsonSchema)]
pub struct PassRecord {
    /// Nanoseconds to fill the memory with numbers.
    pub fill_ns: u64,
    /// Nanoseconds to sort them.
    pub sort_ns: u64,
}

/// How far a sort is.
#[derive(Clone, Copy, Debug, Serialize, schemars::JsonSchema)]
pub struct SortSnapshot {
    /// Nanoseconds since the start.
    pub elapsed_ns: u64,
    /// 0 to 1: numbers that are in their final place, over all passes.
    pub fraction: f64,
}

/// A running sort.
#[derive(Debug)]
pub struct Sort {
    started_ns: u64,
    total: u64,
    shared: Arc<SortState>,
    inbox: Mutex<Inbox>,
}

#[derive(Debug, Default)]
struct SortState {
    stop: AtomicBool,
    placed: AtomicU64,
}

#[derive(Debug)]
struct Inbox {
    receiver: Receiver<SortRecord>,
    finished: Option<SortRecord>,
}

impl Sort {
    /// Maps the memory, which takes none yet, and starts on a thread of its own.
    pub fn start(spec: SortSpec) -> Result<Sort, StartError> {
        let numbers = spec.bytes / size_of::<u32>() as u64;
        let wrong = |what: &str| StartError::Spec(format!("sort: {what}"));
        if numbers == 0 || spec.passes == 0 {
            return Err(wrong("bytes must be at least 4 and passes at least 1; there is nothing to sort"));
        }
        let numbers = usize::try_from(numbers).map_err(|_| wrong("more bytes than can be addressed"))?;
        let pages = Pages::map(numbers).map_err(|error| {
            let what = format!("can't map {} bytes", spec.bytes);
            StartError::os(&error, what, "memory")
        })?;
        let shared = Arc::new(SortState::default());
        let (outbox, receiver) = channel();
        let total = numbers as u64 * u64::from(spec.passes);
        let thread_shared = Arc::clone(&shared);
        std::thread::Builder::new()
            .name("iolab-sort".into())
            .spawn(move || {
                panics::end_the_process();
                // Nobody waits any more when this fails.
                let _ = outbox.send(run(&spec, pages, &thread_shared));
            })
            .map_err(|error| StartError::os(&error, "can't start a thread", "thread"))?;
        Ok(Sort { started_ns: monotonic_ns(), total, shared, inbox: Mutex::new(Inbox { receiver, finished: None }) })
    }

    /// How far the sort is. Never waits.
    pub fn snapshot(&self) -> SortSnapshot {
        SortSnapshot {
            elapsed_ns: monotonic_ns().saturating_sub(self.started_ns),
            fraction: self.shared.placed.load(Relaxed) as f64 / self.total as f64,
        }
    }

    /// The record comes as soon as the pages that are being waited for are there.
    pub fn stop(&self) {
        self.shared.stop.store(true, Relaxed);
    }

    /// None while it runs.
    pub fn wait(&self, timeout: Duration) -> Option<SortRecord> {
        let mut inbox = self.inbox.lock().unwrap_or_else(PoisonError::into_inner);
        if inbox.finished.is_none() {
            match inbox.receiver.recv_timeout(timeout) {
                Ok(record) => inbox.finished = Some(record),
                Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {}
            }
        }
        inbox.finished.clone()
    }
}

impl Drop for Sort {
    fn drop(&mut self) {
        self.stop();
    }
}

fn run(spec: &SortSpec, mut pages: Pages, shared: &SortState) -> SortRecord {
    let started_unix_ns = unix_ns();
    let started_ns = monotonic_ns();
    let before = usage::of_thread();
    let watch = Watch { stop: &shared.stop, placed: &shared.placed };
    let mut source = stream(spec.seed, 0);
    let mut passes = Vec::new();
    let mut sorted = true;
    let mut stopped = false;
    while passes.len() < spec.passes as usize && sorted {
        match pass(pages.numbers(), &mut source, &watch) {
            Ok((times, in_order)) => {
                passes.push(times);
                sorted = in_order;
            }
            Err(Stopped) => {
                stopped = true;
                break;
            }
        }
    }
    let used = usage::of_thread().since(before);
    SortRecord {
        started_unix_ns,
        elapsed_ns: monotonic_ns() - started_ns,
        bytes: size_of_val(pages.numbers()) as u64,
        passes,
        sorted,
        stopped,
        build_profile: BUILD_PROFILE,
        cpu_user_ns: used.cpu_user_ns,
        cpu_system_ns: used.cpu_system_ns,
        context_switches_voluntary: used.context_switches_voluntary,
        context_switches_involuntary: used.context_switches_involuntary,
        faults_minor: used.faults_minor,
        faults_major: used.faults_major,
    }
}

/// Checking the result is part of the sorting time: it reads every page once more, as a user of the result would.
fn pass(numbers: &mut [u32], source: &mut Stream, watch: &Watch) -> Result<(PassRecord, bool), Stopped> {
    let begin_ns = monotonic_ns();
    let mut sum_before = 0u64;
    for part in numbers.chunks_mut(quicksort::WATCHED_EVERY) {
        watch.look()?;
        for number in part {
            *number = source.next_u64() as u32;
            sum_before = sum_before.wrapping_add(u64::from(*number));
        }
    }
    let filled_ns = monotonic_ns();
    quicksort(numbers, watch)?;
    let mut sum_after = 0u64;
    let mut in_order = true;
    let mut last = 0;
    for part in numbers.chunks(quicksort::WATCHED_EVERY) {
        watch.look()?;
        for &number in part {
            in_order &= last <= number;
            last = number;
            sum_after = sum_after.wrapping_add(u64::from(number));
        }
    }
    let times = PassRecord { fill_ns: filled_ns - begin_ns, sort_ns: monotonic_ns() - filled_ns };
    Ok((times, in_order && sum_before == sum_after))
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATIENCE: Duration = Duration::from_secs(30);

    fn start(bytes: u64, passes: u32) -> Sort {
        Sort::start(SortSpec { bytes, passes, seed: 1 }).unwrap()
    }

    #[test]
    fn every_pass_is_sorted_and_timed() {
        let sort = start(1 << 20, 3);
        let record = sort.wait(PATIENCE).unwrap();
        assert!(record.sorted && !record.stopped);
        assert_eq!(record.passes.len(), 3);
        assert_eq!(record.bytes, 1 << 20);
        let timed: u64 = record.passes.iter().map(|p| p.fill_ns + p.sort_ns).sum();
        assert!(timed > 0 && timed <= record.elapsed_ns);
        assert!(record.faults_minor > 0);
        assert_eq!(sort.snapshot().fraction, 1.0);
    }

    #[test]
    fn a_stop_ends_it_early() {
        let sort = start(1 << 28, 1000);
        assert!(sort.wait(Duration::from_millis(20)).is_none());
        sort.stop();
        let record = sort.wait(PATIENCE).unwrap();
        assert!(record.stopped);
        assert!(record.passes.len() < 1000);
    }

    #[test]
    fn nothing_to_sort_is_refused() {
        for (bytes, passes) in [(3, 1), (4096, 0)] {
            let spec = SortSpec { bytes, passes, seed: 1 };
            assert!(matches!(Sort::start(spec), Err(StartError::Spec(_))));
        }
    }

    #[test]
    fn more_than_the_address_space_is_refused_by_the_kernel() {
        let spec = SortSpec { bytes: 1 << 62, passes: 1, seed: 1 };
        assert!(matches!(Sort::start(spec), Err(StartError::Os { errno, .. }) if errno == libc::ENOMEM));
    }
}
