//! What did not succeed, counted by operation and errno, and when to give up.

use crate::error::errno_name;
use crate::record::ErrorRecord;

#[derive(Debug, Default)]
pub struct Failures {
    pub count: u64,
    in_a_row: u32,
    records: Vec<ErrorRecord>,
}

/// Whether a job goes on after a failed operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    GoOn,
    GiveUp,
}

/// A device that is gone fails at once, millions of times a second; nothing is learned from more than these.
const IN_A_ROW_MAX: u32 = 1000;

impl Failures {
    #[inline(always)]
    pub fn succeeded(&mut self) {
        self.in_a_row = 0;
    }

    /// `errno` is positive; 0 is a short transfer. `grows` is an operation that needs space: a full disk ends the job.
    #[cold]
    pub fn failed(
        &mut self,
        op: &'static str,
        grows: bool,
        errno: i32,
        path: &str,
        offset: u64,
    ) -> Verdict {
        self.count += 1;
        self.in_a_row += 1;
        match self
            .records
            .iter_mut()
            .find(|known| known.errno == errno && known.op == op)
        {
            Some(known) => known.count += 1,
            None => self.records.push(ErrorRecord {
                errno,
                name: errno_name(errno),
                op,
                count: 1,
                first_path: path.to_owned(),
                first_offset: offset,
            }),
        }
        let disk_full = grows && matches!(errno, libc::ENOSPC | libc::EDQUOT);
        if disk_full || self.in_a_row >= IN_A_ROW_MAX {
            Verdict::GiveUp
        } else {
            Verdict::GoOn
        }
    }

    /// Why the job gave up, for the note.
    pub fn last(&self) -> Option<&ErrorRecord> {
        self.records.last()
    }

    pub fn into_records(self) -> Vec<ErrorRecord> {
        self.records
    }
}
