//! Which lines of a device are in a cache, least recently used out first.
//!
//! Its own hash table: the standard one differs from process to process, a tree costs a walk for each line.

#[derive(Clone, Debug)]
pub(super) struct LineCache {
    lines_max: usize,
    entries: Vec<Entry>,
    free: Vec<u32>,
    /// Open addressing with linear probing: numbers of entries. Its size is a power of two, at least half of it empty.
    index: Vec<u32>,
    /// Lines that are here, most recently used first.
    newest: u32,
    oldest: u32,
    here: usize,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    line: u64,
    newer: u32,
    older: u32,
    /// The job that fetches it, or NONE: it is here.
    coming: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Presence {
    Here,
    /// Being fetched by that job.
    Coming(u32),
    Absent,
}

const NONE: u32 = u32::MAX;

impl LineCache {
    pub(super) fn new(lines_max: u64) -> LineCache {
        LineCache {
            lines_max: lines_max as usize,
            entries: Vec::new(),
            free: Vec::new(),
            index: vec![NONE; 64],
            newest: NONE,
            oldest: NONE,
            here: 0,
        }
    }

    /// Lines that are here.
    pub(super) fn len(&self) -> usize {
        self.here
    }

    /// Where a line is. A line that is here counts as used.
    #[inline]
    pub(super) fn use_line(&mut self, line: u64) -> Presence {
        let Some(entry) = self.find(line) else {
            return Presence::Absent;
        };
        match self.entries[entry as usize].coming {
            NONE => {
                if self.newest != entry {
                    self.unlink(entry);
                    self.link_newest(entry);
                }
                Presence::Here
            }
            job => Presence::Coming(job),
        }
    }

    pub(super) fn has(&self, line: u64) -> bool {
        self.find(line)
            .is_some_and(|entry| self.entries[entry as usize].coming == NONE)
    }

    /// Puts an absent line in as being fetched: it stays until it has arrived, also beyond the cache's size.
    pub(super) fn expect(&mut self, line: u64, job: u32) {
        debug_assert!(self.find(line).is_none());
        self.add(line, job);
    }

    /// An expected line has arrived.
    pub(super) fn arrive(&mut self, line: u64) {
        let entry = self.find(line).expect("it was expected, and stayed");
        self.entries[entry as usize].coming = NONE;
        self.link_newest(entry);
        self.evict();
    }

    /// The line is here now, unless it is being fetched: then it will be.
    pub(super) fn put(&mut self, line: u64) {
        if self.use_line(line) == Presence::Absent {
            let entry = self.add(line, NONE);
            self.link_newest(entry);
            self.evict();
        }
    }

    /// Takes the line out that was used longest ago.
    pub(super) fn take_oldest(&mut self) -> Option<u64> {
        let entry = self.oldest;
        (entry != NONE).then(|| {
            let line = self.entries[entry as usize].line;
            self.unlink(entry);
            self.remove(entry);
            line
        })
    }

    pub(super) fn take(&mut self, line: u64) -> bool {
        match self.find(line) {
            Some(entry) if self.entries[entry as usize].coming == NONE => {
                self.unlink(entry);
                self.remove(entry);
                true
            }
            _ => false,
        }
    }

    fn evict(&mut self) {
        while self.here > self.lines_max {
            self.take_oldest();
        }
    }

    fn add(&mut self, line: u64, coming: u32) -> u32 {
        let value = Entry {
            line,
            newer: NONE,
            older: NONE,
            coming,
        };
        let entry = match self.free.pop() {
            Some(entry) => {
                self.entries[entry as usize] = value;
                entry
            }
            None => {
                self.entries.push(value);
                if self.entries.len() * 2 > self.index.len() {
                    self.grow();
                    return self.entries.len() as u32 - 1;
                }
                self.entries.len() as u32 - 1
            }
        };
        self.enter(line, entry);
        entry
    }

    fn grow(&mut self) {
        self.index = vec![NONE; self.index.len() * 2];
        // Only called when no number is free: all entries are in use.
        for entry in 0..self.entries.len() {
            self.enter(self.entries[entry].line, entry as u32);
        }
    }

    fn enter(&mut self, line: u64, entry: u32) {
        let mut at = self.home(line);
        while self.index[at] != NONE {
            at = (at + 1) & (self.index.len() - 1);
        }
        self.index[at] = entry;
    }

    #[inline]
    fn home(&self, line: u64) -> usize {
        // Fibonacci hashing; neighbours stay near each other in blocks of 8, which sequential I/O profits from.
        let mixed = (line >> 3).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32;
        ((mixed as usize) * 8 + (line & 7) as usize) & (self.index.len() - 1)
    }

    #[inline]
    fn find(&self, line: u64) -> Option<u32> {
        let mut at = self.home(line);
        loop {
            let entry = self.index[at];
            if entry == NONE {
                return None;
            }
            if self.entries[entry as usize].line == line {
                return Some(entry);
            }
            at = (at + 1) & (self.index.len() - 1);
        }
    }

    /// Takes the entry out of the index, and moves up what probing went past it for.
    fn remove(&mut self, entry: u32) {
        let mask = self.index.len() - 1;
        let mut hole = self.home(self.entries[entry as usize].line);
        while self.index[hole] != entry {
            hole = (hole + 1) & mask;
        }
        let mut at = hole;
        loop {
            at = (at + 1) & mask;
            let other = self.index[at];
            if other == NONE {
                break;
            }
            let home = self.home(self.entries[other as usize].line);
            if at.wrapping_sub(home) & mask >= at.wrapping_sub(hole) & mask {
                self.index[hole] = other;
                hole = at;
            }
        }
        self.index[hole] = NONE;
        self.free.push(entry);
    }

    fn link_newest(&mut self, entry: u32) {
        let second = self.newest;
        let Entry { newer, older, .. } = &mut self.entries[entry as usize];
        (*newer, *older) = (NONE, second);
        match second {
            NONE => self.oldest = entry,
            _ => self.entries[second as usize].newer = entry,
        }
        self.newest = entry;
        self.here += 1;
    }

    fn unlink(&mut self, entry: u32) {
        let Entry { newer, older, .. } = self.entries[entry as usize];
        match newer {
            NONE => self.newest = older,
            _ => self.entries[newer as usize].older = older,
        }
        match older {
            NONE => self.oldest = newer,
            _ => self.entries[older as usize].newer = newer,
        }
        self.here -= 1;
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
