use super::*;
use crate::Direction::{Read, Write};
use crate::invariants;
use crate::invariants::bench::{Bench, bio};
use events::time::MILLISECOND;
use proptest::prelude::*;

const ROTATIONAL: Surroundings = Surroundings { hz: 1000, rotational: true };

fn cfq(version: Version, tunables: CfqTunables, weights: &[u32]) -> Cfq {
    Cfq::new(version, tunables, ROTATIONAL, weights)
}

fn plain() -> Cfq {
    cfq(Version::Linux2_6_35, CfqTunables::default(), &[1000])
}

fn read_of(task: TaskId, group: u16, now: Time, start: Sector) -> Bio {
    Bio { task, group, sectors: 256, ..bio(now, Read, start) }
}

/// Readers, each sequential in a region of its own with one request outstanding, for a second of simulated time on a
/// device that takes `service_ns` a request and any number at once. Sectors read by group.
fn sequential_readers(scheduler: Cfq, groups: u16, readers: u32, service_ns: Time) -> Vec<u64> {
    let mut bench = Bench::new(scheduler);
    let mut positions: Vec<Sector> =
        (0..u32::from(groups) * readers).map(|reader| u64::from(reader) * 10_000_000).collect();
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
        now = completes.into_iter().chain(wakes).min().expect("it never rests").max(now);
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
    bench.scheduler.completed(MILLISECOND, &bench.requests, first);
    assert_eq!(bench.scheduler.dispatch(MILLISECOND, &bench.requests), None);
    assert_eq!(bench.scheduler.dispatch(2 * MILLISECOND, &bench.requests), None);
    assert_eq!(bench.scheduler.next_wakeup(), Some(9 * MILLISECOND), "slice_idle after the completion");
    bench.scheduler.wake(9 * MILLISECOND, &bench.requests);
    assert_eq!(bench.dispatched(9 * MILLISECOND, 1), [10_000_000]);
}

#[test]
fn the_awaited_request_is_dispatched_at_once() {
    let mut bench = Bench::new(plain());
    bench.add_bio(0, &read_of(1, 0, 0, 0));
    bench.add_bio(0, &read_of(2, 0, 0, 10_000_000));
    let first = bench.scheduler.dispatch(0, &bench.requests).unwrap();
    bench.scheduler.completed(MILLISECOND, &bench.requests, first);
    bench.add_bio(3 * MILLISECOND, &read_of(1, 0, 3 * MILLISECOND, 256));
    assert_eq!(bench.dispatched(3 * MILLISECOND, 1), [256]);
}

#[test]
fn async_queues_stand_behind_sync_ones_by_how_much_shorter_their_slices_are() {
    let mut bench = Bench::new(plain());
    bench.add_bio(0, &read_of(1, 0, 0, 0));
    bench.add(0, crate::Direction::Write, &[5000]);
    let queues = [(1, 1), (0, 0)].map(|(task, sync)| {
        let io_context = bench.scheduler.io_contexts.get(task).unwrap();
        io_context.queues[sync].unwrap()
    });
    // The longest sync slice is 180 ticks; theirs are 100 and 40.
    let offsets = queues.map(|queue| bench.scheduler.key_offset(queue));
    assert_eq!(offsets, [80, 140]);
}

#[test]
fn sync_requests_interrupt_async_ones() {
    let mut bench = Bench::new(plain());
    let write = |start| Bio { task: 9, ..bio(0, Write, start) };
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
    let scheduler =
        cfq(Version::GroupIdleV2, CfqTunables { group_isolation: true, ..CfqTunables::default() }, &weights);
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
    let tunables = CfqTunables { slice_idle_ns: 0, group_isolation: true, ..CfqTunables::default() };
    let read = sequential_readers(cfq(Version::GroupIdleV2, tunables, &weights), 4, 1, 1_200_000);
    assert!(read.windows(2).all(|pair| pair[0] < pair[1]), "{read:?}");
}

#[test]
fn without_any_idling_weights_mean_little() {
    let weights = [1000, 100, 200, 300, 400];
    let tunables = CfqTunables { slice_idle_ns: 0, group_idle_ns: 0, group_isolation: true, ..CfqTunables::default() };
    let read = sequential_readers(cfq(Version::GroupIdleV2, tunables, &weights), 4, 1, 1_200_000);
    let (least, most) = (read.iter().min().unwrap(), read.iter().max().unwrap());
    assert!(*most < 2 * least, "{read:?}");
}

#[test]
fn slices_under_the_seeds_weights_are_those_of_the_note() {
    // Groups of weights 100 to 800 with one and with two queues each: milliseconds of a slice.
    for (queues, expected) in
        [(1, [16, 16, 25, 33, 41, 50, 58, 66]), (2, [16, 16, 16, 16, 20, 25, 29, 33]), (4, [16; 8])]
    {
        let weights = [1000, 100, 200, 300, 400, 500, 600, 700, 800];
        let tunables = CfqTunables { group_isolation: true, ..CfqTunables::default() };
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
            assert_eq!(bench.scheduler.slice_of(queue), slice, "group {group} of {queues} queues");
        }
    }
}

#[test]
fn a_task_that_comes_late_has_not_thought_all_the_time_before() {
    let mut bench = Bench::new(plain());
    let late = 5_000 * MILLISECOND;
    for n in 0..3 {
        bench.add_bio(late, &read_of(1, 0, late, n * 1000));
    }
    let think = bench.scheduler.io_contexts.get(1).unwrap();
    let think = think.usual_think().unwrap();
    assert!(think <= 1, "{think}: rounding alone");
    assert!(bench.scheduler.queues[0].idle_window);
}

#[test]
fn a_device_without_seeks_is_taken_to_order_by_itself_until_it_is_known_not_to() {
    let surroundings = Surroundings { hz: 1000, rotational: false };
    let scheduler = Cfq::new(Version::Linux2_6_35, CfqTunables::default(), surroundings, &[1000]);
    let mut bench = Bench::new(scheduler);
    bench.add_bio(0, &read_of(1, 0, 0, 0));
    bench.add_bio(0, &read_of(2, 0, 0, 10_000_000));
    let first = bench.scheduler.dispatch(0, &bench.requests).unwrap();
    bench.scheduler.completed(MILLISECOND, &bench.requests, first);
    assert_eq!(bench.dispatched(MILLISECOND, 1), [10_000_000], "no idling");
}

#[test]
fn after_an_expired_request_the_next_is_sought_from_where_that_began() {
    let mut bench = Bench::new(plain());
    bench.add_bio(0, &read_of(1, 0, 0, 50_000));
    bench.add_bio(0, &read_of(1, 0, 0, 51_000));
    let now = 200 * MILLISECOND;
    bench.add_bio(now, &read_of(1, 0, now, 1_000));
    // The nearest to the start of the device is first in order, but the oldest has expired.
    assert_eq!(bench.dispatched(now, 3), [50_000, 51_000, 1_000]);
}

#[test]
fn the_neighbour_of_a_request_that_is_dispatched_is_measured_from_its_start() {
    let mut bench = Bench::new(plain());
    // 300 behind costs 600; ahead 500 from the start, though only 244 from the end.
    for start in [10_000, 9_700, 10_601] {
        bench.add_bio(0, &read_of(1, 0, 0, start));
    }
    bench.scheduler.last_position = 10_000;
    let queue = 0;
    bench.scheduler.queues[queue].next = None;
    let (first, _) = bench.requests.iter().next().unwrap();
    let next = bench.scheduler.next_after(&bench.requests, first).unwrap();
    assert_eq!(bench.requests[next].start, 9_700);
}

#[test]
fn two_readers_of_one_stream_come_to_share_a_queue_and_part_when_it_turns_seeky() {
    let mut bench = Bench::new(plain());
    // Each reads every other 128 KiB of the same file.
    let mut now = 0;
    for n in 0..20u64 {
        for task in 1..3 {
            bench.add_bio(now, &read_of(task, 0, now, (2 * n + u64::from(task)) * 256));
        }
        while let Some(id) = bench.scheduler.dispatch(now, &bench.requests) {
            now += MILLISECOND;
            bench.scheduler.completed(now, &bench.requests, id);
        }
    }
    let queue_of = |bench: &Bench<Cfq>, task| bench.scheduler.io_contexts.get(task).unwrap().queues[1].unwrap();
    let shared = queue_of(&bench, 1);
    assert_eq!(shared, queue_of(&bench, 2));
    assert_eq!(bench.scheduler.queues[shared].tasks, 2);
    bench.scheduler.queues[shared].to_split = true;
    bench.add_bio(now, &read_of(1, 0, now, 90_000_000));
    assert_ne!(queue_of(&bench, 1), shared);
    assert_eq!(bench.scheduler.queues[shared].tasks, 1);
}

#[test]
fn only_the_nearest_queue_is_asked_to_cooperate_whatever_its_group() {
    let mut bench = Bench::new(cfq(
        Version::Linux2_6_35,
        CfqTunables { group_isolation: true, ..CfqTunables::default() },
        &[1000, 500, 500],
    ));
    bench.add_bio(0, &read_of(1, 1, 0, 0));
    bench.add_bio(0, &read_of(2, 1, 0, 1000));
    let first = bench.scheduler.dispatch(0, &bench.requests).unwrap();
    assert_eq!(bench.requests[first].start, 0);
    assert!(bench.scheduler.close_cooperator(0).is_some());
    bench.add_bio(0, &read_of(3, 2, 0, 300));
    assert_eq!(bench.scheduler.close_cooperator(0), None, "300 is of another group");
}

#[test]
fn a_task_that_exits_while_it_is_idled_for_ends_the_wait() {
    let mut bench = Bench::new(plain());
    bench.add_bio(0, &read_of(1, 0, 0, 0));
    bench.add_bio(0, &read_of(2, 0, 0, 10_000_000));
    let first = bench.scheduler.dispatch(0, &bench.requests).unwrap();
    bench.scheduler.completed(MILLISECOND, &bench.requests, first);
    assert_eq!(bench.scheduler.dispatch(MILLISECOND, &bench.requests), None);
    bench.scheduler.exited(2 * MILLISECOND, 1);
    assert_eq!(bench.dispatched(2 * MILLISECOND, 1), [10_000_000]);
    assert_eq!(bench.scheduler.free_queues.len(), 1, "its queue may be used again");
}

#[test]
fn the_task_that_is_idled_for_gets_one_request_although_none_is_left() {
    let mut bench = Bench::new(plain());
    bench.add_bio(0, &read_of(1, 0, 0, 0));
    let first = bench.scheduler.dispatch(0, &bench.requests).unwrap();
    assert!(!bench.scheduler.may_exceed_pool(&read_of(1, 0, 0, 0)));
    bench.scheduler.completed(MILLISECOND, &bench.requests, first);
    let twice = [(); 2].map(|()| bench.scheduler.may_exceed_pool(&read_of(1, 0, 0, 0)));
    assert_eq!(twice, [true, false]);
}

#[test]
fn without_isolation_a_seeky_queue_moves_to_the_root_group_but_its_request_counts_for_its_own() {
    let mut bench = Bench::new(cfq(Version::GroupIdleV2, CfqTunables::default(), &[1000, 500]));
    let far = |n: u64| (n * 7) % 10 * 1_000_000;
    for n in 0..10 {
        bench.add_bio(0, &read_of(1, 1, 0, far(n)));
        let id = bench.scheduler.dispatch(0, &bench.requests).unwrap();
        bench.scheduler.completed(0, &bench.requests, id);
    }
    assert_eq!(bench.scheduler.queues[0].group, 1, "until it is put in fifo anew");
    bench.scheduler.expire_active(false);
    bench.add_bio(0, &read_of(1, 1, 0, far(13)));
    assert_eq!(bench.scheduler.queues[0].group, 0);
    bench.scheduler.dispatch(0, &bench.requests).unwrap();
    assert_eq!(bench.scheduler.groups.get(1).dispatched, 1);
}

#[test]
fn tunables_of_another_version_do_nothing_there() {
    let with = cfq(Version::Linux2_6_35, CfqTunables::default(), &[1000]);
    assert_eq!(with.ticks.group_idle, 0);
}

#[test]
fn messages_are_those_of_the_version() {
    let texts = |version| {
        let mut bench = Bench::new(cfq(version, CfqTunables::default(), &[1000]));
        bench.scheduler.keep_messages(true);
        bench.add_bio(0, &read_of(1, 0, 0, 0));
        let first = bench.scheduler.dispatch(0, &bench.requests).unwrap();
        bench.scheduler.completed(MILLISECOND, &bench.requests, first);
        bench.scheduler.wake(20 * MILLISECOND, &bench.requests);
        bench.add_bio(20 * MILLISECOND, &read_of(2, 0, 20 * MILLISECOND, 0));
        bench.scheduler.dispatch(20 * MILLISECOND, &bench.requests).unwrap();
        let mut messages = Vec::new();
        bench.scheduler.take_messages(&mut messages);
        let texts: Vec<String> = messages.iter().map(ToString::to_string).collect();
        messages.clear();
        bench.scheduler.take_messages(&mut messages);
        assert_eq!(messages, [], "each is told once");
        texts
    };
    let story = |armed: &str, used: &str| {
        [
            "cfq1S / insert_request",
            "cfq1S / add_to_rr",
            "cfq1S / set_active wl_prio:0 wl_type:2",
            "cfq1S / dispatch_insert",
            "cfq1S / dispatched a request",
            "cfq1S / complete rqnoidle 0",
            "cfq1S / set_slice=100",
            armed,
            "cfq idle timer fired",
            "cfq1S / slice expired t=0",
            used,
            "cfq1S / del_from_rr",
        ]
        .map(str::to_owned)
    };
    for (version, armed, used) in [
        (Version::Linux2_6_35, "arm_idle: 8", "sl_used=19"),
        (Version::GroupIdleV2, "arm_idle: 8 group_idle: 0", "sl_used=19, disp=1 sect=256"),
        (Version::Linux2_6_37, "arm_idle: 8 group_idle: 0", "sl_used=19 disp=1 charge=19 iops=0 sect=256"),
    ] {
        let story = story(&format!("cfq1S / {armed}"), &format!("cfq1S / {used}"));
        assert_eq!(texts(version)[..story.len()], story, "{version:?}");
    }
}

#[test]
fn nothing_is_kept_for_those_who_did_not_ask() {
    let mut bench = Bench::new(plain());
    bench.add_bio(0, &read_of(1, 0, 0, 0));
    bench.dispatched(0, 1);
    let mut messages = Vec::new();
    bench.scheduler.take_messages(&mut messages);
    assert_eq!(messages, []);
}

proptest! {
    #[test]
    fn nothing_is_lost_or_done_twice(
        load in invariants::arrivals(4),
        depth in 1u32..16,
        version in prop::sample::select(vec![Version::Linux2_6_35, Version::GroupIdleV2, Version::Linux2_6_37]),
        slice_idle_ms in prop::sample::select(vec![0u64, 8]),
        rotational: bool,
    ) {
        let tunables = CfqTunables { slice_idle_ns: slice_idle_ms * MILLISECOND, ..CfqTunables::default() };
        let scheduler = Cfq::new(version, tunables, Surroundings { hz: 1000, rotational }, &[1000]);
        invariants::completes_each_once(&invariants::serve(Box::new(scheduler), &load, depth, MILLISECOND));
    }
}

#[test]
fn a_task_with_the_number_of_one_that_has_exited_is_idled_for() {
    let mut bench = Bench::new(plain());
    bench.add_bio(0, &read_of(1, 0, 0, 0));
    assert_eq!(bench.dispatched(0, 1), [0]);
    bench.scheduler.exited(2 * MILLISECOND, 1);
    bench.add_bio(3 * MILLISECOND, &read_of(1, 0, 3 * MILLISECOND, 1000));
    let queue = bench.scheduler.io_contexts.get(1).unwrap().queues[1].unwrap();
    assert!(bench.scheduler.queues[queue].idle_window);
}
