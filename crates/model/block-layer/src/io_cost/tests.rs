//! Shares, the rate of virtual time, lending and debt, as the kernel's own comments describe them.

use super::*;
use crate::Direction;
use crate::invariants::bench::bio;
use events::time::MILLISECOND;
use proptest::prelude::*;

/// 1,000 random reads per second, and as many writes.
fn rules(weights: &[u32], qos: CostQos) -> CostRules {
    CostRules {
        weights: [1000].iter().chain(weights).copied().collect(),
        model: CostModel { bytes: [Some(1 << 30); 2], sequential: [Some(1000); 2], random: [Some(1000); 2] },
        qos,
        rotational: false,
        requests: 64,
        hz: 250,
    }
}

fn fixed_rate() -> CostQos {
    CostQos { vrate_ppm: [Some(MILLION); 2], ..CostQos::default() }
}

/// Closed loops: each group keeps so many operations, each of which takes `service_ns` once it is let go.
struct Bench {
    cost: IoCost,
    service_ns: Time,
    now: Time,
    sleeping: Vec<Bio>,
    /// Served until then.
    served: VecDeque<(Time, Bio)>,
    done: Vec<u64>,
    number: u32,
}

impl Bench {
    fn new(rules: CostRules, service_ns: Time) -> Bench {
        Bench {
            done: vec![0; rules.weights.len()],
            cost: IoCost::new(rules),
            service_ns,
            now: 0,
            sleeping: Vec::new(),
            served: VecDeque::new(),
            number: 0,
        }
    }

    fn submit(&mut self, group: u16) {
        self.number += 1;
        let one = Bio { group, tag: self.number, task: u32::from(group), ..bio(self.now, Direction::Read, 1 << 20) };
        match self.cost.throttle(self.now, &one) {
            Some(cost) => self.serve(one, cost),
            None => self.sleeping.push(one),
        }
        self.wake();
    }

    fn serve(&mut self, mut bio: Bio, cost: u64) {
        bio.qos = QosTicket { submitted_at: self.now, passed_at: Some(self.now), allocated_at: self.now, cost };
        self.served.push_back((self.now + self.service_ns, bio));
    }

    fn wake(&mut self) {
        let mut granted = Vec::new();
        self.cost.take_granted(&mut granted);
        for Granted { waiter: who, cost } in granted {
            let place = self.sleeping.iter().position(|bio| waiter(bio) == who);
            let bio = self.sleeping.remove(place.unwrap());
            self.serve(bio, cost);
        }
    }

    fn run(&mut self, until: Time) {
        loop {
            let end = self.served.front().map(|(at, _)| *at);
            let timer = self.cost.next_wakeup();
            let Some(at) = [end, timer].into_iter().flatten().min() else {
                return;
            };
            if at > until {
                return;
            }
            self.now = at;
            if timer == Some(at) {
                self.cost.wake(at);
                self.wake();
            } else {
                let (_, bio) = self.served.pop_front().unwrap();
                self.cost.done_bio(at, &bio);
                self.cost.done(at, &Request::like(&bio), bio.qos);
                self.done[usize::from(bio.group)] += 1;
                self.submit(bio.group);
            }
            self.cost.check().unwrap();
        }
    }
}

#[test]
fn groups_share_by_weight_what_the_model_says_there_is() {
    let mut bench = Bench::new(rules(&[100, 300], fixed_rate()), 100_000);
    (0..8).for_each(|number| bench.submit(1 + number % 2));
    bench.run(4 * SECOND);
    let (one, other) = (bench.done[1] as f64, bench.done[2] as f64);
    assert!((2.9..3.1).contains(&(other / one)), "{one} and {other}");
    assert!((3900.0..4150.0).contains(&(one + other)), "{one} and {other}");
}

/// A group that does an operation at a time uses a tenth of the device; the other has the rest, and not its half.
#[test]
fn what_a_group_does_not_use_is_lent() {
    let mut bench = Bench::new(rules(&[100, 100], fixed_rate()), 10 * MILLISECOND);
    bench.submit(1);
    (0..64).for_each(|_| bench.submit(2));
    bench.run(4 * SECOND);
    let (few, many) = (bench.done[1], bench.done[2]);
    assert!((380..=401).contains(&few), "{few}");
    assert!((3400..3700).contains(&many), "{many}");
}

/// Without anything that shows a busy device, the rate rises; where latencies are missed, it falls to its bound.
#[test]
fn the_rate_follows_latencies_within_its_bounds() {
    let mut free = Bench::new(rules(&[100], CostQos::default()), 100_000);
    (0..32).for_each(|_| free.submit(1));
    free.run(4 * SECOND);
    assert!(free.cost.vrate.base() > 2 * params::VTIME_PER_US);
    let qos = CostQos {
        share_ppm: [Some(950_000), None],
        latency_us: [Some(1000), Some(1000)],
        vrate_ppm: [Some(250_000), Some(1_500_000)],
    };
    let mut late = Bench::new(rules(&[100], qos), 5 * MILLISECOND);
    (0..32).for_each(|_| late.submit(1));
    late.run(4 * SECOND);
    assert_eq!(late.cost.vrate.base(), params::VTIME_PER_US / 4 + 1);
}

/// What cannot wait is owed, and paid before the group goes on.
#[test]
fn a_debt_is_paid_before_anything_goes_on() {
    let mut bench = Bench::new(rules(&[100, 100], fixed_rate()), 100_000);
    (0..4).for_each(|_| bench.submit(2));
    bench.run(SECOND);
    for number in 0..100 {
        let urgent = Bio { group: 1, metadata: true, ..bio(bench.now, Direction::Write, number << 20) };
        assert!(bench.cost.throttle(bench.now, &urgent).is_some());
    }
    let owed = bench.cost.groups[1].debt;
    assert!(owed > 50 * params::VTIME_PER_US * 1000, "{owed}");
    bench.submit(1);
    assert_eq!(bench.sleeping.iter().filter(|bio| bio.group == 1).count(), 1);
    bench.run(SECOND + 20 * MILLISECOND);
    assert_eq!(bench.done[1], 0);
    bench.run(4 * SECOND);
    assert_eq!(bench.cost.groups[1].debt, 0);
    assert!(bench.done[1] > 500, "{}", bench.done[1]);
}

#[test]
fn levels_of_being_busy_change_the_rate_as_in_the_kernels_table() {
    let found: Vec<u64> = [0, 3, 4, 19, 20, 35, 36, 43, 44, 51, 52, 999].map(vrate::adjust_percent).into();
    assert_eq!(found, [0, 0, 1, 1, 2, 2, 4, 4, 8, 8, 16, 16]);
}

/// 50 ms are 13 ticks of 4 ms, which end with the fourteenth; 1 s is 250, which end with every eighth.
#[test]
fn periods_end_a_tick_late_and_long_ones_with_every_eighth() {
    let mut bench = Bench::new(rules(&[100], fixed_rate()), 100_000);
    (0..4).for_each(|_| bench.submit(1));
    assert_eq!(bench.cost.timer, Some(56 * MILLISECOND));
    bench.run(57 * MILLISECOND);
    assert_eq!(bench.cost.timer, Some(2 * 56 * MILLISECOND));
    assert_eq!(tick_timer::expiry(3, 62, 1), 66);
    assert_eq!(tick_timer::expiry(3, 63, 1), 72);
    assert_eq!(tick_timer::expiry(8, 250, 1), 264);
}

#[test]
fn an_idle_group_ends_and_begins_again_with_the_target() {
    let mut bench = Bench::new(rules(&[100], fixed_rate()), 100_000);
    bench.submit(1);
    bench.run(MILLISECOND);
    let (_, bio) = bench.served.pop_front().unwrap();
    bench.cost.done_bio(bench.now, &bio);
    bench.run(SECOND);
    assert!(bench.cost.active.is_empty() && bench.cost.next_wakeup().is_none());
    bench.now = 2 * SECOND;
    bench.submit(1);
    assert_eq!(bench.cost.active, [1]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    /// Whatever weights, loads and latencies are: the rate stays within its bounds, sums are those of the groups (`check`),
    /// nothing is lost, no more is let go than the highest rate allows, and every group goes on.
    #[test]
    fn no_group_starves_and_nobody_outruns_the_rate(
        weights in prop::collection::vec(1_u32..=1000, 1..5),
        depths in prop::collection::vec(1_u32..16, 5),
        service_us in 50_u64..20_000,
        latency_us in 1000_u64..50_000,
        most_ppm in 200_000_u64..4_000_000,
    ) {
        let qos = CostQos {
            share_ppm: [Some(900_000), None],
            latency_us: [Some(latency_us), None],
            vrate_ppm: [Some(200_000), Some(most_ppm)],
        };
        let mut bench = Bench::new(rules(&weights, qos), service_us * MICROSECOND);
        for (group, depth) in (1..=weights.len()).zip(&depths) {
            (0..*depth).for_each(|_| bench.submit(group as u16));
        }
        let mut total = 0;
        for second in 1..5 {
            bench.run(second * SECOND);
            let submitted = u64::from(bench.number);
            let inside = bench.sleeping.len() + bench.served.len();
            total = bench.done.iter().sum();
            prop_assert_eq!(submitted, total + inside as u64);
        }
        let sum: u32 = weights.iter().sum();
        for (group, weight) in (1..).zip(&weights) {
            // Of 200 operations per second at the lowest rate, four seconds long, half for the beginning.
            let least = u64::from(400 * weight / sum).min(2_000_000 / service_us);
            prop_assert!(bench.done[group] >= least, "{group}: {:?}", bench.done);
        }
        let most = most_ppm.max(MILLION) as f64 / MILLION as f64 * 1000.0;
        // Credit of half a period for each group at its beginning, and what is made up for.
        let bound = (4.0 + 2.0 * weights.len() as f64) * most + 10.0;
        prop_assert!((total as f64) < bound, "{total} above {bound}");
    }
}
