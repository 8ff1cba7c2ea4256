//! Depth, turns and charges of 2.6.35 and group_idle, by example (docs/model/sources/cfq.md#2635-and-group_idle).

use super::*;
use crate::Direction::{Read, Write};
use crate::Priority;
use crate::invariants::bench::{Bench, bio};
use events::time::MILLISECOND;

fn cfq(version: Version, tunables: CfqTunables) -> Cfq {
    let surroundings = Surroundings { hz: 1000, rotational: true };
    Cfq::new(version, tunables, surroundings, &[1000, 500, 500])
}

fn read_of(task: TaskId, group: u16, start: Sector) -> Bio {
    Bio { task, group, ..bio(0, Read, start) }
}

fn with_reads(version: Version, tunables: CfqTunables, reads: u64) -> Bench<Cfq> {
    let mut bench = Bench::new(cfq(version, tunables));
    for n in 0..reads {
        bench.add_bio(0, &read_of(1, 1, n * 1000));
    }
    bench
}

#[test]
fn a_queue_alone_may_have_any_number_at_the_device() {
    let mut bench = with_reads(Version::Linux2_6_35, CfqTunables::default(), 20);
    assert_eq!(bench.dispatched(0, 20).len(), 20);
}

#[test]
fn among_others_it_is_half_the_quantum_and_early_in_its_slice_all_of_it() {
    let mut bench = with_reads(Version::Linux2_6_35, CfqTunables::default(), 20);
    bench.add_bio(0, &read_of(2, 1, 90_000_000));
    let first = bench.scheduler.dispatch(0, &bench.requests).unwrap();
    assert_eq!(bench.dispatched(0, 20).len() + 1, 4);
    let now = MILLISECOND;
    bench.scheduler.completed(now, &bench.requests, first);
    assert_eq!(bench.dispatched(now, 20).len() + 3, 8);
}

#[test]
fn the_idle_class_has_one_at_the_device() {
    let mut bench = Bench::new(cfq(Version::Linux2_6_35, CfqTunables::default()));
    let priority = Priority { class: IoClass::Idle, level: 7 };
    for n in 0..3 {
        let bio = Bio { priority, ..read_of(1, 0, n * 1000) };
        bench.add_bio(0, &bio);
    }
    assert_eq!(bench.dispatched(0, 3).len(), 1);
}

#[test]
fn async_requests_come_one_more_for_each_tenth_of_a_second_without_a_late_sync_one() {
    let mut bench = Bench::new(cfq(Version::Linux2_6_35, CfqTunables::default()));
    bench.add(0, Write, &[1000, 3000, 5000, 7000]);
    assert_eq!(bench.dispatched(0, 4).len(), 1);
    assert_eq!(bench.dispatched(250 * MILLISECOND, 4).len(), 1);
}

#[test]
fn an_async_queue_has_16_dispatches_in_a_slice_and_12_one_level_lower() {
    let tunables = CfqTunables { quantum: 100, low_latency: false, ..CfqTunables::default() };
    let mut bench = Bench::new(cfq(Version::Linux2_6_35, tunables));
    for level in [4u8, 5] {
        for n in 0..40 {
            let priority = Priority { level, ..Priority::default() };
            let start = u64::from(level) * 1_000_000 + n * 1000;
            bench.add_bio(0, &Bio { task: level.into(), priority, ..bio(0, Write, start) });
        }
    }
    let levels: Vec<i64> = bench.dispatched(0, 28).iter().map(|start| -start / 1_000_000).collect();
    assert_eq!(levels, [[4; 16].as_slice(), &[5; 12]].concat());
}

#[test]
fn a_device_is_known_after_50_samples_and_a_deep_one_for_good() {
    for (in_flight, expected) in [(1, Some(false)), (6, Some(true))] {
        let mut bench = with_reads(Version::Linux2_6_35, CfqTunables::default(), 200);
        let mut now = 0;
        let mut at_device = std::collections::VecDeque::new();
        for _ in 0..60 {
            while at_device.len() < in_flight {
                at_device.push_back(bench.scheduler.dispatch(now, &bench.requests).unwrap());
            }
            now += MILLISECOND;
            let id = at_device.pop_front().unwrap();
            bench.scheduler.completed(now, &bench.requests, id);
        }
        assert_eq!(bench.scheduler.depth.known, expected);
    }
}

/// What a slice of two requests is charged that ends 5 ms after its first dispatch.
fn charge(version: Version, depth: Option<bool>, completes: bool, slice_idle_ns: Time) -> u64 {
    let tunables = CfqTunables { slice_idle_ns, ..CfqTunables::default() };
    let mut bench = with_reads(version, tunables, 3);
    bench.scheduler.depth.known = depth;
    bench.scheduler.keep_messages(true);
    let first = bench.scheduler.dispatch(0, &bench.requests).unwrap();
    bench.dispatched(0, 1);
    if completes {
        let now = MILLISECOND;
        bench.scheduler.completed(now, &bench.requests, first);
    }
    bench.scheduler.at(5 * MILLISECOND);
    bench.scheduler.expire_active(false);
    let mut messages = Vec::new();
    bench.scheduler.take_messages(&mut messages);
    let mut charges = messages.iter().filter_map(|message| match message.event {
        Event::SliceUsed { charge, .. } => Some(charge),
        _ => None,
    });
    charges.next_back().expect("a slice has ended")
}

#[test]
fn a_slice_is_charged_its_time_or_what_the_version_says() {
    let idle = 8 * MILLISECOND;
    use Version::*;
    // Before anything has completed: time, but requests in V2 unless the device is known to take one at a time.
    assert_eq!(charge(Linux2_6_35, None, false, idle), 5);
    assert_eq!(charge(GroupIdleV2, None, false, idle), 2);
    assert_eq!(charge(GroupIdleV2, Some(true), false, idle), 2);
    assert_eq!(charge(GroupIdleV2, Some(false), false, idle), 5);
    // From the first completion on, time.
    assert_eq!(charge(Linux2_6_35, None, true, idle), 4);
    assert_eq!(charge(GroupIdleV2, None, true, 0), 4);
    // As merged: requests without slice_idle, whatever has completed.
    assert_eq!(charge(Linux2_6_37, None, true, idle), 4);
    assert_eq!(charge(Linux2_6_37, None, true, 0), 2);
    assert_eq!(charge(Linux2_6_37, Some(false), true, 0), 4);
}

#[test]
fn with_group_idle_a_groups_only_queue_is_kept_until_its_requests_are_back_though_its_slice_is_over() {
    for (version, is_kept) in [(Version::Linux2_6_35, false), (Version::GroupIdleV2, true)] {
        let tunables = CfqTunables { slice_idle_ns: 0, group_isolation: true, ..CfqTunables::default() };
        let mut bench = with_reads(version, tunables, 3);
        bench.add_bio(0, &read_of(2, 2, 90_000_000));
        let ids = [(); 2].map(|()| bench.scheduler.dispatch(0, &bench.requests).unwrap());
        let later = 500 * MILLISECOND;
        bench.scheduler.completed(MILLISECOND, &bench.requests, ids[0]);
        let served = bench.scheduler.dispatch(later, &bench.requests);
        assert_eq!(served.is_none(), is_kept, "{version:?}");
        if is_kept {
            bench.scheduler.completed(later, &bench.requests, ids[1]);
            assert!(bench.scheduler.dispatch(later, &bench.requests).is_some());
        }
    }
}

#[test]
fn a_sole_queue_whose_slice_is_over_is_waited_for_and_loses_its_turn_when_it_is_back() {
    let mut bench = with_reads(Version::Linux2_6_35, CfqTunables::default(), 1);
    bench.scheduler.keep_messages(true);
    let first = bench.scheduler.dispatch(0, &bench.requests).unwrap();
    bench.scheduler.completed(MILLISECOND, &bench.requests, first);
    let slice_end = bench.scheduler.queues.first().unwrap().slice_end;
    bench.add_bio(2 * MILLISECOND, &read_of(1, 1, 5000));
    let now = slice_end * MILLISECOND;
    let second = bench.scheduler.dispatch(now - MILLISECOND, &bench.requests).unwrap();
    bench.scheduler.completed(now, &bench.requests, second);
    let mut messages = Vec::new();
    bench.scheduler.take_messages(&mut messages);
    let said: Vec<String> = messages.iter().map(ToString::to_string).collect();
    assert!(said.iter().any(|text| text.ends_with("will busy wait")), "{said:?}");
}
