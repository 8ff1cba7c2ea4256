//! Several drives: what each may have dirty, and who writes it back.

use std::collections::{BTreeMap, BTreeSet};

use super::*;
use crate::cache::device::{FLUSHER, JOURNAL};
use crate::cache::spec::CacheSpec;
use events::Component;
use events::time::{MILLISECOND, SECOND, Time};
use proptest::prelude::*;

/// 400 MiB: 102400 pages.
const MEMORY: u64 = 400 << 20;
const PERCENT: u64 = MEMORY / PAGE_BYTES / 100;

/// Two drives that write this many pages a second each; file 0 is on the first and file 1 on the second.
struct Bench {
    cache: PageCache,
    now: Time,
    /// By drive: what it still has to write, and how far it is with it.
    queues: [Vec<Io>; 2],
    pages_per_s: [u64; 2],
    credit: [u64; 2],
    written: [u64; 2],
    congested: [bool; 2],
    blocked: [BTreeSet<TaskId>; 2],
    /// By drive: who has had something written.
    writers: [BTreeMap<TaskId, u64>; 2],
    woken: Vec<TaskId>,
    /// By drive, of its writer: the next page, and whether it waits.
    next: [u64; 2],
    waits: [bool; 2],
}

const STEP_NS: Time = 5 * MILLISECOND;
/// With more pages in its queue than that a drive is congested.
const CONGESTED_PAGES: u64 = 512;
const FULL_PAGES: u64 = 600;

impl Bench {
    fn new(spec: CacheSpec, pages_per_s: [u64; 2]) -> Bench {
        let mut cache = PageCache::new(&spec).unwrap().with_drives(2);
        cache.place(0, 0);
        cache.place(1, 1);
        Bench {
            cache,
            now: 0,
            queues: Default::default(),
            pages_per_s,
            credit: [0; 2],
            written: [0; 2],
            congested: [false; 2],
            blocked: Default::default(),
            writers: Default::default(),
            woken: Vec::new(),
            next: [0; 2],
            waits: [false; 2],
        }
    }

    fn of(variant: CacheVariant, lately: Option<WriteoutPeriod>, pages_per_s: [u64; 2]) -> Bench {
        let spec = CacheSpec { lately, ..CacheSpec::new(variant, MEMORY) };
        Bench::new(spec, pages_per_s)
    }

    fn call<T>(&mut self, call: impl FnOnce(&mut PageCache, Time) -> T) -> T {
        let result = call(&mut self.cache, self.now);
        let (mut effects, mut started) = (Vec::new(), Vec::new());
        self.cache.take_effects(&mut effects);
        for effect in effects {
            let io = match effect {
                Effect::Io(io) => io,
                Effect::Wake(task) => {
                    self.woken.push(task);
                    continue;
                }
                Effect::Start(flusher) => {
                    started.push(flusher);
                    continue;
                }
                Effect::Unplug | Effect::Journaled { .. } => continue,
            };
            assert_eq!(io.direction, Direction::Write);
            let drive = io.file as usize;
            self.queues[drive].push(io);
            // Who finds no request sleeps until the queue is less full.
            if self.queued(drive) > FULL_PAGES {
                self.cache.blocked(io.task);
                self.blocked[drive].insert(io.task);
            }
            *self.writers[io.file as usize].entry(io.task).or_default() += u64::from(io.pages);
        }
        for flusher in started {
            self.cache.unblocked(self.now, flusher);
        }
        let congested = [0, 1].map(|drive| self.queued(drive) > CONGESTED_PAGES);
        for (drive, is) in congested.into_iter().enumerate() {
            if is != self.congested[drive] {
                self.congested[drive] = is;
                self.cache.congested(self.now, drive, Direction::Write, is);
            }
        }
        result
    }

    fn queued(&self, drive: usize) -> u64 {
        self.queues[drive].iter().map(|io| u64::from(io.pages)).sum()
    }

    fn write(&mut self, task: TaskId, file: FileId, page: u64, pages: u64) -> Outcome {
        self.call(|cache, now| cache.write(now, task, file, page * PAGE_BYTES, pages * PAGE_BYTES))
    }

    /// Time passes by a step: flushers do what they do, and drives write.
    fn step(&mut self) {
        self.now += STEP_NS;
        for drive in 0..2 {
            self.credit[drive] += self.pages_per_s[drive] * STEP_NS / MILLISECOND;
            while let Some(&io) = self.queues[drive].first()
                && u64::from(io.pages) * 1000 <= self.credit[drive]
            {
                self.queues[drive].remove(0);
                self.credit[drive] -= u64::from(io.pages) * 1000;
                self.written[drive] += u64::from(io.pages);
                self.call(|cache, now| cache.completed(now, io.tag));
            }
            if self.queued(drive) < CONGESTED_PAGES {
                for task in std::mem::take(&mut self.blocked[drive]) {
                    self.call(|cache, now| cache.unblocked(now, task));
                }
            }
            if self.queues[drive].is_empty() {
                self.credit[drive] = 0;
            }
        }
        self.flush();
    }

    fn flush(&mut self) {
        while self.cache.next_event().is_some_and(|at| at <= self.now) {
            self.call(|cache, now| cache.advance(now));
        }
    }

    /// A writer on each drive, as fast as it may until then.
    fn write_to_both(&mut self, seconds: u64) {
        while self.now < seconds * SECOND {
            for task in std::mem::take(&mut self.woken) {
                self.waits[task as usize] = false;
                // The call that it waited in is over.
                self.write(task, task, 0, 0);
            }
            for drive in 0..2 {
                // At most 200 MB/s.
                for _ in 0..8 {
                    if self.waits[drive] {
                        break;
                    }
                    let number = drive as u32;
                    let outcome = self.write(number, number, self.next[drive], 32);
                    self.waits[drive] = outcome == Outcome::Wait;
                    self.next[drive] += 32;
                }
            }
            self.step();
        }
    }
}

#[test]
fn the_limit_goes_to_the_drives_by_what_they_write() {
    for (variant, lately) in [
        (CacheVariant::Linux3_2, WriteoutPeriod::Pages),
        (CacheVariant::Linux3_2, WriteoutPeriod::Time),
        (CacheVariant::Linux2_6_35, WriteoutPeriod::Pages),
        (CacheVariant::Linux2_6_18, WriteoutPeriod::Pages),
    ] {
        // 36 and 4 MB/s.
        let mut bench = Bench::of(variant, Some(lately), [9_000, 1_000]);
        let limit = bench.cache.rules.foreground;
        bench.write_to_both(60);
        let limits = [0, 1].map(|drive| {
            let cache = &bench.cache;
            cache.limits.of_drive(&cache.standing(), drive, limit)
        });
        assert!(limits[0] * 100 > limit * 83, "{variant:?} {lately:?} {limits:?} of {limit}");
        assert!(limits[1] * 100 < limit * 17, "{variant:?} {lately:?} {limits:?} of {limit}");
        // So the slow drive has not filled the memory, and the fast one has always something to write.
        let slow = bench.cache.devices.unwritten(1);
        assert!(slow * 3 < limit, "{variant:?} {lately:?} {slow} of {limit}");
        let [fast, _] = bench.written;
        assert!(fast > 60 * 9_000 * 9 / 10, "{variant:?} {lately:?} {fast}");
    }
}

#[test]
fn what_is_dirty_on_a_slow_drive_holds_the_writer_of_another_until_2_6_24() {
    let [shared, own] = [None, Some(WriteoutPeriod::Pages)].map(|lately| {
        let mut bench = Bench::of(CacheVariant::Linux2_6_18, lately, [9_000, 500]);
        let limit = bench.cache.rules.foreground;
        assert_eq!(bench.write(1, 1, 0, limit + 5_000), Outcome::Wait);
        bench.waits[1] = true;
        bench.write_to_both(5);
        bench.next[0]
    });
    assert!(shared * 10 < own, "{shared} and {own}");
}

#[test]
fn pdflush_leaves_out_a_congested_drive_and_goes_on_with_another() {
    let mut bench = Bench::of(CacheVariant::Linux2_5, None, [0, 9_000]);
    let background = bench.cache.rules.background;
    for file in [0, 1] {
        bench.write(7, file, 0, background);
    }
    (0..400).for_each(|_| bench.step());
    // The first drive writes nothing at all: its queue is congested, and has what it takes until then.
    assert!(bench.congested[0] && bench.queued(0) < CONGESTED_PAGES + 100);
    assert!(bench.written[1] > background * 9 / 10, "{:?}", bench.written);
}

#[test]
fn who_waits_for_a_queue_goes_on_when_any_has_room() {
    let mut bench = Bench::of(CacheVariant::Linux2_5, None, [0, 9_000]);
    let limit = bench.cache.rules.foreground;
    // All of it is on the first drive, which takes no more.
    assert_eq!(bench.write(1, 0, 0, limit + 1024), Outcome::Wait);
    bench.flush();
    assert!(bench.congested[0]);
    let at = bench.cache.next_event().unwrap();
    assert!(at > bench.now, "nobody has anything to do");
    assert!(bench.cache.flushers.are_paused());
    bench.call(|cache, now| cache.congested(now, 1, Direction::Write, true));
    bench.call(|cache, now| cache.congested(now, 1, Direction::Write, false));
    assert!(!bench.cache.flushers.are_paused());
    assert_eq!(bench.cache.next_event(), Some(bench.now));
}

#[test]
fn from_2_6_32_on_each_drive_has_a_flusher_and_before_pdflush_is_for_all() {
    for (variant, flushers) in [
        // The first of its threads goes where something was mounted last, the second to what is left.
        (CacheVariant::Linux2_5, [FLUSHER + 4, FLUSHER]),
        (CacheVariant::Linux2_6_18, [FLUSHER + 4, FLUSHER]),
        (CacheVariant::Linux2_6_35, [FLUSHER, FLUSHER + 4]),
        (CacheVariant::Linux3_2, [FLUSHER, FLUSHER + 4]),
    ] {
        let spec = CacheSpec::new(variant, MEMORY);
        let mut bench = Bench::new(spec, [9_000, 9_000]);
        let background = bench.cache.rules.background;
        for file in [0, 1] {
            bench.write(7, file, 0, background * 7 / 10);
        }
        bench.write(7, 0, background, 2 * PERCENT);
        // Who starts its own drive's has the other's started by who writes there.
        bench.write(8, 1, background, 2 * PERCENT);
        (0..200).for_each(|_| bench.step());
        for (drive, flusher) in flushers.into_iter().enumerate() {
            let of_drive: Vec<TaskId> = bench.writers[drive].keys().copied().collect();
            assert_eq!(of_drive, [flusher], "{variant:?} {drive}");
        }
    }
}

fn taken_io(cache: &mut PageCache) -> Vec<Io> {
    let mut effects = Vec::new();
    cache.take_effects(&mut effects);
    let io = effects.into_iter().filter_map(|effect| match effect {
        Effect::Io(io) => Some(io),
        Effect::Unplug | Effect::Wake(_) | Effect::Start(_) | Effect::Journaled { .. } => None,
    });
    io.collect()
}

#[test]
fn a_throttled_writer_writes_back_on_its_own_drive() {
    let lately = Some(WriteoutPeriod::Pages);
    let mut bench = Bench::of(CacheVariant::Linux2_6_35, lately, [0, 0]);
    bench.cache.place(2, 0);
    bench.write(7, 1, 0, 5 * PERCENT);
    bench.write(7, 0, 0, 9 * PERCENT);
    assert_eq!(bench.write(1, 2, 0, 5 * PERCENT), Outcome::Wait);
    while bench.cache.next_event().is_some_and(|at| at <= bench.now) {
        bench.cache.advance(bench.now);
    }
    let of_writer = taken_io(&mut bench.cache).into_iter();
    let files: BTreeSet<FileId> = of_writer.filter(|io| io.task == 1).map(|io| io.file).collect();
    assert!(!files.is_empty() && !files.contains(&1), "{files:?}");
}

#[test]
fn a_commit_is_of_its_drives_journal_alone() {
    let spec =
        CacheSpec { ordered_commit_interval_ns: Some(5 * SECOND), ..CacheSpec::new(CacheVariant::Linux2_6_35, MEMORY) };
    let mut bench = Bench::new(spec, [0, 0]);
    bench.write(7, 0, 0, 3);
    bench.now = 2 * SECOND;
    bench.write(7, 1, 0, 3);
    bench.now = 5 * SECOND;
    bench.flush();
    assert_eq!([bench.queued(0), bench.queued(1)], [3, 0]);
    bench.now = 7 * SECOND;
    bench.flush();
    assert_eq!([bench.queued(0), bench.queued(1)], [3, 3]);
    assert_eq!(bench.writers[1].keys().copied().collect::<Vec<_>>(), [JOURNAL + 4]);
    // The second drive's has ended whatever the first one does.
    bench.pages_per_s = [0, 1_000];
    bench.call(|cache, now| cache.fsync(now, 9, 1));
    (0..4).for_each(|_| bench.step());
    assert_eq!(bench.woken, [9]);
}

#[test]
fn read_ahead_looks_at_its_own_drive() {
    let spec = CacheSpec::new(CacheVariant::Linux2_6_35, MEMORY);
    let mut cache = PageCache::new(&spec).unwrap().with_drives(2);
    for file in [0, 1] {
        cache.place(file, file as usize);
        cache.set_size(file, 1 << 20);
    }
    cache.congested(0, 1, Direction::Read, true);
    let read = |cache: &mut PageCache, file| {
        let mut ahead = 0;
        for page in 0..2 {
            while cache.read(0, 1, file, page * PAGE_BYTES, PAGE_BYTES) == Outcome::Wait {
                for io in taken_io(cache) {
                    ahead += io.pages;
                    cache.completed(0, io.tag);
                }
            }
            ahead += taken_io(cache).iter().map(|io| io.pages).sum::<u32>();
        }
        ahead
    };
    let [first, second] = [0, 1].map(|file| read(&mut cache, file));
    assert!(first > second, "{first} {second}");
}

#[test]
fn read_ahead_goes_on_once_the_queue_is_congested_no_more() {
    let reads_ahead = |read_ahead| {
        let spec = CacheSpec { read_ahead: Some(read_ahead), ..CacheSpec::new(CacheVariant::Linux2_6_35, MEMORY) };
        let mut cache = PageCache::new(&spec).unwrap();
        cache.set_size(0, 1 << 30);
        [false, true, false].map(|is_congested| {
            cache.congested(0, 0, Direction::Read, is_congested);
            let mut ahead = 0;
            let first = cache.pages.in_memory();
            // Beyond the windows that were in flight when it changed.
            for page in first..first + 200 {
                while cache.read(0, 1, 0, page * PAGE_BYTES, PAGE_BYTES) == Outcome::Wait {
                    for io in taken_io(&mut cache) {
                        ahead += u64::from(io.read_ahead && page >= first + 100);
                        cache.completed(0, io.tag);
                    }
                }
                for io in taken_io(&mut cache) {
                    ahead += u64::from(io.read_ahead && page >= first + 100);
                    cache.completed(0, io.tag);
                }
            }
            ahead > 0
        })
    };
    for read_ahead in [ReadAhead::Linux2_6_8, ReadAhead::Linux2_6_17, ReadAhead::Linux2_6_34] {
        assert_eq!(reads_ahead(read_ahead), [true, false, true], "{read_ahead:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(6))]

    /// Whatever the drives' speeds, no writer waits for longer than its drive needs for all that may be dirty, and twice.
    #[test]
    fn no_writer_starves(
        speeds in [1_000u64..6_000, 1_000u64..6_000], which in 0usize..4,
    ) {
        let (variant, lately) = [
            (CacheVariant::Linux2_6_18, Some(WriteoutPeriod::Pages)),
            (CacheVariant::Linux2_6_35, Some(WriteoutPeriod::Pages)),
            (CacheVariant::Linux3_2, Some(WriteoutPeriod::Pages)),
            (CacheVariant::Linux3_2, Some(WriteoutPeriod::Time)),
        ][which];
        let spec = CacheSpec { lately, ..CacheSpec::new(variant, MEMORY / 4) };
        let mut bench = Bench::new(spec, speeds);
        let limit = bench.cache.rules.foreground;
        let slowest = speeds[0].min(speeds[1]);
        // Long enough for the slower drive to write the whole limit twice.
        let window = 2 * limit / slowest + 1;
        for round in 1..=3 {
            let before = bench.next;
            bench.write_to_both(round * window);
            for (drive, (next, before)) in bench.next.iter().zip(before).enumerate() {
                prop_assert!(*next > before, "{variant:?} drive {drive} in round {round}");
            }
        }
        // Each drive writes for at least a third of the time.
        for (speed, written) in speeds.iter().zip(bench.written) {
            let could = speed * 3 * window;
            prop_assert!(written * 3 > could, "{variant:?}: {written} of {could}");
        }
    }
}
