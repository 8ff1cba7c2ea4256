//! Fast commits of ext4: the area that they are written to, and the files whose changes they take (`fs/ext4/fast_commit.c`
//! of 5.10).

use std::collections::BTreeSet;

use filesystems::allocator::BLOCK_BYTES;
use memory::cache::FileId;

/// Blocks of a journal for each of the area that mke2fs 1.47 puts behind it (`EXT2_JOURNAL_TO_FC_BLKS_RATIO`).
const JOURNAL_BLOCKS_PER_BLOCK: u32 = 64;
/// Bytes of a head (`struct ext4_fc_head` behind its `ext4_fc_tl`), and of a tail (`ext4_fc_tail`).
const HEAD_OR_TAIL_BYTES: u64 = 4 + 8;
/// Bytes of a file's range of blocks (`ext4_fc_add_range`), and of its inode (`ext4_fc_inode`) of 128 bytes and 32 more
/// (`i_extra_isize`).
const FILE_BYTES: u64 = (4 + 16) + (4 + 4 + 128 + 32);
/// Files that a block describes.
const FILES_PER_BLOCK: usize = ((BLOCK_BYTES - 2 * HEAD_OR_TAIL_BYTES) / FILE_BYTES) as usize;

#[derive(Clone, Debug)]
pub(super) struct FastCommits {
    /// Where its area begins, in blocks of 4 KiB.
    first: u64,
    blocks: u32,
    /// Blocks of it that have been written since the last full commit.
    used: u32,
    /// Files that have changed since the last commit of either kind, and those that the fast one under way writes.
    changed: BTreeSet<FileId>,
    committing: BTreeSet<FileId>,
}

impl FastCommits {
    /// Blocks of the area of a journal of that many.
    pub(super) fn area(journal_blocks: u32) -> u32 {
        (journal_blocks / JOURNAL_BLOCKS_PER_BLOCK).max(2)
    }

    /// In an area that begins there. Its first block stays unused (`j_fc_first` is `j_last + 1` in fs/jbd2/journal.c,
    /// 5.10), and the first commit after the mount is a full one (`jbd2_fc_begin_commit`).
    pub(super) fn new(first: u64, area: u32) -> FastCommits {
        FastCommits {
            first: first + 1,
            blocks: area - 1,
            used: area - 1,
            changed: BTreeSet::new(),
            committing: BTreeSet::new(),
        }
    }

    pub(super) fn changes(&mut self, file: FileId) {
        self.changed.insert(file);
    }

    /// How many blocks the next commit writes; None: they have no room, so that it is a full one.
    pub(super) fn next_blocks(&self) -> Option<u32> {
        let blocks = self.changed.len().div_ceil(FILES_PER_BLOCK).max(1) as u32;
        (self.used + blocks <= self.blocks).then_some(blocks)
    }

    pub(super) fn begin(&mut self) {
        self.committing = std::mem::take(&mut self.changed);
    }

    pub(super) fn take(&mut self, blocks: u32) -> (u64, u32) {
        let at = self.first + u64::from(self.used);
        self.used += blocks;
        (at, blocks)
    }

    /// Whether the commit under way has the file: its inode does not change meanwhile.
    pub(super) fn commits(&self, file: FileId) -> bool {
        self.committing.contains(&file)
    }

    /// A commit of either kind is over.
    pub(super) fn end(&mut self) {
        self.committing.clear();
    }

    /// A full commit takes all that has changed, and frees the area.
    pub(super) fn fall_back(&mut self) {
        self.changed.clear();
        self.used = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::super::load_journal::{LoadJournal, NextStep};
    use super::super::syncs::SyncDemand;
    use super::*;
    use block_layer::{Priority, TaskId};
    use proptest::prelude::*;
    use std::ops::RangeInclusive;

    /// Of a journal of 1024 blocks on a drive of 100,000: 15 blocks are used.
    const AREA: RangeInclusive<u64> = 51_009..=51_023;

    fn new_journal() -> LoadJournal {
        LoadJournal::new(100_000, 1024, true, false, true, Priority::default()).with_fast_commits()
    }

    /// The same after the full commit that a mount begins with.
    fn journal() -> LoadJournal {
        let mut journal = new_journal();
        sync(&mut journal, 0);
        assert_eq!(commit(&mut journal).1, [0]);
        journal
    }

    fn sync(journal: &mut LoadJournal, task: TaskId) {
        let running = journal.running();
        assert!(journal.wait(task, demand(running)));
    }

    fn demand(transaction: u64) -> SyncDemand {
        SyncDemand { metadata_blocks: 3, times: true, transaction }
    }

    /// A whole commit: the blocks that it writes, and who has waited for it.
    fn commit(journal: &mut LoadJournal) -> (Vec<u64>, Vec<TaskId>) {
        let mut written = Vec::new();
        let mut step = journal.begin_commit().expect("a task waits");
        loop {
            match step {
                NextStep::Over(tasks) => return (written, tasks),
                NextStep::Flush => {}
                NextStep::Write(write) => written.extend(write.blocks()),
            }
            step = journal.next_step();
        }
    }

    #[test]
    fn a_fast_commit_is_a_flush_a_block_and_a_flush_and_the_transaction_goes_on() {
        let mut journal = journal();
        let running = journal.running();
        journal.inode_changes(0);
        sync(&mut journal, 1);
        assert!(journal.commits_in_caller());
        assert!(matches!(journal.begin_commit(), Some(NextStep::Flush)));
        assert!(journal.keeps_out(2, 0), "its inode is being committed");
        assert!(!journal.keeps_out(2, 1), "another's is not");
        sync(&mut journal, 3);
        assert!(!journal.wait(4, demand(running - 1)), "it is committed");
        let NextStep::Write(record) = journal.next_step() else {
            panic!("its block is next");
        };
        assert!(record.behind_flush);
        assert_eq!(record.blocks(), [51_009]);
        assert!(matches!(journal.next_step(), NextStep::Flush));
        assert!(journal.take_let_in().is_empty());
        let NextStep::Over(tasks) = journal.next_step() else {
            panic!("nothing is left");
        };
        assert_eq!(tasks, [1, 3]);
        assert_eq!(journal.take_let_in(), [2]);
        assert_eq!(journal.running(), running);
    }

    #[test]
    fn a_full_commit_comes_first_and_when_the_area_is_full() {
        let mut journal = new_journal();
        for number in 0..50 {
            let is_full = number % 16 == 0;
            let running = journal.running();
            journal.inode_changes(0);
            sync(&mut journal, 1);
            assert_eq!(journal.commits_in_caller(), !is_full, "{number}");
            let (written, _) = commit(&mut journal);
            assert_eq!(journal.running() - running, u64::from(is_full));
            match is_full {
                true => assert!(written.iter().all(|block| block < AREA.start())),
                false => assert_eq!(written, [AREA.start() + number % 16 - 1]),
            }
        }
    }

    #[test]
    fn a_journal_of_32_mib_has_127_fast_commits_for_each_full_one_which_writes_what_changed_once() {
        assert_eq!(FastCommits::area(8192), 128);
        let journal = LoadJournal::new(1 << 20, 8192, true, false, true, Priority::default());
        let mut journal = journal.with_fast_commits();
        let mut full = Vec::new();
        for number in 0..500 {
            journal.inode_changes(0);
            sync(&mut journal, 1);
            let (written, _) = commit(&mut journal);
            if written.len() > 1 {
                full.push(number);
                assert_eq!(written.len(), 5, "of the descriptor, three and the record");
            }
        }
        assert_eq!(full, [0, 128, 256, 384]);
    }

    #[test]
    fn a_block_describes_21_files() {
        let mut journal = journal();
        (0..50).for_each(|file| journal.inode_changes(file));
        sync(&mut journal, 1);
        let Some(NextStep::Write(before)) = journal.begin_commit() else {
            panic!("its first blocks");
        };
        assert!(!before.behind_flush);
        assert_eq!(before.blocks(), [51_009, 51_010]);
        assert!(matches!(journal.next_step(), NextStep::Flush));
        let NextStep::Write(record) = journal.next_step() else {
            panic!("its last block");
        };
        assert_eq!(record.blocks(), [51_011]);
    }

    #[derive(Clone, Debug)]
    enum Act {
        Change(FileId),
        Sync,
        GoOn,
    }

    fn acts() -> impl Strategy<Value = Vec<Act>> {
        let act = prop_oneof![
            1 => (0u32..60).prop_map(Act::Change),
            1 => Just(Act::Sync),
            3 => Just(Act::GoOn),
        ];
        prop::collection::vec(act, 1..600)
    }

    /// A commit that is under way, as it has to be.
    struct Commit {
        is_fast: bool,
        files: BTreeSet<FileId>,
        blocks: usize,
        tasks: Vec<TaskId>,
        written: Vec<u64>,
        has_flushed: bool,
    }

    proptest! {
        /// Whatever changes and whoever syncs: a sync that comes while no fast commit is under way is over with a commit
        /// that has all changes before it; each change is in one commit; a file of a fast commit does not change
        /// meanwhile; nobody is forgotten.
        #[test]
        fn a_sync_is_over_with_the_commit_that_has_its_changes(acts in acts()) {
            let mut journal = journal();
            let mut used = 0;
            let (mut changed, mut waiting) = (BTreeSet::new(), Vec::new());
            let (mut kept_out, mut let_in) = (Vec::new(), Vec::new());
            let mut under_way: Option<Commit> = None;
            let rest = std::iter::repeat_n(Act::GoOn, 12);
            for (task, act) in (1..).zip(acts.into_iter().chain(rest)) {
                match act {
                    Act::Change(file) => {
                        let keeps = journal.keeps_out(task, file);
                        match &under_way {
                            None => prop_assert!(!keeps),
                            Some(commit) if commit.is_fast => {
                                prop_assert_eq!(keeps, commit.files.contains(&file));
                            }
                            Some(commit) => prop_assert!(!keeps || !commit.has_flushed),
                        }
                        match keeps {
                            true => kept_out.push(task),
                            false => {
                                journal.inode_changes(file);
                                changed.insert(file);
                            }
                        }
                    }
                    Act::Sync => {
                        sync(&mut journal, task);
                        match &mut under_way {
                            Some(commit) if commit.is_fast => commit.tasks.push(task),
                            _ => waiting.push(task),
                        }
                    }
                    Act::GoOn => {
                        let running = journal.running();
                        let step = match under_way {
                            Some(_) => journal.next_step(),
                            None => match journal.begin_commit() {
                                Some(step) => step,
                                None => {
                                    prop_assert!(waiting.is_empty());
                                    continue;
                                }
                            },
                        };
                        let commit = under_way.get_or_insert_with(|| {
                            let files = std::mem::take(&mut changed);
                            let blocks = files.len().div_ceil(21).max(1);
                            let is_fast = used + blocks <= 15;
                            used = if is_fast { used + blocks } else { 0 };
                            let tasks = std::mem::take(&mut waiting);
                            Commit { is_fast, files, blocks, tasks, written: Vec::new(), has_flushed: false }
                        });
                        prop_assert_eq!(journal.running() > running, !commit.is_fast && commit.written.is_empty());
                        match step {
                            NextStep::Flush => commit.has_flushed = true,
                            NextStep::Write(write) => {
                                let places = write.blocks();
                                prop_assert!(places.iter().all(|block| AREA.contains(block) == commit.is_fast));
                                commit.written.extend(places);
                            }
                            NextStep::Over(tasks) => {
                                prop_assert_eq!(&tasks, &commit.tasks);
                                match commit.is_fast {
                                    true => prop_assert_eq!(commit.written.len(), commit.blocks),
                                    false => prop_assert!(commit.written.len() >= 3),
                                }
                                under_way = None;
                            }
                        }
                        let released = journal.take_let_in();
                        prop_assert!(released.is_empty() || under_way.as_ref().is_none_or(|commit| !commit.is_fast));
                        let_in.extend(released);
                    }
                }
            }
            prop_assert!(under_way.is_none() && waiting.is_empty());
            prop_assert_eq!(kept_out, let_in);
        }
    }
}
