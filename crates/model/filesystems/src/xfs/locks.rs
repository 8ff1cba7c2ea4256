//! Locks for which one sleeps: a directory's, and the headers of allocation groups. A transaction keeps them to its end.

use std::collections::VecDeque;

use super::Caller;

/// A directory's mutex, the header of a group's inodes (AGI), and that of its free space (AGF).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LockName {
    Directory(usize),
    Inodes(u32),
    Space(u32),
}

/// `W`: who sleeps for it. Transactions go by their callers.
#[derive(Clone, Debug)]
pub(super) struct Locks<W> {
    directories: Vec<Lock<W>>,
    inodes: Vec<Lock<W>>,
    space: Vec<Lock<W>>,
    waits: u64,
}

#[derive(Clone, Debug)]
struct Lock<W> {
    holder: Option<Caller>,
    waiters: VecDeque<(Caller, W)>,
}

impl<W: Copy> Locks<W> {
    pub(super) fn new(groups: u32) -> Locks<W> {
        Locks {
            directories: Vec::new(),
            inodes: vec![Lock::default(); groups as usize],
            space: vec![Lock::default(); groups as usize],
            waits: 0,
        }
    }

    pub(super) fn add_directory(&mut self) {
        self.directories.push(Lock::default());
    }

    /// True: the transaction has it, now or from before. False: `waiter` sleeps until `release` names it.
    pub(super) fn take(&mut self, name: LockName, transaction: Caller, waiter: W) -> bool {
        let lock = self.lock(name);
        match lock.holder {
            None => lock.holder = Some(transaction),
            Some(holder) if holder == transaction => {}
            Some(_) => {
                lock.waiters.push_back((transaction, waiter));
                self.waits += 1;
                return false;
            }
        }
        true
    }

    /// As `take`, but without waiting.
    pub(super) fn try_take(&mut self, name: LockName, transaction: Caller) -> bool {
        let lock = self.lock(name);
        let holder = *lock.holder.get_or_insert(transaction);
        holder == transaction
    }

    /// Hands the lock to the first waiting thread, and returns that thread.
    pub(super) fn release(&mut self, name: LockName, transaction: Caller) -> Option<W> {
        let lock = self.lock(name);
        assert_eq!(lock.holder, Some(transaction), "{name:?} is released by its holder");
        let next = lock.waiters.pop_front();
        lock.holder = next.map(|(transaction, _)| transaction);
        next.map(|(_, waiter)| waiter)
    }

    /// How often a task had to wait.
    pub(super) fn waits(&self) -> u64 {
        self.waits
    }

    pub(super) fn all_free(&self) -> bool {
        let mut all = self.directories.iter().chain(&self.inodes).chain(&self.space);
        all.all(|lock| lock.holder.is_none())
    }

    fn lock(&mut self, name: LockName) -> &mut Lock<W> {
        match name {
            LockName::Directory(number) => &mut self.directories[number],
            LockName::Inodes(group) => &mut self.inodes[group as usize],
            LockName::Space(group) => &mut self.space[group as usize],
        }
    }
}

impl<W> Default for Lock<W> {
    fn default() -> Self {
        Lock { holder: None, waiters: VecDeque::new() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_goes_from_holder_to_waiter_in_order() {
        let mut locks = Locks::new(1);
        let name = LockName::Space(0);
        let [one, two, three, four] = [1, 2, 3, 4].map(Caller::Thread);
        assert!(locks.take(name, one, 'a') && locks.take(name, one, 'a'));
        assert!(!locks.take(name, two, 'b') && !locks.take(name, three, 'c') && !locks.try_take(name, four));
        assert_eq!(locks.release(name, one), Some('b'));
        assert_eq!(locks.release(name, two), Some('c'));
        assert_eq!(locks.release(name, three), None);
        assert!(locks.all_free() && locks.try_take(name, four) && locks.waits() == 2);
    }
}
