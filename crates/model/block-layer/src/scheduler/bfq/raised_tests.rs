//! Raised weights, and what turns cost: against `block/bfq-iosched.c` of 6.1.192.

use super::*;
use crate::Direction::{Read, Write};
use crate::Request;
use crate::invariants::bench::{Bench, bio};
use events::time::{MILLISECOND, SECOND};
use select::Reason;

const MIN_BUDGET: u64 = DEFAULT_MAX_BUDGET / 32;

fn bench_with(low_latency: bool) -> Bench<Bfq> {
    let tunables = BfqTunables { low_latency, ..BfqTunables::default() };
    Bench::new(Bfq::new(tunables, false, &[1000]))
}

fn read_of(task: TaskId, now: Time, start: Sector, sectors: u32) -> Bio {
    Bio { task, sectors, ..bio(now, Read, start) }
}

#[test]
fn a_raised_queue_has_two_smallest_budgets_however_its_turn_ends() {
    let mut bench = bench_with(true);
    bench.add_bio(0, &read_of(1, 0, 0, 256));
    let entity = bench.scheduler.queues[0].entity;
    let budget = bench.scheduler.hierarchy.entity(entity).budget;
    assert_eq!(budget, 2 * MIN_BUDGET, "its first turn, too");
    for reason in
        [Reason::TooIdle, Reason::BudgetTimeout, Reason::BudgetExhausted, Reason::NoMoreRequests, Reason::Preempted]
    {
        let deserved = bench.scheduler.deserved_budget(0, reason, 600);
        assert_eq!(deserved, Some(2 * MIN_BUDGET), "{reason:?}");
    }
}

#[test]
fn a_raised_weight_is_none_of_those_that_have_to_be_kept() {
    let mut bench = bench_with(true);
    bench.add_bio(0, &read_of(1, 0, 0, 256));
    bench.add_bio(0, &read_of(2, 0, 10_000_000, 256));
    for queue in 0..2 {
        bench.scheduler.lower(queue);
        bench.scheduler.settle_weight(queue);
    }
    bench.add_bio(0, &read_of(3, 0, 20_000_000, 256));
    let bfq = &bench.scheduler;
    let raised: Vec<bool> = bfq.queues.iter().map(|queue| queue.raised.is_some()).collect();
    assert_eq!(raised, [false, false, true]);
    assert!((0..3).all(|queue| !bfq.is_asymmetric(queue)));
    assert!(bfq.better_to_idle(2), "it is waited for as a raised one");
    assert!(!bfq.better_to_idle(0));
}

#[test]
fn a_raised_queue_may_take_as_many_times_as_long() {
    for (low_latency, factor) in [(false, 1), (true, 30)] {
        let mut bench = bench_with(low_latency);
        bench.add_bio(0, &read_of(1, 0, 0, 256));
        bench.dispatched(0, 1);
        let timeout_ns = bench.scheduler.tunables.timeout_ns;
        assert_eq!(bench.scheduler.times_out_at, factor * timeout_ns);
    }
}

/// At 250 ticks a second: `HZ / 8` are 31, and 30 ms are 8.
#[test]
fn a_turn_ends_with_a_tick() {
    let ends_at = |timeout_ns: Option<Time>, now: Time| {
        let default = BfqTunables::default();
        let tunables =
            BfqTunables { timeout_ns: timeout_ns.unwrap_or(default.timeout_ns), low_latency: false, ..default };
        let mut bench = Bench::new(Bfq::new(tunables, false, &[1000]).with_hz(250));
        bench.add_bio(now, &read_of(1, now, 0, 256));
        bench.dispatched(now, 1);
        bench.scheduler.times_out_at / MILLISECOND
    };
    assert_eq!(ends_at(None, 3 * MILLISECOND), 124);
    assert_eq!(ends_at(None, 4 * MILLISECOND), 128);
    assert_eq!(ends_at(Some(30 * MILLISECOND), 3 * MILLISECOND), 32);
}

/// What is charged for a turn of one request of 4 KiB that took so long.
fn charged(took_ns: Time, sync: bool, seeks: bool) -> u64 {
    let mut bench = bench_with(false);
    let request = Bio { sync, ..read_of(1, 0, 8_000_000, 8) };
    bench.add_bio(0, &request);
    bench.add_bio(0, &read_of(2, 0, 10_000_000, 8));
    for _ in 0..if seeks { 32 } else { 0 } {
        let request = Request::like(&read_of(1, 0, 0, 8));
        bench.scheduler.queues[0].note_seek(&request, false);
        let request = Request::like(&read_of(1, 0, 5_000_000, 8));
        bench.scheduler.queues[0].note_seek(&request, false);
    }
    assert_eq!(bench.dispatched(0, 1), [8_000_000]);
    bench.scheduler.now = took_ns;
    bench.scheduler.expire(&bench.requests, Reason::NoMoreRequests);
    let entity = bench.scheduler.queues[0].entity;
    bench.scheduler.hierarchy.entity(entity).service
}

#[test]
fn a_short_turn_of_a_queue_that_seeks_costs_two_milliseconds() {
    let of_ms = |ms| DEFAULT_MAX_BUDGET * ms / 125;
    assert_eq!(charged(MILLISECOND / 2, true, true), of_ms(2));
    assert_eq!(charged(9 * MILLISECOND / 2, true, true), of_ms(4));
    assert_eq!(charged(MILLISECOND / 2, true, false), 8);
    assert_eq!(charged(MILLISECOND / 2, false, true), 24, "async ones are not slow: three times their sectors");
}

#[test]
fn a_device_that_was_not_measured_keeps_the_budget_of_the_beginning() {
    let mut bench = bench_with(false);
    bench.scheduler.budgets_given = BUDGETS_ENOUGH;
    assert_eq!(bench.scheduler.max_budget(), DEFAULT_MAX_BUDGET);
    for n in 0..1100u64 {
        let rate = &mut bench.scheduler.peak_rate;
        rate.dispatched(n * MILLISECOND, n * 512, 512, 1);
    }
    assert!(bench.scheduler.max_budget() > DEFAULT_MAX_BUDGET);
    bench.scheduler.budgets_given = 0;
    assert_eq!(bench.scheduler.max_budget(), DEFAULT_MAX_BUDGET);
}

#[test]
fn an_async_queue_that_has_waited_for_half_a_second_is_raised() {
    let raised_after = |pause_ns| {
        let mut bench = bench_with(true);
        bench.add(0, Write, &[0]);
        bench.add(pause_ns, Write, &[100_000]);
        bench.scheduler.queues[0].raised.is_some()
    };
    assert!(!raised_after(500 * MILLISECOND));
    assert!(raised_after(501 * MILLISECOND));
}

#[test]
fn a_queue_that_waits_gets_its_whole_budget_with_another_first_request() {
    let mut bench = bench_with(false);
    bench.add_bio(0, &read_of(1, 0, 0, 8));
    bench.add_bio(0, &read_of(2, 0, 10_000_000, 8));
    assert_eq!(bench.dispatched(0, 1), [0]);
    let entity = bench.scheduler.queues[1].entity;
    bench.scheduler.hierarchy.rebudget(entity, 100);
    bench.add_bio(0, &read_of(2, 0, 12_000_000, 8));
    let budget = |bench: &Bench<Bfq>| bench.scheduler.hierarchy.entity(entity).budget;
    assert_eq!(budget(&bench), 100, "the first request is the same");
    bench.add_bio(0, &read_of(2, 0, 9_000_000, 8));
    assert_eq!(budget(&bench), 2 * DEFAULT_MAX_BUDGET / 3);
}

#[test]
fn eight_queues_that_come_together_are_a_large_burst_unless_another_is_busy() {
    let of_burst = |count: u32, at: Time| {
        let mut bench = bench_with(true);
        for task in 0..count {
            let now = if task == 0 { 0 } else { at };
            bench.add_bio(now, &read_of(task, now, u64::from(task) * 9_000_000, 8));
        }
        while let Some(id) = bench.scheduler.dispatch(at, &bench.requests) {
            bench.scheduler.completed(at, &bench.requests, id);
        }
        let queues = &bench.scheduler.queues;
        let of_burst = queues.iter().filter(|queue| queue.in_large_burst);
        assert!(of_burst.clone().all(|queue| queue.raised.is_none()));
        of_burst.count()
    };
    assert_eq!([7, 8, 9].map(|count| of_burst(count, 0)), [0, 8, 9]);
    assert_eq!(of_burst(20, SECOND), 0, "the first still waits");
}
