//! How many units are valid in each block after a long run of uniform random writes.
//!
//! In a steady state as many blocks go from i valid units to i - 1 as from i - 1 to i - 2, and the rate at which a
//! block loses a unit is proportional to i: under a greedy collector the number of blocks with i valid units is
//! proportional to 1/i, from all units down to one more than a collected block has (Desnoyers, "Analytic modeling of
//! SSD write performance", SYSTOR 2012; Li, Lee and Lui, SIGMETRICS 2013; Van Houdt, SIGMETRICS 2013, shows that it is
//! exact for many blocks). Blocks that are collected in the order of their age keep the share e^-age of their units.

use libm::{exp, log};

/// Valid units of the blocks of a die, by how young they are.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct SteadyLaw {
    block_units: f64,
    /// Valid units of the block that is collected; 0 to `block_units`.
    collected: f64,
    /// The share of the blocks in which some units are valid.
    used: f64,
    /// Over these, valid units and `shift` fall by e to this.
    decay: f64,
    shift: f64,
}

impl SteadyLaw {
    /// By a greedy collector. `blocks` hold `valid` units, less than all that they have.
    pub(super) fn greedy(blocks: f64, block_units: f64, valid: f64) -> SteadyLaw {
        // The sum of 1/i from m + 1 to n is log((n + 1/2) / (m + 1/2)), but for some 1/m^2.
        let sum = |collected: f64| log((block_units + 0.5) / (collected + 0.5));
        let per_unit = blocks * block_units / valid;
        if sum(0.0) <= per_unit {
            return SteadyLaw { block_units, collected: 0.0, used: sum(0.0) / per_unit, decay: sum(0.0), shift: 0.5 };
        }
        let most = (block_units / per_unit - 0.5).max(0.0);
        let collected = root(0.0, most, |collected| sum(collected) > per_unit * (1.0 - collected / block_units));
        SteadyLaw { block_units, collected, used: 1.0, decay: sum(collected), shift: 0.5 }
    }

    /// By order of age. Units are so many that chance evens out.
    pub(super) fn by_age(blocks: f64, block_units: f64, valid: f64) -> SteadyLaw {
        let per_unit = blocks * block_units / valid;
        let age = root(0.0, per_unit, |age| age < per_unit * (1.0 - exp(-age)));
        SteadyLaw { block_units, collected: block_units * exp(-age), used: 1.0, decay: age, shift: 0.0 }
    }

    /// Units programmed for each that the host writes.
    pub(super) fn amplification(self) -> f64 {
        self.block_units / (self.block_units - self.collected)
    }

    /// Valid units of a block that this share of the blocks is younger than.
    pub(super) fn valid(self, share: f64) -> f64 {
        if share > self.used {
            return 0.0;
        }
        let kept = exp(-self.decay * share / self.used);
        let valid = (self.block_units + self.shift) * kept - self.shift;
        valid.clamp(0.0, self.block_units)
    }
}

/// Where `is_below` turns from true to false.
pub(super) fn root(mut low: f64, mut high: f64, is_below: impl Fn(f64) -> bool) -> f64 {
    for _ in 0..60 {
        let middle = (low + high) / 2.0;
        if is_below(middle) {
            low = middle;
        } else {
            high = middle;
        }
    }
    (low + high) / 2.0
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Mean of the law over all blocks.
    fn mean(law: SteadyLaw) -> f64 {
        let count = 100_000;
        let all = (0..count).map(|number| law.valid((f64::from(number) + 0.5) / f64::from(count)));
        all.sum::<f64>() / f64::from(count)
    }

    #[test]
    fn with_large_blocks_greedy_and_age_agree_with_the_limit() {
        // Desnoyers' limit for a spare factor a: a / (a + W(-a e^-a)); a = 1.25, W = -0.7809.
        for law in [SteadyLaw::greedy, SteadyLaw::by_age] {
            let found = law(1.25e3, 1e6, 1e9).amplification();
            assert!((found - 2.693).abs() < 0.002, "{found}");
        }
    }

    #[test]
    fn small_blocks_help_a_greedy_collector() {
        let small = SteadyLaw::greedy(1000.0, 8.0, 6400.0).amplification();
        let large = SteadyLaw::greedy(1000.0, 4096.0, 800.0 * 4096.0).amplification();
        assert!(small < large - 0.1, "{small} {large}");
    }

    proptest! {
        #[test]
        fn the_blocks_hold_what_is_valid(
            block_units in 64u32..5000,
            fill in 0.1f64..0.97,
            ordered: bool,
        ) {
            let law = if ordered { SteadyLaw::by_age } else { SteadyLaw::greedy };
            let units = f64::from(block_units);
            let law = law(1000.0, units, 1000.0 * units * fill);
            prop_assert!((mean(law) / units / fill - 1.0).abs() < 0.05, "{}", mean(law));
            prop_assert!(law.amplification() >= 1.0);
        }
    }
}
