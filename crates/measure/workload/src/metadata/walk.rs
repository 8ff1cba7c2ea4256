//! Which subdirectory a file goes into.

use serde::Deserialize;

use base::time::Time;

/// The subdirectories of a thread, and the order in which files fill them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WalkSpec {
    /// How many subdirectories there are, at least 1.
    pub count: u32,
    /// The one that gets file 0.
    pub first: u32,
    /// When the next subdirectory's turn comes.
    pub next_after: NextDirectory,
}

/// When to move on; after the last subdirectory comes number 0 again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum NextDirectory {
    /// After this many files.
    Files(u64),
    /// With the first file after this time.
    TimeNs(Time),
}

#[derive(Clone, Debug)]
pub struct Walk {
    count: u32,
    first: u32,
    next_after: NextDirectory,
    made: Vec<bool>,
    /// By time only: the files with which a new subdirectory began, and when the last one did.
    changes: Vec<u64>,
    entered_ns: Time,
}

impl Walk {
    pub fn new(spec: &WalkSpec) -> Result<Walk, &'static str> {
        if spec.count == 0 || spec.first >= spec.count {
            return Err("the first subdirectory is not among them");
        }
        if spec.next_after == NextDirectory::Files(0) {
            return Err("no files in a subdirectory, so none ever gets one");
        }
        Ok(Walk {
            count: spec.count,
            first: spec.first,
            next_after: spec.next_after,
            made: vec![false; spec.count as usize],
            changes: Vec::new(),
            entered_ns: 0,
        })
    }

    /// `file` is to be made now; files come in rising order. Some: its subdirectory has to be made first.
    pub fn enter(&mut self, file: u64, now: Time) -> Option<u32> {
        if let NextDirectory::TimeNs(limit) = self.next_after {
            if file == 0 {
                self.entered_ns = now;
            } else if now.saturating_sub(self.entered_ns) > limit && self.changes.last() != Some(&file) {
                self.entered_ns = now;
                self.changes.push(file);
            }
        }
        let directory = self.of(file);
        (!self.made[directory as usize]).then_some(directory)
    }

    pub fn made(&mut self, directory: u32) {
        self.made[directory as usize] = true;
    }

    /// The number of a file that was entered.
    pub fn of(&self, file: u64) -> u32 {
        let moves = match self.next_after {
            NextDirectory::Files(files) => file / files,
            NextDirectory::TimeNs(_) => self.changes.partition_point(|&change| change <= file) as u64,
        };
        ((u64::from(self.first) + moves) % u64::from(self.count)) as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn walk(next_after: NextDirectory) -> Walk {
        Walk::new(&WalkSpec { count: 3, first: 2, next_after }).unwrap()
    }

    #[test]
    fn round_robin_puts_so_many_files_into_each_and_makes_each_once() {
        let mut walk = walk(NextDirectory::Files(2));
        let mut made = Vec::new();
        for file in 0..9 {
            if let Some(directory) = walk.enter(file, 0) {
                walk.made(directory);
                made.push(directory);
            }
        }
        let directories: Vec<u32> = (0..9).map(|file| walk.of(file)).collect();
        assert_eq!(directories, [2, 2, 0, 0, 1, 1, 2, 2, 0]);
        assert_eq!(made, [2, 0, 1]);
    }

    #[test]
    fn by_time_a_new_one_begins_with_the_first_file_after_the_limit() {
        let mut walk = walk(NextDirectory::TimeNs(10));
        for (file, now) in [(0, 100), (1, 110), (2, 111), (3, 120), (4, 140)] {
            // Asked twice, as after a directory was made: it moves on once.
            walk.enter(file, now);
            walk.enter(file, now + 11);
        }
        let directories: Vec<u32> = (0..5).map(|file| walk.of(file)).collect();
        assert_eq!(directories, [2, 2, 0, 0, 1]);
    }

    #[test]
    fn a_walk_that_goes_nowhere_is_refused() {
        let refused = |count, first, files| {
            let next_after = NextDirectory::Files(files);
            Walk::new(&WalkSpec { count, first, next_after }).is_err()
        };
        assert!(refused(0, 0, 1) && refused(3, 3, 1) && refused(3, 0, 0));
        assert!(!refused(3, 2, 1));
    }
}
