//! vrate: how fast the virtual time of a device passes, and the signs of a busy or free device by which it changes.

use super::params::{MILLION, Params, VTIME_PER_US};
use super::weights::ONE;
use crate::QosTicket;
use events::station::Violation;
use events::time::{MICROSECOND, Time};

/// A step towards bounds that the rate is outside of (`VRATE_CLAMP_ADJ_PCT`).
const CLAMP_PERCENT: u64 = 4;
/// Waiting for requests beyond this part of a period shows a busy device (`RQ_WAIT_BUSY_PCT`), below this part of a bound
/// a free one (`UNBUSY_THR_PCT`).
const WAIT_BUSY_PERCENT: u64 = 5;
const FREE_PERCENT: u64 = 75;
/// Levels of being busy change the rate by this much, the last by that of all others (`vrate_adj_pct`).
const ADJUST_PERCENT: [(usize, u64); 6] = [(4, 0), (16, 1), (16, 2), (8, 4), (8, 8), (1, 16)];
const BUSY_MAX: i64 = 1000;

/// The rate, and what of a period decides the next.
#[derive(Debug)]
pub(super) struct Vrate {
    base: u64,
    current: u64,
    /// Virtual time that was thrown away and is to come back, negative.
    error: i64,
    /// Periods in which the device was busy, or free as a negative number.
    level: i64,
    /// Of the period: requests that were in time and that were late, and how long they waited for a tag.
    met: [u64; 2],
    missed: [u64; 2],
    wait_ns: u64,
}

impl Vrate {
    pub(super) fn new() -> Vrate {
        Vrate { base: VTIME_PER_US, current: VTIME_PER_US, error: 0, level: 0, met: [0; 2], missed: [0; 2], wait_ns: 0 }
    }

    /// Virtual time per microsecond, as decided.
    pub(super) fn base(&self) -> u64 {
        self.base
    }

    /// In percent of wall time.
    pub(super) fn percent(&self) -> f64 {
        self.base as f64 * 100.0 / VTIME_PER_US as f64
    }

    /// The same with what makes up for what was thrown away.
    pub(super) fn current(&self) -> u64 {
        self.current
    }

    pub(super) fn is_busy(&self) -> bool {
        self.level > 0
    }

    /// A request has ended, whose first bio has that ticket.
    pub(super) fn count(&mut self, way: usize, is_met: bool, first: QosTicket, passed_at: Time) {
        match is_met {
            true => self.met[way] += 1,
            false => self.missed[way] += 1,
        }
        self.wait_ns += first.allocated_at - passed_at;
    }

    /// A group with that share has lost credit.
    pub(super) fn throw_away(&mut self, excess: i64, share: u64) {
        self.error -= (excess as u64 * share / ONE) as i64;
    }

    /// A period is over in which `lagging` groups had operations in flight from before it, and `short` too little time.
    pub(super) fn end_period(&mut self, params: &Params, lagging: u32, short: u32) {
        let missed_ppm = [0, 1].map(|way| {
            let (met, missed) = (self.met[way], self.missed[way]);
            (missed * MILLION).div_ceil((met + missed).max(1))
        });
        let wait_percent = self.wait_ns * 100 / (params.period_us * MICROSECOND);
        (self.met, self.missed, self.wait_ns) = ([0; 2], [0; 2], 0);
        let below = |percent: u64| {
            let bounds = params.misses_ppm.map(|bound| bound * percent / 100);
            missed_ppm[0] <= bounds[0] && missed_ppm[1] <= bounds[1]
        };
        let is_busy = wait_percent > WAIT_BUSY_PERCENT || !below(100);
        let is_free = wait_percent <= WAIT_BUSY_PERCENT * FREE_PERCENT / 100 && below(FREE_PERCENT);
        self.level = match (is_busy, is_free) {
            (true, _) => self.level.max(0) + 1,
            (false, true) if short > 0 => self.level.min(0) - i64::from(lagging == 0),
            _ => 0,
        };
        self.level = self.level.clamp(-BUSY_MAX, BUSY_MAX);
        if self.is_busy() || self.level < 0 && lagging == 0 {
            self.adjust(params.vrate);
        }
    }

    /// `ioc_adjust_base_vrate`.
    fn adjust(&mut self, [least, most]: [u64; 2]) {
        let rate = self.base;
        self.base = if rate < least {
            (rate * (100 + CLAMP_PERCENT) / 100).min(least)
        } else if rate > most {
            (rate * (100 - CLAMP_PERCENT) / 100).max(most)
        } else {
            let percent = adjust_percent(self.level.unsigned_abs() as usize);
            let percent = match self.is_busy() {
                true => 100 - percent,
                false => 100 + percent,
            };
            // Rounded, the bounds may have crossed.
            (rate * percent).div_ceil(100).max(least).min(most)
        };
    }

    /// The device is taken for another kind.
    pub(super) fn begin_anew(&mut self) {
        self.current = VTIME_PER_US;
    }

    /// Nothing is active.
    pub(super) fn reset(&mut self) {
        (self.level, self.error) = (0, 0);
    }

    /// `ioc_refresh_vrate`: what was thrown away comes back as a higher rate in what is left of the period.
    pub(super) fn make_up(&mut self, left_us: i64, period_us: u64) {
        let base = self.base as i64;
        if left_us > 0 {
            let more = (-self.error / left_us).clamp(-(base >> 1), base);
            self.error += more * left_us;
            self.current = (base + more) as u64;
        }
        let most = period_us as i64 * base;
        self.error = self.error.clamp(-most, most);
    }

    /// The rate is within its bounds, or on its way there from 100 %.
    pub(super) fn check(&self, [least, most]: [u64; 2]) -> Result<(), Violation> {
        let lower = least.min(most).min(VTIME_PER_US);
        let higher = least.max(most).max(VTIME_PER_US);
        Violation::unless((lower..=higher).contains(&self.base), "io.cost", || {
            format!("vrate {} is not within {lower} and {higher}", self.base)
        })
    }
}

/// Of the level, in percent.
pub(super) fn adjust_percent(level: usize) -> u64 {
    let mut from = 0;
    for (levels, percent) in ADJUST_PERCENT {
        from += levels;
        if level < from {
            return percent;
        }
    }
    ADJUST_PERCENT[ADJUST_PERCENT.len() - 1].1
}
