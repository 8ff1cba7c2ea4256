//! A journal in ordered mode: before a transaction commits, the data that it is about is written, in the order of dirtying
//! (`fs/jbd/commit.c` of 2.5.59; docs/model/sources/page-cache.md#commits). The journal's own blocks are left out.

use crate::cache::FileId;
use crate::cache::backlog::Piece;
use crate::cache::device::DeviceId;
use crate::cache::dirty_order::DirtyOrder;
use crate::cache::pages::Pages;
use block_layer::TaskId;
use events::station::Violation;
use events::time::Time;

/// By drive; none if the filesystems have none.
#[derive(Clone, Debug)]
pub(super) struct Journals(Vec<Journal>);

#[derive(Clone, Debug)]
struct Journal {
    interval: Time,
    /// The transaction that writers are in; the one before it is committing or committed.
    running: u64,
    order: DirtyOrder,
    /// When the running transaction commits; None: nothing is in it.
    commit_at: Option<Time>,
    committing: Option<DirtyOrder>,
    waiters: Vec<(u64, TaskId)>,
}

impl Journals {
    pub(super) fn new(interval: Option<Time>, devices: usize) -> Journals {
        let journal = interval.map(|interval| Journal {
            interval,
            running: 1,
            order: DirtyOrder::default(),
            commit_at: None,
            committing: None,
            waiters: Vec::new(),
        });
        Journals(journal.map_or(Vec::new(), |journal| vec![journal; devices]))
    }

    /// `journal_dirty_data`.
    #[inline]
    pub(super) fn became_dirty(&mut self, now: Time, device: DeviceId, file: FileId, page: u64, pages: &Pages) {
        if let Some(journal) = self.0.get_mut(device) {
            journal.order.push(file, page, now);
            journal.commit_at.get_or_insert(now + journal.interval);
            let is_waiting = |file, page| pages.is_waiting(file, page);
            journal.order.tidy(pages.waiting(), is_waiting);
        }
    }

    /// The data of `journal_commit_transaction`.
    pub(super) fn pop(&mut self, device: DeviceId, most: u64, pages: &Pages) -> Option<Piece> {
        let committing = self.0.get_mut(device)?.committing.as_mut()?;
        committing.pop(most, |file, page| pages.is_waiting(file, page))
    }

    pub(super) fn is_idle(&self, device: DeviceId) -> bool {
        let journal = self.0.get(device);
        journal.is_none_or(|journal| journal.commit_at.is_none() && journal.committing.is_none())
    }

    /// When a commit is due, of any drive's.
    pub(super) fn next_event(&self) -> Option<Time> {
        self.0.iter().filter_map(Journal::next_commit).min()
    }

    /// Whether the drive's running transaction is due: it commits from now on. One commits at a time on a drive
    /// (`journal_commit_transaction`); the next transaction's begins when that is over.
    pub(super) fn begin_if_due(&mut self, now: Time, device: DeviceId) -> bool {
        let is_due = |journal: &&mut Journal| journal.next_commit().is_some_and(|at| at <= now);
        let Some(journal) = self.0.get_mut(device).filter(is_due) else {
            return false;
        };
        journal.commit_at = None;
        journal.running += 1;
        journal.committing = Some(std::mem::take(&mut journal.order));
        true
    }

    /// The task waits for the running transaction, which is to commit now, or if that is empty for the one that commits
    /// (`log_start_commit`, `log_wait_commit`). False: there is neither.
    pub(super) fn wait(&mut self, now: Time, device: DeviceId, task: TaskId) -> bool {
        let Some(journal) = self.0.get_mut(device) else {
            return false;
        };
        let of = if let Some(commit_at) = &mut journal.commit_at {
            *commit_at = now;
            journal.running
        } else if journal.committing.is_some() {
            journal.running - 1
        } else {
            return false;
        };
        journal.waiters.push((of, task));
        true
    }

    /// The drive's commit is over: who has waited for it.
    pub(super) fn committed(&mut self, device: DeviceId) -> Vec<TaskId> {
        let Some(journal) = self.0.get_mut(device) else {
            return Vec::new();
        };
        journal.committing = None;
        let over = journal.running - 1;
        let waiters = &mut journal.waiters;
        let done = waiters.extract_if(.., |(transaction, _)| *transaction <= over);
        done.map(|(_, task)| task).collect()
    }

    /// Who waits for a commit waits for one that comes.
    pub(super) fn check(&self) -> Result<(), Violation> {
        let mut devices = 0..self.0.len();
        let stuck = devices.find(|&one| self.is_idle(one) && !self.0[one].waiters.is_empty());
        Violation::unless(stuck.is_none(), "journals", || {
            format!("somebody waits for the journal of drive {stuck:?}, which has nothing to commit")
        })
    }
}

impl Journal {
    fn next_commit(&self) -> Option<Time> {
        self.commit_at.filter(|_| self.committing.is_none())
    }
}
