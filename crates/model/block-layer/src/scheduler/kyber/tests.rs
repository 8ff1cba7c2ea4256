use super::*;
use crate::Direction::{Read, Write};
use crate::invariants;
use crate::invariants::bench::{Bench, bio};
use events::time::SECOND;
use kernels::hardware_queue::TagLimit;
use proptest::prelude::*;

fn bench() -> Bench<Kyber> {
    Bench::new(Kyber::new(KyberTunables::default(), QueueMap::SINGLE))
}

/// `count` requests of a direction that each took `took_ns` at the device; the first is queued at `now`.
fn completed(bench: &mut Bench<Kyber>, now: Time, direction: Direction, count: u32, took_ns: Time) {
    for _ in 0..count {
        bench.add(now, direction, &[0]);
        let id = bench.scheduler.dispatch(now, &bench.requests).expect("a token is free");
        bench.requests[id].issued_at = Some(now);
        bench.scheduler.completed(now + took_ns, &bench.requests, id);
    }
}

fn look(bench: &mut Bench<Kyber>) {
    let at = bench.scheduler.next_wakeup().expect("a timer");
    bench.scheduler.wake(at, &bench.requests);
}

#[test]
fn a_turn_is_16_reads_then_8_writes_in_order_of_arrival() {
    let mut bench = bench();
    let starts: Vec<u64> = (0..40).map(|n| (40 - n) * 100).collect();
    bench.add(0, Read, &starts);
    bench.add(0, Write, &starts);
    let dispatched = bench.dispatched(0, 48);
    assert_eq!(dispatched[..2], [4000, 3900], "nothing is sorted");
    let reads = |part: &[i64]| part.iter().filter(|&&start| start > 0).count();
    assert_eq!(reads(&dispatched[..16]), 16);
    assert_eq!(reads(&dispatched[16..24]), 0);
    assert_eq!(reads(&dispatched[24..40]), 16);
}

#[test]
fn a_domain_without_a_token_is_passed_over_until_one_comes_back() {
    let mut bench = bench();
    bench.scheduler.depth = [1; DOMAINS];
    bench.add(0, Read, &[100, 200]);
    bench.add(0, Write, &[300]);
    let read = bench.scheduler.dispatch(0, &bench.requests).unwrap();
    assert_eq!(bench.dispatched(0, 3), [-300]);
    bench.scheduler.completed(1, &bench.requests, read);
    assert_eq!(bench.dispatched(1, 3), [200]);
}

#[test]
fn a_fast_domain_shrinks_when_another_suffers() {
    let mut bench = bench();
    // Reads at half their target (the second of four quarters), writes at twice theirs.
    completed(&mut bench, 0, Read, 500, MILLISECOND);
    completed(&mut bench, 0, Write, 500, 20 * MILLISECOND);
    look(&mut bench);
    assert_eq!(bench.scheduler.depths(), [256 * 2 / 4, 128]);
}

#[test]
fn a_slow_domain_grows_again() {
    let mut bench = bench();
    bench.scheduler.depth = [256, 32, 64];
    // Above one and a half times the target: the seventh quarter.
    completed(&mut bench, 0, Write, 500, 16 * MILLISECOND);
    look(&mut bench);
    assert_eq!(bench.scheduler.depths()[1], 32 * 7 / 4);
}

#[test]
fn what_is_fast_enough_everywhere_stays_as_it_is() {
    let mut bench = bench();
    completed(&mut bench, 0, Read, 500, MILLISECOND);
    completed(&mut bench, 0, Write, 500, MILLISECOND);
    look(&mut bench);
    assert_eq!(bench.scheduler.depth, DEPTH_MAX);
}

#[test]
fn few_samples_do_for_the_device_after_a_second_but_never_for_the_total() {
    let target_ns = 2 * MILLISECOND;
    let mut latencies = Latencies::default();
    let record = |latencies: &mut Latencies, count| {
        for _ in 0..count {
            latencies.record(8 * target_ns, 8 * target_ns, target_ns);
        }
    };
    record(&mut latencies, 10);
    assert!(!latencies.device_is_slow(0));
    assert!(latencies.device_is_slow(SECOND));
    // That look starts the second anew before the total is looked at, which so waits for 500 samples.
    assert_eq!(latencies.quarters_of_target(SECOND, true), None);
    record(&mut latencies, 490);
    assert_eq!(latencies.quarters_of_target(SECOND, true), Some(8));
}

#[test]
fn a_good_percentile_is_remembered_for_one_look() {
    let mut bench = bench();
    completed(&mut bench, 0, Read, 500, MILLISECOND);
    look(&mut bench);
    completed(&mut bench, SECOND, Write, 500, 20 * MILLISECOND);
    look(&mut bench);
    assert_eq!(bench.scheduler.depths()[0], 128);
    completed(&mut bench, 2 * SECOND, Write, 500, 20 * MILLISECOND);
    look(&mut bench);
    assert_eq!(bench.scheduler.depths()[0], 128, "nothing is known any more");
}

fn four_words() -> TagCounts {
    TagCounts::of(256, TagLimit::OfWord)
}

#[test]
fn async_requests_leave_a_quarter_of_the_tags() {
    let scheduler = Kyber::new(KyberTunables::default(), QueueMap::SINGLE);
    assert_eq!(scheduler.tags_allowed(&bio(0, Read, 0), four_words()), 64);
    assert_eq!(scheduler.tags_allowed(&bio(0, Write, 0), four_words()), 48);
    assert_eq!(scheduler.fewest_tags(four_words()), 48);
}

#[test]
fn each_hardware_queue_takes_from_its_own_cpus_and_has_its_own_turn() {
    let mut bench = Bench::new(Kyber::new(KyberTunables::default(), QueueMap::modulo(4, 2)));
    for (cpu, start) in [(0, 100), (2, 200), (1, 300), (3, 400)] {
        let bio = Bio { cpu, ..bio(0, Read, start) };
        bench.add_bio(0, &bio);
    }
    assert_eq!(bench.dispatched(0, 4), [100, 300, 200, 400]);
}

/// Requests of a direction through Kyber of 4.14, each with its time at the device.
fn of_4_14(requests: &[(Direction, bool, Time)]) -> [u32; DOMAINS] {
    let kyber = Kyber::new(KyberTunables::default(), QueueMap::SINGLE).by_means();
    let mut bench = Bench::new(kyber);
    for &(direction, sync, took_ns) in requests {
        let bio = Bio { sync, ..bio(0, direction, 0) };
        bench.add_bio(0, &bio);
        let id = bench.scheduler.dispatch(0, &bench.requests).unwrap();
        bench.requests[id].issued_at = Some(0);
        bench.scheduler.completed(took_ns, &bench.requests, id);
    }
    if bench.scheduler.next_wakeup().is_some() {
        look(&mut bench);
    }
    bench.scheduler.depth
}

#[test]
fn in_4_14_means_of_10_ms_from_a_slow_request_on_decide() {
    let ms = MILLISECOND;
    assert_eq!(of_4_14(&[(Read, true, ms)]), DEPTH_MAX, "nobody looks");
    let slow = (Read, true, 3 * ms);
    let depth = of_4_14(&[slow, slow, (Write, true, ms)]);
    assert_eq!(depth, [256, 128 - 32, 64], "reads bad, writes great");
    let awful = (Read, true, 9 * ms);
    let depth = of_4_14(&[slow, awful, (Write, true, 7 * ms)]);
    assert_eq!(depth, [256, 128 - 32, 64], "reads awful, writes good");
}

#[test]
fn in_4_14_async_writes_have_a_domain_that_gives_way_when_nothing_does_well() {
    let ms = MILLISECOND;
    let slow = (Read, true, 9 * ms);
    let depth = of_4_14(&[slow, slow, (Write, false, ms)]);
    assert_eq!(depth, [256, 128, 32]);
    let depth = of_4_14(&[slow, slow, (Write, true, ms), (Write, false, ms)]);
    assert_eq!(depth[2], 64, "sync writes do well");
}

proptest! {
    #[test]
    fn nothing_is_lost_or_done_twice(load in invariants::arrivals(4), depth in 1u32..8, queues in 1u16..4) {
        let scheduler = Kyber::new(KyberTunables::default(), QueueMap::modulo(4, queues));
        invariants::completes_each_once(&invariants::serve(Box::new(scheduler), &load, depth, MILLISECOND));
    }

    #[test]
    fn depths_stay_between_1_and_their_maximum(
        rounds in prop::collection::vec((any::<bool>(), 1u32..600, 1u64..40_000_000), 1..30)
    ) {
        let mut bench = bench();
        for (round, (reads, count, took_ns)) in (0..).zip(rounds) {
            let direction = if reads { Read } else { Write };
            completed(&mut bench, round * SECOND, direction, count, took_ns);
            look(&mut bench);
            for (depth, most) in bench.scheduler.depths().into_iter().zip(DEPTH_MAX) {
                prop_assert!((1..=most).contains(&depth), "{:?}", bench.scheduler.depths());
            }
        }
    }
}
