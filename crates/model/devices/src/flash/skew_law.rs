//! What blocks hold after a long run of writes that are not uniform.
//!
//! Units of a class are overwritten at the same rate. The host's writes and what collecting moves go to blocks of their
//! own, so that there are two kinds of blocks: each begins with a mixture that is always the same, and a class decays in
//! it as e^(-rate * age). The collector takes a block of either kind when it comes to the same score (after Van Houdt, "On
//! the necessity of hot and cold data identification to reduce the write amplification in flash-based SSDs", Performance
//! Evaluation 82, 2014; for many units in a block, chance evens out). What is collected and not invalid is the mixture of
//! the moved blocks, which closes the equations (docs/model/flash.md).

use libm::exp;

use crate::flash::collector::Collector;
use crate::flash::steady_law::root;

/// Units that are written equally often.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Class {
    /// How many of the host's units; more than 0.
    pub(super) units: u32,
    /// Their part of the writes; more than 0, and 1 for all classes together.
    pub(super) writes: f64,
}

/// Ages count what the host writes to the die, in units.
#[derive(Clone, Debug)]
pub(super) struct SkewLaw {
    /// Overwrites of one unit of each class for each unit that the host writes.
    rates: Vec<f64>,
    /// What a block of each kind holds of each class when it is full, as a part of the block.
    mixtures: [Vec<f64>; 2],
    /// The age at which a block of each kind is collected.
    ages: [f64; 2],
    amplification: f64,
}

/// Ages at which both kinds of blocks are collected, and what follows.
struct Flow {
    moved_age: f64,
    /// Of each class, units moved for each that the host writes.
    moved: Vec<f64>,
}

impl SkewLaw {
    /// Of a die with so many closed blocks. `classes` have those of its units.
    pub(super) fn new(collector: Collector, blocks: f64, block_units: f64, classes: &[(f64, f64)]) -> SkewLaw {
        let rates: Vec<f64> = classes.iter().map(|(units, writes)| writes / units).collect();
        let host: Vec<f64> = classes.iter().map(|&(_, writes)| writes).collect();
        let held = blocks * block_units;
        let equations = Equations { collector, block_units, rates: &rates, host: &host };
        // The older blocks are when they are collected, the more there are of them.
        let host_age = root(0.0, held, |age| {
            let flow = equations.flow(age);
            age + flow.moved.iter().sum::<f64>() * flow.moved_age < held
        });
        let Flow { moved_age, moved } = equations.flow(host_age);
        let all: f64 = moved.iter().sum();
        SkewLaw {
            mixtures: [host, moved.iter().map(|units| units / all.max(1e-300)).collect()],
            rates,
            ages: [host_age, moved_age],
            amplification: 1.0 + all,
        }
    }

    /// Units programmed for each that the host writes.
    pub(super) fn amplification(&self) -> f64 {
        self.amplification
    }

    /// What part of the closed blocks the host has written; the others hold what was moved.
    pub(super) fn host_share(&self) -> f64 {
        let [host, moved] = self.ages;
        host / (host + (self.amplification - 1.0) * moved)
    }

    /// The age of a block that this share of the blocks of its kind is younger than.
    pub(super) fn age(&self, is_moved: bool, share: f64) -> f64 {
        self.ages[usize::from(is_moved)] * share
    }

    /// What such a block holds of each class, as a part of the block.
    pub(super) fn held(&self, is_moved: bool, age: f64) -> impl Iterator<Item = f64> {
        let mixture = &self.mixtures[usize::from(is_moved)];
        mixture.iter().zip(&self.rates).map(move |(part, rate)| part * exp(-rate * age))
    }
}

struct Equations<'a> {
    collector: Collector,
    block_units: f64,
    rates: &'a [f64],
    host: &'a [f64],
}

impl Equations<'_> {
    /// What is moved if the host's blocks are collected at that age.
    fn flow(&self, host_age: f64) -> Flow {
        let host_valid = self.valid(self.decayed(self.host, host_age).sum());
        let slowest = self.rates.iter().copied().fold(f64::INFINITY, f64::min);
        let eldest = 60.0 / slowest + host_age;
        let moved_age = match self.collector {
            Collector::Windowed => host_age,
            Collector::Greedy => root(0.0, eldest, |age| self.moved_valid(host_age, age) > host_valid),
            Collector::CostBenefit => {
                root(0.0, eldest, |age| benefit(age, self.moved_valid(host_age, age)) < benefit(host_age, host_valid))
            }
        };
        let moved = self.moved(host_age, moved_age).collect();
        Flow { moved_age, moved }
    }

    /// Of each class, what is moved out of blocks comes from the host's and from moved ones.
    fn moved(&self, host_age: f64, moved_age: f64) -> impl Iterator<Item = f64> {
        let decayed = self.decayed(self.host, host_age);
        let kept = self.rates.iter().map(move |rate| exp(-rate * moved_age));
        decayed.zip(kept).map(|(units, kept)| units / (1.0 - kept).max(1e-300))
    }

    fn moved_valid(&self, host_age: f64, moved_age: f64) -> f64 {
        let moved: Vec<f64> = self.moved(host_age, moved_age).collect();
        let all: f64 = moved.iter().sum();
        self.valid(self.decayed(&moved, moved_age).sum::<f64>() / all.max(1e-300))
    }

    fn decayed(&self, mixture: &[f64], age: f64) -> impl Iterator<Item = f64> {
        mixture.iter().zip(self.rates).map(move |(part, rate)| part * exp(-rate * age))
    }

    /// A block's share of valid units: of n units i are left after the time that a share (i + 1/2) / (n + 1/2) takes, as
    /// with uniform writes.
    fn valid(&self, share: f64) -> f64 {
        (share - (1.0 - share) * 0.5 / self.block_units).max(0.0)
    }
}

fn benefit(age: f64, valid: f64) -> f64 {
    age * (1.0 - valid) / valid.max(1e-12)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flash::steady_law::SteadyLaw;
    use proptest::prelude::*;

    const BLOCKS: f64 = 1000.0;
    const UNITS: f64 = 512.0;

    fn two(fill: f64, hot: f64, writes: f64, collector: Collector) -> SkewLaw {
        let units = BLOCKS * UNITS * fill;
        let classes = [(units * hot, writes), (units * (1.0 - hot), 1.0 - writes)];
        SkewLaw::new(collector, BLOCKS, UNITS, &classes)
    }

    #[test]
    fn classes_that_are_written_equally_are_one() {
        for fill in [0.7, 0.9] {
            let units = BLOCKS * UNITS * fill;
            let greedy = SteadyLaw::greedy(BLOCKS, UNITS, units).amplification();
            let by_age = SteadyLaw::by_age(BLOCKS, UNITS, units).amplification();
            for (collector, law) in [(Collector::Greedy, greedy), (Collector::Windowed, by_age)] {
                let found = two(fill, 0.3, 0.3, collector).amplification();
                assert!((found / law - 1.0).abs() < 0.012, "{found} {law}");
            }
        }
    }

    proptest! {
        /// What the blocks of both kinds hold of a class is the class.
        #[test]
        fn each_class_is_held_once(
            fill in 0.5f64..0.93, hot in 0.05f64..0.5, writes in 0.3f64..0.95, greedy: bool,
        ) {
            let collector = if greedy { Collector::Greedy } else { Collector::CostBenefit };
            let law = two(fill, hot, writes, collector);
            let count = 4000;
            let mut held = [0.0; 2];
            for is_moved in [false, true] {
                let part = match is_moved {
                    true => 1.0 - law.host_share(),
                    false => law.host_share(),
                };
                for number in 0..count {
                    let age = law.age(is_moved, (f64::from(number) + 0.5) / f64::from(count));
                    for (sum, units) in held.iter_mut().zip(law.held(is_moved, age)) {
                        *sum += units * part / f64::from(count);
                    }
                }
            }
            prop_assert!((held[0] / (fill * hot) - 1.0).abs() < 0.01, "{:?}", held);
            prop_assert!((held[1] / (fill * (1.0 - hot)) - 1.0).abs() < 0.01, "{:?}", held);
        }
    }
}
