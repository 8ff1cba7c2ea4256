use super::*;
use crate::Direction::{Read, Write};
use crate::Priority;
use crate::invariants;
use crate::invariants::bench::{Bench, bio};
use events::time::{MILLISECOND, SECOND};
use proptest::prelude::*;

/// Weights alone count.
fn plain() -> BfqTunables {
    BfqTunables { low_latency: false, ..BfqTunables::default() }
}

fn bench_of(tunables: BfqTunables) -> Bench<Bfq> {
    Bench::new(Bfq::new(tunables, true, &[1000]))
}

fn bench() -> Bench<Bfq> {
    bench_of(plain())
}

fn read_of(task: TaskId, now: Time, start: Sector) -> Bio {
    Bio { task, sectors: 256, ..bio(now, Read, start) }
}

/// A reader that always has `depth` requests waiting, in a region of its own.
#[derive(Clone, Copy)]
struct Reader {
    group: u16,
    level: u8,
    depth: u32,
    sectors: u32,
}

/// Serves the readers one request at a time at 100,000 sectors a second, plus `seek_ns` for what does not continue.
/// Sectors that each read.
fn served(scheduler: Bfq, readers: &[Reader], for_ns: Time, seek_ns: Time) -> Vec<u64> {
    let mut bench = Bench::new(scheduler);
    let mut read = vec![0; readers.len()];
    let mut positions: Vec<Sector> = (0..readers.len() as u64).map(|n| n * 100_000_000).collect();
    let mut submit = |bench: &mut Bench<Bfq>, number: usize, now| {
        let reader = readers[number];
        let start = positions[number];
        positions[number] += u64::from(reader.sectors);
        bench.add_bio(
            now,
            &Bio {
                group: reader.group,
                sectors: reader.sectors,
                priority: Priority { level: reader.level, ..Priority::default() },
                ..read_of(number as u32, now, start)
            },
        );
    };
    for (number, reader) in readers.iter().enumerate() {
        for _ in 0..reader.depth {
            submit(&mut bench, number, 0);
        }
    }
    let (mut now, mut head) = (0, 0);
    while now < for_ns {
        let Some(id) = bench.scheduler.dispatch(now, &bench.requests) else {
            now = bench.scheduler.next_wakeup().expect("a timer").max(now);
            bench.scheduler.wake(now, &bench.requests);
            continue;
        };
        let request = &bench.requests[id];
        now += u64::from(request.sectors) * 10_000;
        if request.start != head {
            now += seek_ns;
        }
        head = request.end();
        bench.scheduler.completed(now, &bench.requests, id);
        let number = bench.requests.take(id).task as usize;
        read[number] += u64::from(readers[number].sectors);
        submit(&mut bench, number, now);
    }
    read
}

fn assert_shares(read: &[u64], weights: &[u64], within: f64) {
    let (total, whole) = (read.iter().sum::<u64>(), weights.iter().sum::<u64>());
    for (sectors, weight) in read.iter().zip(weights) {
        let share = *sectors as f64 / total as f64;
        let due = *weight as f64 / whole as f64;
        assert!((share / due - 1.0).abs() < within, "{read:?}");
    }
}

const READER: Reader = Reader { group: 0, level: 4, depth: 4, sectors: 256 };

#[test]
fn backlogged_queues_share_by_priority_ten_for_each_level() {
    let readers = [0, 2, 4, 7].map(|level| Reader { level, ..READER });
    let scheduler = Bfq::new(plain(), true, &[1000]);
    let read = served(scheduler, &readers, 30 * SECOND, 0);
    assert_shares(&read, &[80, 60, 40, 10], 0.03);
}

/// How much each of several equal readers, which begin at these times, reads in the second from `from` on.
fn read_in_second(low_latency: bool, starts: &[Time], from: Time) -> Vec<u64> {
    let tunables = BfqTunables { low_latency, ..BfqTunables::default() };
    let mut bench = bench_of(tunables);
    let mut positions: Vec<Sector> = (0..starts.len() as u64).map(|n| n * 100_000_000).collect();
    let mut waiting: Vec<u32> = starts.iter().map(|_| 4).collect();
    let mut read = vec![0; starts.len()];
    let mut now = 0;
    while now < from + SECOND {
        for (number, &start) in starts.iter().enumerate() {
            while now >= start && waiting[number] > 0 {
                waiting[number] -= 1;
                bench.add_bio(now, &read_of(number as u32, now, positions[number]));
                positions[number] += 256;
            }
        }
        let Some(id) = bench.scheduler.dispatch(now, &bench.requests) else {
            now = bench.scheduler.next_wakeup().expect("a timer").max(now);
            bench.scheduler.wake(now, &bench.requests);
            continue;
        };
        now += 2_560_000;
        bench.scheduler.completed(now, &bench.requests, id);
        let number = bench.requests.take(id).task as usize;
        waiting[number] += 1;
        read[number] += if now >= from { 256 } else { 0 };
    }
    read
}

#[test]
fn who_comes_late_has_nearly_all_for_a_while_with_low_latency() {
    let starts = [0, 0, 30 * SECOND];
    let share = |low_latency, from| {
        let read = read_in_second(low_latency, &starts, from);
        read[2] as f64 / read.iter().sum::<u64>() as f64
    };
    assert!((share(false, 31 * SECOND) - 1.0 / 3.0).abs() < 0.1);
    assert!(share(true, 30 * SECOND) > 0.85);
    assert!((share(true, 60 * SECOND) - 1.0 / 3.0).abs() < 0.1);
}

/// The weight of a queue that reads 64 KiB after each such pause, at its last request.
fn weight_with_pauses(pause_ns: Time, seeks: bool) -> u64 {
    let mut bench = bench_of(BfqTunables::default());
    bench.scheduler.queues.clear();
    let (mut now, mut position) = (0, 0);
    for n in 0..200u64 {
        position = if seeks { n * 7_919_000 % 100_000_000 } else { position + 128 };
        let bio = Bio { sectors: if seeks { 8 } else { 128 }, ..read_of(1, now, position) };
        bench.add_bio(now, &bio);
        let id = bench.scheduler.dispatch(now, &bench.requests).unwrap();
        let weight = bench.scheduler.queues[0].weight_in_use();
        now += MILLISECOND;
        bench.scheduler.completed(now, &bench.requests, id);
        bench.requests.take(id);
        now += pause_ns;
        while let Some(at) = bench.scheduler.next_wakeup().filter(|&at| at <= now) {
            bench.scheduler.wake(at, &bench.requests);
            bench.scheduler.dispatch(at, &bench.requests);
        }
        if n == 199 {
            return weight;
        }
    }
    unreachable!()
}

#[test]
fn who_asks_for_little_and_thinks_is_raised_for_each_request() {
    // 128 sectors in 51 ms are 2,500 a second.
    assert_eq!(weight_with_pauses(50 * MILLISECOND, false), 40 * 3000);
    // Greedy, and long no longer interactive.
    assert_eq!(weight_with_pauses(MILLISECOND / 10, false) % (40 * 30), 0);
    assert!(weight_with_pauses(MILLISECOND / 10, false) < 40 * 3000);
    // A task with random access is not one, however little it requests.
    assert!(weight_with_pauses(50 * MILLISECOND, true) < 40 * 3000);
}

#[test]
fn writes_leave_tags_to_reads_the_more_while_a_weight_is_raised() {
    let mut bench = bench_of(BfqTunables::default());
    let sync_write = Bio { sync: true, ..bio(0, Write, 0) };
    let bios = [bio(0, Read, 0), sync_write, bio(0, Write, 0)];
    let tags = |limit| TagCounts::of(256, limit);
    let allowed = |bench: &Bench<Bfq>, limit| {
        let of = |bio: &Bio| bench.scheduler.tags_allowed(bio, tags(limit));
        bios.iter().map(of).collect::<Vec<_>>()
    };
    assert_eq!(allowed(&bench, TagLimit::OfWord), [64, 48, 32]);
    assert_eq!(allowed(&bench, TagLimit::OfAll), [256, 192, 128]);
    let raised_from_4 = TagCounts { told: 4, ..tags(TagLimit::OfAll) };
    let of = |bio| bench.scheduler.tags_allowed(bio, raised_from_4);
    assert_eq!(bios.each_ref().map(of), [256, 3, 2], "nr_requests of 6.12.117");
    bench.add_bio(0, &read_of(1, 0, 0));
    assert_eq!(allowed(&bench, TagLimit::OfWord), [64, 24, 12]);
    assert_eq!(allowed(&bench, TagLimit::OfAll), [256, 96, 48]);
    let fewest = [TagLimit::OfWord, TagLimit::OfAll].map(|limit| bench.scheduler.fewest_tags(tags(limit)));
    assert_eq!(fewest, [12, 1]);
}

#[test]
fn a_raised_weight_ends_with_60_mb() {
    // 100,000 sectors a second: 120,000 are read in little more than a second.
    let starts = [0, 0, 30 * SECOND];
    let read = read_in_second(true, &starts, 32 * SECOND);
    let share = read[2] as f64 / read.iter().sum::<u64>() as f64;
    assert!((share - 1.0 / 3.0).abs() < 0.1, "{read:?}");
}

/// The active queue, after a queue has come back that went only to wait.
fn active_after_a_return(came_back_after: Time) -> TaskId {
    let mut bench = Bench::new(Bfq::new(plain(), false, &[1000]));
    for (task, start) in [(1, 0), (2, 1_000_000), (2, 1_000_256)] {
        bench.add_bio(0, &read_of(task, 0, start));
    }
    let first = bench.scheduler.dispatch(0, &bench.requests).unwrap();
    bench.scheduler.dispatch(0, &bench.requests).unwrap();
    bench.scheduler.completed(MILLISECOND, &bench.requests, first);
    let now = MILLISECOND + came_back_after;
    bench.add_bio(now, &read_of(1, now, 256));
    let next = bench.scheduler.dispatch(now, &bench.requests).unwrap();
    bench.requests[next].task
}

#[test]
fn a_queue_that_is_back_in_time_takes_the_place_of_the_one_in_service() {
    assert_eq!(active_after_a_return(MILLISECOND), 1);
}

#[test]
fn a_higher_class_takes_the_place_of_the_one_in_service() {
    let mut bench = bench();
    for start in [0, 256, 512] {
        bench.add_bio(0, &read_of(1, 0, start));
    }
    assert_eq!(bench.dispatched(0, 1), [0]);
    let urgent = Priority::named("rt/4").unwrap();
    bench.add_bio(0, &Bio { priority: urgent, ..read_of(2, 0, 9_000_000) });
    assert_eq!(bench.dispatched(0, 1), [9_000_000]);
}

/// Requests of a light random reader that are sent while the queue of a heavier one is idled for. Each
/// request takes `alone_ns`, and `beside_ns` if another is at the device.
fn injected(alone_ns: Time, beside_ns: Time) -> usize {
    let mut bench = Bench::new(Bfq::new(plain(), false, &[1000, 100, 1000]));
    let of = |task: TaskId, now, n: u64| Bio {
        group: 3 - task as u16,
        sectors: 8,
        ..read_of(task, now, u64::from(task) * 10_000_000 + n * 99_991 % 7_000_000)
    };
    let (mut now, mut n, mut sent) = (0, 0, 0);
    for _ in 0..64 {
        n += 1;
        bench.add_bio(now, &of(2, now, n));
    }
    let mut at_device: Vec<(Time, RequestId)> = Vec::new();
    bench.add_bio(now, &of(1, now, n));
    let mut due = None;
    for _ in 0..4000 {
        while let Some(id) = bench.scheduler.dispatch(now, &bench.requests) {
            let active = bench.scheduler.active.unwrap();
            let own = *bench.scheduler.sync_queues.get(1).unwrap();
            let is_light = bench.requests[id].task == 2;
            sent += usize::from(is_light && active == own);
            let takes = if at_device.is_empty() { alone_ns } else { beside_ns };
            at_device.push((now + takes, id));
            if is_light {
                n += 1;
                bench.add_bio(now, &of(2, now, n));
            }
        }
        let completes = at_device.iter().map(|&(at, _)| at).min();
        let wakes = bench.scheduler.next_wakeup();
        now = [completes, wakes, due].into_iter().flatten().min().unwrap().max(now);
        bench.scheduler.wake(now, &bench.requests);
        if due.is_some_and(|at| at <= now) {
            due = None;
            n += 1;
            bench.add_bio(now, &of(1, now, n));
        }
        while let Some(place) = at_device.iter().position(|&(at, _)| at <= now) {
            let (_, id) = at_device.swap_remove(place);
            bench.scheduler.completed(now, &bench.requests, id);
            if bench.requests.take(id).task == 1 {
                due = Some(now + MILLISECOND / 10);
            }
        }
    }
    sent
}

#[test]
fn while_it_idles_it_sends_of_others_what_does_not_delay_the_reader() {
    let (harmless, harmful) = (injected(MILLISECOND, MILLISECOND), injected(MILLISECOND, 9 * MILLISECOND));
    assert!(harmless > 1000, "{harmless}");
    assert!(harmful * 5 < harmless, "{harmful}");
}

/// Queues that there are in use after three readers came at these times.
fn queues_in_use(rotational: bool, merges: bool, at_ms: [u64; 3]) -> usize {
    let bfq = Bfq::new(plain(), rotational, &[1000]).with_queue_merging(merges);
    let mut bench = Bench::new(bfq);
    for (task, at) in (0..).zip(at_ms) {
        bench.add_bio(at * MILLISECOND, &read_of(task, at * MILLISECOND, u64::from(task) * 9_000_000));
    }
    let queues = (0..3).map(|task| *bench.scheduler.sync_queues.get(task).unwrap());
    queues.collect::<std::collections::BTreeSet<_>>().len()
}

#[test]
fn from_5_13_on_queues_that_come_within_180_ms_are_one_where_seeking_is_free() {
    assert_eq!(queues_in_use(false, true, [0, 100, 180]), 1);
    assert_eq!(queues_in_use(false, true, [0, 100, 181]), 2);
    assert_eq!(queues_in_use(false, false, [0, 0, 0]), 3);
    assert_eq!(queues_in_use(true, true, [0, 0, 0]), 3, "not yet");
}

#[test]
fn on_a_disk_with_a_command_queue_random_readers_are_merged_after_600_ms() {
    let bfq = Bfq::new(plain(), true, &[1000]).with_queue_merging(true);
    let mut bench = Bench::new(bfq);
    let mut random = 1u64;
    for n in 0..140u64 {
        let now = n * 5 * MILLISECOND;
        for task in [1, 2] {
            random = random * 25_214_903_917 % 99_999_989;
            bench.add_bio(now, &Bio { sectors: 8, ..read_of(task, now, random) });
        }
        while let Some(id) = bench.scheduler.dispatch(now, &bench.requests) {
            bench.scheduler.completed(now + MILLISECOND, &bench.requests, id);
            bench.requests.take(id);
        }
        if n == 119 {
            assert_ne!(bench.scheduler.sync_queues.get(1), bench.scheduler.sync_queues.get(2));
        }
    }
    assert_eq!(bench.scheduler.sync_queues.get(1), bench.scheduler.sync_queues.get(2));
}

#[test]
fn groups_share_by_weight_however_many_queues_they_have() {
    let readers = [1, 2, 2, 2, 3].map(|group| Reader { group, ..READER });
    let scheduler = Bfq::new(plain(), true, &[1000, 100, 300, 600]);
    let read = served(scheduler, &readers, 30 * SECOND, 0);
    assert_shares(&read, &[100, 100, 100, 100, 600], 0.03);
}

#[test]
fn one_request_at_a_time_is_idled_for_so_that_shares_hold() {
    let readers = [(1, 4), (2, 4)].map(|(group, level)| Reader { group, level, depth: 1, ..READER });
    let scheduler = Bfq::new(plain(), true, &[1000, 100, 400]);
    let read = served(scheduler, &readers, 60 * SECOND, 5 * MILLISECOND);
    assert_shares(&read, &[100, 400], 0.05);
}

#[test]
fn a_slow_queue_gets_its_share_of_time_and_not_of_sectors() {
    // One reads 4 KiB with a seek each time, the other streams.
    // What the device streams in 125 ms: the estimate starts lower, and favours the slow one until it has risen.
    let mut bench = bench_of(BfqTunables { max_budget: 32_000, ..plain() });
    let (mut now, mut spent) = (0, [0u64; 2]);
    let mut next = [0u64, 0];
    let add = |bench: &mut Bench<Bfq>, next: &mut [u64; 2], task: usize, now| {
        next[task] += 1;
        let (start, sectors) = match task {
            0 => (next[0] * 7_919_111 % 50_000_000, 8),
            _ => (100_000_000 + next[1] * 256, 256),
        };
        let bio = Bio { sectors, ..read_of(task as u32, now, start) };
        bench.add_bio(now, &bio);
    };
    for task in [0, 1, 0, 1, 0, 1, 0, 1] {
        add(&mut bench, &mut next, task, 0);
    }
    while now < 60 * SECOND {
        let Some(id) = bench.scheduler.dispatch(now, &bench.requests) else {
            now = bench.scheduler.next_wakeup().expect("a timer").max(now);
            bench.scheduler.wake(now, &bench.requests);
            continue;
        };
        let task = bench.requests[id].task as usize;
        let took = [8 * MILLISECOND, MILLISECOND][task];
        now += took;
        spent[task] += took;
        bench.scheduler.completed(now, &bench.requests, id);
        bench.requests.take(id);
        add(&mut bench, &mut next, task, now);
    }
    let share = spent[0] as f64 / (spent[0] + spent[1]) as f64;
    assert!((0.35..0.65).contains(&share), "{spent:?}");
}

#[test]
fn a_queue_is_served_until_its_budget_is_spent() {
    let mut bench = bench_of(BfqTunables { max_budget: 1500, ..plain() });
    for n in 0..8 {
        bench.add_bio(0, &read_of(1, 0, n * 256));
        bench.add_bio(0, &read_of(2, 0, 10_000_000 + n * 256));
    }
    let tasks: Vec<u32> = (0..6)
        .map(|_| {
            let id = bench.scheduler.dispatch(0, &bench.requests).unwrap();
            bench.requests[id].task
        })
        .collect();
    // The first budget is two thirds of 1500 sectors: three requests.
    assert_eq!(tasks, [1, 1, 1, 2, 2, 2]);
}

#[test]
fn budgets_grow_for_queues_that_spend_them_and_shrink_for_idle_ones() {
    let mut bench = bench();
    bench.add_bio(0, &read_of(1, 0, 0));
    bench.scheduler.queues[0].max_budget = 1024;
    let max = DEFAULT_MAX_BUDGET;
    let min = max / 32;
    for (reason, budget, in_flight, expected) in [
        (select::Reason::BudgetExhausted, 1024, 0, 4096),
        (select::Reason::BudgetTimeout, 1024, 0, 2048),
        (select::Reason::TooIdle, 1024, 1, 2048),
        (select::Reason::TooIdle, 8192, 0, 8192 - 4 * min),
        (select::Reason::TooIdle, 5 * min, 0, min),
        (select::Reason::NoMoreRequests, 1024, 0, 600),
        (select::Reason::BudgetExhausted, 8192, 0, max),
    ] {
        bench.scheduler.queues[0].max_budget = budget;
        bench.scheduler.queues[0].dispatched = in_flight;
        let deserved = bench.scheduler.deserved_budget(0, reason, 600);
        assert_eq!(deserved, Some(expected), "{reason:?} with {budget}");
    }
    bench.scheduler.queues[0].dispatched = 0;
    let kept = bench.scheduler.deserved_budget(0, select::Reason::Preempted, 600);
    assert_eq!(kept, None);
}

#[test]
fn async_requests_count_three_times_while_all_queues_are_alike() {
    let mut bench = bench();
    bench.add(0, Write, &[0]);
    let (id, _) = bench.requests.iter().next().unwrap();
    assert_eq!(bench.scheduler.charge(&bench.requests, id, 0), 24);
    bench.add_bio(0, &Bio { group: 1, ..read_of(1, 0, 1000) });
    assert_eq!(bench.scheduler.charge(&bench.requests, id, 0), 8);
}

#[test]
fn while_it_idles_for_a_sequential_reader_nobody_else_is_served() {
    let mut bench = bench();
    bench.scheduler.depth.known = Some(false);
    bench.add_bio(0, &read_of(1, 0, 0));
    bench.add_bio(0, &read_of(2, 0, 10_000_000));
    let first = bench.scheduler.dispatch(0, &bench.requests).unwrap();
    bench.scheduler.completed(MILLISECOND, &bench.requests, first);
    assert_eq!(bench.scheduler.dispatch(MILLISECOND, &bench.requests), None);
    assert_eq!(bench.scheduler.next_wakeup(), Some(9 * MILLISECOND));
    bench.add_bio(2 * MILLISECOND, &read_of(1, 2 * MILLISECOND, 256));
    assert_eq!(bench.dispatched(2 * MILLISECOND, 1), [256]);
}

#[test]
fn a_seeky_queue_among_equals_is_idled_for_2_ms_only() {
    let mut bench = bench();
    bench.scheduler.depth.known = Some(false);
    let mut now = 0;
    for n in 0..30 {
        bench.add_bio(now, &read_of(1, now, n * 9_999_999 % 77_000_000));
        let id = bench.scheduler.dispatch(now, &bench.requests).unwrap();
        now += MILLISECOND;
        bench.scheduler.completed(now, &bench.requests, id);
    }
    assert_eq!(bench.scheduler.idle_timer, Some(now + 2 * MILLISECOND));
}

#[test]
fn without_seeks_and_with_a_command_queue_it_idles_only_for_weights() {
    for (group, idles) in [(0, false), (1, true)] {
        let mut bench = Bench::new(Bfq::new(plain(), false, &[1000]));
        let bio = Bio { group, ..read_of(1, 0, 0) };
        bench.add_bio(0, &bio);
        bench.add_bio(0, &read_of(2, 0, 1000));
        while let Some(id) = bench.scheduler.dispatch(0, &bench.requests) {
            if bench.requests[id].task == 1 {
                bench.scheduler.completed(0, &bench.requests, id);
                break;
            }
            bench.scheduler.completed(0, &bench.requests, id);
            bench.scheduler.idle_timer = None;
        }
        assert_eq!(bench.scheduler.idle_timer.is_some(), idles, "group {group}");
    }
}

/// Whether it idles for one of two tasks of that group, on a device without seeks that queues commands.
fn idles_for_one_of_two_in(group: u16, counts_root: bool) -> bool {
    let bfq = Bfq::new(plain(), false, &[1000, 100]).with_root_counted(counts_root);
    let mut bench = Bench::new(bfq);
    for task in 1..=2 {
        let start = u64::from(task) * 1000;
        bench.add_bio(0, &Bio { group, ..read_of(task, 0, start) });
    }
    let first = bench.scheduler.dispatch(0, &bench.requests).expect("two wait");
    bench.scheduler.completed(0, &bench.requests, first);
    bench.scheduler.dispatch(0, &bench.requests);
    bench.scheduler.idle_timer.is_some()
}

#[test]
fn until_6_2_a_group_alone_that_is_not_the_roots_counts_as_one_of_several() {
    assert!(!idles_for_one_of_two_in(0, false));
    assert!(!idles_for_one_of_two_in(0, true));
    assert!(idles_for_one_of_two_in(1, false));
    assert!(!idles_for_one_of_two_in(1, true));
}

#[test]
fn the_idle_class_gets_a_turn_after_200_ms() {
    let mut bench = bench_of(BfqTunables { slice_idle_ns: 0, max_budget: 256, ..plain() });
    bench.add_bio(0, &Bio { priority: invariants::priority_of(3), ..read_of(3, 0, 5_000_000) });
    for n in 0..4 {
        bench.add_bio(0, &read_of(1, 0, n * 256));
    }
    assert_eq!(bench.dispatched(199 * MILLISECOND, 2), [0, 256]);
    assert_eq!(bench.dispatched(200 * MILLISECOND, 1), [512]);
    assert_eq!(bench.dispatched(200 * MILLISECOND + 1, 1), [5_000_000]);
}

#[test]
fn the_oldest_request_is_looked_at_once_a_turn() {
    let mut bench = bench();
    for start in [900_000, 1000, 2000] {
        bench.add_bio(0, &read_of(1, 0, start));
    }
    assert_eq!(bench.dispatched(125 * MILLISECOND, 3), [1000, 900_000, 2000], "when the first of the turn has gone");
}

#[test]
fn a_task_with_the_number_of_one_that_has_exited_gets_one_queue_of_its_own() {
    let mut bench = bench();
    for start in [0, 1000] {
        bench.add_bio(0, &read_of(1, 0, start));
    }
    bench.dispatched(0, 2);
    bench.scheduler.exited(MILLISECOND, 1);
    for start in [2000, 3000, 4000] {
        bench.add_bio(2 * MILLISECOND, &read_of(1, 2 * MILLISECOND, start));
    }
    assert_eq!(bench.scheduler.queues.len(), 2);
    let queue = *bench.scheduler.sync_queues.get(1).unwrap();
    assert_eq!((queue, bench.scheduler.queues[queue].queued), (1, 3));
    assert!(!bench.scheduler.queues[queue].exited);
}

proptest! {
    /// Tasks come and go, their numbers stay few: each stay has one queue, and what it asks for is served.
    #[test]
    fn reused_numbers_are_new_tasks(stays in prop::collection::vec((0u32..3, 1u64..5), 1..20)) {
        let mut bench = bench();
        let mut now = 0;
        for (stay, &(task, reads)) in stays.iter().enumerate() {
            for n in 0..reads {
                now += MILLISECOND;
                bench.add_bio(now, &read_of(task, now, stay as u64 * 1_000_000 + n * 1000));
            }
            let mut served = 0;
            while served < reads {
                let Some(id) = bench.scheduler.dispatch(now, &bench.requests) else {
                    now = bench.scheduler.next_wakeup().expect("a timer").max(now);
                    bench.scheduler.wake(now, &bench.requests);
                    continue;
                };
                now += MILLISECOND;
                bench.scheduler.completed(now, &bench.requests, id);
                prop_assert_eq!(bench.requests.take(id).task, task);
                served += 1;
            }
            bench.scheduler.exited(now, task);
            prop_assert_eq!(bench.scheduler.queues.len(), stay + 1);
        }
        prop_assert_eq!(bench.scheduler.queued(), 0);
    }
}

proptest! {
    #[test]
    fn nothing_is_lost_or_done_twice(
        load in invariants::arrivals(4),
        depth in 1u32..16,
        slice_idle_ms in prop::sample::select(vec![0u64, 8]),
        rotational: bool,
        strict_guarantees: bool,
        low_latency: bool,
        merges: bool,
    ) {
        let tunables = BfqTunables {
            slice_idle_ns: slice_idle_ms * MILLISECOND,
            strict_guarantees,
            low_latency,
            ..plain()
        };
        let scheduler = Bfq::new(tunables, rotational, &[1000, 100, 300]).with_queue_merging(merges);
        invariants::completes_each_once(&invariants::serve(Box::new(scheduler), &load, depth, MILLISECOND));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(8))]

    #[test]
    fn shares_of_backlogged_groups_and_queues_follow_weights(
        weights in prop::collection::vec(50u32..1000, 2..5),
        levels in prop::collection::vec(0u8..8, 2..4),
    ) {
        let readers: Vec<Reader> = (1..=weights.len() as u16)
            .flat_map(|group| levels.iter().map(move |&level| Reader { group, level, ..READER }))
            .collect();
        let in_group: u64 = levels.iter().map(|&level| 8 - u64::from(level)).sum();
        let due: Vec<u64> = weights
            .iter()
            .flat_map(|&weight| {
                let share = move |&level: &u8| u64::from(weight) * (8 - u64::from(level)) * 10_000 / in_group;
                levels.iter().map(share)
            })
            .collect();
        let all: Vec<u32> = [1000].into_iter().chain(weights).collect();
        let tunables = BfqTunables { max_budget: 2048, ..plain() };
        let read = served(Bfq::new(tunables, true, &all), &readers, 100 * SECOND, 0);
        assert_shares(&read, &due, 0.08);
    }
}

#[test]
fn a_request_that_comes_and_is_nearer_goes_before_the_one_that_has_waited_too_long() {
    let late = 200 * MILLISECOND;
    let starts_after = |comes: Option<Sector>| {
        let mut bench = bench();
        for start in [1_000_000, 0, 8_000, 16_000] {
            bench.add_bio(0, &Bio { sectors: 8, ..read_of(1, 0, start) });
        }
        let first = bench.scheduler.dispatch(late, &bench.requests).unwrap();
        let first = bench.requests[first].start;
        if let Some(start) = comes {
            bench.add_bio(late, &Bio { sectors: 8, ..read_of(1, late, start) });
        }
        let next = bench.scheduler.dispatch(late, &bench.requests).unwrap();
        (first, bench.requests[next].start)
    };
    assert_eq!(starts_after(None), (0, 1_000_000), "the oldest, once in a turn");
    assert_eq!(starts_after(Some(4_000)), (0, 4_000));
}
