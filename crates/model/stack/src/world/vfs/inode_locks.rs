//! The locks of the inodes of XFS (ILOCK). Who syncs a file shares its lock until the log is on the drive: meanwhile
//! nobody writes to the file through the page cache, and no blocks become the file's.
//!
//! Source: `xfs_fsync_flush_log`, `xfs_buffered_write_iomap_begin` and `xfs_iomap_write_unwritten` of 6.1 and 6.12;
//! `kernel/locking/rwsem.c` of 6.1. Whoever has a lock alone has it for no time here, and one writer waits for it at a
//! time: the others wait for that one (`i_rwsem`). *Simplified*: giving blocks their places takes no lock.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use block_layer::TaskId;
use events::station::Violation;
use memory::cache::FileId;

/// By file, of the drives that have such locks.
#[derive(Default)]
pub(in crate::world) struct InodeLocks {
    drives: BTreeSet<usize>,
    locks: BTreeMap<FileId, InodeLock>,
    /// Who forces the log, for which file.
    forcing: BTreeMap<TaskId, FileId>,
    /// Those of them who have waited for the lock and have not run since.
    let_in: BTreeSet<TaskId>,
}

#[derive(Default)]
struct InodeLock {
    /// So many force the log.
    sharers: u32,
    /// For the lock, in line.
    waiting: VecDeque<Locker>,
    /// The worker, first of them, is woken and has not looked yet.
    wakes_worker: bool,
    /// The first waits for the lock or is woken; the others for the first.
    writers: VecDeque<TaskId>,
}

/// Who waits for an inode's lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::world) enum Locker {
    /// It is about to write to the file, and looks again when it is woken.
    Writer(TaskId),
    /// It is about to force the log.
    Forces(TaskId),
    /// The worker that makes written blocks the file's; it looks again when it is woken.
    Converts,
}

impl InodeLocks {
    pub(in crate::world) fn add_drive(&mut self, drive: usize) {
        self.drives.insert(drive);
    }

    pub(super) fn are_of(&self, drive: usize) -> bool {
        self.drives.contains(&drive)
    }

    /// Whether the task has the lock, from now on if it can be shared: nobody has it, or nobody waits
    /// (`rwsem_down_read_slowpath`). Otherwise it is in line.
    pub(in crate::world) fn shares(&mut self, task: TaskId, file: FileId) -> bool {
        if self.forces(task) {
            return true;
        }
        let lock = self.locks.entry(file).or_default();
        let is_free = lock.sharers == 0 || lock.waiting.is_empty();
        if is_free {
            lock.sharers += 1;
            self.forcing.insert(task, file);
        } else {
            lock.waiting.push_back(Locker::Forces(task));
        }
        is_free
    }

    /// The task's sync has a lock.
    pub(in crate::world) fn forces(&self, task: TaskId) -> bool {
        self.forcing.contains_key(&task)
    }

    /// The task gives the lock back that it has: the file, if nobody has its lock then.
    pub(in crate::world) fn ends_force(&mut self, task: TaskId) -> Option<FileId> {
        let file = self.forcing.remove(&task)?;
        let lock = self.locks.get_mut(&file)?;
        lock.sharers -= 1;
        (lock.sharers == 0).then_some(file)
    }

    /// Whether the task's call is a sync that has waited for the lock, and has it; then it goes on.
    pub(in crate::world) fn was_let_in(&mut self, task: TaskId) -> bool {
        self.let_in.remove(&task)
    }

    /// Whether the task waits before it writes to the file. If not, it has written; `next_writer` and `next` follow.
    pub(in crate::world) fn keeps_out(&mut self, task: TaskId, file: FileId) -> bool {
        let lock = self.locks.entry(file).or_default();
        if !lock.writers.contains(&task) {
            lock.writers.push_back(task);
        }
        if lock.writers.front() != Some(&task) {
            return true;
        }
        lock.keeps_out(Locker::Writer(task))
    }

    /// The first writer has written: who may look for the lock now.
    pub(in crate::world) fn next_writer(&mut self, file: FileId) -> Option<TaskId> {
        let lock = self.locks.get_mut(&file)?;
        lock.writers.pop_front();
        lock.writers.front().copied()
    }

    /// Whether the worker waits before it makes written blocks the file's. If not, it has made them; `next` follows.
    pub(in crate::world) fn keeps_worker_out(&mut self, file: FileId) -> bool {
        self.locks.get_mut(&file).is_some_and(|lock| {
            lock.wakes_worker = false;
            lock.keeps_out(Locker::Converts)
        })
    }

    /// Who goes on now: a writer or the worker, who stay in line until they have had the lock, or all who share it
    /// (`rwsem_mark_wake`).
    pub(in crate::world) fn next(&mut self, file: FileId) -> Vec<Locker> {
        let Some(lock) = self.locks.get_mut(&file).filter(|lock| lock.sharers == 0) else {
            return Vec::new();
        };
        match lock.waiting.front() {
            None => Vec::new(),
            Some(&writer @ Locker::Writer(_)) => vec![writer],
            Some(Locker::Converts) => match std::mem::replace(&mut lock.wakes_worker, true) {
                true => Vec::new(),
                false => vec![Locker::Converts],
            },
            Some(Locker::Forces(_)) => {
                let forces = |one: &Locker| matches!(one, Locker::Forces(_));
                let (found, others): (Vec<_>, Vec<_>) = lock.waiting.drain(..).partition(forces);
                lock.waiting.extend(others);
                lock.sharers = found.len() as u32;
                for one in &found {
                    if let Locker::Forces(task) = *one {
                        self.forcing.insert(task, file);
                        self.let_in.insert(task);
                    }
                }
                found
            }
        }
    }

    /// Nobody waits for a lock that nobody has, but who is woken to have it alone and those behind it.
    pub(super) fn check(&self) -> Result<(), Violation> {
        for (file, lock) in &self.locks {
            let woken = !matches!(lock.waiting.front(), Some(Locker::Forces(_)));
            let is_right = lock.sharers > 0 || woken;
            Violation::unless(is_right, "inode lock", || format!("file {file}: {:?} wait for nobody", lock.waiting))?;
        }
        Ok(())
    }
}

impl InodeLock {
    /// Whether who wants it alone is in line for it, or stays there.
    fn keeps_out(&mut self, who: Locker) -> bool {
        if self.sharers == 0 {
            self.waiting.retain(|&one| one != who);
        } else if !self.waiting.contains(&who) {
            self.waiting.push_back(who);
        }
        self.sharers > 0
    }
}

#[cfg(test)]
mod tests {
    use super::Locker::{Converts, Forces, Writer};
    use super::*;

    const FILE: FileId = 4;

    #[test]
    fn who_comes_while_the_log_is_forced_waits_in_line_and_one_writer_for_the_other() {
        let mut locks = InodeLocks::default();
        assert!(!locks.keeps_out(1, FILE), "nobody has it");
        assert_eq!(locks.next_writer(FILE), None);
        assert!(locks.shares(2, FILE) && locks.shares(3, FILE));
        assert!(locks.keeps_out(4, FILE) && locks.keeps_out(5, FILE));
        assert!(locks.keeps_worker_out(FILE));
        assert!(!locks.shares(6, FILE), "a writer waits");
        assert_eq!((locks.ends_force(2), locks.ends_force(3)), (None, Some(FILE)));
        assert_eq!(locks.next(FILE), [Writer(4)]);
        assert_eq!(locks.check(), Ok(()));
        assert!(!locks.keeps_out(4, FILE));
        assert_eq!(locks.next_writer(FILE), Some(5));
        assert_eq!(locks.next(FILE), [Converts]);
        assert!(!locks.keeps_worker_out(FILE));
        assert_eq!(locks.next(FILE), [Forces(6)]);
        assert!(locks.forces(6) && locks.was_let_in(6) && !locks.was_let_in(6));
        assert!(locks.keeps_out(5, FILE), "6 was there first");
        assert_eq!(locks.next(FILE), []);
    }

    #[test]
    fn who_is_woken_to_write_finds_the_lock_shared_again_and_stays_first() {
        let mut locks = InodeLocks::default();
        assert!(locks.shares(1, FILE) && locks.keeps_out(2, FILE));
        assert_eq!(locks.ends_force(1), Some(FILE));
        assert_eq!(locks.next(FILE), [Writer(2)]);
        assert!(locks.shares(3, FILE), "nobody has it yet");
        assert!(!locks.shares(4, FILE));
        assert!(locks.keeps_out(2, FILE));
        assert_eq!(locks.ends_force(3), Some(FILE));
        assert_eq!(locks.next(FILE), [Writer(2)]);
        assert!(!locks.keeps_out(2, FILE));
        assert_eq!(locks.next(FILE), [Forces(4)]);
    }
}
