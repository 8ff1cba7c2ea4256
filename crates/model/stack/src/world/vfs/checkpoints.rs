//! What `data=journal` adds to a load's journal: pages that join its transactions, and room that checkpoints make in its log
//! (`fs/jbd2/checkpoint.c` of 6.12).
//!
//! Who writes waits when the transaction or the log has no room. A checkpoint writes the pages of the oldest transaction in
//! place, empties the drive's cache and has the superblock say that its room is free.

use std::ops::Range;

use block_layer::TaskId;
use events::station::Violation;
use memory::cache::FileId;

use super::journaled_data::{JournaledData, Page, Room};
use super::load_journal::{JournalWrite, LoadJournal, extent};
use super::log_room::CheckpointStep;

/// What comes next of a checkpoint.
pub(in crate::world) enum CheckpointWork {
    /// These pages are to be written in place.
    Pages(Vec<Page>),
    /// The drive's cache has to be emptied.
    Flush,
    Write(JournalWrite),
    /// Nothing: who waits for room may look again.
    Over,
}

impl LoadJournal {
    /// Data go to the log.
    pub(in crate::world) fn journals_data(&self) -> bool {
        self.data.is_some()
    }

    /// The file has got blocks, in the running transaction: a bitmap and a descriptor change, the inode apart.
    pub(super) fn got_blocks(&mut self) {
        if self.data.is_some() {
            self.blocks_change(2);
        }
    }

    /// Pages are written to: they join the running transaction.
    pub(in crate::world) fn data_changes(&mut self, file: FileId, pages: Range<u64>) {
        if let Some(data) = &mut self.data {
            pages.for_each(|page| data.change((file, page)));
        }
    }

    /// The task is about to change pages. True: it waits, because one of them is being written to the log (`BH_Shadow` in
    /// `do_get_write_access`).
    pub(in crate::world) fn keeps_data_out(&mut self, task: TaskId, file: FileId, mut pages: Range<u64>) -> bool {
        let is_logging = self.is_logging();
        let data = self.data.as_ref().filter(|_| is_logging);
        let keeps = data.is_some_and(|data| pages.any(|page| data.commits((file, page))));
        if keeps {
            self.kept_out.push(task);
        }
        keeps
    }

    /// The task is about to change so many pages. True: it waits for room.
    pub(in crate::world) fn lacks_room(&mut self, task: TaskId, pages: u32) -> bool {
        let lacks = self.room_for(pages) != Room::Free;
        if lacks {
            self.room.waiting.push(task);
            if self.room_for(pages) == Room::AfterCommit {
                self.want_commit();
            }
        }
        lacks
    }

    fn room_for(&self, pages: u32) -> Room {
        let metadata = self.changed_metadata();
        let data = self.data.as_ref();
        data.map_or(Room::Free, |data| data.room_for(pages, metadata))
    }

    /// What has changed is to be committed.
    pub(in crate::world) fn want_commit(&mut self) {
        let has_changes = self.data.as_ref().is_some_and(JournaledData::has_changes);
        self.room.is_commit_wanted |= has_changes;
    }

    /// Whether a commit is wanted that has not begun.
    pub(in crate::world) fn wants_commit(&self) -> bool {
        self.room.is_commit_wanted
    }

    /// Some of the pages are not committed.
    pub(in crate::world) fn is_uncommitted(&self, file: FileId, mut pages: Range<u64>) -> bool {
        let data = self.data.as_ref();
        data.is_some_and(|data| pages.any(|page| data.is_uncommitted((file, page))))
    }

    /// Somebody writes the page back. False: it is in place, or on its way there.
    pub(in crate::world) fn begin_in_place(&mut self, page: Page) -> bool {
        self.data.as_mut().is_some_and(|data| data.begin_in_place(page))
    }

    /// Pages are in place.
    pub(in crate::world) fn end_in_place(&mut self, pages: Vec<Page>) {
        if let Some(data) = &mut self.data {
            pages.into_iter().for_each(|page| data.end_in_place(page));
        }
    }

    pub(super) fn end_commit_of_data(&mut self) {
        if let Some(data) = &mut self.data {
            data.end_commit();
            data.is_free(std::mem::take(&mut self.room.frees));
            self.room.is_changed = true;
        }
    }

    /// What says which transactions are in place; written with force unit access (`jbd2_write_superblock`).
    pub(super) fn superblock(&self) -> JournalWrite {
        JournalWrite { places: vec![extent((self.first, 1))], behind_flush: false, force_unit_access: self.barrier }
    }

    /// The room that is taken adds up.
    pub(super) fn check(&self) -> Result<(), Violation> {
        let room = &self.room;
        let told = room.frees + room.checkpoint_frees;
        let data = self.data.as_ref();
        let adds_up = data.is_none_or(|data| data.counts_are_right(told));
        Violation::unless(adds_up, "journal", || format!("{data:?} with {told} blocks told"))
    }

    /// What comes first of a checkpoint, if somebody waits for one, none is under way, and there is something to write
    /// (`jbd2_log_do_checkpoint`).
    pub(in crate::world) fn begin_checkpoint(&mut self) -> Option<CheckpointWork> {
        let is_needed = !self.room.waiting.is_empty() && self.room_for(1) == Room::AfterCheckpoint;
        if !is_needed || self.room.checkpoint.is_some() {
            return None;
        }
        let data = self.data.as_mut()?;
        data.free_last();
        self.room.checkpoint_frees = data.take_freed();
        if self.room.checkpoint_frees > 0 {
            return Some(self.tell_superblock());
        }
        let pages = data.begin_checkpoint();
        if pages.is_empty() {
            if data.needs_commit() {
                self.want_commit();
            }
            return None;
        }
        self.room.checkpoint = Some(CheckpointStep::InPlace);
        self.room.pages.clone_from(&pages);
        Some(CheckpointWork::Pages(pages))
    }

    /// After a flush: what is to be in place is on the medium before its log is written over.
    fn tell_superblock(&mut self) -> CheckpointWork {
        if self.barrier && self.room.checkpoint != Some(CheckpointStep::Flush) {
            self.room.checkpoint = Some(CheckpointStep::Flush);
            return CheckpointWork::Flush;
        }
        self.room.checkpoint = Some(CheckpointStep::Superblock);
        CheckpointWork::Write(self.superblock())
    }

    /// The write of its current step has become so many bios.
    pub(in crate::world) fn checkpoint_has(&mut self, bios: u32) {
        self.room.left = bios;
    }

    /// One of its bios has ended. True: it was the last of its step.
    pub(in crate::world) fn checkpoint_bio_done(&mut self) -> bool {
        self.room.left -= 1;
        self.room.left == 0
    }

    /// The current step of the checkpoint is done. None: it waits for something else.
    pub(in crate::world) fn next_of_checkpoint(&mut self) -> Option<CheckpointWork> {
        match self.room.checkpoint.expect("one is under way") {
            CheckpointStep::InPlace => {
                let pages = std::mem::take(&mut self.room.pages);
                self.end_in_place(pages);
                self.room.checkpoint = None;
                return self.begin_checkpoint();
            }
            CheckpointStep::Flush => return Some(self.tell_superblock()),
            CheckpointStep::Superblock if self.barrier && !self.fua => {
                self.room.checkpoint = Some(CheckpointStep::FlushSuperblock);
                return Some(CheckpointWork::Flush);
            }
            CheckpointStep::Superblock | CheckpointStep::FlushSuperblock => {}
        }
        self.room.checkpoint = None;
        self.room.is_changed = true;
        let frees = std::mem::take(&mut self.room.checkpoint_frees);
        self.data.iter_mut().for_each(|data| data.is_free(frees));
        Some(CheckpointWork::Over)
    }
}

#[cfg(test)]
mod tests {
    use super::super::load_journal::NextStep;
    use super::super::syncs::SyncDemand;
    use super::*;
    use block_layer::Priority;
    use proptest::prelude::*;
    use std::collections::{BTreeMap, BTreeSet};

    const FILE: FileId = 0;
    const BLOCKS: u32 = 256;

    fn journal() -> LoadJournal {
        LoadJournal::new(100_000, BLOCKS, true, false, true, Priority::default()).with_journaled_data(3)
    }

    #[test]
    fn a_commit_has_a_descriptor_each_page_once_and_a_record() {
        let mut journal = journal();
        journal.data_changes(FILE, 3..5);
        journal.data_changes(FILE, 4..6);
        journal.want_commit();
        let Some(NextStep::Write(log)) = journal.begin_commit() else { panic!("its log is next") };
        assert_eq!(log.blocks().len(), 1 + 3);
        assert!(journal.is_uncommitted(FILE, 5..6) && !journal.begin_in_place((FILE, 5)));
        assert!(journal.keeps_data_out(1, FILE, 5..6), "it is on its way to the log");
        assert!(!journal.keeps_data_out(1, FILE, 6..9));
        let NextStep::Flush = journal.next_step() else { panic!("a flush is next") };
        assert_eq!(journal.take_let_in(), [1]);
        let NextStep::Write(record) = journal.next_step() else { panic!("the record is next") };
        assert!(record.behind_flush && record.blocks().len() == 1);
        assert!(matches!(journal.next_step(), NextStep::Flush));
        assert!(matches!(journal.next_step(), NextStep::Over(_)));
        assert!(journal.begin_in_place((FILE, 5)));
        assert!(!journal.begin_in_place((FILE, 5)), "it is on its way");
        journal.end_in_place(vec![(FILE, 5)]);
        assert!(!journal.begin_in_place((FILE, 5)), "it is there");
    }

    /// A whole commit of what has changed. True: the superblock was written.
    fn commit(journal: &mut LoadJournal) -> bool {
        journal.want_commit();
        let mut step = journal.begin_commit().expect("something has changed");
        let mut tells = false;
        loop {
            tells |= matches!(&step, NextStep::Write(write)
                if write.force_unit_access && !write.behind_flush);
            if matches!(step, NextStep::Over(_)) {
                return tells;
            }
            step = journal.next_step();
            journal.check().unwrap();
        }
    }

    #[test]
    fn the_superblock_is_written_when_a_third_of_the_log_is_in_place() {
        let mut journal = journal();
        let mut told = Vec::new();
        for number in 1..=60 {
            journal.data_changes(FILE, 7..8);
            if commit(&mut journal) {
                told.push(number);
            }
            assert!(journal.begin_in_place((FILE, 7)));
            journal.end_in_place(vec![(FILE, 7)]);
        }
        // A commit is 3 blocks, and 85 of 256 are a third: 29 commits, and the last keeps its room.
        assert_eq!(told, [31, 60]);
    }

    #[test]
    fn a_checkpoint_of_pages_that_are_running_has_them_committed() {
        let mut journal = journal();
        for pages in [0..80, 0..40, 100..125] {
            journal.data_changes(FILE, pages);
            assert!(!journal.lacks_room(1, 1));
            commit(&mut journal);
        }
        journal.data_changes(FILE, 40..80);
        assert!(journal.lacks_room(1, 1), "the log is more than half full");
        assert!(!journal.wants_commit());
        assert!(journal.begin_checkpoint().is_none());
        assert!(journal.wants_commit());
        commit(&mut journal);
        assert_eq!(journal.take_let_in(), [1]);
        assert!(journal.lacks_room(1, 1), "nothing is in place");
        // The first transaction has no page of its own any more.
        let Some(CheckpointWork::Flush) = journal.begin_checkpoint() else { panic!("its room is free") };
    }

    #[derive(Clone, Debug)]
    enum Act {
        Write(u64, u64),
        Sync,
        WriteBack(u64, u64),
        Commit,
        Land,
        Checkpoint,
    }

    fn acts() -> impl Strategy<Value = Vec<Act>> {
        let act = prop_oneof![
            4 => (0u64..120, 1u64..20).prop_map(|(first, count)| Act::Write(first, count)),
            1 => Just(Act::Sync),
            1 => (0u64..120, 1u64..40).prop_map(|(first, count)| Act::WriteBack(first, count)),
            3 => Just(Act::Commit),
            2 => Just(Act::Land),
            2 => Just(Act::Checkpoint),
        ];
        prop::collection::vec(act, 1..800)
    }

    type Versions = BTreeMap<Page, u64>;

    /// Writers, a page cache and a drive around a journal. Versions are numbers of writes.
    struct Bench {
        journal: LoadJournal,
        writes: u64,
        memory: Versions,
        drive: Versions,
        running: Versions,
        /// All transactions in the order of their commits, the one under way too.
        transactions: Vec<Versions>,
        is_committing: bool,
        steps: u32,
        /// Which transaction each block of the log has, and up to which they are free by the superblock.
        log: BTreeMap<u64, u64>,
        free_before: u64,
        next_free_before: u64,
        checkpoint_free_before: u64,
        /// Who waits to write, and to sync.
        writers: BTreeMap<TaskId, Range<u64>>,
        syncers: BTreeSet<TaskId>,
        behind_commit: BTreeSet<Page>,
        landing: Vec<(Page, u64)>,
        checkpoint: Option<CheckpointWork>,
        checkpoint_landing: Vec<(Page, u64)>,
        /// How often a transaction's page was sent to its place.
        sent: BTreeMap<(Page, u64), u32>,
        tasks: TaskId,
    }

    impl Bench {
        fn new() -> Bench {
            Bench {
                journal: journal(),
                writes: 0,
                memory: Versions::new(),
                drive: Versions::new(),
                running: Versions::new(),
                transactions: Vec::new(),
                is_committing: false,
                steps: 0,
                log: BTreeMap::new(),
                free_before: 0,
                next_free_before: 0,
                checkpoint_free_before: 0,
                writers: BTreeMap::new(),
                syncers: BTreeSet::new(),
                behind_commit: BTreeSet::new(),
                landing: Vec::new(),
                checkpoint: None,
                checkpoint_landing: Vec::new(),
                sent: BTreeMap::new(),
                tasks: 0,
            }
        }

        fn committed(&self) -> &[Versions] {
            &self.transactions[..self.transactions.len() - usize::from(self.is_committing)]
        }

        /// The last committed transaction that has the page, and its version.
        fn last_of(&self, page: Page) -> Option<(u64, u64)> {
            let mut committed = self.committed().iter().enumerate().rev();
            committed.find_map(|(number, pages)| Some((number as u64, *pages.get(&page)?)))
        }

        /// The oldest committed transaction that has a page which is neither in place nor in a later one.
        fn oldest(&self) -> u64 {
            let is_needed = |number: u64, (&page, &version): (&Page, &u64)| {
                self.last_of(page) == Some((number, version))
                    && self.drive.get(&page).is_none_or(|&there| there < version)
            };
            let mut committed = (0..).zip(self.committed());
            committed
                .find(|(number, pages)| pages.iter().any(|one| is_needed(*number, one)))
                .map_or(self.committed().len() as u64, |(number, _)| number)
        }

        fn write(&mut self, task: TaskId, pages: Range<u64>) {
            let count = (pages.end - pages.start) as u32;
            let waits = self.journal.keeps_data_out(task, FILE, pages.clone()) || self.journal.lacks_room(task, count);
            if waits {
                self.writers.insert(task, pages);
                self.make_room();
                return;
            }
            self.journal.data_changes(FILE, pages.clone());
            for page in pages {
                self.writes += 1;
                self.memory.insert((FILE, page), self.writes);
                self.running.insert((FILE, page), self.writes);
            }
        }

        fn make_room(&mut self) {
            if self.checkpoint.is_none() {
                self.checkpoint = self.journal.begin_checkpoint();
                self.note_checkpoint();
            }
        }

        fn note_checkpoint(&mut self) {
            match &self.checkpoint {
                Some(CheckpointWork::Pages(pages)) => {
                    for page in pages.clone() {
                        let version = self.send(page);
                        self.checkpoint_landing.push((page, version));
                    }
                }
                Some(CheckpointWork::Flush) if self.checkpoint_free_before == 0 => {
                    self.checkpoint_free_before = self.oldest();
                }
                _ => {}
            }
        }

        fn send(&mut self, page: Page) -> u64 {
            let (transaction, version) = self.last_of(page).expect("it is committed");
            assert_eq!(self.memory[&page], version, "it is committed as it is");
            *self.sent.entry((page, transaction)).or_default() += 1;
            version
        }

        fn write_back(&mut self, page: Page) {
            if self.journal.is_uncommitted(FILE, page.1..page.1 + 1) {
                self.journal.want_commit();
                self.behind_commit.insert(page);
            } else if self.journal.begin_in_place(page) {
                let version = self.send(page);
                self.landing.push((page, version));
            }
        }

        fn let_in(&mut self) {
            for task in self.journal.take_let_in() {
                let pages = self.writers.remove(&task).expect("it waits");
                self.write(task, pages);
            }
        }

        /// False: there is nothing to do.
        fn commits(&mut self) -> Result<bool, TestCaseError> {
            let is_first = !self.is_committing;
            if self.is_committing && self.steps == 0 {
                // The flush before the record follows.
                self.next_free_before = self.oldest();
            }
            let step = match is_first {
                true => match self.journal.begin_commit() {
                    Some(step) => step,
                    None => return Ok(false),
                },
                false => self.journal.next_step(),
            };
            if is_first {
                self.transactions.push(std::mem::take(&mut self.running));
                self.is_committing = true;
                self.steps = 0;
            } else {
                self.steps += 1;
            }
            let number = self.transactions.len() as u64 - 1;
            match step {
                NextStep::Flush => {}
                NextStep::Write(write) if write.force_unit_access && !write.behind_flush => {
                    self.free_before = self.free_before.max(self.next_free_before);
                }
                NextStep::Write(write) => {
                    let places = write.blocks();
                    let pages = self.transactions[number as usize].len();
                    let expected = if is_first { pages + pages.div_ceil(253).max(1) } else { 1 };
                    prop_assert_eq!(places.len(), expected);
                    for block in places {
                        let before = self.log.insert(block, number);
                        prop_assert!(
                            before.is_none_or(|before| before < self.free_before),
                            "{:?} is written over by {}",
                            before,
                            number
                        );
                    }
                }
                NextStep::Over(tasks) => {
                    self.is_committing = false;
                    tasks.iter().for_each(|task| {
                        self.syncers.remove(task);
                    });
                    let behind = std::mem::take(&mut self.behind_commit);
                    behind.into_iter().for_each(|page| self.write_back(page));
                    self.make_room();
                }
            }
            self.let_in();
            Ok(true)
        }

        fn lands(&mut self) -> bool {
            let Some((page, version)) = (!self.landing.is_empty()).then(|| self.landing.remove(0)) else {
                return false;
            };
            self.drive.insert(page, version);
            self.journal.end_in_place(vec![page]);
            self.make_room();
            true
        }

        fn checkpoints(&mut self) -> bool {
            let Some(work) = self.checkpoint.take() else {
                return false;
            };
            match work {
                CheckpointWork::Pages(_) => self.drive.extend(self.checkpoint_landing.drain(..)),
                CheckpointWork::Flush => {}
                CheckpointWork::Write(_) => {
                    self.free_before = self.free_before.max(self.checkpoint_free_before);
                    self.checkpoint_free_before = 0;
                }
                CheckpointWork::Over => {
                    self.checkpoint_free_before = 0;
                    self.let_in();
                    self.make_room();
                    return true;
                }
            }
            self.checkpoint = self.journal.next_of_checkpoint();
            self.note_checkpoint();
            true
        }

        fn act(&mut self, act: Act) -> Result<(), TestCaseError> {
            self.tasks += 1;
            match act {
                Act::Write(first, count) => self.write(self.tasks, first..first + count),
                Act::Sync if self.running.is_empty() => {}
                Act::Sync => {
                    let demand = SyncDemand { metadata_blocks: 0, times: false, transaction: self.journal.running() };
                    prop_assert!(self.journal.wait(self.tasks, demand));
                    self.syncers.insert(self.tasks);
                }
                Act::WriteBack(first, count) => {
                    let pages: Vec<Page> =
                        self.memory.range((FILE, first)..(FILE, first + count)).map(|(&page, _)| page).collect();
                    pages.into_iter().for_each(|page| self.write_back(page));
                }
                Act::Commit => {
                    self.commits()?;
                }
                Act::Land => {
                    self.lands();
                }
                Act::Checkpoint => {
                    self.checkpoints();
                }
            }
            prop_assert!(self.journal.check().is_ok());
            Ok(())
        }

        fn come_to_rest(&mut self) -> Result<(), TestCaseError> {
            while self.lands() || self.checkpoints() || self.commits()? {}
            Ok(())
        }
    }

    proptest! {
        /// Whatever is written, synced and written back: a commit has each page once that was written to since the last; no
        /// page is in its place before it is committed, and each transaction's goes there at most once; no block of the log is
        /// written over while a transaction needs it; nobody waits for ever; and in the end the drive has what was written.
        #[test]
        fn what_is_written_is_in_one_commit_and_then_in_its_place(acts in acts()) {
            let mut bench = Bench::new();
            for act in acts {
                bench.act(act)?;
            }
            bench.come_to_rest()?;
            prop_assert!(bench.writers.is_empty(), "{:?} wait", bench.writers);
            prop_assert!(bench.syncers.is_empty());
            bench.act(Act::WriteBack(0, 400))?;
            bench.come_to_rest()?;
            prop_assert!(bench.running.is_empty() && bench.behind_commit.is_empty());
            prop_assert_eq!(&bench.drive, &bench.memory);
            prop_assert!(bench.sent.values().all(|&times| times == 1));
        }
    }
}
