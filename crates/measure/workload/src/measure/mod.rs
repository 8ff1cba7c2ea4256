//! The measurements of one job until now: the timeline of what succeeded, and what did not, by errno.

mod commits;
mod failures;

use crate::depth_search::DepthSearchResult;
use crate::job::{Job, Op, OpKind};
use crate::record::{ErrorRecord, MismatchRecord};
use crate::replay::ReplayRecord;
use crate::timeline::{Interval, Timeline};
use crate::until_steady::Steadiness;
use base::time::Time;
use commits::Commits;
pub use failures::{ErrnoName, Failures, Verdict};

/// A job's measurements while it runs.
#[derive(Debug)]
pub struct Measure {
    timeline: Timeline,
    interval: Time,
    is_null: bool,
    commits: Option<Box<Commits>>,
    measured_from: Option<Time>,
    /// Operations that succeeded, warm-up included.
    pub ops: u64,
    /// Bytes that they transferred, warm-up included.
    pub bytes: u64,
    finished: Time,
    failures: Failures,
    mismatches_count: u64,
    mismatches: Vec<MismatchRecord>,
}

/// What remains when the job is over.
#[derive(Debug)]
pub struct JobMeasurement {
    /// Its operations were null ones.
    pub is_null: bool,
    /// Its writes were records of a log.
    pub commits: bool,
    /// From when on it was measured, where that is not the end of the warm-up.
    pub measured_from: Option<Time>,
    /// What the job's search for a queue depth came to.
    pub searched: Option<DepthSearchResult>,
    /// Whether the job's steady state was reached.
    pub steadiness: Option<Steadiness>,
    /// How faithful the job's replay was.
    pub replayed: Option<ReplayRecord>,
    /// When the last operation succeeded, since the start of the phase; 0 if none did.
    pub finished: Time,
    /// What completed in each interval after the warm-up.
    pub intervals: Vec<Interval>,
    /// A record per operation and errno that failed.
    pub errors: Vec<ErrorRecord>,
    /// How many blocks did not hold what was written there.
    pub mismatches_count: u64,
    /// The first 16 of them.
    pub mismatches: Vec<MismatchRecord>,
}

const MISMATCHES_KEPT: usize = 16;

impl Measure {
    /// Nothing measured yet; operations up to `warm_up` are not recorded, and `interval` is the width of the first
    /// intervals.
    pub fn new(warm_up: Time, interval: Time, errno_name: ErrnoName) -> Measure {
        Measure {
            timeline: Timeline::new(warm_up, interval),
            interval,
            is_null: false,
            commits: None,
            measured_from: None,
            ops: 0,
            bytes: 0,
            finished: 0,
            failures: Failures::new(errno_name),
            mismatches_count: 0,
            mismatches: Vec::new(),
        }
    }

    /// The same for an engine that does nothing: its operations are null operations, and neither reads nor writes.
    pub fn of_null_operations(self) -> Measure {
        Measure { is_null: true, ..self }
    }

    /// The same, with the commit of each record if the job's writes are those of a log.
    pub fn of_log(self, writes_log: bool) -> Measure {
        Measure { commits: writes_log.then(Box::default), ..self }
    }

    /// Forgets the latencies and intervals that were measured: the measured part begins at `now`.
    #[cold]
    pub fn begin_anew(&mut self, now: Time) {
        self.timeline = Timeline::new(now, self.interval);
        self.measured_from = Some(now);
    }

    /// Records an operation that completed at `now`, with its latency since it was due.
    #[inline(always)]
    pub fn succeeded(&mut self, now: Time, op: &Op) {
        self.ops += 1;
        self.finished = now;
        self.failures.succeeded();
        let latency = now.saturating_sub(op.due);
        if self.is_null {
            // A sync of nothing is no operation of its own.
            if !op.kind.is_sync() {
                self.timeline.record_null(now, op.bytes, latency);
            }
        } else {
            self.timeline.record(now, op.kind, op.bytes, latency);
            if let Some(commits) = &mut self.commits {
                for record in commits.after(&{ *op }) {
                    let took_ns = now.saturating_sub(record.due);
                    self.timeline.record_commit(now, record.bytes, took_ns);
                }
            }
        }
        self.bytes += u64::from(op.bytes);
    }

    /// For what takes the job's time after its last operation.
    pub fn finished_at(&mut self, now: Time) {
        self.finished = now;
    }

    /// `errno` is positive; 0 is a short transfer.
    #[cold]
    pub fn failed(&mut self, now: Time, op: &Op, errno: i32, path: &str, offset: u64) -> Verdict {
        self.finished = now;
        if let Some(commits) = &mut self.commits {
            commits.failed(op);
        }
        let grows = op.kind.is_write();
        self.failures.failed(op_name(op.kind), grows, errno, path, offset)
    }

    /// Counts a wrong block and keeps it if it is among the first.
    #[cold]
    pub fn mismatched(&mut self, mismatch: MismatchRecord) {
        self.mismatches_count += 1;
        if self.mismatches.len() < MISMATCHES_KEPT {
            self.mismatches.push(mismatch);
        }
    }

    /// Failed operations until now.
    pub fn errors(&self) -> u64 {
        self.failures.count
    }

    /// Why the job gave up, for the note.
    pub fn last_failure(&self) -> Option<&ErrorRecord> {
        self.failures.last()
    }

    /// Closes the timeline at the last success. `job` is the one that was measured.
    pub fn finish_of(self, job: &Job) -> JobMeasurement {
        JobMeasurement {
            searched: job.searched(),
            steadiness: job.steadiness(),
            replayed: job.replayed(),
            ..self.finish()
        }
    }

    pub(crate) fn finish(self) -> JobMeasurement {
        JobMeasurement {
            is_null: self.is_null,
            commits: self.commits.is_some(),
            measured_from: self.measured_from,
            searched: None,
            steadiness: None,
            replayed: None,
            finished: self.finished,
            intervals: self.timeline.finish(self.finished),
            errors: self.failures.into_records(),
            mismatches_count: self.mismatches_count,
            mismatches: self.mismatches,
        }
    }
}

/// The name of an operation in records and messages.
pub fn op_name(kind: OpKind) -> &'static str {
    match kind {
        OpKind::Read => "read",
        OpKind::Write | OpKind::DurableWrite | OpKind::OsyncWrite => "write",
        OpKind::Fsync => "fsync",
        OpKind::Fdatasync => "fdatasync",
        OpKind::SyncFileRange => "sync_file_range",
        OpKind::Discard => "discard",
        OpKind::WriteZeroes => "write_zeroes",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const EIO: i32 = 5;
    const ENOSPC: i32 = 28;

    fn errno_name(errno: i32) -> String {
        match errno {
            EIO => "EIO".into(),
            ENOSPC => "ENOSPC".into(),
            _ => format!("errno {errno}"),
        }
    }

    fn op(kind: OpKind) -> Op {
        Op { kind, file: 0, offset: 4096, bytes: 4096, due: 0 }
    }

    #[test]
    fn errors_are_counted_by_errno_and_operation_with_the_first_place() {
        let mut measure = Measure::new(0, 1, errno_name);
        for (kind, errno, offset) in
            [(OpKind::Read, EIO, 1), (OpKind::Read, EIO, 2), (OpKind::Write, EIO, 3), (OpKind::Read, 0, 4)]
        {
            assert_eq!(measure.failed(9, &op(kind), errno, "/f", offset), Verdict::GoOn);
        }
        let errors = measure.finish().errors;
        let found: Vec<_> = errors.iter().map(|e| (e.name.as_str(), e.op, e.count, e.first_offset)).collect();
        assert_eq!(found, [("EIO", "read", 2, 1), ("EIO", "write", 1, 3), ("short transfer", "read", 1, 4)]);
    }

    #[test]
    fn a_full_disk_ends_the_job_at_once_and_other_errors_only_in_a_row() {
        let mut measure = Measure::new(0, 1, errno_name);
        assert_eq!(measure.failed(1, &op(OpKind::Write), ENOSPC, "/f", 0), Verdict::GiveUp);
        assert_eq!(measure.failed(1, &op(OpKind::Fsync), ENOSPC, "/f", 0), Verdict::GoOn);
        measure.succeeded(2, &op(OpKind::Read));
        let verdicts: Vec<_> = (0..1000).map(|_| measure.failed(3, &op(OpKind::Read), EIO, "/f", 0)).collect();
        assert_eq!(verdicts.iter().position(|&verdict| verdict == Verdict::GiveUp), Some(999));
    }
}
