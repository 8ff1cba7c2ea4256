use super::*;
use crate::Direction::{Read, Write};
use crate::Priority;
use crate::invariants::{self, bench::Bench, bench::bio};
use proptest::prelude::*;

fn cfq(slice_idle_ms: u64, rotational: bool) -> CfqSlices {
    let tunables = CfqTunables { quantum: 4, slice_idle_ns: slice_idle_ms * MILLISECOND, ..CfqTunables::default() };
    CfqSlices::new(tunables, Surroundings { hz: 1000, rotational })
}

fn read_of(task: TaskId, start: Sector) -> Bio {
    Bio { task, ..bio(0, Read, start) }
}

fn next(bench: &mut Bench<CfqSlices>, now: Time) -> Option<(RequestId, Sector)> {
    let id = bench.scheduler.dispatch(now, &bench.requests)?;
    Some((id, bench.requests[id].start))
}

#[test]
fn others_wait_while_the_device_is_idle_for_the_next_of_a_sequential_task() {
    let mut bench = Bench::new(cfq(8, true));
    bench.add_bio(0, &read_of(1, 100));
    bench.add_bio(0, &read_of(2, 90_000_000));
    let (first, start) = next(&mut bench, 0).unwrap();
    assert_eq!(start, 100);
    assert!(next(&mut bench, 0).is_none(), "2 has its turn later");
    let now = MILLISECOND;
    bench.scheduler.completed(now, &bench.requests, first);
    assert!(next(&mut bench, now).is_none());
    assert_eq!(bench.scheduler.next_wakeup(), Some(9 * MILLISECOND));
    bench.add_bio(2 * MILLISECOND, &read_of(1, 108));
    assert_eq!(next(&mut bench, 2 * MILLISECOND).unwrap().1, 108);
}

#[test]
fn nobody_is_waited_for_in_vain_for_longer_than_slice_idle() {
    let mut bench = Bench::new(cfq(8, true));
    bench.add_bio(0, &read_of(1, 100));
    bench.add_bio(0, &read_of(2, 90_000_000));
    let (first, _) = next(&mut bench, 0).unwrap();
    bench.scheduler.completed(MILLISECOND, &bench.requests, first);
    bench.scheduler.wake(9 * MILLISECOND, &bench.requests);
    let second = next(&mut bench, 9 * MILLISECOND).unwrap();
    assert_eq!(second.1, 90_000_000);
}

#[test]
fn a_device_without_seeks_that_takes_several_is_not_idled_on() {
    let mut bench = Bench::new(cfq(8, false));
    bench.add_bio(0, &read_of(1, 100));
    bench.add_bio(0, &read_of(2, 90_000_000));
    let (first, _) = next(&mut bench, 0).unwrap();
    bench.scheduler.completed(MILLISECOND, &bench.requests, first);
    assert_eq!(next(&mut bench, MILLISECOND).unwrap().1, 90_000_000);
}

#[test]
fn among_others_a_queue_has_a_quantum_at_the_device_in_ascending_order() {
    let mut bench = Bench::new(cfq(8, true));
    for n in [5, 3, 1, 4, 2, 6] {
        bench.add_bio(0, &read_of(1, n * 1000));
    }
    assert_eq!(bench.dispatched(0, 9), [1000, 2000, 3000, 4000, 5000, 6000], "alone it has all");
    let mut bench = Bench::new(cfq(8, true));
    for n in 1..7 {
        bench.add_bio(0, &read_of(1, n * 1000));
    }
    bench.add_bio(0, &read_of(2, 90_000_000));
    assert_eq!(bench.dispatched(0, 9).len(), 4);
}

#[test]
fn async_requests_wait_while_sync_ones_are_at_the_device() {
    let mut bench = Bench::new(cfq(0, true));
    bench.add_bio(0, &read_of(1, 1000));
    let (read, _) = next(&mut bench, 0).unwrap();
    bench.add(0, Write, &[5000]);
    assert!(next(&mut bench, 0).is_none());
    bench.scheduler.completed(MILLISECOND, &bench.requests, read);
    assert_eq!(next(&mut bench, MILLISECOND).unwrap().1, 5000);
}

#[test]
fn real_time_comes_first_and_the_idle_class_last() {
    let mut bench = Bench::new(cfq(8, true));
    for (task, class) in [(1, IoClass::Idle), (2, IoClass::BestEffort), (3, IoClass::RealTime)] {
        let priority = Priority { class, level: 4 };
        bench.add_bio(0, &Bio { priority, ..read_of(task, u64::from(task) * 1000) });
    }
    let mut order = Vec::new();
    let mut now = 0;
    while order.len() < 3 {
        while let Some((id, start)) = next(&mut bench, now) {
            order.push(start);
            now += MILLISECOND;
            bench.scheduler.completed(now, &bench.requests, id);
        }
        if let Some(at) = bench.scheduler.next_wakeup() {
            now = at.max(now);
            bench.scheduler.wake(now, &bench.requests);
        }
    }
    assert_eq!(order, [3000, 2000, 1000]);
}

#[test]
fn what_leaves_its_queue_takes_no_more_bios() {
    let mut bench = Bench::new(cfq(8, true));
    bench.add_bio(0, &read_of(1, 1000));
    bench.add_bio(0, &read_of(1, 2000));
    let both: Vec<RequestId> = bench.requests.iter().map(|(id, _)| id).collect();
    let may = |bench: &Bench<CfqSlices>, id| {
        let scheduler = &bench.scheduler;
        scheduler.may_merge(&bench.requests, id, &read_of(1, 2008))
    };
    assert!(may(&bench, both[1]));
    next(&mut bench, 0).unwrap();
    assert!(!may(&bench, both[1]), "both left at once");
}

proptest! {
    #[test]
    fn nothing_is_lost_or_done_twice(
        load in invariants::arrivals(4),
        depth in 1u32..16,
        slice_idle_ms in prop::sample::select(vec![0u64, 8]),
        rotational: bool,
    ) {
        let scheduler = cfq(slice_idle_ms, rotational);
        invariants::completes_each_once(&invariants::serve(Box::new(scheduler), &load, depth, MILLISECOND));
    }
}
