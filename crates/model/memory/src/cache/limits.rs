//! How much may be dirty: in all, and of each drive by what it has written lately (from 2.6.24 on).
//!
//! Source: `mm/page-writeback.c` of 2.6.24 (`get_dirty_limits`, `clip_bdi_dirty_limit`, `task_dirty_limit`,
//! `balance_dirty_pages`) and of 3.4 (`bdi_dirty_limit`, `bdi_position_ratio`).

use std::collections::{BTreeMap, BTreeSet};

use crate::cache::device::{DeviceId, Devices};
use crate::cache::dirty_rate::{DirtyRate, Level, UPDATE_NS};
use crate::cache::folios::Folios;
use crate::cache::pages::Pages;
use crate::cache::proportions::{Proportions, Share};
use crate::cache::spec::{CacheVariant, Rules};
use block_layer::TaskId;
use events::time::Time;

/// What has been dirtied and written lately by whom, and which writers sleep because of it.
#[derive(Clone, Debug)]
pub(super) struct Limits {
    /// Who calls runs there.
    cpu: u16,
    /// Pages dirtied since the last look at the thresholds, by CPU.
    dirtied: Vec<u64>,
    of_drives: Vec<DriveLimits>,
    /// Pages that were written; None: drives have no limits of their own.
    written: Option<Proportions>,
    /// Pages that were dirtied, of all and by task, until writers are held to a rate.
    dirtiers: Option<Proportions>,
    dirtied_by: BTreeMap<TaskId, Share>,
    /// Writers that are held to a rate, by when they continue.
    sleeping: BTreeSet<(Time, TaskId, DeviceId)>,
    /// The limit that was, when it was set with more memory: since when it is so much (`dom->dirty_limit`).
    former: Option<(Time, u64)>,
}

#[derive(Clone, Debug)]
struct DriveLimits {
    /// The share of all pages that were written lately.
    written: Share,
    /// More was dirty than its limit, or than that of all (of the first drive), when a writer looked last.
    exceeded: bool,
    /// The rate limit in kernels whose writers do not write back themselves.
    rate: Option<DirtyRate>,
}

/// What the limits are judged by.
#[derive(Clone, Copy)]
pub(super) struct LimitContext<'a> {
    pub(super) now: Time,
    pub(super) rules: &'a Rules,
    pub(super) pages: &'a Pages,
    pub(super) folios: &'a Folios,
    pub(super) devices: &'a Devices,
}

/// What a writer has to do that looks at the limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    GoesOn,
    /// It writes back until less is dirty.
    WritesBack,
    Sleeps,
}

impl LimitContext<'_> {
    /// Dirty or being written, in all.
    fn unwritten(&self) -> u64 {
        let beyond = self.folios.beyond_of_all();
        self.pages.dirty() + self.pages.writing() + beyond.dirty + beyond.writing
    }

    /// The same of a drive.
    fn unwritten_of(&self, device: DeviceId) -> u64 {
        let beyond = self.folios.beyond(device);
        self.devices.unwritten(device) + beyond.dirty + beyond.writing
    }

    /// Dirty and not yet being written, of a drive.
    fn dirty_of(&self, device: DeviceId) -> u64 {
        self.devices.dirty(device) + self.folios.beyond(device).dirty
    }
}

impl Limits {
    /// With this many drives, which have all written as much until now.
    pub(super) fn new(rules: &Rules, drives: usize) -> Limits {
        let of_limit = |lately| Proportions::new(lately, rules.foreground);
        let has_rate = rules.variant == CacheVariant::Linux3_2;
        let written = rules.lately.map(of_limit);
        let of_drive = DriveLimits {
            written: written.map_or(Share::default(), |all| all.equal(drives as u64)),
            exceeded: false,
            rate: has_rate.then(DirtyRate::new),
        };
        Limits {
            cpu: 0,
            dirtied: vec![0],
            of_drives: vec![of_drive; drives],
            written,
            dirtiers: rules.lately.filter(|_| !has_rate).map(of_limit),
            dirtied_by: BTreeMap::new(),
            sleeping: BTreeSet::new(),
            former: rules.foreground_when_set.map(|pages| (0, pages)),
        }
    }

    /// The CPU that the next calls come from.
    pub(super) fn on_cpu(&mut self, cpu: u16) {
        self.cpu = cpu;
        if self.dirtied.len() <= usize::from(cpu) {
            self.dirtied.resize(usize::from(cpu) + 1, 0);
        }
    }

    /// Who calls has dirtied this many pages.
    #[inline]
    pub(super) fn count_dirtied(&mut self, pages: u64) {
        self.dirtied[usize::from(self.cpu)] += pages;
    }

    /// The task has dirtied this many pages (`task_dirty_inc`).
    pub(super) fn count_dirtier(&mut self, now: Time, task: TaskId, pages: u64) {
        if let Some(dirtiers) = &mut self.dirtiers
            && pages > 0
        {
            let share = self.dirtied_by.entry(task).or_default();
            dirtiers.count(now, share, pages);
        }
    }

    /// Args:
    ///     is_last: of its inode no other page is being written.
    pub(super) fn count_written(&mut self, now: Time, device: DeviceId, pages: u64, is_last: bool) {
        let of = &mut self.of_drives[device];
        if let Some(rate) = &mut of.rate {
            rate.written(pages);
            if is_last {
                rate.inode_is_written(now);
            }
        }
        if let Some(written) = &mut self.written {
            written.count(now, &mut of.written, pages);
        }
    }

    /// Who calls looks at the thresholds now and then, each CPU for itself (`balance_dirty_pages_ratelimited`); from 3.2 on each
    /// task. Writers that dirty pages in turn on CPUs of their own are thus made to wait
    /// together, and continue together. How many pages the look is about; None: the task does not look.
    pub(super) fn looks(&mut self, rules: &Rules, device: DeviceId, task: TaskId, pages: u64) -> Option<u64> {
        if let Some(rate) = &mut self.of_drives[device].rate {
            // A thirty-second of the limit per CPU (`writeback_set_ratelimit`); the number of CPUs is taken as 1.
            let on_cpu_max = (rules.foreground / 32).max(16);
            let on_cpu = &mut self.dirtied[usize::from(self.cpu)];
            return rate.looks(task, pages, on_cpu, on_cpu_max);
        }
        let least = match self.of_drives[self.marked(device)].exceeded {
            true => rules.ratelimit_exceeded,
            false => rules.ratelimit,
        };
        let dirtied = &mut self.dirtied[usize::from(self.cpu)];
        let looks = *dirtied >= least;
        if looks {
            *dirtied = 0;
        }
        looks.then_some(pages)
    }

    /// Without limits of their own, drives share the mark too.
    fn marked(&self, device: DeviceId) -> DeviceId {
        self.written.map_or(0, |_| device)
    }

    /// Whether who looks starts background writeback on the drive.
    pub(super) fn starts_background(&self, at: &LimitContext, device: DeviceId) -> bool {
        // 2.4 counts what nobody writes yet.
        let dirty = match at.rules.variant {
            CacheVariant::Linux2_4 => at.pages.waiting(),
            _ => at.pages.dirty() + at.folios.beyond_of_all().dirty,
        };
        // Also, while anybody may be held to a rate, for a drive that has more than its part of the threshold.
        let is_due = || {
            let level = self.level(at, device);
            level.dirty > level.free_run() && self.has_more_than_its_part(at, device)
        };
        dirty > at.rules.background || self.of_drives[device].rate.is_some() && is_due()
    }

    /// What the task has to do that looks, with this many pages that it has dirtied. From 3.2 on (`balance_dirty_pages` of 3.2) it
    /// sleeps for as long as its pages take at the rate that it may have.
    pub(super) fn judge(&mut self, at: &LimitContext, device: DeviceId, task: TaskId, pages: u64) -> Verdict {
        let level = self.level(at, device);
        self.follow_limit(at, device);
        let Some(rate) = &mut self.of_drives[device].rate else {
            let must_wait = self.must_wait(at, device, task);
            let marked = self.marked(device);
            self.of_drives[marked].exceeded = must_wait;
            return match must_wait {
                true => Verdict::WritesBack,
                false => Verdict::GoesOn,
            };
        };
        let Some(pause_ns) = rate.pause(at.now, task, pages, level) else {
            return Verdict::GoesOn;
        };
        self.sleeping.insert((at.now + pause_ns, task, device));
        Verdict::Sleeps
    }

    /// Whether so much is dirty that who writes to the drive has to wait (`balance_dirty_pages`). If drives have limits
    /// of their own, only if all together are beyond the middle of both thresholds.
    pub(super) fn must_wait(&self, at: &LimitContext, device: DeviceId, task: TaskId) -> bool {
        match (&self.written, at.rules.variant) {
            (_, CacheVariant::Linux2_4) => at.pages.waiting() > at.rules.foreground,
            (None, _) => at.unwritten() > at.rules.foreground,
            (Some(_), _) => {
                at.unwritten_of(device) > self.task_limit(at, device, task)
                    && at.unwritten() >= (at.rules.background + at.rules.foreground) / 2
            }
        }
    }

    /// Too little of the drive is waiting to be written for a throttled writer to do it.
    pub(super) fn only_waits(&self, at: &LimitContext, device: DeviceId, task: TaskId) -> bool {
        at.rules.writes_back_only_beyond_limit && at.dirty_of(device) <= self.task_limit(at, device, task)
    }

    /// The drive's share of the limit (`bdi_dirty_limit`).
    pub(super) fn of_drive(&self, at: &LimitContext, device: DeviceId, of: u64) -> u64 {
        match &self.written {
            None => of,
            Some(written) => written.part(at.now, self.of_drives[device].written, of),
        }
    }

    /// The drive's limit for one task (`task_dirty_limit`): no more than is left, and less by up to an eighth the more of
    /// all it has dirtied lately.
    fn task_limit(&self, at: &LimitContext, device: DeviceId, task: TaskId) -> u64 {
        let left = at.rules.foreground.saturating_sub(at.unwritten());
        let limit = self.of_drive(at, device, at.rules.foreground).min(left + at.unwritten_of(device));
        let dirtied = self.dirtied_by.get(&task).copied().unwrap_or_default();
        let less = self.dirtiers.map_or(0, |all| all.part(at.now, dirtied, limit / 8));
        limit - less
    }

    /// The numbers of dirty pages: those that are being written count.
    fn level(&self, at: &LimitContext, device: DeviceId) -> Level {
        Level {
            dirty: at.unwritten(),
            background: at.rules.background,
            limit: at.rules.foreground,
            hard_limit: self.former(at).max(at.rules.foreground),
            of_device: at.unwritten_of(device),
            device_limit: self.of_drive(at, device, at.rules.foreground),
        }
    }

    fn former(&self, at: &LimitContext) -> u64 {
        self.former.map_or(at.rules.foreground, |(_, pages)| pages)
    }

    /// What the limit was follows it: up at once, and down by a thirty-second of the difference in 200 ms in which writers
    /// are held, but not below what is dirty (`update_dirty_limit`), if a writer updates the rates.
    fn follow_limit(&mut self, at: &LimitContext, device: DeviceId) {
        let rate = self.of_drives[device].rate.as_ref();
        if rate.is_none_or(|rate| !rate.is_due(at.now)) {
            return;
        }
        let (dirty, limit) = (at.unwritten(), at.rules.foreground);
        let Some((since, pages)) = &mut self.former else {
            return;
        };
        if at.now < *since + UPDATE_NS || dirty <= (at.rules.background + limit) / 2 {
            return;
        }
        let target = limit.max(dirty);
        *pages = match *pages < limit {
            true => limit,
            false => *pages - (pages.saturating_sub(target) >> 5),
        };
        *since = at.now;
    }

    /// Background writeback continues: from 3.2 on also while the drive has more than its part of the threshold.
    pub(super) fn goes_on(&self, at: &LimitContext, device: DeviceId) -> bool {
        let stop = at.rules.background_stop.max(1);
        let is_held = at.rules.variant == CacheVariant::Linux3_2;
        at.pages.waiting() + at.folios.beyond_of_all().dirty >= stop
            || is_held && self.has_more_than_its_part(at, device)
    }

    /// Whether the device has more than its part of what starts background writeback (`over_bground_thresh`).
    fn has_more_than_its_part(&self, at: &LimitContext, device: DeviceId) -> bool {
        at.dirty_of(device) > self.of_drive(at, device, at.rules.background)
    }

    /// What a flusher writes of an inode before the next has its turn.
    pub(super) fn turn(&self, rules: &Rules, device: DeviceId) -> u64 {
        match &self.of_drives[device].rate {
            Some(rate) => {
                let former = self.former.map_or(0, |(_, pages)| pages);
                rate.chunk_pages(rules.foreground.max(former))
            }
            None => rules.turn,
        }
    }

    /// Somebody begins to write an inode of the drive back, of which something is being written already or not.
    pub(super) fn begins_inode(&mut self, now: Time, device: DeviceId, is_writing: bool) {
        if let Some(rate) = &mut self.of_drives[device].rate {
            rate.begins_inode(now, is_writing);
        }
    }

    /// Somebody has written an inode of the drive back.
    pub(super) fn ends_inode(&mut self, now: Time, device: DeviceId) {
        if let Some(rate) = &mut self.of_drives[device].rate {
            rate.ends_inode(now);
        }
    }

    /// When the first sleeper's time is over, or a drive's rate is updated.
    pub(super) fn next_event(&self) -> Option<Time> {
        let rates = self.of_drives.iter().filter_map(|of| of.rate.as_ref());
        let updates = rates.filter_map(DirtyRate::next_event);
        updates.chain(self.first_rested()).min()
    }

    pub(super) fn update_rates(&mut self, now: Time) {
        let rates = self.of_drives.iter_mut().filter_map(|of| of.rate.as_mut());
        rates.for_each(|rate| rate.update_if_due(now));
    }

    fn first_rested(&self) -> Option<Time> {
        self.sleeping.first().map(|&(at, ..)| at)
    }

    /// A sleeper whose time is over.
    pub(super) fn pop_rested(&mut self, at: &LimitContext) -> Option<TaskId> {
        while self.first_rested().is_some_and(|until| until <= at.now) {
            let (_, task, device) = self.sleeping.pop_first()?;
            let level = self.level(at, device);
            self.follow_limit(at, device);
            let rate = self.of_drives[device].rate.as_mut();
            let Some(pause_ns) = rate.and_then(|rate| rate.holds_on(at.now, task, level)) else {
                return Some(task);
            };
            self.sleeping.insert((at.now + pause_ns, task, device));
        }
        None
    }
}
