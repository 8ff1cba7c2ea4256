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
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SkewSpec {
    /// Parts of the drive, one behind the other from its start, each written at random. What is behind the last was
    /// written once.
    pub zones: Option<Vec<WrittenZone>>,
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
    /// Size and alignment of the writes, a multiple of the unit. With `sizes`, their alignment alone.
    #[schemars(range(min = 512, max = 1 << 24))]
    pub block_bytes: u32,
    /// Writes of several sizes, in zones. Absent: all have `block_bytes`.
    pub sizes: Option<Vec<WrittenSize>>,
}

/// A part of a drive.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WrittenZone {
    /// How large it is; what would lie behind the drive's end is left out.
    #[schemars(range(min = 1))]
    pub bytes: u64,
    /// Its part of the writes, beside the weights of the others. 0: it was written once.
    #[schemars(range(max = WEIGHT_MAX))]
    pub weight: u32,
}

/// A size of writes.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WrittenSize {
    /// A multiple of the unit.
    #[schemars(range(min = 512, max = 1 << 24))]
    pub bytes: u32,
    /// How many of the writes have it, beside the weights of the others.
    #[schemars(range(min = 1, max = WEIGHT_MAX))]
    pub weight: u32,
}

const WEIGHT_MAX: u32 = 1_000_000;
const ZONES_MAX: u64 = 1024;
const SIZES_MAX: u64 = 64;

/// The pattern on a device.
#[derive(Clone, Debug)]
pub(super) enum Skew {
    /// A unit's number is its rank; so many are written together.
    Ranks {
        block_units: u32,
    },
    /// One behind the other.
    Zones {
        zones: Vec<Class>,
        sizes: Sizing,
    },
    Scattered {
        scatter: Scatter,
        block_units: u32,
        blocks: Permutation,
        key: u64,
    },
}

/// How large writes are, in units.
#[derive(Clone, Debug)]
pub(super) struct Sizing {
    pub(super) align: u32,
    /// With the part of the writes that each has.
    pub(super) sizes: Vec<(u32, f64)>,
}

impl Sizing {
    pub(super) fn of_one(units: u32) -> Sizing {
        Sizing { align: units, sizes: vec![(units, 1.0)] }
    }

    /// How many units lie side by side that one write has left of a die's, which gets no more than a page of it: one ends
    /// where the last write that touched it or its neighbour had an end. Of s places, s + 1 writes touch a pair, and two
    /// of them one of it alone.
    pub(super) fn piece(&self, page: u32) -> u32 {
        let places = |size: u32| f64::from(size.min(page)) / f64::from(self.align.min(page));
        let touch = self.sizes.iter().map(|&(size, part)| part * (places(size) + 1.0));
        let units = f64::from(self.align.min(page)) * touch.sum::<f64>() / 2.0;
        (units.round() as u32).clamp(1, page)
    }
}

impl SkewSpec {
    /// Exactly one pattern, whole.
    pub(super) fn check(&self, unit_bytes: u32) -> Result<(), SpecError> {
        within("block_bytes", u64::from(self.block_bytes), 512, 1 << 24)?;
        self.check_zones()?;
        self.check_sizes(unit_bytes)?;
        let patterns = [
            ("zones", self.zones.as_ref().map(|_| 0), 0, 0),
            ("zipf_theta_per_mille", self.zipf_theta_per_mille, 1, 3000),
            ("pareto_h_per_mille", self.pareto_h_per_mille, 1, 999),
            ("normal_deviation_per_mille", self.normal_deviation_per_mille, 0, 1000),
        ];
        let mut given = Vec::new();
        for (key, value, least, most) in patterns {
            if let Some(value) = value {
                within(key, u64::from(value), least, most)?;
                given.push(key);
            }
        }
        let (key, what) = match given[..] {
            [] => ("zones", format!("no pattern is given: expected one of {}", patterns.map(|one| one.0).join(", "))),
            [_, second, ..] => (second, format!("{} excludes it", given[0])),
            ["zones"] if self.scatter_seed.is_some() => ("scatter_seed", "zones are not scattered".to_owned()),
            [pattern] if pattern != "zones" && self.sizes.is_some() => {
                ("sizes", format!("{pattern} excludes it: only zones have several"))
            }
            _ if !self.block_bytes.is_multiple_of(unit_bytes) => {
                let what = format!("expected a multiple of firmware.unit_bytes, {unit_bytes}");
                ("block_bytes", what)
            }
            _ => return Ok(()),
        };
        Err(SpecError::of(key, what))
    }

    fn check_zones(&self) -> Result<(), SpecError> {
        let Some(zones) = &self.zones else {
            return Ok(());
        };
        within("zones", zones.len() as u64, 1, ZONES_MAX)?;
        for (number, zone) in zones.iter().enumerate() {
            within(&format!("zones.{number}.bytes"), zone.bytes, 1, u64::MAX)?;
            let weight = u64::from(zone.weight);
            within(&format!("zones.{number}.weight"), weight, 0, u64::from(WEIGHT_MAX))?;
        }
        match zones.iter().any(|zone| zone.weight > 0) {
            true => Ok(()),
            false => Err(SpecError::of("zones", "all weights are 0: expected a zone that is written")),
        }
    }

    fn check_sizes(&self, unit_bytes: u32) -> Result<(), SpecError> {
        let sizes = self.sizes.as_deref().unwrap_or_default();
        if self.sizes.is_some() {
            within("sizes", sizes.len() as u64, 1, SIZES_MAX)?;
        }
        for (number, size) in sizes.iter().enumerate() {
            let key = format!("sizes.{number}.bytes");
            within(&key, u64::from(size.bytes), 512, 1 << 24)?;
            let weight = u64::from(size.weight);
            within(&format!("sizes.{number}.weight"), weight, 1, u64::from(WEIGHT_MAX))?;
            if !size.bytes.is_multiple_of(unit_bytes) {
                let what = format!("expected a multiple of firmware.unit_bytes, {unit_bytes}");
                return Err(SpecError::of(&key, what));
            }
        }
        Ok(())
    }

    /// The same on a drive of so many units.
    pub(super) fn check_size(&self, units: u32, unit_bytes: u32) -> Result<(), SpecError> {
        let is_written = |zone: &Class| zone.writes > 0.0;
        match self.zones.is_none() || self.zones_on(units, unit_bytes).iter().any(is_written) {
            true => Ok(()),
            false => Err(SpecError::of("zones", "no zone that is written holds a unit of the drive")),
        }
    }

    fn sizing(&self, unit_bytes: u32) -> Sizing {
        let align = self.block_bytes / unit_bytes;
        let Some(sizes) = &self.sizes else {
            return Sizing::of_one(align);
        };
        let all: f64 = sizes.iter().map(|size| f64::from(size.weight)).sum();
        let part = |size: &WrittenSize| (size.bytes / unit_bytes, f64::from(size.weight) / all);
        Sizing { align, sizes: sizes.iter().map(part).collect() }
    }

    /// The zones on a drive of so many units, and what is behind them.
    fn zones_on(&self, units: u32, unit_bytes: u32) -> Vec<Class> {
        let (mut start, mut end_bytes) = (0, 0_u64);
        let mut found = Vec::new();
        for zone in self.zones.iter().flatten() {
            end_bytes = end_bytes.saturating_add(zone.bytes);
            let end = (end_bytes / u64::from(unit_bytes)).min(u64::from(units)) as u32;
            if end > start {
                found.push(Class { units: end - start, writes: f64::from(zone.weight) });
            }
            start = end;
        }
        if start < units {
            found.push(Class { units: units - start, writes: 0.0 });
        }
        let all: f64 = found.iter().map(|zone| zone.writes).sum();
        for zone in &mut found {
            zone.writes /= all;
        }
        found
    }

    /// The specification has passed `check`.
    pub(super) fn on(&self, units: u32, unit_bytes: u32) -> Skew {
        let share = |per_mille: u32| f64::from(per_mille) / 1000.0;
        let block_units = self.block_bytes / unit_bytes;
        let scatter = match *self {
            SkewSpec { zipf_theta_per_mille: Some(theta), .. } => Scatter::Zipf { theta: share(theta) },
            SkewSpec { pareto_h_per_mille: Some(h), .. } => Scatter::pareto(share(h)),
            SkewSpec { normal_deviation_per_mille: Some(deviation), .. } => Scatter::normal(share(deviation)),
            _ => {
                return Skew::Zones { zones: self.zones_on(units, unit_bytes), sizes: self.sizing(unit_bytes) };
            }
        };
        Skew::scattered(scatter, units, block_units, self.scatter_seed.unwrap_or_default())
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
        match self {
            Skew::Ranks { .. } => vec![Class { units, writes: 1.0 }],
            Skew::Zones { zones, .. } => zones.clone(),
            Skew::Scattered { scatter, block_units, blocks, .. } => {
                let mut classes = scatter.classes(blocks.len(), *block_units);
                // What is behind the last block, as if it were written as rarely as the last class.
                if let Some(last) = classes.last_mut() {
                    last.units += units - blocks.len() as u32 * block_units;
                }
                classes
            }
        }
    }

    pub(super) fn sizes(&self) -> Sizing {
        match self {
            Skew::Ranks { block_units } | Skew::Scattered { block_units, .. } => Sizing::of_one(*block_units),
            Skew::Zones { sizes, .. } => sizes.clone(),
        }
    }

    /// The rank of a unit. What is behind the last block is last.
    pub(super) fn rank(&self, units: u32, unit: u32) -> u32 {
        self.moved(units, unit, |scatter, blocks, key, block| scatter.rank(blocks.len(), blocks.index_at(key, block)))
    }

    /// The unit of a rank.
    pub(super) fn unit(&self, units: u32, rank: u32) -> u32 {
        self.moved(units, rank, |scatter, blocks, key, rank| blocks.at(key, scatter.drawn(blocks.len(), rank)))
    }

    /// Where a unit, or a rank, comes if its block is moved so.
    fn moved(&self, units: u32, unit: u32, change: impl Fn(&Scatter, &Permutation, u64, u64) -> u64) -> u32 {
        match self {
            Skew::Scattered { scatter, block_units, blocks, key }
                if unit < units && u64::from(unit / block_units) < blocks.len() =>
            {
                let block = change(scatter, blocks, *key, u64::from(unit / block_units)) as u32;
                block * block_units + unit % block_units
            }
            _ => unit,
        }
    }
}
