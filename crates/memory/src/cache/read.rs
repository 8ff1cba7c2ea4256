//! Reading: page by page, with read-ahead, until one is not there yet.

use crate::cache::page_cache::PageCache;
use crate::cache::read_ahead::{Found, Stream, Window};
use crate::cache::{Effect, FileId, Outcome, PAGE_BYTES, ReadAhead};
use block_layer::TaskId;
use events::time::Time;

impl PageCache {
    /// Reads a range of a file up to the first page that is not in memory. After a wait the same call goes on from there.
    pub fn read(
        &mut self,
        now: Time,
        task: TaskId,
        file: FileId,
        offset: u64,
        bytes: u64,
    ) -> Outcome {
        self.now = now;
        if bytes == 0 {
            return Outcome::Done;
        }
        let (first, last) = (offset / PAGE_BYTES, (offset + bytes - 1) / PAGE_BYTES);
        let resumed = if self.resume.is_empty() {
            None
        } else {
            self.resume.remove(&task)
        };
        let mut stream = self
            .streams
            .get(&(task, file))
            .copied()
            .unwrap_or(Stream::new(self.rules.windows));
        if resumed.is_none() {
            stream.begin(first, last - first + 1, self.rules.read_ahead);
        }
        let mut at = resumed.unwrap_or(first);
        // A page that was waited for is read before anything is read ahead again.
        let mut looked_ahead = resumed.is_some();
        while at <= last {
            if !std::mem::take(&mut looked_ahead) {
                self.look_ahead(&mut stream, task, file, at, last);
            }
            if self.pages.touch(file, at) {
                at += 1;
                continue;
            }
            if !self.pages.is_cached(file, at) {
                self.submit_read(task, file, at, 1, false);
            }
            self.readers.insert((file, at, task));
            self.resume.insert(task, at);
            break;
        }
        let done = at > last;
        if done {
            stream.end(last);
        }
        self.streams.insert((task, file), stream);
        if done { Outcome::Done } else { Outcome::Wait }
    }

    #[inline]
    fn look_ahead(
        &mut self,
        stream: &mut Stream,
        task: TaskId,
        file: FileId,
        page: u64,
        last: u64,
    ) {
        let present = self.pages.is_present(file, page);
        let found = Found {
            page,
            left: last - page + 1,
            end: self.end_of(file, last),
            absent: !present && !self.pages.is_cached(file, page),
            present,
            marked: self.pages.take_mark(file, page),
            congested: self.devices[self.device_of(file)].congested
                [block_layer::Direction::Read as usize],
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
        let of = self.files.get(file as usize);
        of.map_or(0, |file| file.pages).max(last + 1)
    }

    /// What of the window is inside the file and not cached, in consecutive pieces.
    fn submit_window(
        &mut self,
        task: TaskId,
        file: FileId,
        window: Window,
        asked: std::ops::RangeInclusive<u64>,
    ) {
        let end = self.end_of(file, *asked.end());
        let end = (window.start + window.pages).min(end);
        // What is there already is not marked.
        let is_new = |&mark: &u64| mark < end && !self.pages.is_cached(file, mark);
        let mark = window.mark.filter(is_new);
        let mut at = window.start;
        while at < end {
            let run = (at..end)
                .take_while(|&page| !self.pages.is_cached(file, page))
                .count() as u64;
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
