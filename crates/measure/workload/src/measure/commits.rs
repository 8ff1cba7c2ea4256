//! The records of a log from their write until a sync makes them durable.

use crate::job::Op;
use crate::op::OpKind;
use base::time::Time;

/// Records that are written and not durable. A sync makes durable what was written to its file before it began: a job
/// offers no write while it syncs, so these are all that wait.
#[derive(Debug, Default)]
pub(super) struct Commits {
    waiting: Vec<Record>,
    /// What the last operation committed; kept for its memory.
    committed: Vec<Record>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Record {
    file: u32,
    pub bytes: u32,
    /// Its commit counts from here.
    pub due: Time,
}

impl Commits {
    /// An operation succeeded. Returns the records that are durable now, in the order of their writes.
    pub fn after(&mut self, op: &Op) -> &[Record] {
        self.committed.clear();
        let record = Record { file: op.file, bytes: op.bytes, due: op.due };
        match op.kind {
            OpKind::Write => self.waiting.push(record),
            OpKind::DurableWrite | OpKind::OsyncWrite => self.committed.push(record),
            OpKind::Fsync | OpKind::Fdatasync => self.take_those_of(op.file),
            OpKind::Read | OpKind::SyncFileRange | OpKind::Discard | OpKind::WriteZeroes => {}
        }
        &self.committed
    }

    /// An operation failed. What a failed sync was for is not known to be durable, and a later sync does not show it:
    /// since Linux 4.13 an error is reported once (Documentation/filesystems/vfs.rst, Handling errors during
    /// writeback).
    pub fn failed(&mut self, op: &Op) {
        if op.kind.is_sync() {
            self.waiting.retain(|record| record.file != op.file);
        }
    }

    fn take_those_of(&mut self, file: u32) {
        let committed = &mut self.committed;
        self.waiting.retain(|record| {
            if record.file == file {
                committed.push(*record);
            }
            record.file != file
        });
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn op(kind: OpKind, file: u32, due: Time) -> Op {
        let bytes = if kind.is_sync() { 0 } else { 512 };
        Op { kind, file, offset: 0, bytes, due }
    }

    fn dues(records: &[Record]) -> Vec<Time> {
        records.iter().map(|record| record.due).collect()
    }

    #[test]
    fn a_sync_commits_what_was_written_to_its_file() {
        let mut commits = Commits::default();
        for (file, due) in [(0, 1), (1, 2), (0, 3)] {
            assert!(commits.after(&op(OpKind::Write, file, due)).is_empty());
        }
        assert_eq!(dues(commits.after(&op(OpKind::Fdatasync, 0, 4))), [1, 3]);
        assert!(commits.after(&op(OpKind::Fsync, 0, 5)).is_empty());
        assert_eq!(dues(commits.after(&op(OpKind::Fsync, 1, 6))), [2]);
    }

    #[test]
    fn a_durable_write_commits_itself_alone() {
        let mut commits = Commits::default();
        commits.after(&op(OpKind::Write, 0, 1));
        assert_eq!(dues(commits.after(&op(OpKind::DurableWrite, 0, 2))), [2]);
        assert_eq!(dues(commits.after(&op(OpKind::Fsync, 0, 3))), [1]);
    }

    #[test]
    fn what_a_failed_sync_was_for_is_never_committed() {
        let mut commits = Commits::default();
        commits.after(&op(OpKind::Write, 0, 1));
        commits.after(&op(OpKind::Write, 1, 2));
        commits.failed(&op(OpKind::Write, 0, 3));
        commits.failed(&op(OpKind::Fdatasync, 0, 4));
        assert!(commits.after(&op(OpKind::Fdatasync, 0, 5)).is_empty());
        assert_eq!(dues(commits.after(&op(OpKind::Fdatasync, 1, 6))), [2]);
    }

    proptest! {
        /// Each record is committed once, by the first sync of its file after its write.
        #[test]
        fn each_record_is_committed_once(steps in prop::collection::vec((any::<bool>(), 0..3u32), 0..200)) {
            let mut commits = Commits::default();
            let mut waiting: [Vec<Time>; 3] = Default::default();
            for (now, &(is_sync, file)) in steps.iter().enumerate() {
                let now = now as Time;
                let kind = if is_sync { OpKind::Fdatasync } else { OpKind::Write };
                let expected = if is_sync {
                    std::mem::take(&mut waiting[file as usize])
                } else {
                    waiting[file as usize].push(now);
                    Vec::new()
                };
                prop_assert_eq!(dues(commits.after(&op(kind, file, now))), expected);
            }
        }
    }
}
