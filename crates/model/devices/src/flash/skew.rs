//! Which units a pattern that is not uniform writes more often than others.

use base::permutation::Permutation;
use base::rng::stream;
use serde::Deserialize;

use crate::flash::scatter::Scatter;
use crate::flash::skew_law::Class;
use events::SpecError;
use events::spec_error::within;

/// A pattern of writes that are not uniform: hot and cold zones, or blocks that are scattered over the drive, some of
/// which are written more often than others.
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
    /// This part of the blocks gets all but this part of the writes, and so on within it: a job's `pareto_h`.
    #[schemars(range(min = 1, max = 999))]
    pub pareto_h_per_mille: Option<u32>,
    /// The width that fio adds to the mean of twelve uniform ranks, as a part of the drive: a job's `normal_deviation`.
    #[schemars(range(max = 1000))]
    pub normal_deviation_per_mille: Option<u32>,
    /// What scatters the ranks of zipf, pareto and normal over the drive: a job's `scatter_seed`. Absent: 0.
    pub scatter_seed: Option<u64>,
    /// Size and alignment of the writes, a multiple of the unit.
    #[schemars(range(min = 512, max = 1 << 24))]
    pub block_bytes: u32,
}

/// The pattern on a device.
#[derive(Clone, Copy, Debug)]
pub(super) enum Skew {
    /// A unit's number is its rank; so many are written together.
    Ranks { block_units: u32 },
    Zones {
        hot_share: f64,
        writes: f64,
        block_units: u32,
    },
    Scattered {
        scatter: Scatter,
        block_units: u32,
        blocks: Permutation,
        key: u64,
    },
}

impl SkewSpec {
    /// Exactly one pattern, whole.
    pub(super) fn check(&self, unit_bytes: u32) -> Result<(), SpecError> {
        within("block_bytes", u64::from(self.block_bytes), 512, 1 << 24)?;
        let patterns = [
            ("hot_per_mille", self.hot_per_mille, 1, 999),
            ("zipf_theta_per_mille", self.zipf_theta_per_mille, 1, 3000),
            ("pareto_h_per_mille", self.pareto_h_per_mille, 1, 999),
            (
                "normal_deviation_per_mille",
                self.normal_deviation_per_mille,
                0,
                1000,
            ),
        ];
        let hot_writes = self.hot_writes_per_mille;
        within(
            "hot_writes_per_mille",
            u64::from(hot_writes.unwrap_or(1)),
            1,
            999,
        )?;
        let mut given = Vec::new();
        for (key, value, least, most) in patterns {
            if let Some(value) = value {
                within(key, u64::from(value), least, most)?;
                given.push(key);
            }
        }
        let (key, what) = match given[..] {
            [] => (
                "hot_per_mille",
                format!(
                    "no pattern is given: expected one of {}",
                    patterns.map(|one| one.0).join(", ")
                ),
            ),
            [_, second, ..] => (second, format!("{} excludes it", given[0])),
            ["hot_per_mille"] if hot_writes.is_none() => {
                ("hot_writes_per_mille", "hot_per_mille needs it".to_owned())
            }
            ["hot_per_mille"] if self.scatter_seed.is_some() => {
                ("scatter_seed", "zones are not scattered".to_owned())
            }
            [pattern] if pattern != "hot_per_mille" && hot_writes.is_some() => {
                ("hot_writes_per_mille", format!("{pattern} excludes it"))
            }
            _ if !self.block_bytes.is_multiple_of(unit_bytes) => {
                let what = format!("expected a multiple of firmware.unit_bytes, {unit_bytes}");
                ("block_bytes", what)
            }
            _ => return Ok(()),
        };
        Err(SpecError::of(key, what))
    }

    /// The specification has passed `check`.
    pub(super) fn on(&self, units: u32, unit_bytes: u32) -> Skew {
        let share = |per_mille: u32| f64::from(per_mille) / 1000.0;
        let block_units = self.block_bytes / unit_bytes;
        let scatter = match *self {
            SkewSpec {
                zipf_theta_per_mille: Some(theta),
                ..
            } => Scatter::Zipf {
                theta: share(theta),
            },
            SkewSpec {
                pareto_h_per_mille: Some(h),
                ..
            } => Scatter::pareto(share(h)),
            SkewSpec {
                normal_deviation_per_mille: Some(deviation),
                ..
            } => Scatter::normal(share(deviation)),
            _ => {
                return Skew::Zones {
                    hot_share: share(self.hot_per_mille.unwrap_or_default()),
                    writes: share(self.hot_writes_per_mille.unwrap_or_default()),
                    block_units,
                };
            }
        };
        Skew::scattered(
            scatter,
            units,
            block_units,
            self.scatter_seed.unwrap_or_default(),
        )
    }
}

impl Skew {
    /// Blocks of so many units each, scattered as a job with that `scatter_seed` does.
    pub(super) fn scattered(scatter: Scatter, units: u32, block_units: u32, seed: u64) -> Skew {
        Skew::Scattered {
            scatter,
            block_units,
            blocks: Permutation::new(u64::from((units / block_units).max(1))),
            key: stream(seed, 0).next_u64(),
        }
    }

    /// Units of the device in the order of their ranks, those that are written most first, in parts that are written
    /// about equally often.
    pub(super) fn classes(&self, units: u32) -> Vec<Class> {
        match *self {
            Skew::Ranks { .. } => vec![Class { units, writes: 1.0 }],
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
            Skew::Scattered {
                scatter,
                block_units,
                blocks,
                ..
            } => {
                let mut classes = scatter.classes(blocks.len(), block_units);
                // What is behind the last block, as if it were written as rarely as the last class.
                if let Some(last) = classes.last_mut() {
                    last.units += units - blocks.len() as u32 * block_units;
                }
                classes
            }
        }
    }

    /// Units that are written together.
    pub(super) fn block_units(&self) -> u32 {
        match *self {
            Skew::Ranks { block_units }
            | Skew::Zones { block_units, .. }
            | Skew::Scattered { block_units, .. } => block_units,
        }
    }

    /// The rank of a unit. What is behind the last block is last.
    pub(super) fn rank(&self, units: u32, unit: u32) -> u32 {
        self.moved(units, unit, |scatter, blocks, key, block| {
            scatter.rank(blocks.len(), blocks.index_at(key, block))
        })
    }

    /// The unit of a rank.
    pub(super) fn unit(&self, units: u32, rank: u32) -> u32 {
        self.moved(units, rank, |scatter, blocks, key, rank| {
            blocks.at(key, scatter.drawn(blocks.len(), rank))
        })
    }

    /// Where a unit, or a rank, comes if its block is moved so.
    fn moved(
        &self,
        units: u32,
        unit: u32,
        change: impl Fn(&Scatter, &Permutation, u64, u64) -> u64,
    ) -> u32 {
        match self {
            Skew::Scattered {
                scatter,
                block_units,
                blocks,
                key,
            } if unit < units && u64::from(unit / block_units) < blocks.len() => {
                let block = change(scatter, blocks, *key, u64::from(unit / block_units)) as u32;
                block * block_units + unit % block_units
            }
            _ => unit,
        }
    }
}
