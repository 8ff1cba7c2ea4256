use super::*;
use crate::Direction::{Read, Write};
use crate::invariants::{self, bench::Bench, bench::bio};
use proptest::prelude::*;

fn bench() -> Bench<CfqByService> {
    let tunables = CfqByServiceTunables { quantum: 1, ..CfqByServiceTunables::default() };
    Bench::new(CfqByService::new(tunables, 1000, POOL_REQUESTS))
}

fn read_of(task: TaskId, start: Sector) -> Bio {
    Bio { task, ..bio(0, Read, start) }
}

/// Dispatches one request and completes it after that time; returns where it starts.
fn serve(bench: &mut Bench<CfqByService>, now: Time, takes: Time) -> Sector {
    let id = bench.scheduler.dispatch(now, &bench.requests).unwrap();
    let start = bench.requests[id].start;
    bench.scheduler.completed(now + takes, &bench.requests, id);
    start
}

#[test]
fn whoever_had_less_time_of_the_device_is_first() {
    let mut bench = bench();
    for n in 0..4 {
        bench.add_bio(0, &read_of(1, 1000 + 8 * n));
        bench.add_bio(0, &read_of(2, 90_000_000 + 8 * n));
    }
    let mut order = Vec::new();
    let mut now = 0;
    for takes_ms in [20, 5, 5, 5] {
        let start = serve(&mut bench, now, takes_ms * MILLISECOND);
        order.push(start < 1_000_000);
        now += takes_ms * MILLISECOND;
    }
    // Two rounds of one each: in the second, the queue that had 20 ms comes last.
    let first = order[0];
    assert_eq!(order, [first, !first, !first, first]);
}

#[test]
fn the_names_of_the_times_after_which_requests_expire_are_exchanged() {
    let waits = |sync: bool| {
        let mut bench = bench();
        let old = Bio { sync, ..read_of(1, 5_000_000) };
        bench.add_bio(0, &old);
        bench.add_bio(0, &read_of(1, 1000));
        let now = 600 * MILLISECOND;
        serve(&mut bench, now, MILLISECOND)
    };
    assert_eq!(waits(false), 5_000_000, "async: after 500 ms");
    assert_eq!(waits(true), 1000, "sync: after 5 s");
}

#[test]
fn nobody_has_more_than_a_sixteenth_of_the_pool_and_everybody_some() {
    let mut bench = bench();
    let write = |n: u64| Bio { direction: Write, ..read_of(1, n * 1000) };
    let fits = (0..200).take_while(|&n| {
        let lets = bench.scheduler.lets_queue(&write(n));
        bench.add_bio(0, &write(n));
        lets
    });
    assert_eq!(fits.count(), 64);
    assert!(bench.scheduler.lets_queue(&read_of(1, 0)));
    bench.add_bio(0, &read_of(2, 0));
    assert!(bench.scheduler.may_exceed_pool(&read_of(2, 0)));
    assert!(!bench.scheduler.may_exceed_pool(&write(0)));
}

#[test]
fn on_a_device_that_queues_commands_requests_are_counted_instead_of_time() {
    let mut bench = bench();
    for n in 0..8 {
        bench.add_bio(0, &read_of(1, 1000 * n));
    }
    let taken: Vec<RequestId> = (0..4).map(|_| bench.scheduler.dispatch(0, &bench.requests).unwrap()).collect();
    assert!(bench.scheduler.counts_requests);
    for id in taken {
        bench.scheduler.completed(900 * MILLISECOND, &bench.requests, id);
    }
    assert_eq!(bench.scheduler.queues[0].service, 0, "time does not count");
    bench.scheduler.dispatch(900 * MILLISECOND, &bench.requests);
    assert_eq!(bench.scheduler.queues[0].service, 1);
}

proptest! {
    #[test]
    fn nothing_is_lost_or_done_twice(load in invariants::arrivals(4), depth in 1u32..16, find_best: bool) {
        let tunables = CfqByServiceTunables { find_best, ..CfqByServiceTunables::default() };
        let scheduler = Box::new(CfqByService::new(tunables, 1000, POOL_REQUESTS));
        invariants::completes_each_once(&invariants::serve(scheduler, &load, depth, MILLISECOND));
    }
}
