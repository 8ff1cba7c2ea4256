//! What every page cache keeps to, whatever is asked of it and however long the device takes.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;

use super::*;
use events::component::{Component, hold_contract};
use events::time::{MILLISECOND, SECOND, Time};

const FILES: u32 = 3;
/// Files are on them in turn.
const DRIVES: usize = 2;
const FILE_PAGES: u64 = 300;
const TASKS: u32 = 5;

#[derive(Clone, Debug)]
enum Step {
    Read(TaskId, FileId, u64, u64),
    /// Offset and length in bytes.
    Write(TaskId, FileId, u64, u64),
    Fsync(TaskId, FileId),
    Direct(TaskId, FileId, u64, u64),
    /// One of those in flight.
    Complete(usize),
    Wake,
    Sleep(Time),
    Congested(usize, bool),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let task = 0..TASKS;
    let range = (0..FILES, 0..FILE_PAGES, 1u64..40);
    let step = prop_oneof![
        4 => (task.clone(), range.clone()).prop_map(|(t, (f, p, n))| Step::Read(t, f, p, n)),
        4 => (task.clone(), range.clone()).prop_map(|(t, (f, p, n))| Step::Write(t, f, p * PAGE_BYTES, n * PAGE_BYTES)),
        1 => (task.clone(), range.clone(), 1u64..9000).prop_map(|(t, (f, p, n), b)| Step::Write(t, f, p * PAGE_BYTES + 37 * n, b)),
        1 => (task.clone(), 0..FILES).prop_map(|(t, f)| Step::Fsync(t, f)),
        1 => (task, range).prop_map(|(t, (f, p, n))| Step::Direct(t, f, p, n)),
        8 => any::<usize>().prop_map(Step::Complete),
        4 => Just(Step::Wake),
        1 => prop_oneof![Just(MILLISECOND), Just(SECOND), Just(31 * SECOND)].prop_map(Step::Sleep),
        1 => (0..DRIVES, any::<bool>()).prop_map(|(drive, is)| Step::Congested(drive, is)),
    ];
    proptest::collection::vec(step, 1..250)
}

fn specs() -> impl Strategy<Value = CacheSpec> {
    let variant = prop_oneof![
        Just(CacheVariant::Linux2_4),
        Just(CacheVariant::Linux2_5),
        Just(CacheVariant::Linux2_6_18),
        Just(CacheVariant::Linux2_6_35),
        Just(CacheVariant::Linux3_2),
    ];
    let lately = prop_oneof![Just(WriteoutPeriod::Pages), Just(WriteoutPeriod::Time)];
    let read_ahead = prop::sample::select(&ReadAhead::ALL[..]);
    let flags = any::<[bool; 4]>();
    let spec = (variant, 1u64..4, flags, lately, read_ahead);
    spec.prop_map(|(variant, mib, [journal, own_limits, only_beyond, plugs_calls], lately, read_ahead)| {
        let spec = CacheSpec::new(variant, mib << 20);
        let lately = match variant {
            CacheVariant::Linux2_6_18 => own_limits.then_some(WriteoutPeriod::Pages),
            _ => spec.lately.and(Some(lately)),
        };
        CacheSpec {
            ordered_commit_interval_ns: journal.then_some(5 * SECOND),
            lately,
            writes_back_only_beyond_limit: only_beyond && lately.is_some(),
            read_ahead: Some(read_ahead),
            plugs_calls,
            ..spec
        }
    })
}

/// Versions of pages.
type Versions = Vec<((FileId, u64), u64)>;

/// What the cache does against what it should.
struct Machine {
    cache: PageCache,
    now: Time,
    /// With the versions of the pages as they were handed over.
    in_flight: Vec<(Io, Vec<u64>)>,
    memory: BTreeMap<(FileId, u64), u64>,
    device: BTreeMap<(FileId, u64), u64>,
    version: u64,
    /// What a task sleeps in, and for fsync what has to be on the device after.
    asleep: BTreeMap<TaskId, (Step, Versions)>,
    /// Pages whose reading has completed, or that were written to.
    known: BTreeSet<(FileId, u64)>,
}

impl Machine {
    fn absorb(&mut self) -> Result<(), TestCaseError> {
        let mut effects = Vec::new();
        self.cache.take_effects(&mut effects);
        hold_contract(&mut self.cache, self.now).expect("the contract holds");
        for effect in &effects {
            let Effect::Io(io) = *effect else {
                continue;
            };
            for (other, _) in &self.in_flight {
                let apart = other.file != io.file
                    || other.page >= io.page + u64::from(io.pages)
                    || io.page >= other.page + u64::from(other.pages);
                prop_assert!(apart || other.direction != io.direction, "{io:?} beside {other:?}");
            }
            prop_assert!(io.pages > 0 && io.page + u64::from(io.pages) <= FILE_PAGES + 50);
            let versions = (io.page..io.page + u64::from(io.pages))
                .map(|page| self.memory.get(&(io.file, page)).copied().unwrap_or(0))
                .collect();
            self.in_flight.push((io, versions));
        }
        for effect in effects {
            if let Effect::Wake(task) = effect
                && let Some((step, before)) = self.asleep.remove(&task)
            {
                self.call(step, before)?;
            } else if let Effect::Start(flusher) = effect {
                self.cache.unblocked(self.now, flusher);
                self.absorb()?;
            }
        }
        Ok(())
    }

    fn call(&mut self, step: Step, before: Versions) -> Result<(), TestCaseError> {
        let now = self.now;
        let pages = PAGE_BYTES;
        let (task, outcome) = match step {
            Step::Read(t, f, p, n) => (t, self.cache.read(now, t, f, p * pages, n * pages)),
            Step::Write(t, f, at, bytes) => (t, self.cache.write(now, t, f, at, bytes)),
            Step::Fsync(t, f) => (t, self.cache.fsync(now, t, f)),
            Step::Direct(t, f, p, n) => (t, self.cache.direct(now, t, f, p * pages, n * pages)),
            _ => unreachable!("no task makes it"),
        };
        match outcome {
            Outcome::Done => {}
            Outcome::Wait => {
                self.asleep.insert(task, (step, before));
                return self.absorb();
            }
            Outcome::Copies(_) => {
                self.absorb()?;
                return self.call(step, before);
            }
        }
        if let Step::Fsync(task, file) = step {
            self.cache.fsync_is_over(now, task, file);
        }
        match step {
            Step::Read(_, f, p, n) => {
                for page in p..p + n {
                    prop_assert!(self.known.contains(&(f, page)), "page {page} was never read");
                }
            }
            Step::Fsync(..) => {
                for (place, version) in before {
                    let on_device = self.device.get(&place).copied().unwrap_or(0);
                    prop_assert!(on_device >= version, "{place:?} has not been written");
                }
            }
            _ => {}
        }
        self.absorb()
    }

    fn run(&mut self, step: Step) -> Result<(), TestCaseError> {
        match step {
            Step::Read(task, ..) | Step::Write(task, ..) | Step::Fsync(task, _) | Step::Direct(task, ..) => {
                if self.asleep.contains_key(&task) {
                    return Ok(());
                }
                let mut before = Vec::new();
                if let Step::Write(_, file, offset, bytes) = step {
                    for page in offset / PAGE_BYTES..(offset + bytes).div_ceil(PAGE_BYTES) {
                        // Until the call has gone through, what is written back may be old or new.
                        self.version += 1;
                        self.memory.insert((file, page), self.version);
                        self.known.insert((file, page));
                    }
                }
                if let Step::Fsync(_, file) = step {
                    let asleep: BTreeSet<FileId> = self
                        .asleep
                        .values()
                        .filter_map(|(step, _)| match step {
                            Step::Write(_, file, ..) => Some(*file),
                            _ => None,
                        })
                        .collect();
                    // A write that sleeps may not have happened yet.
                    if !asleep.contains(&file) {
                        before =
                            self.memory.iter().filter(|(place, _)| place.0 == file).map(|(&p, &v)| (p, v)).collect();
                    }
                }
                return self.call(step, before);
            }
            Step::Complete(number) => {
                if self.in_flight.is_empty() {
                    return Ok(());
                }
                let (io, versions) = self.in_flight.swap_remove(number % self.in_flight.len());
                for (page, version) in (io.page..).zip(versions) {
                    if io.direction == Direction::Write {
                        self.device.insert((io.file, page), version);
                    }
                    self.known.insert((io.file, page));
                }
                self.cache.completed(self.now, io.tag);
            }
            Step::Wake => {
                if self.cache.next_event().is_some_and(|at| at <= self.now) {
                    self.cache.advance(self.now);
                }
            }
            Step::Sleep(time) => self.now += time,
            Step::Congested(drive, is) => self.cache.congested(self.now, drive, Direction::Write, is),
        }
        self.absorb()?;
        let rules = &self.cache.rules;
        // Beyond the limit: what may be dirtied between two looks, and a call that each task has made.
        let bound = rules.foreground + rules.ratelimit + u64::from(TASKS) * 40;
        prop_assert!(self.cache.dirty_pages() <= bound, "{} pages are dirty", self.cache.dirty_pages());
        let in_flight: u64 = self.in_flight.iter().map(|(io, _)| u64::from(io.pages)).sum();
        let most = rules.memory.max(self.cache.pages.dirty() + in_flight);
        prop_assert!(self.cache.pages.in_memory() <= most);
        Ok(())
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn nothing_dirty_is_lost_no_read_is_early_thresholds_hold_and_fsync_waits(
        spec in specs(), steps in steps(),
    ) {
        let mut machine = Machine {
            cache: PageCache::new(&spec).unwrap().with_drives(DRIVES),
            now: 0,
            in_flight: Vec::new(),
            memory: BTreeMap::new(),
            device: BTreeMap::new(),
            version: 0,
            asleep: BTreeMap::new(),
            known: BTreeSet::new(),
        };
        for (drive, holds) in [FsyncHolds::All, FsyncHolds::Commit].into_iter().enumerate() {
            machine.cache.set_fsync_holds(drive, holds);
        }
        machine.cache.set_large_folios(1);
        machine.cache.set_ioends(1);
        for file in 0..FILES {
            machine.cache.set_size(file, FILE_PAGES * PAGE_BYTES);
            machine.cache.place(file, file as usize % DRIVES);
        }
        for step in steps {
            machine.run(step)?;
        }
        // In the end all tasks are awake, and after long enough all is on the device.
        for drive in 0..DRIVES {
            machine.run(Step::Congested(drive, false))?;
        }
        for _ in 0..100_000 {
            machine.run(Step::Wake)?;
            machine.run(Step::Complete(0))?;
            if machine.in_flight.is_empty() {
                match machine.cache.next_event() {
                    Some(at) => machine.now = machine.now.max(at),
                    None if machine.asleep.is_empty() => break,
                    None => prop_assert!(false, "{:?} sleep for ever", machine.asleep),
                }
            }
        }
        prop_assert!(machine.asleep.is_empty());
        prop_assert_eq!(machine.cache.dirty_pages(), 0);
        prop_assert_eq!(machine.cache.next_event(), None);
        for (place, version) in &machine.memory {
            prop_assert_eq!(machine.device.get(place), Some(version), "{:?}", place);
        }
    }
}
