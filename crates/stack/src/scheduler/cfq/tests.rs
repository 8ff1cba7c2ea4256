use super::*;
use crate::block::Direction::{Read, Write};
use crate::scheduler::laws;
use crate::scheduler::laws::bench::{Bench, bio};
use crate::time::MILLISECOND;
use proptest::prelude::*;

const ROTATIONAL: Surroundings = Surroundings {
    hz: 1000,
    rotational: true,
};

fn cfq(version: Version, tunables: Tunables, weights: &[u32]) -> Cfq {
    Cfq::new(version, tunables, ROTATIONAL, weights)
}

fn plain() -> Cfq {
    cfq(Version::Linux2_6_35, Tunables::default(), &[1000])
}

fn read_of(task: TaskId, group: u16, now: Time, start: Sector) -> Bio {
    Bio {
        task,
        group,
        sectors: 256,
        ..bio(now, Read, start)
    }
}

/// Readers, each sequential in a region of its own with one request outstanding, for a second of simulated time on a
/// device that takes `service_ns` a request and any number at once. Sectors read by group.
fn sequential_readers(scheduler: Cfq, groups: u16, readers: u32, service_ns: Time) -> Vec<u64> {
    let mut bench = Bench::new(scheduler);
    let mut positions: Vec<Sector> = (0..u32::from(groups) * readers)
        .map(|reader| u64::from(reader) * 10_000_000)
        .collect();
    let mut read = vec![0; usize::from(groups) + 1];
    let mut outstanding: Vec<(Time, RequestId)> = Vec::new();
    let mut now = 0;
    let submit = |bench: &mut Bench<Cfq>, positions: &mut Vec<Sector>, reader: u32, now| {
        let group = (reader / readers) as u16 + 1;
        let start = positions[reader as usize];
        positions[reader as usize] += 256;
        bench.add_bio(now, &read_of(reader, group, now, start));
    };
    for reader in 0..u32::from(groups) * readers {
        submit(&mut bench, &mut positions, reader, 0);
    }
    while now < 4_000 * MILLISECOND {
        while outstanding.len() < 32
            && let Some(id) = bench.scheduler.dispatch(now, &bench.requests)
        {
            let after = outstanding.last().map_or(now, |&(at, _)| at.max(now));
            outstanding.push((after + service_ns, id));
        }
        let completes = outstanding.first().map(|&(at, _)| at);
        let wakes = bench.scheduler.next_wakeup();
        now = completes
            .into_iter()
            .chain(wakes)
            .min()
            .expect("it never rests")
            .max(now);
        if wakes.is_some_and(|at| at <= now) {
            bench.scheduler.wake(now, &bench.requests);
        } else {
            let (_, id) = outstanding.remove(0);
            bench.scheduler.completed(now, &bench.requests, id);
            let request = bench.requests.take(id);
            read[usize::from(request.group)] += u64::from(request.sectors);
            submit(&mut bench, &mut positions, request.task, now);
        }
    }
    read.remove(0);
    read
}

#[test]
fn while_it_idles_for_a_reader_nobody_else_is_served() {
    let mut bench = Bench::new(plain());
    bench.add_bio(0, &read_of(1, 0, 0, 0));
    bench.add_bio(0, &read_of(2, 0, 0, 10_000_000));
    let first = bench.scheduler.dispatch(0, &bench.requests).unwrap();
    bench
        .scheduler
        .completed(MILLISECOND, &bench.requests, first);
    assert_eq!(bench.scheduler.dispatch(MILLISECOND, &bench.requests), None);
    assert_eq!(
        bench.scheduler.dispatch(2 * MILLISECOND, &bench.requests),
        None
    );
    assert_eq!(
        bench.scheduler.next_wakeup(),
        Some(9 * MILLISECOND),
        "slice_idle after the completion"
    );
    bench.scheduler.wake(9 * MILLISECOND, &bench.requests);
    assert_eq!(bench.dispatched(9 * MILLISECOND, 1), [10_000_000]);
}

#[test]
fn the_awaited_request_is_dispatched_at_once() {
    let mut bench = Bench::new(plain());
    bench.add_bio(0, &read_of(1, 0, 0, 0));
    bench.add_bio(0, &read_of(2, 0, 0, 10_000_000));
    let first = bench.scheduler.dispatch(0, &bench.requests).unwrap();
    bench
        .scheduler
        .completed(MILLISECOND, &bench.requests, first);
    bench.add_bio(3 * MILLISECOND, &read_of(1, 0, 3 * MILLISECOND, 256));
    assert_eq!(bench.dispatched(3 * MILLISECOND, 1), [256]);
}

#[test]
fn sync_requests_interrupt_async_ones() {
    let mut bench = Bench::new(plain());
    let write = |start| Bio {
        task: 9,
        ..bio(0, Write, start)
    };
    bench.add_bio(0, &write(5_000_000));
    bench.add_bio(0, &write(6_000_000));
    assert_eq!(bench.dispatched(0, 1), [-5_000_000]);
    bench.add_bio(0, &read_of(1, 0, 0, 0));
    let next = bench.dispatched(MILLISECOND, 1);
    assert!(next != [-6_000_000], "{next:?}");
}

#[test]
fn groups_share_by_weight_while_queues_are_idled_upon() {
    let weights = [1000, 100, 200, 300, 400];
    let scheduler = cfq(
        Version::GroupIdleV2,
        Tunables {
            group_isolation: true,
            ..Tunables::default()
        },
        &weights,
    );
    let read = sequential_readers(scheduler, 4, 1, 1_200_000);
    let total: u64 = read.iter().sum();
    for (group, sectors) in read.iter().enumerate() {
        let share = *sectors as f64 / total as f64;
        let due = f64::from(weights[group + 1]) / 1000.0;
        assert!((0.75..1.3).contains(&(share / due)), "{read:?}");
    }
}

#[test]
fn group_idle_without_slice_idle_keeps_the_shares_of_single_readers() {
    let weights = [1000, 100, 200, 300, 400];
    let tunables = Tunables {
        slice_idle_ns: 0,
        group_isolation: true,
        ..Tunables::default()
    };
    let read = sequential_readers(
        cfq(Version::GroupIdleV2, tunables, &weights),
        4,
        1,
        1_200_000,
    );
    assert!(read.windows(2).all(|pair| pair[0] < pair[1]), "{read:?}");
}

#[test]
fn without_any_idling_weights_mean_little() {
    let weights = [1000, 100, 200, 300, 400];
    let tunables = Tunables {
        slice_idle_ns: 0,
        group_idle_ns: 0,
        group_isolation: true,
        ..Tunables::default()
    };
    let read = sequential_readers(
        cfq(Version::GroupIdleV2, tunables, &weights),
        4,
        1,
        1_200_000,
    );
    let (least, most) = (read.iter().min().unwrap(), read.iter().max().unwrap());
    assert!(*most < 2 * least, "{read:?}");
}

#[test]
fn slices_under_the_seeds_weights_are_those_of_the_note() {
    // Groups of weights 100 to 800 with one and with two queues each: milliseconds of a slice.
    for (queues, expected) in [
        (1, [16, 16, 25, 33, 41, 50, 58, 66]),
        (2, [16, 16, 16, 16, 20, 25, 29, 33]),
        (4, [16; 8]),
    ] {
        let weights = [1000, 100, 200, 300, 400, 500, 600, 700, 800];
        let tunables = Tunables {
            group_isolation: true,
            ..Tunables::default()
        };
        let mut bench = Bench::new(cfq(Version::Linux2_6_35, tunables, &weights));
        for group in 1..=8u16 {
            for queue in 0..queues {
                let task = u32::from(group) * 10 + queue;
                let start = u64::from(task) * 10_000_000;
                bench.add_bio(0, &read_of(task, group, 0, start));
            }
        }
        for (group, &slice) in (1..=8usize).zip(&expected) {
            let queue = (group - 1) * queues as usize;
            // The mean of busy queues has to rise to what it is.
            bench.scheduler.slice_of(queue);
            assert_eq!(
                bench.scheduler.slice_of(queue),
                slice,
                "group {group} of {queues} queues"
            );
        }
    }
}

#[test]
fn tunables_of_another_version_do_nothing_there() {
    let with = cfq(Version::Linux2_6_35, Tunables::default(), &[1000]);
    assert_eq!(with.ticks.group_idle, 0);
}

#[test]
fn messages_say_what_a_slice_used() {
    let scheduler = plain().with_messages();
    let mut bench = Bench::new(scheduler);
    bench.add_bio(0, &read_of(1, 0, 0, 0));
    let first = bench.scheduler.dispatch(0, &bench.requests).unwrap();
    bench
        .scheduler
        .completed(MILLISECOND, &bench.requests, first);
    bench.scheduler.wake(20 * MILLISECOND, &bench.requests);
    let messages: Vec<String> = bench
        .scheduler
        .messages()
        .into_iter()
        .map(|(_, text)| text)
        .collect();
    assert!(
        messages
            .iter()
            .any(|text| text.contains("arm_idle: 8 group_idle: 0")),
        "{messages:?}"
    );
}

proptest! {
    #[test]
    fn nothing_is_lost_or_done_twice(
        load in laws::arrivals(4),
        depth in 1u32..16,
        version in prop::sample::select(vec![Version::Linux2_6_35, Version::GroupIdleV2, Version::Linux2_6_37]),
        slice_idle_ms in prop::sample::select(vec![0u64, 8]),
        rotational: bool,
    ) {
        let tunables = Tunables { slice_idle_ns: slice_idle_ms * MILLISECOND, ..Tunables::default() };
        let scheduler = Cfq::new(version, tunables, Surroundings { hz: 1000, rotational }, &[1000]);
        laws::completes_each_once(&laws::serve(Box::new(scheduler), &load, depth, MILLISECOND));
    }
}
