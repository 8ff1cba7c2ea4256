//! Which lines of a device are in a cache, least recently used out first.

use crate::chain::Chain;
use crate::index::Index;

#[derive(Clone, Debug)]
pub(super) struct LineCache {
    lines_max: usize,
    entries: Vec<Entry>,
    free: Vec<u32>,
    index: Index,
    /// Lines that are here, by when they were used.
    here: Chain,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    line: u64,
    /// The job that fetches it; None: it is here.
    coming: Option<u32>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Presence {
    Here,
    /// Being fetched by that job.
    Coming(u32),
    Absent,
}

impl LineCache {
    pub(super) fn new(lines_max: u64) -> LineCache {
        LineCache {
            lines_max: lines_max as usize,
            entries: Vec::new(),
            free: Vec::new(),
            index: Index::new(),
            here: Chain::new(),
        }
    }

    /// Lines that are here.
    pub(super) fn len(&self) -> usize {
        self.here.len()
    }

    /// Where a line is. A line that is here counts as used.
    #[inline]
    pub(super) fn use_line(&mut self, line: u64) -> Presence {
        let Some(entry) = self.index.get(line) else {
            return Presence::Absent;
        };
        match self.entries[entry as usize].coming {
            None => {
                if self.here.newest() != Some(entry) {
                    self.here.remove(entry);
                    self.here.put(entry);
                }
                Presence::Here
            }
            Some(job) => Presence::Coming(job),
        }
    }

    pub(super) fn has(&self, line: u64) -> bool {
        self.entry_here(line).is_some()
    }

    /// Puts an absent line in as being fetched: it stays until it has arrived, also beyond the cache's size.
    pub(super) fn expect(&mut self, line: u64, job: u32) {
        debug_assert!(self.index.get(line).is_none());
        self.add(line, Some(job));
    }

    /// An expected line has arrived.
    pub(super) fn arrive(&mut self, line: u64) {
        let entry = self.index.get(line).expect("it was expected, and stayed");
        self.entries[entry as usize].coming = None;
        self.here.put(entry);
        self.evict();
    }

    /// The line is here now, unless it is being fetched: then it will be.
    pub(super) fn put(&mut self, line: u64) {
        if self.use_line(line) == Presence::Absent {
            let entry = self.add(line, None);
            self.here.put(entry);
            self.evict();
        }
    }

    /// Takes the line out that was used longest ago.
    pub(super) fn take_oldest(&mut self) -> Option<u64> {
        let entry = self.here.oldest()?;
        Some(self.remove(entry))
    }

    pub(super) fn take(&mut self, line: u64) -> bool {
        let entry = self.entry_here(line);
        if let Some(entry) = entry {
            self.remove(entry);
        }
        entry.is_some()
    }

    fn entry_here(&self, line: u64) -> Option<u32> {
        self.index.get(line).filter(|&entry| self.entries[entry as usize].coming.is_none())
    }

    fn evict(&mut self) {
        while self.here.len() > self.lines_max {
            self.take_oldest();
        }
    }

    fn add(&mut self, line: u64, coming: Option<u32>) -> u32 {
        let value = Entry { line, coming };
        let entry = match self.free.pop() {
            Some(entry) => {
                self.entries[entry as usize] = value;
                entry
            }
            None => {
                self.entries.push(value);
                self.entries.len() as u32 - 1
            }
        };
        self.index.put(line, entry);
        entry
    }

    /// Takes out a line and returns which.
    fn remove(&mut self, entry: u32) -> u64 {
        let line = self.entries[entry as usize].line;
        self.here.remove(entry);
        self.index.remove(line);
        self.free.push(entry);
        line
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Against the plainest form: a list, most recently used first.
        #[test]
        fn it_holds_what_was_used_last(
            lines_max in 0usize..40,
            steps in prop::collection::vec((0u8..5, 0u64..200), 0..600),
        ) {
            let mut cache = LineCache::new(lines_max as u64);
            let (mut here, mut coming): (Vec<u64>, Vec<u64>) = (Vec::new(), Vec::new());
            for (step, line) in steps {
                let was = here.iter().position(|&other| other == line);
                match step {
                    0 => {
                        let expected = match was {
                            Some(at) => {
                                here.remove(at);
                                here.insert(0, line);
                                Presence::Here
                            }
                            None if coming.contains(&line) => Presence::Coming(7),
                            None => Presence::Absent,
                        };
                        prop_assert_eq!(cache.use_line(line), expected);
                    }
                    1 => {
                        cache.put(line);
                        if let Some(at) = was {
                            here.remove(at);
                        }
                        if !coming.contains(&line) {
                            here.insert(0, line);
                        }
                    }
                    2 if was.is_none() && !coming.contains(&line) => {
                        cache.expect(line, 7);
                        coming.push(line);
                    }
                    3 if !coming.is_empty() => {
                        let line = coming.remove(line as usize % coming.len());
                        cache.arrive(line);
                        here.insert(0, line);
                    }
                    4 => {
                        prop_assert_eq!(cache.take(line), was.is_some());
                        here.retain(|&other| other != line);
                    }
                    _ => {}
                }
                here.truncate(lines_max);
                prop_assert_eq!(cache.len(), here.len());
                prop_assert!(here.iter().all(|&line| cache.has(line)));
            }
            while let Some(line) = cache.take_oldest() {
                prop_assert_eq!(Some(line), here.pop());
            }
            prop_assert!(here.is_empty());
        }
    }
}
