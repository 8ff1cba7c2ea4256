//! When groups are held back and let go again, by how much, and that nobody is lost.

use super::*;
use crate::invariants::bench::bio;
use crate::{Direction, QosTicket};
use events::time::MICROSECOND;
use proptest::prelude::*;

const REQUESTS: u32 = 16;

fn latency(targets_us: &[Option<u64>]) -> IoLatency {
    let targets = targets_us.iter().map(|us| us.map(|us| us * MICROSECOND));
    IoLatency::new(LatencyRules {
        targets_ns: [None].into_iter().chain(targets).collect(),
        requests: REQUESTS,
        rotational: false,
    })
}

/// A closed loop: each group keeps so many bios that are waited for or at a device that serves `width` at once.
struct Bench {
    latency: IoLatency,
    width: usize,
    service_ns: Time,
    now: Time,
    at_device: VecDeque<Bio>,
    queued: VecDeque<Bio>,
    ends: VecDeque<Time>,
    done: Vec<u64>,
    number: u32,
    sleeping: Vec<Bio>,
}

impl Bench {
    fn new(latency: IoLatency, width: usize, service_us: u64) -> Bench {
        let groups = latency.groups.len();
        Bench {
            latency,
            width,
            service_ns: service_us * MICROSECOND,
            now: 0,
            at_device: VecDeque::new(),
            queued: VecDeque::new(),
            ends: VecDeque::new(),
            done: vec![0; groups],
            number: 0,
            sleeping: Vec::new(),
        }
    }

    fn submit(&mut self, group: u16) {
        let mut one = Bio { group, tag: self.number, ..bio(self.now, Direction::Read, 8) };
        self.number += 1;
        one.qos.submitted_at = self.now;
        match self.latency.throttle(self.now, &one) {
            Some(_) => self.enters(one),
            None => self.sleeping.push(one),
        }
    }

    fn enters(&mut self, mut bio: Bio) {
        bio.qos = QosTicket { passed_at: Some(self.now), ..bio.qos };
        self.queued.push_back(bio);
        self.fill();
    }

    /// What waits at the device's door goes in, if there is room.
    fn fill(&mut self) {
        while self.at_device.len() < self.width
            && let Some(bio) = self.queued.pop_front()
        {
            self.at_device.push_back(bio);
            self.ends.push_back(self.now + self.service_ns);
        }
    }

    fn wake(&mut self) {
        let mut granted = Vec::new();
        self.latency.take_granted(&mut granted);
        for Granted { waiter, .. } in granted {
            let own = |bio: &Bio| crate::qos::waiter(bio) == waiter;
            let place = self.sleeping.iter().position(own).unwrap();
            let bio = self.sleeping.remove(place);
            self.enters(bio);
        }
    }

    fn run(&mut self, until: Time) {
        while let Some(end) = self.ends.front().copied().filter(|end| *end <= until) {
            while let Some(at) = self.latency.next_wakeup().filter(|at| *at <= end) {
                self.now = at;
                self.latency.wake(at);
                self.wake();
            }
            self.now = end;
            self.ends.pop_front();
            let bio = self.at_device.pop_front().unwrap();
            self.done[usize::from(bio.group)] += 1;
            self.latency.done_bio(end, &bio);
            self.wake();
            self.submit(bio.group);
            self.fill();
            self.latency.check().unwrap();
        }
    }
}

#[test]
fn a_target_that_is_met_holds_nobody_back() {
    let mut bench = Bench::new(latency(&[Some(1000), None]), 4, 100);
    (0..2).for_each(|_| bench.submit(1));
    (0..8).for_each(|_| bench.submit(2));
    bench.run(5 * SECOND);
    assert!(bench.latency.groups.iter().all(|group| group.depth.is_none()));
    assert_eq!(bench.latency.scale.cookie, COOKIE_DEFAULT);
}

/// A step every half second, from the end of the first window that missed: 16 requests become 8, 4, 2 and 1; then the
/// neighbour's depth stays.
#[test]
fn who_has_no_target_is_halved_until_the_other_meets_its_own() {
    let mut bench = Bench::new(latency(&[Some(150), None]), 1, 100);
    bench.submit(1);
    (0..16).for_each(|_| bench.submit(2));
    let mut depths = Vec::new();
    for half in 1..8 {
        bench.run(half * SECOND / 2 - 300 * MILLISECOND);
        depths.push(bench.latency.groups[2].depth);
    }
    assert_eq!(depths[..4], [Some(8), Some(4), Some(2), Some(1)]);
    assert_eq!(bench.latency.groups[1].depth, None);
}

/// The machine has run for long: the first bio ends a window, and may take a step (`iolatency_pd_init`).
#[test]
fn a_first_bio_that_is_late_halves_the_others() {
    let mut bench = Bench::new(latency(&[Some(50), None]), 1, 100);
    bench.submit(1);
    (0..16).for_each(|_| bench.submit(2));
    bench.run(MILLISECOND);
    assert_eq!(bench.latency.groups[2].depth, Some(8));
    bench.run(490 * MILLISECOND);
    assert_eq!(bench.latency.groups[2].depth, Some(8));
}

/// Of two with targets, the one with the higher is held back, and the lower one never.
#[test]
fn the_lower_target_wins() {
    let mut bench = Bench::new(latency(&[Some(150), Some(3000)]), 1, 100);
    bench.submit(1);
    (0..16).for_each(|_| bench.submit(2));
    bench.run(6 * SECOND);
    assert_eq!(bench.latency.groups[1].depth, None);
    assert_eq!(bench.latency.groups[2].depth, Some(1));
    assert_eq!(bench.latency.scale.group, Some(1));
}

/// When the protected group is gone, the timer gives a step back each time, five seconds after the last one down.
#[test]
fn who_was_held_back_is_free_again_when_nobody_asks_for_it() {
    let mut bench = Bench::new(latency(&[Some(150), None]), 1, 100);
    bench.latency.scale.cookie = COOKIE_DEFAULT - REQUESTS / 4;
    bench.latency.scale.group = Some(1);
    bench.latency.scale.changed_at = Some(1);
    (0..16).for_each(|_| bench.submit(2));
    assert_eq!(bench.latency.groups[2].depth, Some(8));
    bench.run(5 * SECOND);
    assert_eq!(bench.latency.groups[2].depth, Some(8));
    bench.run(14 * SECOND);
    assert_eq!(bench.latency.groups[2].depth, None);
}

/// Means of windows decide on a drive that seeks.
#[test]
fn a_mean_decides_where_the_drive_seeks() {
    let slow = Sample { count: 10, missed: 1, sum_ns: 900 };
    assert!(!slow.is_good(80, false));
    assert!(slow.is_good(90, true) && !slow.is_good(89, true));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    /// Whatever the targets and loads are: all bios are accounted for, every group that submits makes progress in each
    /// second, and the group with the lowest target is never held back.
    #[test]
    fn nobody_starves_and_nothing_is_lost(
        targets in prop::collection::vec(prop::option::of(50_u64..5000), 2..5),
        depths in prop::collection::vec(1_u32..12, 5),
        width in 1_usize..8,
        service_us in 200_u64..2000,
    ) {
        let mut bench = Bench::new(latency(&targets), width, service_us);
        for (group, depth) in (1..=targets.len()).zip(&depths) {
            (0..*depth).for_each(|_| bench.submit(group as u16));
        }
        let lowest = targets.iter().flatten().min().copied();
        let mut before = bench.done.clone();
        for second in 1..4 {
            bench.run(second * SECOND);
            for group in 1..=targets.len() {
                prop_assert!(bench.done[group] > before[group], "{group} starves in second {second}");
                if targets[group - 1].is_some() && targets[group - 1] == lowest {
                    prop_assert_eq!(bench.latency.groups[group].depth, None);
                }
            }
            before.clone_from(&bench.done);
            let submitted = u64::from(bench.number);
            let inside = bench.sleeping.len() + bench.queued.len() + bench.at_device.len();
            prop_assert_eq!(submitted, bench.done.iter().sum::<u64>() + inside as u64);
        }
    }
}
