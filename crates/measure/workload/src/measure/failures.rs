//! What did not succeed, counted by operation and errno, and when to give up.

use crate::record::ErrorRecord;

/// The symbol of an errno, as manual pages write it. An argument, because the numbers are the operating system's.
pub type ErrnoName = fn(i32) -> String;

/// A job's failed operations, by operation and errno.
#[derive(Debug)]
pub struct Failures {
    errno_name: ErrnoName,
    /// All failures until now.
    pub count: u64,
    in_a_row: u32,
    records: Vec<ErrorRecord>,
}

/// Whether a job continues after a failed operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The job offers further operations.
    GoOn,
    /// The job stops: the disk is full, or too many operations failed in a row.
    GiveUp,
}

/// A device that is gone fails at once, millions of times a second; nothing is learned from more than these.
const IN_A_ROW_MAX: u32 = 1000;

impl Failures {
    /// No failures yet; `errno_name` gives the symbols for the records.
    pub fn new(errno_name: ErrnoName) -> Failures {
        Failures { errno_name, count: 0, in_a_row: 0, records: Vec::new() }
    }

    /// Notes a success, which ends a run of failures.
    #[inline(always)]
    pub fn succeeded(&mut self) {
        self.in_a_row = 0;
    }

    /// `errno` is positive; 0 is a short transfer. `grows` is an operation that needs space: a full disk ends the job.
    #[cold]
    pub fn failed(&mut self, op: &'static str, grows: bool, errno: i32, path: &str, offset: u64) -> Verdict {
        self.count += 1;
        self.in_a_row += 1;
        let known = self.records.iter().position(|known| known.errno == errno && known.op == op);
        let index = known.unwrap_or_else(|| {
            self.records.push(ErrorRecord {
                errno,
                name: self.name(errno),
                op,
                count: 0,
                first_path: path.to_owned(),
                first_offset: offset,
            });
            self.records.len() - 1
        });
        let record = &mut self.records[index];
        record.count += 1;
        let disk_full = grows && matches!(record.name.as_str(), "ENOSPC" | "EDQUOT");
        if disk_full || self.in_a_row >= IN_A_ROW_MAX { Verdict::GiveUp } else { Verdict::GoOn }
    }

    /// Why the job gave up, for the note.
    pub fn last(&self) -> Option<&ErrorRecord> {
        self.records.last()
    }

    /// A record per operation and errno.
    pub fn into_records(self) -> Vec<ErrorRecord> {
        self.records
    }

    fn name(&self, errno: i32) -> String {
        match errno {
            0 => "short transfer".to_owned(),
            _ => (self.errno_name)(errno),
        }
    }
}
