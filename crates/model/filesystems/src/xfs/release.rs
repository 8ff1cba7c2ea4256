//! Locks that are handed on.

use super::locks::LockName;
use super::{Actor, Caller, Xfs};

impl Xfs {
    pub(super) fn release_all(&mut self, number: u32, cpu: Option<u16>) {
        let caller = Caller::Thread(number);
        self.release_spaces(caller, cpu);
        let transaction = &mut self.threads[number].transaction;
        let (group, directory) = (transaction.group.take(), transaction.directory);
        if let Some(group) = group {
            self.unlock(LockName::Inodes(group), caller, cpu);
        }
        self.unlock(LockName::Directory(directory), caller, cpu);
        self.end_transaction();
    }

    pub(super) fn release_spaces(&mut self, caller: Caller, cpu: Option<u16>) {
        let spaces = std::mem::take(&mut self.held(caller).spaces);
        for group in spaces {
            self.unlock(LockName::Space(group), caller, cpu);
        }
    }

    /// The thread that has waited for it continues.
    pub(super) fn unlock(&mut self, name: LockName, transaction: Caller, cpu: Option<u16>) {
        match self.locks.release(name, transaction) {
            Some(Actor::Caller(next)) => self.caller_goes_on(next, cpu),
            Some(Actor::Worker(next)) => self.worker_got_space(next, cpu),
            Some(Actor::Daemon(_) | Actor::Pusher | Actor::Checkpoints | Actor::Forces | Actor::Sends) | None => {}
        }
    }
}
