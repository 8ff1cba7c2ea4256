//! How much may be dirty: in all, and of each drive by what it has written lately (from 2.6.24 on).
//!
//! Source: `mm/page-writeback.c` of 2.6.24 (`get_dirty_limits`, `clip_bdi_dirty_limit`, `task_dirty_limit`,
//! `balance_dirty_pages`) and of 3.4 (`bdi_dirty_limit`, `bdi_position_ratio`).

use crate::cache::device::DeviceId;
use crate::cache::dirty_rate::Level;
use crate::cache::flushers::Purpose;
use crate::cache::page_cache::PageCache;
use crate::cache::spec::CacheVariant;
use crate::cache::{FileId, Outcome};
use block_layer::TaskId;

impl PageCache {
    /// Looks at the thresholds now and then, each CPU for itself (`balance_dirty_pages_ratelimited`); may keep the writer.
    /// Writers that dirty pages in turn on CPUs of their own are thus made to wait together, and go on together.
    pub(super) fn balance(&mut self, task: TaskId, file: FileId) -> Outcome {
        let device = self.device_of(file);
        if self.devices[device].rate.is_some() {
            return self.hold_to_rate(task, device);
        }
        let rules = &self.rules;
        // Without limits of their own, drives share the mark too.
        let marked = self.written.map_or(0, |_| device);
        let limit = if self.devices[marked].exceeded {
            rules.ratelimit_exceeded
        } else {
            rules.ratelimit
        };
        let dirtied = &mut self.dirtied[usize::from(self.cpu)];
        if *dirtied < limit {
            return Outcome::Done;
        }
        *dirtied = 0;
        // 2.4 counts what nobody writes yet.
        let dirty = match rules.variant {
            CacheVariant::Linux2_4 => self.pages.waiting(),
            _ => self.pages.dirty(),
        };
        if dirty > rules.background {
            self.start_background(device);
        }
        let must_wait = self.must_wait(task, device);
        self.devices[marked].exceeded = must_wait;
        if !must_wait {
            return Outcome::Done;
        }
        let writes = self.rules.throttled_writes;
        self.flushers
            .start(Purpose::Throttled, task, device, writes, writes);
        Outcome::Wait
    }

    /// Whether so much is dirty that who writes to the drive has to wait (`balance_dirty_pages`). Where drives have limits
    /// of their own, only if all together are beyond the middle of both thresholds.
    pub(super) fn must_wait(&self, task: TaskId, device: DeviceId) -> bool {
        let all = self.pages.dirty() + self.pages.writing();
        match (&self.written, self.rules.variant) {
            (_, CacheVariant::Linux2_4) => self.pages.waiting() > self.rules.foreground,
            (None, _) => all > self.rules.foreground,
            (Some(_), _) => {
                let own = self.devices[device].unwritten();
                own > self.task_limit(task, device)
                    && all >= (self.rules.background + self.rules.foreground) / 2
            }
        }
    }

    /// The drive's share of the limit (`bdi_dirty_limit`).
    pub(super) fn device_limit(&self, device: DeviceId, of: u64) -> u64 {
        match &self.written {
            None => of,
            Some(written) => written.part(self.now, self.devices[device].written, of),
        }
    }

    /// The drive's limit for one task (`task_dirty_limit`): no more than is left, and less by up to an eighth the more of
    /// all it has dirtied lately.
    pub(super) fn task_limit(&self, task: TaskId, device: DeviceId) -> u64 {
        let all = self.pages.dirty() + self.pages.writing();
        let left = self.rules.foreground.saturating_sub(all);
        let limit = self
            .device_limit(device, self.rules.foreground)
            .min(left + self.devices[device].unwritten());
        let dirtied = self.dirtied_by.get(&task).copied().unwrap_or_default();
        let less = self
            .dirtiers
            .map_or(0, |all| all.part(self.now, dirtied, limit / 8));
        limit - less
    }

    /// The task has dirtied so many pages (`task_dirty_inc`).
    pub(super) fn count_dirtier(&mut self, task: TaskId, pages: u64) {
        if let Some(dirtiers) = &mut self.dirtiers
            && pages > 0
        {
            let share = self.dirtied_by.entry(task).or_default();
            dirtiers.count(self.now, share, pages);
        }
    }

    /// Where dirty pages stand: those that are being written count.
    pub(super) fn level(&self, device: DeviceId) -> Level {
        Level {
            dirty: self.pages.dirty() + self.pages.writing(),
            background: self.rules.background,
            limit: self.rules.foreground,
            of_device: self.devices[device].unwritten(),
            device_limit: self.device_limit(device, self.rules.foreground),
        }
    }

    /// From 3.2 on (`balance_dirty_pages` of 3.2): the writer sleeps for as long as its pages take at the rate that it may
    /// have.
    fn hold_to_rate(&mut self, task: TaskId, device: DeviceId) -> Outcome {
        let pages = std::mem::take(&mut self.dirtied[usize::from(self.cpu)]);
        let (now, level) = (self.now, self.level(device));
        // Also, while anybody may be held, for a drive that has more than its part of the threshold.
        let is_due = level.dirty > level.free_run() && self.has_more_than_its_part(device);
        if self.pages.dirty() > self.rules.background || is_due {
            self.start_background(device);
        }
        let rate = self.devices[device].rate.as_mut().expect("seen before");
        let Some(pause_ns) = rate.holds(now, task, pages, level) else {
            return Outcome::Done;
        };
        self.sleeping.insert((now + pause_ns, task, device));
        self.flushers.throttled.insert(task);
        Outcome::Wait
    }

    /// Background writeback goes on: from 3.2 on also while the drive has more than its part of the threshold.
    pub(super) fn goes_on(&self, device: DeviceId) -> bool {
        let stop = self.rules.background_stop.max(1);
        let is_held = self.rules.variant == CacheVariant::Linux3_2;
        self.pages.waiting() >= stop || is_held && self.has_more_than_its_part(device)
    }

    /// Of what starts background writeback (`over_bground_thresh`).
    fn has_more_than_its_part(&self, device: DeviceId) -> bool {
        self.devices[device].dirty > self.device_limit(device, self.rules.background)
    }
}
