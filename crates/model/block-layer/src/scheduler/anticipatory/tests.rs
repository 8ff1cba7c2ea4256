use super::*;
use crate::Direction::{Read, Write};
use crate::invariants;
use crate::invariants::bench::{Bench, bio};
use events::time::MILLISECOND;
use proptest::prelude::*;

const LEARNING: [Version; 4] = [Version::Linux2_6_2, Version::Linux2_6_15, Version::Linux2_6_24, Version::Linux2_6_32];

fn bench(version: Version) -> Bench<Anticipatory> {
    Bench::new(Anticipatory::new(version, AnticipatoryTunables::of(version, 1000), 1000))
}

fn read_of(task: TaskId, now: Time, start: Sector) -> Bio {
    Bio { task, ..bio(now, Read, start) }
}

/// Task 1 reads that many sectors further each time, without thinking, so that it is known.
fn reader(version: Version, stride: u64) -> (Bench<Anticipatory>, Time) {
    let mut bench = bench(version);
    let mut now = 0;
    for n in 0..10 {
        bench.add_bio(now, &read_of(1, now, n * stride));
        let id = bench.scheduler.dispatch(now, &bench.requests).expect("alone");
        now += MILLISECOND;
        bench.scheduler.completed(now, &bench.requests, id);
    }
    (bench, now)
}

/// In sequence.
fn known_reader(version: Version) -> (Bench<Anticipatory>, Time) {
    reader(version, 8)
}

#[test]
fn after_a_read_it_waits_for_the_readers_next_although_others_are_queued() {
    for version in LEARNING {
        let (mut bench, now) = known_reader(version);
        bench.add_bio(now, &read_of(2, now, 100_000_000));
        assert_eq!(bench.scheduler.dispatch(now, &bench.requests), None, "{version:?}");
        assert!(bench.scheduler.is_anticipating());
        bench.add_bio(now + MILLISECOND, &read_of(1, now + MILLISECOND, 80));
        assert_eq!(bench.dispatched(now + MILLISECOND, 1), [80]);
    }
}

#[test]
fn it_waits_no_longer_than_antic_expire() {
    let (mut bench, now) = known_reader(Version::Linux2_6_32);
    bench.add_bio(now, &read_of(2, now, 100_000_000));
    assert_eq!(bench.scheduler.dispatch(now, &bench.requests), None);
    let wakes = bench.scheduler.next_wakeup().expect("a timer");
    assert_eq!(wakes, now + 6 * MILLISECOND);
    bench.scheduler.wake(wakes, &bench.requests);
    assert_eq!(bench.dispatched(wakes, 1), [100_000_000]);
}

#[test]
fn a_close_request_of_another_task_ends_the_wait() {
    let (mut bench, now) = known_reader(Version::Linux2_6_32);
    bench.add_bio(now, &read_of(2, now, 100_000_000));
    assert_eq!(bench.scheduler.dispatch(now, &bench.requests), None);
    bench.add_bio(now, &read_of(3, now, 100));
    assert_eq!(bench.dispatched(now, 1), [100]);
}

#[test]
fn writes_are_not_waited_for() {
    let mut bench = bench(Version::Linux2_6_32);
    bench.add(0, Write, &[1000, 90_000_000]);
    let id = bench.scheduler.dispatch(0, &bench.requests).unwrap();
    bench.scheduler.completed(MILLISECOND, &bench.requests, id);
    assert_eq!(bench.dispatched(MILLISECOND, 1), [-90_000_000]);
}

#[test]
fn with_antic_expire_0_nothing_is_waited_for() {
    let tunables = AnticipatoryTunables { antic_expire_ns: 0, ..AnticipatoryTunables::of(Version::Linux2_6_32, 1000) };
    let mut bench = Bench::new(Anticipatory::new(Version::Linux2_6_32, tunables, 1000));
    bench.add_bio(0, &read_of(1, 0, 0));
    let id = bench.scheduler.dispatch(0, &bench.requests).unwrap();
    bench.scheduler.completed(MILLISECOND, &bench.requests, id);
    bench.add_bio(MILLISECOND, &read_of(2, MILLISECOND, 100_000_000));
    assert_eq!(bench.dispatched(MILLISECOND, 1), [100_000_000]);
}

/// Task 1 reads again 15 ms after each read has completed, the given sectors further.
fn slow_thinker(version: Version, step: Sector) -> (Bench<Anticipatory>, Time) {
    let mut bench = bench(version);
    let mut now = 0;
    for n in 0..10 {
        bench.add_bio(now, &read_of(1, now, n * step));
        let id = bench.scheduler.dispatch(now, &bench.requests).expect("alone");
        bench.scheduler.completed(now + MILLISECOND, &bench.requests, id);
        now += 16 * MILLISECOND;
    }
    (bench, now)
}

#[test]
fn a_slow_thinker_is_not_waited_for() {
    for version in LEARNING {
        let (mut bench, now) = slow_thinker(version, 8);
        bench.add_bio(now, &read_of(2, now, 100_000_000));
        assert_eq!(bench.dispatched(now, 1), [100_000_000], "{version:?}");
    }
}

#[test]
fn the_draft_waits_for_every_reader_whatever_it_did_before() {
    for step in [8, 50_000_000] {
        let (mut bench, now) = slow_thinker(Version::Draft, step);
        bench.add_bio(now, &read_of(2, now, 1_000_000_000));
        assert_eq!(bench.scheduler.dispatch(now, &bench.requests), None);
        // A 25th of a second after its last read completed 15 ms ago.
        let wakes = bench.scheduler.next_wakeup();
        assert_eq!(wakes, Some(now + 25 * MILLISECOND), "step {step}");
    }
}

#[test]
fn the_draft_waits_after_reads_only() {
    for (version, waits) in [(Version::Draft, false), (Version::Linux2_6_2, true)] {
        let mut bench = bench(version);
        let write = |task, start| Bio { task, sync: true, ..bio(0, Write, start) };
        bench.add_bio(0, &write(1, 0));
        let id = bench.scheduler.dispatch(0, &bench.requests).unwrap();
        bench.scheduler.completed(MILLISECOND, &bench.requests, id);
        bench.add_bio(MILLISECOND, &write(2, 50_000_000));
        let waited = bench.scheduler.dispatch(MILLISECOND, &bench.requests).is_none();
        assert_eq!(waited, waits, "{version:?}");
    }
}

#[test]
fn a_change_of_batch_waits_until_the_device_is_empty() {
    let mut bench = bench(Version::Linux2_6_32);
    bench.add(0, Write, &[1000]);
    let write = bench.scheduler.dispatch(0, &bench.requests).unwrap();
    bench.add_bio(MILLISECOND, &read_of(1, MILLISECOND, 50_000));
    assert_eq!(bench.scheduler.dispatch(MILLISECOND, &bench.requests), None);
    bench.scheduler.completed(2 * MILLISECOND, &bench.requests, write);
    assert_eq!(bench.dispatched(2 * MILLISECOND, 1), [50_000]);
}

#[test]
fn the_default_wait_is_a_150th_of_a_second_in_whole_ticks() {
    let wait_ns = |hz| AnticipatoryTunables::of(Version::Linux2_6_32, hz).antic_expire_ns;
    assert_eq!([1000, 250, 100].map(wait_ns), [6, 4, 10].map(|ms| ms * MILLISECOND));
}

#[test]
fn the_distance_of_close_requests_doubles_with_each_tick_of_waiting() {
    for (version, waited_ms, start, close) in [
        (Version::Linux2_6_32, 0, 80 + 8192, true),
        (Version::Linux2_6_32, 0, 80 + 8193, false),
        (Version::Linux2_6_32, 1, 80 + 16_384, true),
        (Version::Linux2_6_32, 1, 80 + 16_385, false),
        (Version::Linux2_6_2, 1, 80 + 64, true),
        (Version::Linux2_6_2, 1, 80 + 65, false),
        (Version::Linux2_6_2, 2, 80 + 128, true),
        (Version::Linux2_6_2, 2, 80 + 129, false),
    ] {
        let (mut bench, now) = known_reader(version);
        bench.add_bio(now, &read_of(2, now, 100_000_000));
        assert_eq!(bench.scheduler.dispatch(now, &bench.requests), None);
        let then = now + waited_ms * MILLISECOND;
        bench.add_bio(then, &read_of(3, then, start));
        assert_eq!(!bench.scheduler.is_anticipating(), close, "{version:?}: {start} after {waited_ms} ms");
    }
}

#[test]
fn the_distance_of_close_requests_grows_with_milliseconds_until_2_6_23() {
    for (version, window) in [(Version::Linux2_6_15, 8192 << 4), (Version::Linux2_6_24, 8192 << 1)] {
        for (start, close) in [(8 + window, true), (8 + window + 1, false)] {
            let tunables =
                AnticipatoryTunables { antic_expire_ns: 20 * MILLISECOND, ..AnticipatoryTunables::of(version, 250) };
            let mut bench = Bench::new(Anticipatory::new(version, tunables, 250));
            bench.add_bio(0, &read_of(1, 0, 0));
            let id = bench.scheduler.dispatch(0, &bench.requests).unwrap();
            bench.scheduler.completed(0, &bench.requests, id);
            bench.add(0, Write, &[100_000_000]);
            assert_eq!(bench.scheduler.dispatch(0, &bench.requests), None);
            let tick = 4 * MILLISECOND;
            bench.add_bio(tick, &read_of(2, tick, start));
            let ended = !bench.scheduler.is_anticipating();
            assert_eq!(ended, close, "{version:?}: {start}");
        }
    }
}

#[test]
fn until_2_6_14_what_is_nearer_than_the_target_usually_goes_ends_the_wait_though_nobody_waits_for_it() {
    for (version, start, ends) in [
        (Version::Linux2_6_2, 950_000, true),
        (Version::Linux2_6_2, 1_100_000, false),
        (Version::Linux2_6_15, 950_000, false),
    ] {
        let (mut bench, now) = reader(version, 100_000);
        bench.add(now, Write, &[100_000_000]);
        assert_eq!(bench.scheduler.dispatch(now, &bench.requests), None);
        bench.add(now, Write, &[start]);
        let ended = !bench.scheduler.is_anticipating();
        assert_eq!(ended, ends, "{version:?}: {start}");
    }
}

#[test]
fn until_2_6_14_a_close_request_of_another_task_begins_the_think_time_anew() {
    for (version, ticks, learned) in [(Version::Linux2_6_2, 14, false), (Version::Linux2_6_15, 10, true)] {
        let (mut bench, now) = known_reader(version);
        bench.add(now, Write, &[100_000_000]);
        assert_eq!(bench.scheduler.dispatch(now, &bench.requests), None);
        let then = now + 4 * MILLISECOND;
        bench.add_bio(then, &read_of(2, then, 100));
        assert!(!bench.scheduler.is_anticipating());
        let io_context = bench.scheduler.io_context_of(1);
        assert_eq!(io_context.last_end, Some(ticks), "{version:?}");
        let think = io_context.think.get().expect("known");
        assert_eq!(think > 0, learned, "{version:?}: {think}");
    }
}

#[test]
fn until_2_6_14_nobody_unknown_is_waited_for_once_more_than_half_of_such_waits_were_in_vain() {
    for (version, waited) in [(Version::Linux2_6_2, 6), (Version::Linux2_6_15, 9)] {
        let mut all = Fates { bench: bench(version), now: 0, task: 0 };
        let waits = (0..9).filter(|_| all.meet(Fate::Lives)).count();
        assert_eq!(waits, waited, "{version:?}");
    }
}

#[test]
fn until_2_6_23_a_batch_of_writes_begins_with_the_nearest() {
    for (version, first) in [(Version::Linux2_6_15, -2000), (Version::Linux2_6_24, -90_000_000)] {
        let mut bench = bench(version);
        bench.add(0, Write, &[90_000_000, 2000]);
        assert_eq!(bench.dispatched(0, 1), [first], "{version:?}");
    }
}

/// A batch of reads is over, writes are queued, one read is at the device, and another waits behind it.
#[test]
fn a_batch_of_writes_that_waited_for_a_read_at_the_device_has_its_time_in_the_last_version_only() {
    for (version, next) in [(Version::Linux2_6_24, 9000), (Version::Linux2_6_32, -90_000_000)] {
        let tunables = AnticipatoryTunables { antic_expire_ns: 0, ..AnticipatoryTunables::of(version, 1000) };
        let mut bench = Bench::new(Anticipatory::new(version, tunables, 1000));
        bench.add_bio(0, &read_of(1, 0, 0));
        let read = bench.scheduler.dispatch(0, &bench.requests).unwrap();
        let late = 600 * MILLISECOND;
        bench.add(late, Write, &[90_000_000]);
        bench.add_bio(late, &read_of(2, late, 9000));
        assert_eq!(bench.scheduler.dispatch(late, &bench.requests), None);
        bench.scheduler.completed(late, &bench.requests, read);
        assert_eq!(bench.dispatched(late, 1), [next], "{version:?}");
    }
}

#[test]
fn an_expired_write_is_served_before_the_next_in_order() {
    let mut bench = bench(Version::Linux2_6_32);
    bench.add(0, Write, &[5000]);
    bench.add(MILLISECOND, Write, &[1000, 2000]);
    bench.add(MILLISECOND, Write, &[6000]);
    let first = bench.dispatched(MILLISECOND, 1);
    assert_eq!(first, [-5000]);
    assert_eq!(bench.dispatched(600 * MILLISECOND, 1), [-1000], "the oldest, not -6000");
}

#[test]
fn what_is_behind_is_gone_to_when_nothing_is_ahead_or_the_first_of_all_is_nearer() {
    let mut bench = bench(Version::Linux2_6_32);
    // From 9,000,008: 8,900,000 is near behind; 100 is so far behind that it counts as ahead of all.
    bench.add(0, Write, &[9_000_000, 100, 8_900_000]);
    assert_eq!(bench.dispatched(0, 3), [-9_000_000, -8_900_000, -100]);
}

#[test]
fn the_target_with_more_at_the_device_is_waited_for() {
    let (mut bench, now) = known_reader(Version::Linux2_6_32);
    bench.add_bio(now, &read_of(1, now, 80));
    bench.add_bio(now, &read_of(1, now, 96));
    let first = bench.scheduler.dispatch(now, &bench.requests).unwrap();
    assert!(bench.scheduler.dispatch(now, &bench.requests).is_some());
    bench.add_bio(now, &read_of(2, now, 100_000_000));
    bench.scheduler.completed(now + MILLISECOND, &bench.requests, first);
    assert_eq!(bench.scheduler.dispatch(now + MILLISECOND, &bench.requests), None);
}

#[test]
fn the_first_version_waits_for_nobody() {
    let (mut bench, now) = known_reader(Version::First);
    bench.add_bio(now, &read_of(2, now, 100_000_000));
    assert_eq!(bench.dispatched(now, 1), [100_000_000]);
}

#[test]
fn a_target_that_has_exited_is_not_waited_for_until_2_6_14_but_by_the_draft() {
    for (version, waits) in [
        (Version::Draft, true),
        (Version::Linux2_6_2, false),
        (Version::Linux2_6_15, true),
        (Version::Linux2_6_32, true),
    ] {
        let (mut bench, now) = known_reader(version);
        bench.scheduler.exited(now, 1);
        bench.add_bio(now, &read_of(2, now, 100_000_000));
        let waited = bench.scheduler.dispatch(now, &bench.requests).is_none();
        assert_eq!(waited, waits, "{version:?}");
    }
}

#[test]
fn the_task_that_is_waited_for_gets_a_request_although_none_is_left() {
    let (mut bench, now) = known_reader(Version::Linux2_6_32);
    assert!(!bench.scheduler.may_exceed_pool(&read_of(1, 0, 0)));
    bench.add_bio(now, &read_of(2, now, 100_000_000));
    assert_eq!(bench.scheduler.dispatch(now, &bench.requests), None);
    assert!(bench.scheduler.may_exceed_pool(&read_of(1, 0, 0)));
    assert!(!bench.scheduler.may_exceed_pool(&read_of(2, 0, 0)));
}

#[test]
fn a_batch_of_writes_ends_after_a_tenth_of_its_ticks_in_requests_while_reads_wait() {
    let mut bench = bench(Version::Linux2_6_32);
    let writes: Vec<Sector> = (0..30).map(|n| n * 1000).collect();
    bench.add(0, Write, &writes);
    let mut at_device = vec![bench.scheduler.dispatch(0, &bench.requests).unwrap()];
    bench.add_bio(0, &read_of(1, 0, 90_000_000));
    while let Some(id) = bench.scheduler.dispatch(0, &bench.requests) {
        at_device.push(id);
    }
    assert_eq!(at_device.len(), 125 / 10);
    for id in at_device {
        bench.scheduler.completed(0, &bench.requests, id);
    }
    assert_eq!(bench.dispatched(0, 1), [90_000_000]);
}

#[test]
fn the_line_is_looked_at_once_in_the_time_that_requests_have() {
    let tunables = AnticipatoryTunables { antic_expire_ns: 0, ..AnticipatoryTunables::of(Version::Linux2_6_32, 1000) };
    let mut bench = Bench::new(Anticipatory::new(Version::Linux2_6_32, tunables, 1000));
    bench.add(0, Read, &[9_000_000, 8_000_000, 1000]);
    let late = 126 * MILLISECOND;
    // Both of the first two have expired; only one is served for it.
    assert_eq!(bench.dispatched(late, 1), [9_000_000]);
    bench.add(late, Read, &[9_000_008]);
    assert_eq!(bench.dispatched(late, 1), [9_000_008]);
}

#[test]
fn a_task_with_the_number_of_one_that_has_exited_is_not_known() {
    let (mut bench, now) = known_reader(Version::Linux2_6_32);
    assert!(bench.scheduler.io_context_of(1).think.get().is_some());
    bench.scheduler.exited(now, 1);
    bench.add_bio(now, &read_of(1, now, 50_000_000));
    let io_context = bench.scheduler.io_context_of(1);
    assert_eq!((io_context.think.get(), io_context.seek.get()), (None, None));
    assert_eq!((io_context.exited, io_context.queued), (false, 1));
}

#[test]
fn a_request_under_the_number_of_the_task_that_is_waited_for_is_not_its() {
    let (mut bench, now) = known_reader(Version::Linux2_6_32);
    bench.scheduler.exited(now, 1);
    bench.add_bio(now, &read_of(2, now, 100_000_000));
    assert_eq!(bench.scheduler.dispatch(now, &bench.requests), None);
    bench.add_bio(now, &read_of(1, now, 50_000_000));
    assert!(bench.scheduler.is_anticipating(), "another task, far away");
    let wakes = bench.scheduler.next_wakeup().expect("a timer");
    assert_eq!(wakes, now + 6 * MILLISECOND);
    bench.scheduler.wake(wakes, &bench.requests);
    assert_eq!(bench.scheduler.strangers.no_cooperation, 32);
    assert_eq!(bench.dispatched(wakes, 1), [50_000_000]);
}

/// What becomes of a task that has read once, and is waited for with a write behind it.
#[derive(Clone, Copy, Debug)]
enum Fate {
    /// It lives, and sends nothing more for now.
    Lives,
    Exits,
    /// It exits, and another task continues where it stopped, and does not exit.
    IsContinued,
    /// It reads once more, and exits.
    ExitsKnown,
}

/// Exit probability and that of no cooperation, by the rules: each observation counts an eighth.
#[derive(Clone, Copy, Debug, Default)]
struct Odds {
    exit: u64,
    no_cooperation: u64,
}

fn risen(probability: u64) -> u64 {
    (7 * probability + 256) / 8
}

impl Odds {
    /// Whether a task is waited for of which no think time is known.
    fn waits_for_unknown(&mut self, exited: bool) -> bool {
        if exited {
            self.exit = risen(self.exit);
        }
        let never_continued = exited && self.no_cooperation > 128;
        !never_continued && self.exit * self.no_cooperation <= 128 * 256
    }

    /// Waits through; true if it did.
    fn meet(&mut self, fate: Fate) -> bool {
        match fate {
            Fate::Lives | Fate::Exits => {
                let exits = matches!(fate, Fate::Exits);
                let waits = self.waits_for_unknown(exits);
                if waits {
                    self.exit = risen(self.exit);
                    self.no_cooperation = if exits { risen(self.no_cooperation) } else { self.no_cooperation };
                }
                waits
            }
            Fate::IsContinued => {
                let waits = self.waits_for_unknown(true);
                if waits {
                    self.exit = risen(self.exit) * 7 / 8;
                    self.no_cooperation = 7 * self.no_cooperation / 8;
                    self.meet(Fate::Lives);
                }
                waits
            }
            Fate::ExitsKnown => {
                self.exit = 7 * self.exit / 8;
                let waits = self.no_cooperation <= 128;
                if waits {
                    self.no_cooperation = risen(self.no_cooperation);
                }
                waits
            }
        }
    }
}

/// A bench on which tasks meet their fates one after the other, each far from the last.
struct Fates {
    bench: Bench<Anticipatory>,
    now: Time,
    task: TaskId,
}

impl Fates {
    fn read(&mut self, task: TaskId, start: Sector) {
        let (bench, now) = (&mut self.bench, self.now);
        bench.add_bio(now, &read_of(task, now, start));
        self.serve(start as i64);
    }

    fn serve(&mut self, expected: i64) {
        let (bench, now) = (&mut self.bench, self.now);
        let id = bench.scheduler.dispatch(now, &bench.requests).expect("served at once");
        assert_eq!(bench.requests[id].start as i64, expected.abs());
        self.now += MILLISECOND;
        bench.scheduler.completed(self.now, &bench.requests, id);
        bench.requests.take(id);
    }

    /// Whether it holds the write back; if so, until the timer has run out.
    fn waits_in_vain(&mut self) -> bool {
        let scheduler = &mut self.bench.scheduler;
        if !scheduler.is_anticipating() {
            return false;
        }
        self.now = scheduler.next_wakeup().expect("a timer");
        scheduler.wake(self.now, &self.bench.requests);
        true
    }

    fn meet(&mut self, fate: Fate) -> bool {
        self.task += 2;
        let (task, start) = (self.task, u64::from(self.task) * 10_000_000);
        self.read(task, start);
        if matches!(fate, Fate::ExitsKnown) {
            self.read(task, start + 8);
        }
        if !matches!(fate, Fate::Lives) {
            self.bench.scheduler.exited(self.now, task);
        }
        let write = start + 5_000_000;
        self.bench.add(self.now, Write, &[write]);
        if let Some(id) = self.bench.scheduler.dispatch(self.now, &self.bench.requests) {
            self.now += MILLISECOND;
            self.bench.scheduler.completed(self.now, &self.bench.requests, id);
            self.bench.requests.take(id);
            return false;
        }
        if matches!(fate, Fate::IsContinued) {
            self.read(task + 1, start + 8);
            if self.bench.scheduler.dispatch(self.now, &self.bench.requests).is_none() {
                self.waits_in_vain();
                self.serve(write as i64);
            }
        } else {
            assert!(self.waits_in_vain());
            self.serve(write as i64);
        }
        true
    }
}

fn fate() -> impl Strategy<Value = Fate> {
    prop_oneof![
        2 => Just(Fate::Lives),
        5 => Just(Fate::Exits),
        2 => Just(Fate::IsContinued),
        2 => Just(Fate::ExitsKnown),
    ]
}

#[test]
fn the_seventh_exit_that_nobody_continues_is_not_waited_for() {
    let mut odds = Odds::default();
    let waits: Vec<bool> = (0..8).map(|_| odds.meet(Fate::Exits)).collect();
    assert_eq!(waits, [true, true, true, true, true, true, false, false]);
    assert_eq!(odds.no_cooperation, 139);
}

proptest! {
    #[test]
    fn exit_probabilities_follow_what_became_of_tasks(fates in prop::collection::vec(fate(), 1..60)) {
        let mut all = Fates { bench: bench(Version::Linux2_6_32), now: 0, task: 0 };
        let mut odds = Odds::default();
        for fate in fates {
            prop_assert_eq!(all.meet(fate), odds.meet(fate), "{:?}", fate);
            let strangers = all.bench.scheduler.strangers;
            prop_assert_eq!((strangers.exit, strangers.no_cooperation), (odds.exit, odds.no_cooperation));
        }
    }
}

fn version() -> impl Strategy<Value = Version> {
    let rest = LEARNING.map(Just).to_vec();
    prop_oneof![Just(Version::Draft), Just(Version::First), proptest::strategy::Union::new(rest)]
}

proptest! {
    #[test]
    fn nothing_is_lost_or_done_twice(load in invariants::arrivals(4), depth in 1u32..8, version in version()) {
        let scheduler = Anticipatory::new(version, AnticipatoryTunables::of(version, 1000), 1000);
        invariants::completes_each_once(&invariants::serve(Box::new(scheduler), &load, depth, MILLISECOND));
    }
}
