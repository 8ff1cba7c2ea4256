//! Which units a skewed pattern writes more often than others.

use base::permutation::Permutation;
use base::rng::stream;
use serde::Deserialize;

use crate::flash::skew_law::Class;
use events::SpecError;
use events::spec_error::within;

/// A pattern of writes that are not uniform: hot and cold zones, or Zipf's law.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SkewSpec {
    /// The part of the drive, from its start, that is hot.
    #[schemars(range(min = 1, max = 999))]
    pub hot_per_mille: Option<u32>,
    /// The part of the writes that go to the hot part of the drive.
    #[schemars(range(min = 1, max = 999))]
    pub hot_writes_per_mille: Option<u32>,
    /// Zipf's exponent: blocks are written in proportion to 1/rank^theta.
    #[schemars(range(min = 1, max = 3000))]
    pub zipf_theta_per_mille: Option<u32>,
    /// What scatters Zipf's ranks over the drive: a job's `scatter_seed`. Absent: 0.
    pub zipf_seed: Option<u64>,
    /// Size and alignment of the writes, a multiple of the unit.
    #[schemars(range(min = 512, max = 1 << 24))]
    pub block_bytes: u32,
}

/// The pattern on a device.
#[derive(Clone, Copy, Debug)]
pub(super) enum Skew {
    /// A unit's number is its rank.
    Ranks,
    Zones {
        hot_share: f64,
        writes: f64,
        block_units: u32,
    },
    Zipf {
        theta: f64,
        block_units: u32,
        blocks: Permutation,
        key: u64,
    },
}

/// A class ends at a rank this many times as large as the one that it begins with.
const CLASS_RATIO: f64 = 1.5;

impl SkewSpec {
    /// Exactly one of the two patterns, whole.
    pub(super) fn check(&self, unit_bytes: u32) -> Result<(), SpecError> {
        within("block_bytes", u64::from(self.block_bytes), 512, 1 << 24)?;
        let zones = [self.hot_per_mille, self.hot_writes_per_mille];
        for (key, value) in ["hot_per_mille", "hot_writes_per_mille"]
            .into_iter()
            .zip(zones)
        {
            within(key, u64::from(value.unwrap_or(1)), 1, 999)?;
        }
        let theta = u64::from(self.zipf_theta_per_mille.unwrap_or(1));
        within("zipf_theta_per_mille", theta, 1, 3000)?;
        let is_zones = zones.iter().any(Option::is_some);
        let is_zipf = self.zipf_theta_per_mille.is_some() || self.zipf_seed.is_some();
        let missing = match (is_zones, is_zipf) {
            (true, true) => {
                return Err(SpecError::of(
                    "hot_per_mille",
                    "zones and zipf exclude each other",
                ));
            }
            (true, false) => [
                ("hot_per_mille", self.hot_per_mille.is_none()),
                ("hot_writes_per_mille", self.hot_writes_per_mille.is_none()),
            ],
            (false, _) => [
                ("zipf_theta_per_mille", self.zipf_theta_per_mille.is_none()),
                ("zipf_theta_per_mille", false),
            ],
        };
        if let Some((key, _)) = missing.into_iter().find(|&(_, is)| is) {
            return Err(SpecError::of(
                key,
                "must be given with the other keys of its pattern",
            ));
        }
        match self.block_bytes.is_multiple_of(unit_bytes) {
            true => Ok(()),
            false => {
                let what = format!("expected a multiple of firmware.unit_bytes, {unit_bytes}");
                Err(SpecError::of("block_bytes", what))
            }
        }
    }

    /// The specification has passed `check`.
    pub(super) fn on(&self, units: u32, unit_bytes: u32) -> Skew {
        let share = |per_mille: Option<u32>| f64::from(per_mille.unwrap_or_default()) / 1000.0;
        let block_units = self.block_bytes / unit_bytes;
        match self.hot_per_mille {
            Some(_) => Skew::Zones {
                hot_share: share(self.hot_per_mille),
                writes: share(self.hot_writes_per_mille),
                block_units,
            },
            None => Skew::zipf(
                share(self.zipf_theta_per_mille),
                units,
                block_units,
                self.zipf_seed.unwrap_or_default(),
            ),
        }
    }
}

impl Skew {
    /// Blocks of so many units each, scattered as a job with that `scatter_seed` does.
    pub(super) fn zipf(theta: f64, units: u32, block_units: u32, seed: u64) -> Skew {
        Skew::Zipf {
            theta,
            block_units,
            blocks: Permutation::new(u64::from((units / block_units).max(1))),
            key: stream(seed, 0).next_u64(),
        }
    }

    /// Units of the device in the order of their ranks, those that are written most first, in parts that are written
    /// about equally often.
    pub(super) fn classes(&self, units: u32) -> Vec<Class> {
        match *self {
            Skew::Ranks => vec![Class { units, writes: 1.0 }],
            Skew::Zones {
                hot_share, writes, ..
            } => {
                let hot = ((f64::from(units) * hot_share) as u32).clamp(1, units - 1);
                vec![
                    Class { units: hot, writes },
                    Class {
                        units: units - hot,
                        writes: 1.0 - writes,
                    },
                ]
            }
            Skew::Zipf {
                theta,
                block_units,
                blocks,
                ..
            } => zipf_classes(theta, blocks.len(), units, block_units),
        }
    }

    /// Units that are written together.
    pub(super) fn block_units(&self) -> u32 {
        match *self {
            Skew::Ranks => 1,
            Skew::Zones { block_units, .. } | Skew::Zipf { block_units, .. } => block_units,
        }
    }

    /// The rank of a unit. What is behind the last block of Zipf's is last.
    pub(super) fn rank(&self, units: u32, unit: u32) -> u32 {
        self.moved(units, unit, Permutation::index_at)
    }

    /// The unit of a rank.
    pub(super) fn unit(&self, units: u32, rank: u32) -> u32 {
        self.moved(units, rank, Permutation::at)
    }

    /// Where a unit, or a rank, comes if its block is permuted so.
    fn moved(&self, units: u32, unit: u32, permute: impl Fn(&Permutation, u64, u64) -> u64) -> u32 {
        match self {
            Skew::Zipf {
                block_units,
                blocks,
                key,
                ..
            } if unit < units && u64::from(unit / block_units) < blocks.len() => {
                let block = permute(blocks, *key, u64::from(unit / block_units)) as u32;
                block * block_units + unit % block_units
            }
            _ => unit,
        }
    }
}

/// The last class has what is behind the last block, too, as if it were written as often.
fn zipf_classes(theta: f64, blocks: u64, units: u32, block_units: u32) -> Vec<Class> {
    let mut classes = Vec::new();
    let mut first = 1;
    while first <= blocks {
        let end = ((first as f64 * CLASS_RATIO).ceil() as u64).min(blocks + 1);
        classes.push(Class {
            units: (end - first) as u32 * block_units,
            writes: powers(first, end, theta),
        });
        first = end;
    }
    let all: f64 = classes.iter().map(|class| class.writes).sum();
    for class in &mut classes {
        class.writes /= all;
    }
    if let Some(last) = classes.last_mut() {
        last.units += units - blocks as u32 * block_units;
    }
    classes
}

/// The sum of rank^-theta from `first` up to and without `end`: by the integral between the middles of ranks.
fn powers(first: u64, end: u64, theta: f64) -> f64 {
    if first < 64 {
        return (first..end)
            .map(|rank| libm::pow(rank as f64, -theta))
            .sum();
    }
    let (low, high) = (first as f64 - 0.5, end as f64 - 0.5);
    if (theta - 1.0).abs() < 1e-9 {
        return libm::log(high / low);
    }
    let power = 1.0 - theta;
    (libm::pow(high, power) - libm::pow(low, power)) / power
}
