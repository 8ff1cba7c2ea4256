use super::*;
use crate::Direction::{Read, Write};
use crate::IoClass;
use crate::invariants::{self, bench::Bench, bench::bio};
use proptest::prelude::*;

fn cfq(slice_idle_ms: u64) -> CfqLists {
    of(Version::Linux2_6_15, slice_idle_ms)
}

fn of(version: Version, slice_idle_ms: u64) -> CfqLists {
    let mut tunables = CfqListsTunables::of(version);
    tunables.common.slice_idle_ns = slice_idle_ms * MILLISECOND;
    CfqLists::new(version, tunables, 1000)
}

fn read_of(task: TaskId, start: Sector) -> Bio {
    Bio { task, ..bio(0, Read, start) }
}

fn next(bench: &mut Bench<CfqLists>, now: Time) -> Option<(RequestId, Sector)> {
    let id = bench.scheduler.dispatch(now, &bench.requests)?;
    Some((id, bench.requests[id].start))
}

#[test]
fn others_wait_for_the_next_request_of_the_task_whose_slice_it_is() {
    let mut bench = Bench::new(cfq(10));
    bench.add_bio(0, &read_of(1, 100));
    bench.add_bio(0, &read_of(2, 90_000_000));
    let (first, start) = next(&mut bench, 0).unwrap();
    assert_eq!(start, 100, "nobody had a slice when it came");
    assert!(next(&mut bench, 0).is_none(), "waits already now");
    assert_eq!(bench.scheduler.next_wakeup(), Some(10 * MILLISECOND));
    let now = MILLISECOND;
    bench.scheduler.completed(now, &bench.requests, first);
    bench.add_bio(2 * MILLISECOND, &read_of(1, 108));
    assert_eq!(next(&mut bench, 2 * MILLISECOND).unwrap().1, 108);
}

#[test]
fn whoever_sends_nothing_for_slice_idle_loses_its_turn() {
    let mut bench = Bench::new(cfq(10));
    bench.add_bio(0, &read_of(1, 100));
    bench.add_bio(0, &read_of(2, 90_000_000));
    let (first, _) = next(&mut bench, 0).unwrap();
    bench.scheduler.completed(MILLISECOND, &bench.requests, first);
    assert!(next(&mut bench, MILLISECOND).is_none());
    let then = 11 * MILLISECOND;
    let wakeup = bench.scheduler.next_wakeup();
    assert_eq!(wakeup, Some(then), "each attempt arms the timer anew");
    bench.scheduler.wake(then, &bench.requests);
    assert_eq!(next(&mut bench, then).unwrap().1, 90_000_000);
}

#[test]
fn requests_of_a_queue_leave_from_the_lowest_sector_wherever_the_device_is() {
    let mut bench = Bench::new(cfq(10));
    for start in [5000, 6000, 7000, 8000, 1000] {
        bench.add_bio(0, &read_of(1, start));
    }
    assert_eq!(bench.dispatched(0, 4), [1000, 5000, 6000, 7000]);
}

#[test]
fn levels_have_their_turns_in_sweeps_that_go_further_each_time() {
    let mut lists = Lists::default();
    for level in 0..3 {
        lists.of(List::Level(level)).push_back(usize::from(level));
    }
    let mut order = Vec::new();
    for _ in 0..6 {
        let id = lists.next(&mut Vec::new()).unwrap();
        lists.remove(List::Current, id);
        lists.of(List::Level(id as u8)).push_back(id);
        order.push(id);
    }
    assert_eq!(order, [0, 0, 1, 0, 1, 2]);
}

#[test]
fn all_of_a_task_goes_where_its_first_request_went() {
    let mut bench = Bench::new(cfq(10));
    bench.add_bio(0, &read_of(1, 1000));
    let write = Bio { task: 1, ..bio(0, Write, 5000) };
    bench.add_bio(0, &write);
    let read = Bio { start: 9000, ..read_of(2, 0) };
    bench.add_bio(0, &read);
    assert_eq!(bench.dispatched(0, 3), [1000, -5000]);
}

#[test]
fn in_2_6_18_a_task_that_seeks_is_waited_for_only_a_little() {
    for (version, waits_ms) in [(Version::Linux2_6_15, 10), (Version::Linux2_6_18, 2)] {
        let mut bench = Bench::new(of(version, 10));
        let mut now = 0;
        for n in 0..10 {
            bench.add_bio(now, &read_of(1, n % 2 * 90_000_000));
            let (id, _) = next(&mut bench, now).unwrap();
            now += MILLISECOND;
            bench.scheduler.completed(now, &bench.requests, id);
        }
        bench.add_bio(now, &read_of(2, 5000));
        assert!(next(&mut bench, now).is_none(), "{version:?}");
        let wakes = bench.scheduler.next_wakeup();
        assert_eq!(wakes, Some(now + waits_ms * MILLISECOND), "{version:?}");
    }
}

#[test]
fn in_2_6_18_nobody_is_waited_for_once_five_requests_were_at_the_device() {
    for (version, waits) in [(Version::Linux2_6_15, true), (Version::Linux2_6_18, false)] {
        let mut bench = Bench::new(of(version, 10));
        for n in 0..5 {
            bench.add_bio(0, &read_of(1, n * 1000));
        }
        let at_device: Vec<_> = (0..5).map_while(|_| next(&mut bench, 0)).collect();
        assert_eq!(at_device.len(), 5);
        for (id, _) in at_device {
            bench.scheduler.completed(MILLISECOND, &bench.requests, id);
        }
        bench.add_bio(MILLISECOND, &read_of(1, 9000));
        let (id, _) = next(&mut bench, MILLISECOND).unwrap();
        bench.add_bio(MILLISECOND, &read_of(2, 90_000_000));
        let now = 2 * MILLISECOND;
        bench.scheduler.completed(now, &bench.requests, id);
        assert_eq!(next(&mut bench, now).is_none(), waits, "{version:?}");
    }
}

#[test]
fn in_2_6_18_reads_and_buffered_writes_of_a_task_have_queues_of_their_own() {
    let mut bench = Bench::new(of(Version::Linux2_6_18, 10));
    bench.add_bio(0, &read_of(1, 1000));
    let write = Bio { task: 1, ..bio(0, Write, 5000) };
    bench.add_bio(0, &write);
    assert_eq!(bench.dispatched(0, 3), [1000], "the write has another turn");
}

#[test]
fn the_idle_class_waits_until_nobody_has_wanted_the_device_for_a_tenth_of_a_second() {
    let mut bench = Bench::new(cfq(0));
    let idle = Bio { priority: Priority { class: IoClass::Idle, level: 7 }, ..read_of(2, 5000) };
    bench.add_bio(0, &read_of(1, 1000));
    bench.add_bio(0, &idle);
    let (first, _) = next(&mut bench, 0).unwrap();
    assert!(next(&mut bench, 0).is_none());
    let end = 20 * MILLISECOND;
    bench.scheduler.completed(end, &bench.requests, first);
    assert!(next(&mut bench, end).is_none());
    let then = bench.scheduler.next_wakeup().unwrap();
    assert_eq!(then, end + 100 * MILLISECOND);
    bench.scheduler.wake(then, &bench.requests);
    assert_eq!(next(&mut bench, then).unwrap().1, 5000);
}

proptest! {
    #[test]
    fn nothing_is_lost_or_done_twice(
        load in invariants::arrivals(4),
        depth in 1u32..16,
        slice_idle_ms in prop::sample::select(vec![0u64, 10]),
        later: bool,
    ) {
        let version = if later { Version::Linux2_6_18 } else { Version::Linux2_6_15 };
        let scheduler = of(version, slice_idle_ms);
        invariants::completes_each_once(&invariants::serve(Box::new(scheduler), &load, depth, MILLISECOND));
    }
}
