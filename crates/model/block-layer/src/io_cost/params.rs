//! What io.cost takes a device for, and the latencies at which it slows the whole device down.

use crate::{Bio, Direction, Sector};
use events::time::Time;

/// Of virtual time in a second (`VTIME_PER_SEC`), a microsecond and a nanosecond.
const VTIME_PER_S: u64 = 1 << 37;
pub(super) const VTIME_PER_US: u64 = VTIME_PER_S / 1_000_000;
pub(super) const VTIME_PER_NS: u64 = VTIME_PER_S / 1_000_000_000;
pub(super) const MILLION: u64 = 1_000_000;
/// A period in microseconds (`MIN_PERIOD`, `MAX_PERIOD`).
const PERIOD_US: (u64, u64) = (1_000, 1_000_000);
/// Sectors of a page, and pages beyond which an operation is random (`LCOEF_RANDIO_PAGES`).
const PAGE_SHIFT: u32 = 3;
const RANDOM_PAGES: u64 = 4096;
/// So long a vrate has to say that the device is of another kind (`AUTOP_CYCLE_NSEC`).
const KIND_CHANGES_NS: Time = 10_000_000_000;

/// What a device can do by `io.cost.model`: reads, writes. None: what the kernel takes such a device for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CostModel {
    /// Bytes per second of sequential operations.
    pub bytes: [Option<u64>; 2],
    /// Sequential operations of 4 KiB per second.
    pub sequential: [Option<u64>; 2],
    /// The same at random places.
    pub random: [Option<u64>; 2],
}

/// `io.cost.qos`. None: as the kernel has it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CostQos {
    /// The share of reads, and of writes, that shall be as fast as `latency_us`, in millionths; 0: it is not looked at.
    pub share_ppm: [Option<u64>; 2],
    /// Latencies in microseconds.
    pub latency_us: [Option<u64>; 2],
    /// The bounds of vrate, in millionths.
    pub vrate_ppm: [Option<u64>; 2],
}

impl CostModel {
    fn is_given(&self) -> bool {
        *self != CostModel::default()
    }
}

impl CostQos {
    fn is_given(&self) -> bool {
        *self != CostQos::default()
    }
}

/// What the kernel takes a device for (`autop`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Disk,
    OneCommand,
    Flash,
    FastFlash,
}

/// A row of `autop`.
struct Defaults {
    latency_us: u64,
    bytes: [u64; 2],
    sequential: [u64; 2],
    random: [u64; 2],
    too_fast_percent: u64,
    too_slow_percent: u64,
}

impl Kind {
    fn defaults(self) -> Defaults {
        let (too_fast_percent, too_slow_percent) = (0, 0);
        match self {
            Kind::Disk => Defaults {
                latency_us: 250_000,
                bytes: [174_019_176, 178_075_866],
                sequential: [41_708, 42_705],
                random: [370, 378],
                too_fast_percent,
                too_slow_percent,
            },
            Kind::OneCommand => Defaults {
                latency_us: 25_000,
                bytes: [245_855_193, 141_365_009],
                sequential: [61_575, 33_716],
                random: [6_946, 26_796],
                too_fast_percent,
                too_slow_percent,
            },
            Kind::Flash => Defaults {
                latency_us: 25_000,
                bytes: [488_636_629, 427_891_549],
                sequential: [8_932, 28_755],
                random: [8_518, 21_940],
                too_fast_percent: 500,
                too_slow_percent,
            },
            Kind::FastFlash => Defaults {
                latency_us: 5_000,
                bytes: [3_102_524_156, 1_742_780_862],
                sequential: [724_816, 425_702],
                random: [778_122, 443_193],
                too_fast_percent,
                too_slow_percent: 10,
            },
        }
    }
}

/// The device as io.cost takes it at the moment.
#[derive(Clone, Debug)]
pub(super) struct Params {
    model: CostModel,
    qos: CostQos,
    kind: Kind,
    too_fast_since: Option<Time>,
    too_slow_since: Option<Time>,
    costs: [Costs; 2],
    /// Shares of misses beyond which the device is slowed down, and latencies.
    pub(super) misses_ppm: [u64; 2],
    pub(super) latency_us: [u64; 2],
    pub(super) period_us: u64,
    /// Bounds of the vrate, in virtual time per microsecond.
    pub(super) vrate: [u64; 2],
}

/// Virtual time of an operation (`calc_lcoefs`).
#[derive(Clone, Copy, Debug, Default)]
struct Costs {
    page: u64,
    sequential: u64,
    random: u64,
}

impl Params {
    pub(super) fn new(model: CostModel, qos: CostQos, rotational: bool, requests: u32) -> Params {
        let kind = match (rotational, requests) {
            (true, _) => Kind::Disk,
            (false, 1) => Kind::OneCommand,
            _ => Kind::Flash,
        };
        let mut params = Params {
            model,
            qos,
            kind,
            too_fast_since: None,
            too_slow_since: None,
            costs: Default::default(),
            misses_ppm: [MILLION; 2],
            latency_us: [0; 2],
            period_us: 0,
            vrate: [0; 2],
        };
        params.refresh();
        params
    }

    /// The vrate may say that the device is of another kind (`ioc_autop_idx`), unless somebody has said what it is. True: it
    /// is, from now on.
    pub(super) fn change_kind(&mut self, now: Time, base_rate: u64) -> bool {
        if self.model.is_given() || self.qos.is_given() {
            return false;
        }
        let percent = base_rate * 100 / VTIME_PER_US;
        let defaults = self.kind.defaults();
        let is_fast = (1..=percent).contains(&defaults.too_fast_percent);
        let is_slow = defaults.too_slow_percent >= percent && defaults.too_slow_percent > 0;
        let long = |since: &mut Option<Time>, is: bool| {
            *since = is.then(|| since.unwrap_or(now));
            since.is_some_and(|since| now - since >= KIND_CHANGES_NS)
        };
        let is_faster = long(&mut self.too_fast_since, is_fast);
        let is_slower = long(&mut self.too_slow_since, is_slow);
        self.kind = match (is_faster, is_slower) {
            (true, _) => Kind::FastFlash,
            (_, true) => Kind::Flash,
            _ => return false,
        };
        (self.too_fast_since, self.too_slow_since) = (None, None);
        self.refresh();
        true
    }

    /// `ioc_refresh_params`.
    fn refresh(&mut self) {
        let defaults = self.kind.defaults();
        for way in 0..2 {
            self.costs[way] = Costs::of(
                self.model.bytes[way].unwrap_or(defaults.bytes[way]),
                self.model.sequential[way].unwrap_or(defaults.sequential[way]),
                self.model.random[way].unwrap_or(defaults.random[way]),
            );
            self.misses_ppm[way] = MILLION - self.qos.share_ppm[way].unwrap_or(0).min(MILLION);
            self.latency_us[way] = self.qos.latency_us[way].unwrap_or(defaults.latency_us);
        }
        let way = usize::from(self.latency_us[0] < self.latency_us[1]);
        // Twice the higher latency, ten times at the median.
        let multiple = match self.misses_ppm[way] {
            MILLION => 2,
            misses => (misses / 50_000).max(2),
        };
        self.period_us = (multiple * self.latency_us[way]).clamp(PERIOD_US.0, PERIOD_US.1);
        let [least, most] = self.qos.vrate_ppm;
        let (least, most) = (least.unwrap_or(VRATE_PPM.0), most.unwrap_or(VRATE_PPM.1));
        let bound = |ppm: u64| ppm.clamp(VRATE_PPM.0, VRATE_PPM.1) * VTIME_PER_US;
        self.vrate = [bound(least).div_ceil(MILLION), bound(most) / MILLION];
    }

    /// Virtual time of the bio for a group whose last one ended there (`calc_vtime_cost_builtin`). `joins`: a request.
    pub(super) fn cost_of(&self, bio: &Bio, cursor: Sector, joins: bool) -> u64 {
        let costs = &self.costs[way_of(bio.direction)];
        let seek = if cursor > 0 { bio.start.abs_diff(cursor) } else { 0 };
        let pages = u64::from(bio.sectors >> PAGE_SHIFT).max(1);
        let base = match seek >> PAGE_SHIFT > RANDOM_PAGES {
            _ if joins => 0,
            true => costs.random,
            false => costs.sequential,
        };
        base + pages * costs.page
    }

    /// Nanoseconds that a request of that size takes for its size alone (`calc_size_vtime_cost`).
    pub(super) fn size_ns(&self, direction: Direction, sectors: u32) -> Time {
        let pages = u64::from(sectors >> PAGE_SHIFT);
        pages * self.costs[way_of(direction)].page / VTIME_PER_NS
    }
}

/// The widest bounds of vrate (`VRATE_MIN_PPM`, `VRATE_MAX_PPM`).
const VRATE_PPM: (u64, u64) = (10_000, 100_000_000);

impl Costs {
    fn of(bytes: u64, sequential: u64, random: u64) -> Costs {
        let page = VTIME_PER_S.div_ceil(bytes.div_ceil(4096));
        let base = |rate: u64| VTIME_PER_S.div_ceil(rate).saturating_sub(page);
        Costs { page, sequential: base(sequential), random: base(random) }
    }
}

pub(super) fn way_of(direction: Direction) -> usize {
    match direction {
        Direction::Read => 0,
        Direction::Write => 1,
    }
}
