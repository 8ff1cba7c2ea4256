//! Which block a die collects next.

use serde::Deserialize;

/// What decides which block is collected (docs/model/flash.md).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Collector {
    /// The fewest valid units.
    #[default]
    Greedy,
    /// The largest age * (1 - u) / 2u, with the share u of valid units (Kawaguchi, Nishioka and Motoda, "A flash-memory
    /// based file system", 1995, after Rosenblum and Ousterhout, 1992).
    CostBenefit,
    /// The fewest valid units of those that were written first (Hu et al., "Write amplification analysis in flash-based
    /// solid state drives", SYSTOR 2009).
    Windowed,
}

/// A block that can be collected.
#[derive(Clone, Copy, Debug)]
pub(super) struct Candidate {
    pub(super) block: u32,
    pub(super) valid: u32,
    /// Blocks that the die has closed since it closed this one.
    pub(super) age: u32,
}

impl Collector {
    /// Of blocks in the order in which they were closed, of which `fewest` is the one with the fewest valid units. A window in which no block is worth it counts for nothing, so
    /// that collecting can always go on.
    pub(super) fn choose(
        self,
        window: usize,
        block_units: u32,
        closed: impl Iterator<Item = Candidate>,
        fewest: impl Fn() -> Option<Candidate>,
        gains: impl Fn(&Candidate) -> bool + Copy,
    ) -> Option<u32> {
        let chosen = match self {
            Collector::Greedy => fewest().filter(gains),
            Collector::Windowed => closed
                .take(window)
                .min_by_key(|candidate| (candidate.valid, candidate.block))
                .filter(gains)
                .or_else(|| fewest().filter(gains)),
            Collector::CostBenefit => closed
                .filter(gains)
                .max_by(|one, other| benefit(one, block_units).total_cmp(&benefit(other, block_units))),
        };
        chosen.map(|candidate| candidate.block)
    }
}

fn benefit(candidate: &Candidate, block_units: u32) -> f64 {
    let invalid = f64::from(block_units - candidate.valid);
    f64::from(candidate.age) * invalid / (2.0 * f64::from(candidate.valid))
}
