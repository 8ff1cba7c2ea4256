//! What each kernel's rules lead to.

use super::*;
use crate::cache::device::{FLUSHER, JOURNAL};
use crate::cache::spec::CacheSpec;
use events::Component;
use events::time::{MILLISECOND, SECOND, Time};

const PAGE: u64 = PAGE_BYTES;
/// 400 MiB: 102400 pages.
const MEMORY: u64 = 400 << 20;
const PERCENT: u64 = MEMORY / PAGE / 100;

/// A cache, and a device that keeps what it is asked for until the test completes it.
struct Bench {
    cache: PageCache,
    now: Time,
    in_flight: Vec<Io>,
    woken: Vec<TaskId>,
}

impl Bench {
    fn new(spec: CacheSpec) -> Bench {
        Bench { cache: PageCache::new(&spec).unwrap(), now: 0, in_flight: Vec::new(), woken: Vec::new() }
    }

    fn of(variant: CacheVariant) -> Bench {
        Bench::new(CacheSpec::new(variant, MEMORY))
    }

    fn with_journal(variant: CacheVariant) -> Bench {
        Bench::new(CacheSpec { ordered_commit_interval_ns: Some(5 * SECOND), ..CacheSpec::new(variant, MEMORY) })
    }

    fn call<T>(&mut self, call: impl FnOnce(&mut PageCache, Time) -> T) -> T {
        let result = call(&mut self.cache, self.now);
        let mut started = Vec::new();
        for effect in taken(&mut self.cache) {
            match effect {
                Effect::Io(io) => self.in_flight.push(io),
                Effect::Wake(task) => self.woken.push(task),
                Effect::Start(flusher) => started.push(flusher),
                Effect::Unplug | Effect::Journaled { .. } => {}
            }
        }
        for flusher in started {
            self.cache.unblocked(self.now, flusher);
        }
        result
    }

    fn write(&mut self, task: TaskId, file: FileId, page: u64, pages: u64) -> Outcome {
        self.call(|cache, now| cache.write(now, task, file, page * PAGE, pages * PAGE))
    }

    /// Up to a wait or the end, whatever it copies.
    fn read(&mut self, file: FileId, page: u64, pages: u64) -> Outcome {
        loop {
            let outcome = self.read_on(file, page, pages);
            if !matches!(outcome, Outcome::Copies(_)) {
                return outcome;
            }
        }
    }

    fn read_on(&mut self, file: FileId, page: u64, pages: u64) -> Outcome {
        self.call(|cache, now| cache.read(now, 7, file, page * PAGE, pages * PAGE))
    }

    fn fsync(&mut self, task: TaskId, file: FileId) -> Outcome {
        self.call(|cache, now| cache.fsync(now, task, file))
    }

    fn congested(&mut self, is: bool) {
        self.call(|cache, now| cache.congested(now, 0, Direction::Write, is));
    }

    /// Lets the flushers do what they do at once, the device not answering.
    fn flush(&mut self) -> Vec<Io> {
        let before = self.in_flight.len();
        while self.cache.next_event().is_some_and(|at| at <= self.now) {
            self.call(|cache, now| cache.advance(now));
        }
        self.in_flight[before..].to_vec()
    }

    fn wait_until(&mut self, time: Time) -> Vec<Io> {
        let before = self.in_flight.len();
        while let Some(at) = self.cache.next_event().filter(|&at| at <= time) {
            self.now = self.now.max(at);
            self.call(|cache, now| cache.advance(now));
        }
        self.now = time;
        self.in_flight[before..].to_vec()
    }

    fn complete_all(&mut self) {
        while let Some(io) = self.in_flight.pop() {
            self.call(|cache, now| cache.completed(now, io.tag));
            self.flush();
        }
    }
}

fn taken(cache: &mut PageCache) -> Vec<Effect> {
    let mut effects = Vec::new();
    cache.take_effects(&mut effects);
    effects
}

fn places(io: &[Io]) -> Vec<(FileId, u64, u32)> {
    io.iter().map(|io| (io.file, io.page, io.pages)).collect()
}

fn pages(io: &[Io]) -> u64 {
    io.iter().map(|io| u64::from(io.pages)).sum()
}

// Writeback.

#[test]
fn in_2_4_pieces_of_files_alternate_in_the_order_of_dirtying_32_buffers_at_a_time() {
    let mut bench = Bench::of(CacheVariant::Linux2_4);
    for page in 0..=15 * PERCENT {
        bench.write(1, 1, page, 1);
        bench.write(2, 2, page, 1);
    }
    bench.call(|cache, now| cache.advance(now));
    let batch = places(&bench.in_flight);
    assert_eq!(batch.len(), 32);
    assert_eq!(batch[..4], [(1, 0, 1), (2, 0, 1), (1, 1, 1), (2, 1, 1)]);
}

#[test]
fn bdflush_begins_at_30_percent_and_goes_on_until_20() {
    let mut bench = Bench::of(CacheVariant::Linux2_4);
    bench.write(1, 1, 0, 30 * PERCENT);
    assert_eq!(bench.flush(), []);
    bench.write(1, 1, 30 * PERCENT, 1);
    let written = pages(&bench.flush());
    assert!((10 * PERCENT..=10 * PERCENT + 512).contains(&written), "{written} pages");
    assert!(bench.in_flight.iter().all(|io| io.task == FLUSHER));
}

#[test]
fn beyond_60_percent_a_writer_of_2_4_writes_32_buffers_and_waits_for_the_oldest() {
    let mut bench = Bench::of(CacheVariant::Linux2_4);
    bench.write(1, 1, 0, 60 * PERCENT);
    assert_eq!(bench.write(1, 1, 60 * PERCENT, 1), Outcome::Wait);
    let of_writer: Vec<Io> = bench.flush().into_iter().filter(|io| io.task == 1).collect();
    assert_eq!(pages(&of_writer), 32);
    assert!(bench.woken.is_empty());
    let oldest = bench.in_flight.remove(0);
    bench.call(|cache, now| cache.completed(now, oldest.tag));
    assert_eq!(bench.woken, [1]);
    assert_eq!(bench.write(1, 1, 60 * PERCENT, 1), Outcome::Done);
}

#[test]
fn in_2_5_background_writeback_begins_at_10_percent_and_takes_1024_pages_of_each_inode_in_turn() {
    let mut bench = Bench::of(CacheVariant::Linux2_5);
    for page in 0..8 * PERCENT {
        bench.write(1, 1, page, 1);
        bench.write(2, 2, page, 1);
    }
    let written = bench.flush();
    let mut turns: Vec<(FileId, u64)> = Vec::new();
    for io in &written {
        match turns.last_mut() {
            Some((file, pages)) if *file == io.file => *pages += u64::from(io.pages),
            _ => turns.push((io.file, u64::from(io.pages))),
        }
    }
    assert_eq!(turns[..4], [(1, 1024), (2, 1024), (1, 1024), (2, 1024)]);
    let left = bench.cache.pages.waiting();
    assert!((10 * PERCENT - 1024..10 * PERCENT).contains(&left), "{left}");
}

#[test]
fn each_cpu_looks_at_the_thresholds_for_itself() {
    let mut bench = Bench::of(CacheVariant::Linux2_5);
    bench.write(1, 1, 0, 42 * PERCENT);
    // 1024 pages of each CPU's own, however many the other has dirtied.
    for page in 0..1023 {
        for cpu in [2, 3] {
            bench.cache.on_cpu(cpu);
            let (task, file) = (TaskId::from(cpu), FileId::from(cpu));
            assert_eq!(bench.write(task, file, page, 1), Outcome::Done);
        }
    }
    for cpu in [2, 3] {
        bench.cache.on_cpu(cpu);
        let (task, file) = (TaskId::from(cpu), FileId::from(cpu));
        assert_eq!(bench.write(task, file, 1023, 1), Outcome::Wait);
    }
}

#[test]
fn from_3_2_on_a_flusher_begins_when_a_writer_has_looked_and_it_has_had_a_cpu() {
    let mut cache = PageCache::new(&CacheSpec::new(CacheVariant::Linux3_2, MEMORY)).unwrap();
    let background = 10 * PERCENT;
    let mut write = |pages: u64| {
        cache.write(0, 1, 1, 0, pages * PAGE);
        taken(&mut cache)
    };
    let started = write(background + 31);
    assert!(matches!(started[..], [Effect::Start(FLUSHER)]));
    cache.advance(0);
    assert_eq!(taken(&mut cache), []);
    cache.unblocked(0, FLUSHER);
    // With the first 256 pages it sees that more follow.
    cache.advance(0);
    cache.advance(0);
    assert!(matches!(taken(&mut cache)[..], [Effect::Io(_), ..]));

    let mut cache = PageCache::new(&CacheSpec {
        dirty_background_percent: Some(0),
        ..CacheSpec::new(CacheVariant::Linux3_2, MEMORY)
    })
    .unwrap();
    cache.write(0, 1, 1, 0, 31 * PAGE);
    assert_eq!(taken(&mut cache), [], "a new task looks with 32 pages");
    cache.write(0, 1, 1, 31 * PAGE, PAGE);
    assert!(matches!(taken(&mut cache)[..], [Effect::Start(FLUSHER)]));
}

#[test]
fn parts_of_a_drive_are_written_from_its_start_to_its_end_and_files_in_turn() {
    let order = |joined: bool| {
        let mut bench = Bench::of(CacheVariant::Linux3_2);
        if joined {
            for (file, start) in [(2, 2_000), (1, 0), (3, 1_000)] {
                bench.cache.join(file, 2, start);
            }
        }
        for file in [2, 1, 3] {
            bench.write(file, file, 0, 64);
        }
        bench.wait_until(31 * SECOND);
        let files = bench.in_flight.iter().map(|io| io.file);
        let mut files: Vec<FileId> = files.collect();
        files.dedup();
        files
    };
    assert_eq!(order(false), [2, 1, 3], "as they became dirty");
    assert_eq!(order(true), [1, 3, 2]);
}

#[test]
fn a_flusher_that_has_no_more_unplugs_the_queue() {
    let mut bench = Bench::of(CacheVariant::Linux2_4);
    bench.write(1, 1, 0, 1);
    bench.fsync(1, 1);
    bench.cache.advance(bench.now);
    let effects = taken(&mut bench.cache);
    assert!(matches!(effects[..], [Effect::Io(_), Effect::Unplug]));
}

#[test]
fn in_2_5_a_throttled_writer_writes_1536_pages_of_any_inode() {
    let mut bench = Bench::of(CacheVariant::Linux2_5);
    bench.write(1, 1, 0, 20 * PERCENT);
    bench.write(1, 3, 0, 19 * PERCENT);
    assert_eq!(bench.write(2, 2, 0, 2 * PERCENT), Outcome::Wait);
    assert_eq!(bench.write(2, 2, 0, 2 * PERCENT), Outcome::Wait, "called before its time");
    let of_writer: Vec<Io> = bench.flush().into_iter().filter(|io| io.task == 2).collect();
    assert_eq!(pages(&of_writer), 1536);
    // Background writeback has the first in the line.
    assert!(of_writer.iter().all(|io| io.file == 3), "{:?}", places(&of_writer));
    assert_eq!(bench.woken, [2]);
    assert_eq!(bench.write(2, 2, 0, 2 * PERCENT), Outcome::Done);
}

#[test]
fn who_finds_nothing_to_write_waits_100_ms_and_looks_again() {
    let mut bench = Bench::of(CacheVariant::Linux2_5);
    bench.write(1, 1, 0, 39 * PERCENT);
    assert_eq!(bench.write(2, 1, 39 * PERCENT, 2 * PERCENT), Outcome::Wait);
    // Background writeback has the only inode.
    assert!(bench.flush().iter().all(|io| io.task == FLUSHER));
    assert_eq!(bench.wait_until(99 * MILLISECOND), []);
    let of_writer = bench.wait_until(100 * MILLISECOND);
    assert_eq!((pages(&of_writer), of_writer[0].task), (1536, 2));
    assert_eq!(bench.woken, [2]);
}

#[test]
fn in_2_5_a_throttled_writer_and_a_sync_sleep_for_a_request_where_pdflush_looks_at_congestion() {
    let mut bench = Bench::of(CacheVariant::Linux2_5);
    bench.write(1, 1, 0, 20 * PERCENT);
    bench.write(1, 3, 0, 19 * PERCENT);
    assert_eq!(bench.write(2, 2, 0, 2 * PERCENT), Outcome::Wait);
    assert_eq!(bench.fsync(4, 3), Outcome::Wait);
    bench.congested(true);
    // The writer has found no request: pdflush holds back, the writer sleeps, and the sync continues.
    bench.cache.blocked(2);
    let by_sync = bench.flush();
    assert_eq!(pages(&by_sync), 19 * PERCENT);
    assert!(by_sync.iter().all(|io| io.task == 4));
    bench.call(|cache, now| cache.unblocked(now, 2));
    let by_writer = bench.flush();
    assert_eq!(pages(&by_writer), 1536);
    assert!(by_writer.iter().all(|io| io.task == 2));
    bench.congested(false);
    assert!(bench.flush().iter().all(|io| io.task == FLUSHER));
}

#[test]
fn who_got_its_last_request_late_unplugs_the_queue_then() {
    let mut bench = Bench::of(CacheVariant::Linux2_4);
    bench.write(1, 1, 0, 60 * PERCENT);
    assert_eq!(bench.write(1, 1, 60 * PERCENT, 1), Outcome::Wait);
    bench.flush();
    bench.cache.blocked(1);
    bench.cache.unblocked(bench.now, 1);
    let effects = taken(&mut bench.cache);
    assert_eq!(effects, [Effect::Unplug], "it waits for the oldest write from now on");
}

#[test]
fn before_2_5_nobody_who_writes_back_looks_at_congestion() {
    let mut bench = Bench::of(CacheVariant::Linux2_4);
    assert!(!bench.cache.looks_at_congestion());
    bench.write(1, 1, 0, 31 * PERCENT);
    bench.cache.blocked(FLUSHER);
    assert_eq!(bench.flush(), []);
    bench.call(|cache, now| cache.unblocked(now, FLUSHER));
    assert!(pages(&bench.flush()) > 10 * PERCENT);
}

#[test]
fn a_congested_queue_stops_pdflush_until_it_is_so_no_more() {
    let mut bench = Bench::of(CacheVariant::Linux2_5);
    bench.write(1, 1, 0, 12 * PERCENT);
    bench.call(|cache, now| cache.advance(now));
    assert_eq!(pages(&bench.in_flight), 16);
    bench.congested(true);
    assert_eq!(bench.flush(), []);
    bench.congested(false);
    assert!(pages(&bench.flush()) >= 1024 - 16);
}

#[test]
fn what_has_been_dirty_for_30_s_is_written() {
    for variant in
        [CacheVariant::Linux2_4, CacheVariant::Linux2_5, CacheVariant::Linux2_6_18, CacheVariant::Linux2_6_35]
    {
        let mut bench = Bench::of(variant);
        bench.now = 12 * SECOND;
        bench.write(1, 1, 0, 10);
        bench.now = 20 * SECOND;
        bench.write(1, 2, 0, 10);
        assert_eq!(bench.wait_until(44 * SECOND), []);
        assert_eq!(places(&bench.wait_until(49 * SECOND)), [(1, 0, 10)]);
        assert_eq!(places(&bench.wait_until(51 * SECOND)), [(2, 0, 10)]);
        bench.complete_all();
        bench.wait_until(60 * SECOND);
        assert_eq!(bench.cache.next_event(), None, "nothing dirty, nothing to do");
    }
}

#[test]
fn from_2_6_6_on_an_inode_is_written_in_the_order_of_the_file() {
    for (variant, pieces) in [
        (CacheVariant::Linux2_5, vec![(1, 19, 1), (1, 18, 1)]),
        (CacheVariant::Linux2_6_18, vec![(1, 0, 16), (1, 16, 4)]),
        (CacheVariant::Linux2_6_35, vec![(1, 0, 20)]),
    ] {
        let mut bench = Bench::of(variant);
        for page in (0..20).rev() {
            bench.write(1, 1, page, 1);
        }
        let written = places(&bench.wait_until(36 * SECOND));
        assert!(written.starts_with(&pieces), "{variant:?} {written:?}");
    }
}

#[test]
fn from_2_6_6_on_an_old_inode_is_written_as_a_whole() {
    for (variant, expected) in
        [(CacheVariant::Linux2_5, 1024), (CacheVariant::Linux2_6_18, 3000), (CacheVariant::Linux2_6_35, 3000)]
    {
        let mut bench = Bench::of(variant);
        bench.write(1, 1, 0, 3000);
        let written = pages(&bench.wait_until(36 * SECOND));
        assert_eq!(written, expected, "{variant:?}");
    }
}

#[test]
fn from_3_2_on_writers_sleep_instead_of_writing_back() {
    let held_at = |variant| {
        let mut bench = Bench::of(variant);
        // Half-way between both thresholds no task is held.
        assert_eq!(bench.write(1, 1, 0, 15 * PERCENT - 1), Outcome::Done);
        let mut page = 15 * PERCENT;
        while bench.write(1, 1, page, 32) == Outcome::Done {
            page += 32;
        }
        (bench, page / PERCENT)
    };
    let (_, percent) = held_at(CacheVariant::Linux2_6_35);
    assert_eq!(percent, 19, "less by its part of what was dirtied lately");
    let (mut bench, percent) = held_at(CacheVariant::Linux3_2);
    assert!((15..20).contains(&percent), "{percent}");
    bench.flush();
    assert!(bench.in_flight.iter().all(|io| io.task == FLUSHER));
    bench.wait_until(200 * MILLISECOND);
    assert_eq!(bench.woken, [1]);
}

// The journal and fsync.

#[test]
fn an_ordered_commit_writes_data_of_all_files_5_s_later_in_the_order_of_dirtying() {
    for variant in [CacheVariant::Linux2_4, CacheVariant::Linux2_5] {
        let mut bench = Bench::with_journal(variant);
        bench.now = SECOND;
        for page in 0..3 {
            bench.write(1, 1, page, 1);
            bench.write(2, 2, page, 1);
        }
        assert_eq!(bench.wait_until(6 * SECOND - 1), []);
        let written = bench.wait_until(6 * SECOND);
        let expected = [(1, 0, 1), (2, 0, 1), (1, 1, 1), (2, 1, 1), (1, 2, 1), (2, 2, 1)];
        assert_eq!(places(&written), expected);
        assert!(written.iter().all(|io| io.task == JOURNAL));
    }
}

#[test]
fn one_transaction_commits_at_a_time() {
    let mut bench = Bench::with_journal(CacheVariant::Linux2_5);
    bench.write(1, 1, 0, 1);
    bench.wait_until(5 * SECOND);
    bench.write(1, 1, 1, 1);
    assert_eq!(bench.wait_until(20 * SECOND), [], "the first is still being written");
    bench.complete_all();
    assert_eq!(places(&bench.wait_until(20 * SECOND)), []);
    assert_eq!(bench.cache.dirty_pages(), 0, "and the second when that is done");
}

#[test]
fn fsync_waits_for_all_that_was_written_to_the_file_before() {
    let mut bench = Bench::of(CacheVariant::Linux2_5);
    bench.write(1, 1, 0, 100);
    bench.write(1, 2, 0, 100);
    assert_eq!(bench.fsync(1, 1), Outcome::Wait);
    let written = bench.flush();
    assert_eq!(pages(&written), 100);
    assert!(written.iter().all(|io| io.file == 1 && io.sync));
    let last = bench.in_flight.pop().unwrap();
    let rest = bench.in_flight.len();
    bench.complete_all();
    assert_eq!(bench.woken, vec![1; rest.min(1)]);
    bench.woken.clear();
    if rest > 0 {
        assert_eq!(bench.fsync(1, 1), Outcome::Wait, "another is in flight");
    }
    bench.call(|cache, now| cache.completed(now, last.tag));
    assert_eq!(bench.woken, [1]);
    assert_eq!(bench.fsync(1, 1), Outcome::Done);
    assert_eq!(bench.fsync(1, 1), Outcome::Done, "nothing is dirty");
}

#[test]
fn fsync_waits_for_one_write_after_the_other_that_was_in_flight_when_it_looked() {
    let mut bench = Bench::of(CacheVariant::Linux3_2);
    let sync = |bench: &mut Bench, task, page| {
        bench.write(task, 1, page, 1);
        assert_eq!(bench.fsync(task, 1), Outcome::Wait);
        bench.flush();
        bench.in_flight.pop().expect("its page")
    };
    let first = sync(&mut bench, 1, 5);
    let second = sync(&mut bench, 2, 9);
    bench.woken.clear();
    bench.call(|cache, now| cache.completed(now, first.tag));
    assert_eq!(bench.woken, [1, 2]);
    assert_eq!(bench.fsync(1, 1), Outcome::Done, "its own was all");
    assert_eq!(bench.fsync(2, 1), Outcome::Wait);
    bench.call(|cache, now| cache.completed(now, second.tag));
    assert_eq!(bench.woken, [1, 2, 2]);
    assert_eq!(bench.fsync(2, 1), Outcome::Done);
}

#[test]
fn fsync_of_a_page_that_was_dirtied_while_it_was_written_writes_it_again() {
    let mut bench = Bench::of(CacheVariant::Linux2_5);
    bench.write(1, 1, 0, 1);
    bench.fsync(1, 1);
    bench.flush();
    bench.write(2, 1, 0, 1);
    assert_eq!(bench.fsync(2, 1), Outcome::Wait);
    let first = bench.in_flight.remove(0);
    bench.call(|cache, now| cache.completed(now, first.tag));
    assert_eq!(bench.woken, [1]);
    assert_eq!(pages(&bench.flush()), 1);
    bench.complete_all();
    assert_eq!(bench.woken, [1, 2]);
}

#[test]
fn fsync_with_an_ordered_journal_writes_what_others_have_dirtied_too() {
    let mut bench = Bench::with_journal(CacheVariant::Linux2_5);
    bench.write(1, 1, 0, 10);
    bench.write(2, 2, 0, 500);
    bench.fsync(1, 1);
    assert_eq!(pages(&bench.flush()), 510);
    bench.complete_all();
    assert_eq!(bench.woken, [1]);
}

#[test]
fn until_2_6_9_an_fsync_holds_off_writers_to_its_file_from_beginning_to_end() {
    for (holds, expected) in
        [(FsyncHolds::All, Outcome::Wait), (FsyncHolds::Commit, Outcome::Done), (FsyncHolds::Nothing, Outcome::Done)]
    {
        let mut bench = Bench::of(CacheVariant::Linux2_4);
        bench.cache.set_fsync_holds(0, holds);
        bench.write(1, 1, 0, 10);
        assert_eq!(bench.fsync(1, 1), Outcome::Wait);
        bench.flush();
        assert_eq!(bench.write(2, 1, 10, 1), expected, "{holds:?}");
        assert_eq!(bench.write(3, 2, 0, 1), Outcome::Done, "another file");
        bench.complete_all();
        assert_eq!(bench.fsync(1, 1), Outcome::Done);
        assert_eq!(bench.woken, [1]);
        bench.call(|cache, now| cache.fsync_is_over(now, 1, 1));
        if expected == Outcome::Wait {
            assert_eq!(bench.woken, [1, 2]);
        }
        assert_eq!(bench.write(2, 1, 10, 1), Outcome::Done);
    }
}

#[test]
fn from_2_6_10_on_an_fsync_holds_off_writers_while_the_journal_commits() {
    let mut bench = Bench::with_journal(CacheVariant::Linux2_6_18);
    bench.cache.set_fsync_holds(0, FsyncHolds::Commit);
    bench.write(1, 1, 0, 10);
    bench.fsync(1, 1);
    assert_eq!(bench.write(2, 1, 10, 1), Outcome::Done, "still submitting");
    bench.flush();
    assert_eq!(bench.write(2, 1, 11, 1), Outcome::Wait);
    bench.complete_all();
    assert_eq!(bench.fsync(1, 1), Outcome::Done);
    bench.call(|cache, now| cache.fsync_is_over(now, 1, 1));
    assert_eq!(bench.woken, [1, 2]);
}

// Reading.

#[test]
fn a_reader_waits_until_its_page_is_there_and_goes_on_with_it() {
    for variant in [CacheVariant::Linux2_4, CacheVariant::Linux2_5, CacheVariant::Linux2_6_35] {
        let mut bench = Bench::of(variant);
        bench.cache.set_size(1, 1000 * PAGE);
        assert_eq!(bench.read(1, 0, 1), Outcome::Wait);
        bench.complete_all();
        assert_eq!(bench.woken, [7]);
        assert_eq!(bench.read(1, 0, 1), Outcome::Done);
        assert_eq!(bench.read(1, 0, 1), Outcome::Done);
    }
}

#[test]
fn files_are_read_to_their_end_and_no_further_in_calls_of_any_length() {
    for read_ahead in ReadAhead::ALL {
        for call in [1, 4, 50] {
            let mut bench = Bench::new(CacheSpec {
                read_ahead: Some(read_ahead),
                ..CacheSpec::new(CacheVariant::Linux2_5, MEMORY)
            });
            bench.cache.set_size(1, 100 * PAGE - 5);
            for first in (0..100).step_by(call) {
                let pages = call.min(100 - first) as u64;
                while bench.read(1, first as u64, pages) == Outcome::Wait {
                    bench.complete_all();
                }
            }
            bench.complete_all();
            assert_eq!(bench.cache.pages.in_memory(), 100, "{read_ahead:?} {call}");
        }
    }
}

#[test]
fn a_stream_of_2_6_35_has_two_windows_of_128_kib_in_flight() {
    let mut bench = Bench::of(CacheVariant::Linux2_6_35);
    bench.cache.set_size(1, 100_000 * PAGE);
    let mut most = 0;
    for page in 0..500 {
        while bench.read(1, page, 1) == Outcome::Wait {
            most = most.max(pages(&bench.in_flight));
            bench.complete_all();
        }
        most = most.max(pages(&bench.in_flight));
    }
    assert_eq!(most, 64, "the second is asked for when the reader comes to the first");
    assert!(bench.in_flight.iter().all(|io| io.read_ahead));
}

#[test]
fn a_call_longer_than_a_window_copies_up_to_each_mark_and_a_plugged_one_keeps_its_windows_until_it_waits_or_ends() {
    for plugs_calls in [false, true] {
        let mut bench = Bench::new(CacheSpec { plugs_calls, ..CacheSpec::new(CacheVariant::Linux2_6_35, MEMORY) });
        bench.cache.set_size(1, 1000 * PAGE);
        // A window, the one that comes with it, and the mark in between.
        assert_eq!(bench.read_on(1, 0, 64), Outcome::Wait);
        assert_eq!(places(&bench.in_flight), [(1, 0, 64)]);
        bench.complete_all();
        assert_eq!(bench.read_on(1, 0, 64), Outcome::Copies(32));
        assert_eq!(bench.read_on(1, 0, 64), Outcome::Copies(32));
        assert_eq!(bench.in_flight.is_empty(), plugs_calls);
        assert_eq!(bench.read_on(1, 0, 64), Outcome::Done);
        assert_eq!(places(&bench.in_flight), [(1, 64, 32)]);
        bench.complete_all();
        // One that continues behind the next mark waits for the window that it starts there.
        let first = bench.read_on(1, 64, 65);
        assert_eq!((first, bench.in_flight.is_empty()), (Outcome::Copies(32), plugs_calls));
        assert_eq!(bench.read_on(1, 64, 65), Outcome::Wait);
        assert_eq!(places(&bench.in_flight), [(1, 96, 32), (1, 128, 32)]);
    }
}

#[test]
fn a_page_that_is_written_to_in_part_is_read_first() {
    let mut bench = Bench::of(CacheVariant::Linux2_5);
    bench.cache.set_size(1, 10 * PAGE);
    let write = |bench: &mut Bench, offset, bytes| bench.call(|cache, now| cache.write(now, 7, 1, offset, bytes));
    assert_eq!(write(&mut bench, 100, PAGE), Outcome::Wait);
    assert_eq!(places(&bench.in_flight), [(1, 0, 1)]);
    bench.complete_all();
    assert_eq!(write(&mut bench, 100, PAGE), Outcome::Wait);
    assert_eq!(places(&bench.in_flight), [(1, 1, 1)]);
    bench.complete_all();
    assert_eq!(write(&mut bench, 100, PAGE), Outcome::Done);
    assert_eq!(write(&mut bench, 10 * PAGE, 5), Outcome::Done, "there is nothing to read");
}

#[test]
fn direct_io_has_dirty_pages_written_and_cached_ones_forgotten() {
    let mut bench = Bench::of(CacheVariant::Linux2_6_35);
    bench.write(1, 1, 0, 10);
    let direct = |bench: &mut Bench, offset| bench.call(|cache, now| cache.direct(now, 5, 1, offset, PAGE));
    assert_eq!(direct(&mut bench, 20 * PAGE), Outcome::Done);
    assert_eq!(direct(&mut bench, 0), Outcome::Wait);
    bench.flush();
    bench.complete_all();
    assert_eq!(bench.woken, [5]);
    assert_eq!(direct(&mut bench, 0), Outcome::Done);
    assert!(!bench.cache.pages.is_present(1, 0) && bench.cache.pages.is_present(1, 1));
}

#[test]
fn one_page_of_each_large_folio_holds_its_writer_as_all_of_them_do() {
    let held_at = |large: bool| {
        let mut bench = Bench::of(CacheVariant::Linux3_2);
        if large {
            bench.cache.set_large_folios(0);
        }
        let folios = (0..100).map(|number| number * 256);
        for first in folios.clone() {
            assert_eq!(bench.write(1, 0, first, 256), Outcome::Done);
            while bench.fsync(1, 0) == Outcome::Wait {
                bench.flush();
                bench.complete_all();
            }
        }
        assert_eq!(bench.cache.dirty_pages(), 0);
        let mut written = folios.zip(1..);
        let held = written.find(|&(first, _)| bench.write(1, 0, first, 1) == Outcome::Wait);
        bench.cache.check(bench.now).expect("its owners agree");
        held.map(|(_, number)| number * 256)
    };
    assert_eq!(held_at(false), None);
    let pages = held_at(true).expect("it is held");
    assert!((15 * PERCENT..=20 * PERCENT + 256).contains(&pages), "{pages}");
}

#[test]
fn who_writes_beyond_a_limit_that_has_fallen_goes_on_until_it_has_followed() {
    let held_for = |former_bytes: Option<u64>| {
        let mut bench = Bench::new(CacheSpec { former_bytes, ..CacheSpec::new(CacheVariant::Linux3_2, MEMORY) });
        bench.write(1, 0, 0, 21 * PERCENT);
        assert_eq!(bench.write(1, 0, 21 * PERCENT, 1), Outcome::Wait);
        bench.wait_until(SECOND);
        bench.woken == [1]
    };
    assert!(!held_for(None), "beyond 20 % nobody may dirty anything");
    assert!(held_for(Some(2 * MEMORY)));
}

#[test]
fn an_ioend_is_what_lies_in_a_row_and_ends_as_a_whole() {
    let submitted = |ioends: bool| {
        let mut bench = Bench::of(CacheVariant::Linux3_2);
        if ioends {
            bench.cache.set_ioends(0);
        }
        bench.write(1, 0, 0, 300);
        bench.write(1, 0, 400, 100);
        bench.fsync(1, 0);
        let submitted = bench.flush();
        bench.cache.check(bench.now).expect("its owners agree");
        bench.complete_all();
        assert_eq!(bench.fsync(1, 0), Outcome::Done);
        places(&submitted)
    };
    assert_eq!(submitted(true), [(0, 0, 300), (0, 400, 100)]);
    let pieces = [(0, 0, 256), (0, 256, 44), (0, 400, 100)];
    assert_eq!(submitted(false), pieces);
}

#[test]
fn two_who_write_back_one_file_and_wait_for_requests_have_its_pages_in_turn() {
    let mut cache = PageCache::new(&CacheSpec {
        dirty_background_percent: Some(0),
        ..CacheSpec::new(CacheVariant::Linux3_2, MEMORY)
    })
    .unwrap();
    for piece in 0..8 {
        cache.write(0, 1, 0, 10 * piece * PAGE, 4 * PAGE);
    }
    assert!(matches!(taken(&mut cache)[..], [Effect::Start(FLUSHER)]));
    let step = |cache: &mut PageCache, task: TaskId| {
        cache.unblocked(0, task);
        cache.advance(0);
        cache.blocked(task);
        let effects = taken(cache);
        match &effects[..] {
            [Effect::Io(io)] => (io.task, io.page, io.pages),
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(step(&mut cache, FLUSHER), (FLUSHER, 0, 4));
    assert_eq!(cache.fsync(0, 1, 0), Outcome::Wait);
    assert_eq!(step(&mut cache, 1), (1, 11, 3));
    assert_eq!(step(&mut cache, FLUSHER), (FLUSHER, 10, 1));
    assert_eq!(step(&mut cache, 1), (1, 20, 1));
    assert_eq!(step(&mut cache, FLUSHER), (FLUSHER, 21, 1));
    cache.check(0).expect("its owners agree");
}

#[test]
fn of_a_large_folio_nothing_is_written_while_a_part_of_it_is() {
    let mut bench = Bench::of(CacheVariant::Linux3_2);
    bench.cache.set_large_folios(0);
    bench.cache.set_ioends(0);
    bench.write(1, 0, 0, 256);
    while bench.fsync(1, 0) == Outcome::Wait {
        bench.flush();
        bench.complete_all();
    }
    bench.write(1, 0, 3, 1);
    bench.write(1, 0, 10, 1);
    let of_folio = bench.wait_until(36 * SECOND);
    assert_eq!(places(&of_folio), [(0, 3, 1), (0, 10, 1)]);
    bench.write(1, 0, 20, 1);
    assert_eq!(bench.wait_until(72 * SECOND), []);
    bench.complete_all();
    bench.cache.check(bench.now).expect("its owners agree");
    let rest = bench.wait_until(108 * SECOND);
    assert_eq!(places(&rest), [(0, 20, 1)]);
}
