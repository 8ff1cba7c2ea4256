//! Reading: page by page, with read-ahead, until one is not there yet.

use crate::cache::page_cache::PageCache;
use crate::cache::read_ahead::{ReaderPage, Stream, Window};
use crate::cache::readers::ResumePoint;
use crate::cache::{Effect, FileId, Outcome, PAGE_BYTES, ReadAhead};
use block_layer::{Direction, TaskId};
use events::time::Time;

impl PageCache {
    /// Reads a range of a file up to the first page that is not in memory (`do_generic_mapping_read`, before and after 2.6
    /// `do_generic_file_read`). After a wait the same call continues from there.
    pub fn read(&mut self, now: Time, task: TaskId, file: FileId, offset: u64, bytes: u64) -> Outcome {
        self.now = now;
        if bytes == 0 {
            return Outcome::Done;
        }
        let (first, last) = (offset / PAGE_BYTES, (offset + bytes - 1) / PAGE_BYTES);
        let resumed = self.readers.take_resumed(task);
        let mut stream = self.readers.stream(task, file, self.rules.windows);
        if resumed.is_none() {
            stream.begin(first, last - first + 1, self.rules.read_ahead);
        }
        let copies_in_turn = self.copies_in_turn(offset, bytes);
        let before = self.effects.len();
        let mut page = resumed.map_or(first, |resumed| resumed.page);
        let mut has_waited = resumed.is_some_and(|resumed| resumed.has_waited);
        let mut copied = 0;
        let outcome = loop {
            let is_over = page > last;
            if copies_in_turn && copied > 0 && (is_over || self.does_something_at(file, page)) {
                break Outcome::Copies(copied);
            }
            if is_over {
                stream.end(last);
                break Outcome::Done;
            }
            if !std::mem::take(&mut has_waited) {
                self.look_ahead(&mut stream, task, file, page, last);
            }
            if self.pages.touch(file, page) {
                page += 1;
                copied += 1;
                continue;
            }
            if !self.pages.is_cached(file, page) {
                self.submit_read(task, file, page, 1, false);
            }
            self.readers.wait_for(file, page, task);
            break Outcome::Wait;
        };
        if outcome != Outcome::Done {
            let has_waited = outcome == Outcome::Wait;
            self.readers.resume_at(task, ResumePoint { page, has_waited });
        }
        self.readers.keep_stream(task, file, stream);
        if copies_in_turn && self.rules.plugs_calls {
            self.readers.plug(task, &mut self.effects, before, outcome);
        }
        outcome
    }

    /// Whether pages are copied one after the other while the call continues: if it is longer than a window. Otherwise
    /// all are before it begins.
    pub fn copies_in_turn(&self, offset: u64, bytes: u64) -> bool {
        let pages = (offset + bytes).div_ceil(PAGE_BYTES) - offset / PAGE_BYTES;
        pages > self.rules.read_ahead.max(1)
    }

    /// Whether a reader waits for the page, or reads ahead with it.
    fn does_something_at(&self, file: FileId, page: u64) -> bool {
        !self.pages.is_present(file, page) || self.pages.is_marked(file, page)
    }

    #[inline]
    fn look_ahead(&mut self, stream: &mut Stream, task: TaskId, file: FileId, page: u64, last: u64) {
        let present = self.pages.is_present(file, page);
        let found = ReaderPage {
            page,
            left: last - page + 1,
            end: self.end_of(file, last),
            absent: !present && !self.pages.is_cached(file, page),
            present,
            marked: self.pages.take_mark(file, page),
            congested: self.devices.is_congested(self.backlog.device_of(file), Direction::Read),
        };
        let cached = |page| self.pages.is_cached(file, page);
        // A call that asks for more than a window gets it in one, as far as a request goes (`ondemand_readahead` of 4.10).
        let most = match self.rules.read_ahead {
            0 => 0,
            most => most.max(found.left.min(self.rules.request_pages)),
        };
        let Some(windows) = stream.next(found, most, cached) else {
            return;
        };
        if matches!(stream, Stream::Linux2_4(_)) && found.absent {
            // 2.4 asks for the page itself first, then for the window behind it.
            self.submit_read(task, file, page, 1, false);
        }
        for window in windows {
            self.submit_window(task, file, window, page..=last);
        }
        if self.rules.windows == ReadAhead::Linux2_6_34 && present && found.marked {
            // Nobody waits for it (`page_cache_async_readahead` until 2.6.38).
            self.effects.push(Effect::Unplug);
        }
    }

    /// A file of unknown size is as long as what is asked for.
    fn end_of(&self, file: FileId, last: u64) -> u64 {
        self.backlog.size(file).max(last + 1)
    }

    /// What of the window is inside the file and not cached, in consecutive pieces.
    fn submit_window(&mut self, task: TaskId, file: FileId, window: Window, asked: std::ops::RangeInclusive<u64>) {
        let end = self.end_of(file, *asked.end());
        let end = (window.start + window.pages).min(end);
        // What is there already is not marked.
        let is_new = |&mark: &u64| mark < end && !self.pages.is_cached(file, mark);
        let mark = window.mark.filter(is_new);
        let mut at = window.start;
        while at < end {
            let run = (at..end).take_while(|&page| !self.pages.is_cached(file, page)).count() as u64;
            if run == 0 {
                at += 1;
                continue;
            }
            let ahead = !asked.contains(&at);
            self.submit_read(task, file, at, run, ahead);
            at += run;
        }
        if let Some(mark) = mark {
            self.pages.mark(file, mark);
        }
    }
}
