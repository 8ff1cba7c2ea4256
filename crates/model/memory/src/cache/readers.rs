//! Who reads what: what a kernel remembers of each open file, and the calls that sleep or copy.

use std::collections::{BTreeMap, BTreeSet};

use crate::cache::pages::Pages;
use crate::cache::read_ahead::Stream;
use crate::cache::{Effect, FileId, Outcome, ReadAhead};
use block_layer::TaskId;
use events::station::Violation;

#[derive(Clone, Debug, Default)]
pub(super) struct Readers {
    streams: BTreeMap<(TaskId, FileId), Stream>,
    resumed: BTreeMap<TaskId, ResumePoint>,
    /// I/O that a call holds back.
    plugged: BTreeMap<TaskId, Vec<Effect>>,
    /// Who waits for which page.
    waiting: BTreeSet<(FileId, u64, TaskId)>,
}

/// Where a call continues.
#[derive(Clone, Copy, Debug)]
pub(super) struct ResumePoint {
    pub(super) page: u64,
    /// A page that was waited for is read before anything is read ahead again.
    pub(super) has_waited: bool,
}

impl Readers {
    pub(super) fn stream(&self, task: TaskId, file: FileId, windows: ReadAhead) -> Stream {
        let known = self.streams.get(&(task, file)).copied();
        known.unwrap_or(Stream::new(windows))
    }

    pub(super) fn keep_stream(&mut self, task: TaskId, file: FileId, stream: Stream) {
        self.streams.insert((task, file), stream);
    }

    /// Where the task's call continues; None: it begins.
    pub(super) fn take_resumed(&mut self, task: TaskId) -> Option<ResumePoint> {
        match self.resumed.is_empty() {
            true => None,
            false => self.resumed.remove(&task),
        }
    }

    pub(super) fn resume_at(&mut self, task: TaskId, at: ResumePoint) {
        self.resumed.insert(task, at);
    }

    pub(super) fn wait_for(&mut self, file: FileId, page: u64, task: TaskId) {
        self.waiting.insert((file, page, task));
    }

    /// One who waits for a page of these, which have been read; it waits no more.
    pub(super) fn pop_waiting(&mut self, file: FileId, page: u64, pages: u64) -> Option<TaskId> {
        let range = (file, page, 0)..(file, page + pages, 0);
        let reader = self.waiting.range(range).next().copied()?;
        self.waiting.remove(&reader);
        Some(reader.2)
    }

    /// What a call asks for, of the effects from `before` on, leaves when it waits or is over (`blk_start_plug` in
    /// `generic_file_aio_read`).
    pub(super) fn plug(&mut self, task: TaskId, effects: &mut Vec<Effect>, before: usize, outcome: Outcome) {
        let held = self.plugged.entry(task).or_default();
        held.extend(effects.drain(before..));
        if !matches!(outcome, Outcome::Copies(_)) {
            effects.append(held);
            self.plugged.remove(&task);
        }
    }

    /// What a task waits for is on its way.
    pub(super) fn check(&self, pages: &Pages) -> Result<(), Violation> {
        let mut waiting = self.waiting.iter();
        let forgotten = waiting.find(|&&(file, page, _)| !pages.is_reading(file, page));
        Violation::unless(forgotten.is_none(), "readers", || {
            format!("{forgotten:?} (file, page, task): nobody reads what it waits for")
        })
    }
}
