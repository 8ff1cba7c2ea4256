//! Who writes back, and who is kept until that is done: flushers at work and paused, throttled writers.

use std::collections::{BTreeSet, VecDeque};

use crate::cache::FileId;
use crate::cache::device::DeviceId;
use crate::cache::pdflush_threads::Pdflush;
use block_layer::TaskId;
use events::station::Violation;
use events::time::Time;

#[derive(Clone, Debug)]
pub(super) struct Flushers {
    running: VecDeque<Flusher>,
    /// Those that found nothing to write, until then or until the queue's congestion ends.
    paused: Vec<(Time, Flusher)>,
    throttled: BTreeSet<TaskId>,
    released: BTreeSet<TaskId>,
    /// When kupdate looks for old data; None while nothing is dirty.
    look_at: Option<Time>,
    /// Whose last I/O has found no request: each sleeps by itself.
    blocked: BTreeSet<TaskId>,
    /// Writers that wait for a folio that one of those has locked.
    waiting_for_folio: Vec<TaskId>,
    /// By drive: which of its flushers are at work.
    of_drives: Vec<FlusherWork>,
    pdflush: Pdflush,
}

#[derive(Clone, Copy, Debug, Default)]
struct FlusherWork {
    background: bool,
    old_data: bool,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Flusher {
    pub(super) purpose: Purpose,
    pub(super) task: TaskId,
    /// What it writes back is there.
    pub(super) of: DeviceId,
    /// Pages that it still has to write.
    pub(super) left: u64,
    /// The pages of this turn: then another inode's comes, and background writeback looks at the threshold.
    pub(super) turn: u64,
    pub(super) inode: Option<FileId>,
    /// The write that it has not submitted yet, as more may follow.
    pub(super) ioend: Option<u32>,
    /// The folio that it has locked: of which file, from which page to before which.
    pub(super) locked: Option<(FileId, u64, u64)>,
    /// It has waited for a queue, and looks first whether it still has to write back.
    pub(super) has_waited: bool,
    /// The drives that pdflush still looks at.
    pub(super) walk: Option<Walk>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Purpose {
    Background,
    /// What has been dirty since before.
    OldData(Time),
    Throttled,
    /// A file, from the first page to before the second: what is dirtied behind its end meanwhile does not keep it.
    Sync(FileId, u64, u64),
    Commit,
}

/// How far a thread of pdflush is in its round.
#[derive(Clone, Copy, Debug)]
pub(super) struct Walk {
    /// Drives that it has not done with, from the first one on.
    pub(super) drives: usize,
    pub(super) found_congestion: bool,
}

impl Walk {
    pub(super) fn over(drives: usize) -> Walk {
        Walk { drives, found_congestion: false }
    }
}

impl Purpose {
    /// Only what has been dirty since before then is written back.
    pub(super) fn before(self) -> Option<Time> {
        match self {
            Purpose::OldData(before) => Some(before),
            _ => None,
        }
    }
}

impl Flushers {
    pub(super) fn new(devices: usize) -> Flushers {
        Flushers {
            running: VecDeque::new(),
            paused: Vec::new(),
            throttled: BTreeSet::new(),
            released: BTreeSet::new(),
            look_at: None,
            blocked: BTreeSet::new(),
            waiting_for_folio: Vec::new(),
            of_drives: vec![FlusherWork::default(); devices],
            pdflush: Pdflush::default(),
        }
    }

    // Flushers.

    pub(super) fn start(&mut self, purpose: Purpose, task: TaskId, of: DeviceId, left: u64, turn: u64) {
        if purpose == Purpose::Throttled {
            self.throttle(task);
        }
        self.go_in_line(Flusher {
            purpose,
            task,
            of,
            left,
            turn,
            inode: None,
            ioend: None,
            locked: None,
            has_waited: false,
            walk: None,
        });
    }

    /// Whether none of that purpose is at work on the drive yet: one is from now on.
    pub(super) fn begins(&mut self, purpose: Purpose, device: DeviceId) -> bool {
        let is_at_work = self.at_work(purpose, device);
        is_at_work.is_some_and(|is_at_work| !std::mem::replace(is_at_work, true))
    }

    /// It has nothing more to do on its drive.
    pub(super) fn ends(&mut self, purpose: Purpose, device: DeviceId) {
        if let Some(is_at_work) = self.at_work(purpose, device) {
            *is_at_work = false;
        }
    }

    fn at_work(&mut self, purpose: Purpose, device: DeviceId) -> Option<&mut bool> {
        match purpose {
            Purpose::Background => Some(&mut self.of_drives[device].background),
            Purpose::OldData(_) => Some(&mut self.of_drives[device].old_data),
            _ => None,
        }
    }

    /// At its end.
    pub(super) fn go_in_line(&mut self, flusher: Flusher) {
        self.running.push_back(flusher);
    }

    /// The flusher whose step is next; None: all of them wait.
    pub(super) fn pop_next(&mut self) -> Option<Flusher> {
        let first = self.first_to_run()?;
        self.running.remove(first)
    }

    fn first_to_run(&self) -> Option<usize> {
        let mut running = self.running.iter();
        running.position(|flusher| !self.blocked.contains(&flusher.task))
    }

    /// Until then, or until some queue has room.
    pub(super) fn pause(&mut self, until: Time, flusher: Flusher) {
        let flusher = Flusher { has_waited: true, ..flusher };
        self.paused.push((until, flusher));
    }

    /// Some queue has room: who waits for that need not wait longer.
    pub(super) fn go_on(&mut self) {
        self.running.extend(self.paused.drain(..).map(|(_, flusher)| flusher));
    }

    /// Those whose pause is over.
    pub(super) fn go_on_if_due(&mut self, now: Time) {
        if !self.paused.is_empty() {
            let due = self.paused.extract_if(.., |(at, _)| *at <= now);
            self.running.extend(due.map(|(_, flusher)| flusher));
        }
    }

    /// What the task writes back has found no request.
    pub(super) fn block(&mut self, task: TaskId) {
        self.blocked.insert(task);
    }

    /// It has one; whether it was blocked, and has no more to write.
    pub(super) fn unblock(&mut self, task: TaskId) -> bool {
        self.blocked.remove(&task) && self.running.iter().all(|flusher| flusher.task != task)
    }

    /// Whether the task has to wait to write to these pages, as a flusher that waits for a request has a folio of them locked.
    pub(super) fn keeps_for_folio(&mut self, task: TaskId, file: FileId, first: u64, last: u64) -> bool {
        let is_locked = |flusher: &Flusher| {
            let overlaps = |(of, start, end)| of == file && start <= last && first < end;
            flusher.locked.is_some_and(overlaps) && self.blocked.contains(&flusher.task)
        };
        let waits = self.running.iter().any(is_locked);
        if waits {
            self.waiting_for_folio.push(task);
        }
        waits
    }

    /// Those that have waited for folios look again.
    pub(super) fn take_waiting_for_folio(&mut self) -> Vec<TaskId> {
        std::mem::take(&mut self.waiting_for_folio)
    }

    /// When a flusher has something to do.
    pub(super) fn next_event(&self, now: Time) -> Option<Time> {
        if self.first_to_run().is_some() {
            return Some(now);
        }
        let paused = self.paused.iter().map(|&(at, _)| at);
        paused.chain(self.look_at).min()
    }

    // Old data.

    pub(super) fn something_is_dirty(&mut self, now: Time, interval: Time) {
        if self.look_at.is_none() {
            self.look_at = Some((now / interval + 1) * interval);
        }
    }

    pub(super) fn looks_for_old_data(&self, now: Time) -> bool {
        self.look_at.is_some_and(|at| at <= now)
    }

    pub(super) fn look_for_old_data_at(&mut self, at: Option<Time>) {
        self.look_at = at;
    }

    // Writers.

    /// The task is kept until it is released.
    pub(super) fn throttle(&mut self, task: TaskId) {
        self.throttled.insert(task);
    }

    pub(super) fn holds(&self, task: TaskId) -> bool {
        self.throttled.contains(&task)
    }

    /// The task is kept, or was until it calls again.
    pub(super) fn has_throttled(&self, task: TaskId) -> bool {
        self.throttled.contains(&task) || self.released.contains(&task)
    }

    pub(super) fn release(&mut self, task: TaskId) {
        self.throttled.remove(&task);
        self.released.insert(task);
    }

    /// None: the task is not kept. Else whether it may go now.
    #[inline]
    pub(super) fn was_throttled(&mut self, task: TaskId) -> Option<bool> {
        if !self.released.is_empty() && self.released.remove(&task) {
            return Some(true);
        }
        (!self.throttled.is_empty() && self.throttled.contains(&task)).then_some(false)
    }

    // pdflush.

    /// `pdflush_operation`. False: there is no thread that could do it.
    pub(super) fn start_pdflush(&mut self, now: Time, purpose: Purpose, walk: Walk, turn: u64) -> bool {
        let Some(task) = self.pdflush.take(now) else {
            return false;
        };
        self.start(purpose, task, 0, u64::MAX, turn);
        let flusher = self.running.back_mut().expect("just put there");
        flusher.walk = Some(walk);
        true
    }

    pub(super) fn end_pdflush(&mut self, now: Time, task: TaskId) {
        self.pdflush.finished(now, task);
    }

    /// Whether a thread writes something of the drive now (`writeback_in_progress`).
    pub(super) fn has_pdflush(&self, device: DeviceId) -> bool {
        let is_there = |flusher: &Flusher| flusher.of == device && flusher.inode.is_some();
        self.pdflush_at_work().any(is_there)
    }

    pub(super) fn has_pdflush_for_old_data(&self) -> bool {
        self.pdflush_at_work().any(|flusher| flusher.purpose != Purpose::Background)
    }

    fn pdflush_at_work(&self) -> impl Iterator<Item = &Flusher> {
        let paused = self.paused.iter().map(|(_, flusher)| flusher);
        let all = self.running.iter().chain(paused);
        all.filter(|flusher| flusher.walk.is_some())
    }

    #[cfg(test)]
    pub(super) fn are_paused(&self) -> bool {
        !self.paused.is_empty()
    }

    /// Nobody is kept and free.
    pub(super) fn check(&self) -> Result<(), Violation> {
        let both = self.throttled.intersection(&self.released).next();
        Violation::unless(both.is_none(), "flushers", || format!("task {both:?} is kept and may go"))
    }
}
