//! Shares of a device by a model of its cost (`io.cost`): groups spend virtual time, which passes for each in proportion to
//! its weight, and at a rate for all (vrate) that falls while the device misses its latencies.
//!
//! Source: `block/blk-iocost.c` of 6.1.192 (docs/model/sources/blk-mq.md), one level of groups below the root. Left out: the
//! delay of tasks in debt, who in the kernel sleep on their return from a call. Simpler: the timer of who waits comes at
//! the end of its slack.

mod params;
mod vrate;
mod weights;

use std::collections::VecDeque;

use crate::qos::{Granted, Policy, Waiter, waiter};
use crate::{Bio, QosTicket, Request, Sector, tick_timer};
use events::station::Violation;
use events::time::{MICROSECOND, SECOND, Time};
pub use params::{CostModel, CostQos};
use params::{MILLION, Params, way_of};
use vrate::Vrate;
use weights::{Lender, ONE, Share, Sums, Weight, lent};

/// What the io.cost of a drive goes by.
#[derive(Clone, Debug)]
pub struct CostRules {
    /// Of groups, the root first, whose I/O passes freely.
    pub weights: Vec<u32>,
    /// What the device can do.
    pub model: CostModel,
    /// When it is slowed down.
    pub qos: CostQos,
    /// The drive seeks.
    pub rotational: bool,
    /// `nr_requests` of the queue.
    pub requests: u32,
    /// Clock ticks per second.
    pub hz: u64,
}

/// Parts of a period: of the credit that a group has, may have and is to have (`MARGIN_MIN_PCT`, `MARGIN_LOW_PCT`,
/// `MARGIN_TARGET_PCT`).
const MARGIN_PERCENT: [i64; 3] = [10, 20, 50];
/// A step by which a lender takes its weight back (`INUSE_ADJ_STEP_PCT`).
const TAKE_BACK_PERCENT: u64 = 25;
/// Of a period, how late timers may be (`TIMER_SLACK_PCT`).
const SLACK_PERCENT: u64 = 1;
/// Operations in flight from before so many periods are forgotten (`MAX_LAGGING_PERIODS`).
const LAGGING_PERIODS: i64 = 10;
/// Debts are halved after so long with less use than this (`DFGV_PERIOD`, `DFGV_USAGE_PCT`).
const FORGIVE_US: u64 = 100_000;
const FORGIVE_PERCENT: u64 = 50;

/// The io.cost before one drive.
#[derive(Debug)]
pub(crate) struct IoCost {
    params: Params,
    tick_ns: Time,
    groups: Vec<Group>,
    sums: Sums,
    /// Active groups, the latest first.
    active: Vec<usize>,
    /// When the period ends; None: nothing is active.
    timer: Option<Time>,
    period: u64,
    period_at_us: u64,
    period_at_vtime: i64,
    vrate: Vrate,
    forgiving: Forgiving,
    granted: Vec<Granted>,
}

#[derive(Debug, Default)]
struct Forgiving {
    since_us: u64,
    left_us: u64,
    used_us: u64,
}

#[derive(Debug)]
struct Group {
    weight: Weight,
    /// Where its last operation ended.
    cursor: Sector,
    vtime: i64,
    vtime_done: i64,
    /// In time of the device, as are `used` and the costs of who waits.
    debt: u64,
    used: u64,
    waiting: VecDeque<(Waiter, u64)>,
    /// When who waits is looked at.
    timer: Option<Time>,
    active_period: u64,
    active_since_us: u64,
    saved_margin: i64,
    is_active: bool,
}

/// A moment (`ioc_now`).
#[derive(Clone, Copy, Debug)]
struct Now {
    ns: Time,
    us: u64,
    vtime: i64,
}

impl IoCost {
    pub(crate) fn new(rules: CostRules) -> IoCost {
        IoCost {
            params: Params::new(rules.model, rules.qos, rules.rotational, rules.requests),
            tick_ns: SECOND / rules.hz,
            groups: rules.weights.into_iter().map(Group::new).collect(),
            sums: Sums::default(),
            active: Vec::new(),
            timer: None,
            period: 0,
            period_at_us: 0,
            period_at_vtime: 0,
            vrate: Vrate::new(),
            forgiving: Forgiving::default(),
            granted: Vec::new(),
        }
    }

    fn now(&self, ns: Time) -> Now {
        let us = ns / MICROSECOND;
        Now { ns, us, vtime: self.period_at_vtime + ((us - self.period_at_us) * self.vrate.current()) as i64 }
    }

    /// So many parts of a period, in virtual time.
    fn margin(&self, place: usize) -> i64 {
        let us = self.params.period_us * MARGIN_PERCENT[place] as u64 / 100;
        (us * self.vrate.base()) as i64
    }

    fn slack_ns(&self) -> Time {
        self.params.period_us * MICROSECOND * SLACK_PERCENT / 100
    }

    fn share(&mut self, number: usize) -> Share {
        self.groups[number].weight.share(&self.sums)
    }

    /// Changes what of a group's weight is active and in use.
    fn set_weight(&mut self, number: usize, active: u64, in_use: u64, save: Option<Now>) {
        let group = &mut self.groups[number];
        group.weight.set(active, in_use, &mut self.sums);
        if let Some(now) = save {
            group.saved_margin = now.vtime - group.vtime;
        }
    }

    fn set_and_commit(&mut self, number: usize, active: u64, in_use: u64, save: Option<Now>) {
        self.set_weight(number, active, in_use, save);
        self.sums.commit();
    }

    /// `ioc_start_period`: the timer comes with a clock tick, and not before the one behind its own.
    fn start_period(&mut self, now: Now) {
        self.period_at_us = now.us;
        self.period_at_vtime = now.vtime;
        let period_ns = self.params.period_us * MICROSECOND;
        self.timer = Some(tick_timer::expiry(now.ns, period_ns, self.tick_ns));
    }

    /// `iocg_activate`.
    fn activate(&mut self, number: usize, now: Now) {
        self.groups[number].active_period = self.period;
        if self.groups[number].is_active {
            return;
        }
        let target = now.vtime - self.margin(2);
        let group = &mut self.groups[number];
        group.vtime_done += target - group.vtime;
        group.vtime = target;
        group.is_active = true;
        group.active_since_us = now.us;
        group.weight.forget();
        let (given, last) = (group.weight.given, group.weight.last_in_use);
        self.active.insert(0, number);
        let in_use = if last > 0 { last } else { given };
        self.set_and_commit(number, given, in_use, Some(now));
        if self.timer.is_none() {
            self.forgiving = Forgiving { since_us: now.us, left_us: 0, ..self.forgiving };
            self.start_period(now);
        }
    }

    /// `adjust_inuse_and_calc_cost`: a group that is short of time takes back what it has lent.
    fn cost_after_taking_back(&mut self, number: usize, abs_cost: u64, now: Now) -> u64 {
        let mut cost = cost_of(abs_cost, self.share(number).in_use);
        let low = self.margin(1);
        let group = &self.groups[number];
        let margin = now.vtime - group.vtime - cost as i64;
        let weight = &group.weight;
        let is_short = margin < group.saved_margin && margin < low;
        if group.debt > 0 || !is_short || weight.in_use == weight.active || !group.is_active {
            return cost;
        }
        let (active, vtime) = (weight.active, group.vtime);
        let mut in_use = weight.in_use;
        loop {
            in_use += (active * TAKE_BACK_PERCENT).div_ceil(100);
            self.set_and_commit(number, active, in_use, Some(now));
            cost = cost_of(abs_cost, self.share(number).in_use);
            let fits = vtime + cost as i64 <= now.vtime;
            if fits || self.groups[number].weight.in_use == active {
                return cost;
            }
        }
    }

    fn charge(&mut self, number: usize, abs_cost: u64, cost: u64) {
        let group = &mut self.groups[number];
        group.vtime += cost as i64;
        group.used += abs_cost;
    }

    /// `iocg_incur_debt`: what cannot wait is paid before anything else goes on.
    fn owe(&mut self, number: usize, abs_cost: u64) {
        if self.groups[number].debt == 0 && abs_cost > 0 {
            let active = self.groups[number].weight.active;
            self.set_and_commit(number, active, 0, None);
        }
        self.groups[number].debt += abs_cost;
        self.groups[number].used += abs_cost;
    }

    /// `iocg_pay_debt` of `iocg_kick_waitq`: what is left of the budget.
    fn pay(&mut self, number: usize, budget: i64) -> i64 {
        let share = self.share(number).active;
        let group = &mut self.groups[number];
        if group.debt == 0 || budget <= 0 {
            return budget;
        }
        let paid = (budget as u64 * share).div_ceil(ONE).min(group.debt);
        let cost = cost_of(paid, share) as i64;
        group.vtime += cost;
        group.vtime_done += cost;
        group.debt -= paid;
        let weight = &group.weight;
        let (active, last) = (weight.active, weight.last_in_use);
        if group.debt == 0 {
            self.set_and_commit(number, active, last, None);
        }
        budget - cost
    }

    /// `iocg_kick_waitq`: lets go whom the budget is enough for, and plans when to look again.
    fn kick(&mut self, number: usize, pays: bool, now: Now) {
        let mut budget = now.vtime - self.groups[number].vtime;
        if pays {
            budget = self.pay(number, budget);
        }
        let debt = self.groups[number].debt;
        if debt > 0 {
            let cost = cost_of(debt, self.share(number).active) as i64;
            budget = (budget - cost).min(0);
        }
        let share = self.share(number).in_use;
        while let Some(&(waiter, abs_cost)) = self.groups[number].waiting.front() {
            let cost = cost_of(abs_cost, share);
            budget -= cost as i64;
            if budget < 0 {
                break;
            }
            self.groups[number].waiting.pop_front();
            self.charge(number, abs_cost, cost);
            self.granted.push(Granted { waiter, cost });
        }
        if self.groups[number].waiting.is_empty() || budget >= 0 {
            return;
        }
        let slack_ns = self.slack_ns();
        let short_us = budget.unsigned_abs().div_ceil(self.vrate.base());
        let at = now.ns + short_us * MICROSECOND + 2 * slack_ns;
        let timer = &mut self.groups[number].timer;
        if timer.is_none_or(|old| old.abs_diff(at) > slack_ns) {
            *timer = Some(at);
        }
    }

    /// `ioc_timer_fn`: the period is over.
    fn end_period(&mut self, ns: Time) {
        let now = self.now(ns);
        let debtors = self.look_at_groups(now);
        let Budgets { used_us, lagging, short } = self.lend(now);
        self.vrate.end_period(&self.params, lagging, short);
        if self.params.change_kind(ns, self.vrate.base()) {
            self.vrate.begin_anew();
        }
        self.forgive(used_us, debtors, now);
        self.period += 1;
        self.timer = None;
        if self.active.is_empty() {
            self.vrate.reset();
        } else {
            self.start_period(now);
        }
        let left_us = (self.period_at_us + self.params.period_us) as i64 - now.us as i64;
        self.vrate.make_up(left_us, self.params.period_us);
    }

    /// `ioc_check_iocgs`: who waits or owes is looked at, who is idle is active no more. How many owe.
    fn look_at_groups(&mut self, now: Now) -> usize {
        let mut debtors = 0;
        for number in self.active.clone() {
            let group = &self.groups[number];
            if !group.waiting.is_empty() || group.debt > 0 {
                self.kick(number, true, now);
                debtors += usize::from(self.groups[number].debt > 0);
            } else if group.active_period != self.period && group.vtime_done == group.vtime {
                let excess = now.vtime - group.vtime - self.margin(2);
                if excess > 0 {
                    let share = self.share(number).in_use;
                    self.vrate.throw_away(excess, share);
                }
                self.set_weight(number, 0, 0, None);
                self.groups[number].is_active = false;
                self.active.retain(|other| *other != number);
            }
        }
        self.sums.commit();
        debtors
    }

    /// Who uses less than its share lends the rest.
    fn lend(&mut self, now: Now) -> Budgets {
        let mut found = Budgets::default();
        let mut lenders = Vec::new();
        let of_period = now.vtime - self.period_at_vtime;
        let looks_at_latencies = self.params.misses_ppm.iter().any(|misses| *misses < MILLION);
        for number in self.active.clone() {
            let group = &mut self.groups[number];
            let mut used_us = std::mem::take(&mut group.used) / self.vrate.base();
            found.used_us += used_us;
            let (vtime, done) = (group.vtime, group.vtime_done);
            if looks_at_latencies
                && done < vtime
                && vtime > now.vtime - LAGGING_PERIODS * of_period
                && done < now.vtime - of_period
            {
                found.lagging += 1;
            }
            let share = self.share(number);
            let group = &self.groups[number];
            let has_rest = group.waiting.is_empty() && vtime < now.vtime - self.margin(1);
            if share.in_use >= share.active && !has_rest {
                found.short += 1;
                continue;
            }
            if done != vtime {
                let in_flight = ((vtime - done).unsigned_abs() * share.in_use).div_ceil(ONE);
                used_us = used_us.max(in_flight.div_ceil(self.vrate.base()));
            }
            let since_us = match group.active_since_us > self.period_at_us {
                true => group.active_since_us,
                false => self.period_at_us,
            };
            let used = (used_us * ONE).div_ceil((now.us - since_us).max(1));
            let most = group.weight.share_max(&self.sums);
            let keeps = self.keeps(number, share.in_use, most, used.clamp(1, ONE), now);
            if keeps < most && share.active >= 2 {
                lenders.insert(0, Lender { group: number, entitled: share.active, keeps });
            } else if self.groups[number].debt == 0 {
                let active = self.groups[number].weight.active;
                self.set_weight(number, active, active, Some(now));
                found.short += 1;
            }
        }
        if !lenders.is_empty() && found.short > 0 {
            for (number, in_use) in lent(&mut lenders, &self.sums) {
                if self.groups[number].debt == 0 {
                    let active = self.groups[number].weight.active;
                    self.set_weight(number, active, in_use, Some(now));
                }
            }
        }
        self.sums.commit();
        found
    }

    /// `hweight_after_donation`: the share that the group keeps, `most` if it lends nothing. What it has saved beyond the
    /// target is thrown away.
    fn keeps(&mut self, number: usize, share: u64, most: u64, used: u64, now: Now) -> u64 {
        let (least, target) = (self.margin(0), self.margin(2));
        let group = &mut self.groups[number];
        if group.debt > 0 {
            return 1;
        }
        if !group.waiting.is_empty() || group.vtime > now.vtime - least {
            return most;
        }
        let excess = now.vtime - group.vtime - target;
        if excess > 0 {
            group.vtime += excess;
            group.vtime_done += excess;
            self.vrate.throw_away(excess, share);
        }
        let one = ONE as i64;
        let rest = one * (now.vtime - group.vtime) / (now.vtime - self.period_at_vtime);
        let budget = one - one * MARGIN_PERCENT[2] / 100 + rest;
        (one * used as i64 / budget).clamp(1, most as i64) as u64
    }

    /// `ioc_forgive_debts`.
    fn forgive(&mut self, used_us: u64, debtors: usize, now: Now) {
        let forgiving = &mut self.forgiving;
        if debtors == 0 {
            *forgiving = Forgiving { since_us: now.us, ..Forgiving::default() };
            return;
        }
        let is_busy = self.vrate.is_busy();
        forgiving.used_us += used_us.max(if is_busy { self.params.period_us } else { 0 });
        let took_us = now.us - forgiving.since_us;
        if took_us < FORGIVE_US {
            return;
        }
        let percent = 100 * std::mem::take(&mut forgiving.used_us) / took_us;
        forgiving.since_us = now.us;
        if percent > FORGIVE_PERCENT {
            forgiving.left_us = 0;
            return;
        }
        let over_us = took_us + forgiving.left_us;
        forgiving.left_us = over_us % FORGIVE_US;
        let halvings = (over_us / FORGIVE_US).min(63);
        for number in self.active.clone() {
            if self.groups[number].debt > 0 {
                let debt = &mut self.groups[number].debt;
                *debt = (*debt >> halvings).max(1);
                self.kick(number, true, now);
            }
        }
    }
}

/// What a period has come to.
#[derive(Clone, Copy, Debug, Default)]
struct Budgets {
    used_us: u64,
    /// Groups with operations in flight from before the period, and those that had too little.
    lagging: u32,
    short: u32,
}

impl Policy for IoCost {
    /// `ioc_rqos_throttle`.
    fn throttle(&mut self, ns: Time, bio: &Bio) -> Option<u64> {
        let number = usize::from(bio.group);
        if number == 0 {
            return Some(0);
        }
        let abs_cost = self.params.cost_of(bio, self.groups[number].cursor, false);
        let now = self.now(ns);
        self.activate(number, now);
        self.groups[number].cursor = bio.end();
        let cost = self.cost_after_taking_back(number, abs_cost, now);
        let group = &self.groups[number];
        let is_first = group.waiting.is_empty() && group.debt == 0;
        if is_first && group.vtime + cost as i64 <= now.vtime {
            self.charge(number, abs_cost, cost);
            return Some(cost);
        }
        if bio.metadata {
            self.owe(number, abs_cost);
            return Some(0);
        }
        let active = group.weight.active;
        let pays = group.debt > 0;
        if !pays && group.weight.in_use != active {
            self.set_and_commit(number, active, active, Some(now));
        }
        self.groups[number].waiting.push_back((waiter(bio), abs_cost));
        self.kick(number, pays, now);
        let is_let_go = self.groups[number].waiting.is_empty();
        is_let_go.then(|| self.granted.pop())?.map(|granted| granted.cost)
    }

    /// `ioc_rqos_merge`.
    fn merge(&mut self, ns: Time, into: &Request, first: QosTicket, bio: &Bio) -> u64 {
        let number = usize::from(bio.group);
        if number == 0 {
            return 0;
        }
        let abs_cost = self.params.cost_of(bio, self.groups[number].cursor, true);
        let now = self.now(ns);
        let cost = self.cost_after_taking_back(number, abs_cost, now);
        let group = &mut self.groups[number];
        if into.start < bio.end() && into.end() == group.cursor {
            group.cursor = bio.end();
        }
        let fits = first.cost > 0 && group.vtime + cost as i64 <= now.vtime;
        if fits || !group.is_active {
            self.charge(number, abs_cost, cost);
            return cost;
        }
        self.owe(number, abs_cost);
        0
    }

    fn done_bio(&mut self, _now: Time, bio: &Bio) {
        self.groups[usize::from(bio.group)].vtime_done += bio.qos.cost as i64;
    }

    /// `ioc_rqos_done`.
    fn done(&mut self, now: Time, request: &Request, first: QosTicket) {
        let (Some(passed_at), way) = (first.passed_at, way_of(request.direction)) else {
            return;
        };
        let size_ns = self.params.size_ns(request.direction, request.sectors);
        let latency_ns = self.params.latency_us[way] * MICROSECOND;
        let is_met = (now - passed_at).saturating_sub(size_ns) <= latency_ns;
        self.vrate.count(way, is_met, first, passed_at);
    }

    fn next_wakeup(&self) -> Option<Time> {
        let timers = self.groups.iter().filter_map(|group| group.timer);
        timers.chain(self.timer).min()
    }

    fn wake(&mut self, ns: Time) {
        for number in 0..self.groups.len() {
            if self.groups[number].timer.is_some_and(|at| at <= ns) {
                self.groups[number].timer = None;
                let pays = self.groups[number].debt > 0;
                self.kick(number, pays, self.now(ns));
            }
        }
        if self.timer.is_some_and(|at| at <= ns) {
            self.end_period(ns);
        }
    }

    fn take_granted(&mut self, into: &mut Vec<Granted>) {
        into.append(&mut self.granted);
    }

    /// As `ioc_pd_stat` shows it.
    fn vrate_percent(&self) -> Option<f64> {
        Some(self.vrate.percent())
    }

    /// The rate is within its bounds or on its way there from one, sums are those of the groups, no lender has none of its
    /// weight, and only who is active waits or owes.
    fn check(&self) -> Result<(), Violation> {
        self.vrate.check(self.params.vrate)?;
        let weights = || self.groups.iter().map(|group| &group.weight);
        let (active, in_use): (u64, u64) =
            (weights().map(|weight| weight.active).sum(), weights().map(|weight| weight.in_use).sum());
        let sums = &self.sums;
        Violation::unless(active == sums.active && in_use == sums.in_use, "io.cost", || {
            format!("weights {active} and {in_use} are summed up to {} and {}", sums.active, sums.in_use)
        })?;
        for (number, group) in self.groups.iter().enumerate() {
            let rests = group.waiting.is_empty() && group.debt == 0;
            let lends = (1..=group.weight.active).contains(&group.weight.in_use);
            let is_right = match group.is_active {
                true => lends && group.vtime_done <= group.vtime,
                false => rests,
            };
            Violation::unless(is_right, "io.cost", || format!("group {number}: {group:?}"))?;
        }
        Ok(())
    }
}

impl Group {
    fn new(weight: u32) -> Group {
        Group {
            weight: Weight::new(weight),
            cursor: 0,
            vtime: 0,
            vtime_done: 0,
            debt: 0,
            used: 0,
            waiting: VecDeque::new(),
            timer: None,
            active_period: 0,
            active_since_us: 0,
            saved_margin: 0,
            is_active: false,
        }
    }
}

/// For a group with that share (`abs_cost_to_cost`).
fn cost_of(abs_cost: u64, share: u64) -> u64 {
    (abs_cost * ONE).div_ceil(share)
}

#[cfg(test)]
mod tests;
