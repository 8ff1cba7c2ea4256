//! A job as a state machine: what next, what completed, when to be asked again.
//!
//! ```text
//! Offering ──writes are due for a sync──> Draining ──> Syncing ──> Offering
//!    │        (or nothing else is due, with `when_idle`)
//!    └──a bound is reached, or stop()──> Finishing ──> FinalSync ──> Done
//! ```

use crate::check::check;
use crate::course::Course;
use crate::depth_search::{DepthSearchResult, Search};
use crate::early_end::EarlyEnd;
use crate::exclusion::Exclusion;
pub use crate::job_error::JobError;
use crate::mix::Direction;
pub use crate::op::{JobStep, Op, OpKind};
use crate::pacing::Pacing;
use crate::replay::{Replay, ReplayRecord};
use crate::spec::{JobBounds, JobSpec};
use crate::syncs::Syncs;
use crate::until_steady::{Steadiness, UntilSteady};
use base::rng::stream;
use base::time::Time;

/// The streams that a job draws from, each by its component number under the job's seed.
mod component {
    pub const SIZE: u64 = 0;
    pub const DIRECTION: u64 = 1;
    pub const FILE: u64 = 2;
    pub const OFFSET: u64 = 3;
    pub const ARRIVAL: u64 = 4;
    pub const WRITE_SIZE: u64 = 5;
    pub const WRITE_FILE: u64 = 6;
    pub const WRITE_OFFSET: u64 = 7;
}

/// The state of one job: its position in the pattern, its bounds and what it has in flight.
#[derive(Clone, Debug)]
pub struct Job {
    stage: Stage,
    in_flight: u32,
    /// The limit of operations in flight; 0 while a search waits until nothing is.
    queue_depth: u32,
    ops_left: u64,
    bytes_left: u64,
    /// With the last operation of a bound, `ENDED`: the time is then the only bound to look at.
    ends_at: Time,
    pacing: Pacing,
    /// The course of reads, and of writes that have none of their own.
    course: Course,
    course_of_writes: Option<Box<Course>>,
    direction: Direction,
    syncs: Syncs,
    durable: Option<DurableWrites>,
    exclusion: Option<Box<Exclusion>>,
    search: Option<Box<Search>>,
    until_steady: Option<Box<UntilSteady>>,
    /// With the stage `Replaying`, and instead of everything above but the bounds.
    replay: Option<Box<Replay>>,
    /// The measured part has ended before the job.
    early_end: Option<Box<EarlyEnd>>,
    /// One of the last five has to hear of each completion: one look instead of five.
    is_followed: bool,
    writes: bool,
    until: JobBounds,
}

const ENDED: Time = 0;

/// Which writes have to be on the medium before they complete.
#[derive(Clone, Copy, Debug)]
struct DurableWrites {
    kind: OpKind,
    every: u64,
    left: u64,
}

impl DurableWrites {
    fn new(spec: &JobSpec) -> Option<DurableWrites> {
        let (kind, every) = match (spec.dsync_every, spec.osync_every) {
            (Some(every), _) => (OpKind::DurableWrite, every),
            (None, Some(every)) => (OpKind::OsyncWrite, every),
            (None, None) => return None,
        };
        Some(DurableWrites { kind, every, left: every })
    }

    fn next(&mut self) -> OpKind {
        self.left -= 1;
        if self.left > 0 {
            return OpKind::Write;
        }
        self.left = self.every;
        self.kind
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Offering,
    Replaying,
    Draining,
    Syncing,
    Finishing,
    FinalSync,
    Done,
}

impl Job {
    /// `file_sizes` are those of all files of the phase, in bytes.
    pub fn new(spec: &JobSpec, file_sizes: &[u64]) -> Result<Job, JobError> {
        check(spec, file_sizes)?;
        let stream = |component| stream(spec.seed, component);
        let course_of_writes = spec.writes.as_ref().map(|writes| {
            Box::new(Course::new(
                spec,
                &writes.blocks,
                writes.align_bytes,
                [component::WRITE_SIZE, component::WRITE_FILE, component::WRITE_OFFSET].map(stream),
            ))
        });
        let search =
            spec.depth_search.map(|search| Box::new(Search::new(search, spec.start_ns.unwrap_or(0), spec.queue_depth)));
        let until_steady =
            spec.steady_state.map(|wanted| Box::new(UntilSteady::new(wanted, spec.start_ns.unwrap_or(0))));
        let replay =
            spec.replay.as_ref().map(|replay| Replay::new(spec, replay, file_sizes).map(Box::new)).transpose()?;
        Ok(Job {
            stage: match replay {
                Some(_) => Stage::Replaying,
                None => Stage::Offering,
            },
            in_flight: 0,
            queue_depth: search.as_ref().map_or(spec.queue_depth, |search| search.depth()),
            ops_left: spec.until.ops.unwrap_or(u64::MAX),
            bytes_left: spec.until.bytes.unwrap_or(u64::MAX),
            ends_at: match spec.until.ops {
                Some(0) => ENDED,
                _ => spec.until.duration_ns.unwrap_or(Time::MAX),
            },
            pacing: Pacing::new(spec, spec.start_ns.unwrap_or(0), stream(component::ARRIVAL)),
            course: Course::new(
                spec,
                &spec.blocks,
                spec.align_bytes,
                [component::SIZE, component::FILE, component::OFFSET].map(stream),
            ),
            course_of_writes,
            direction: Direction::new(spec, stream(component::DIRECTION)),
            syncs: Syncs::new(spec, file_sizes.len()),
            durable: DurableWrites::new(spec),
            is_followed: search.is_some() || until_steady.is_some() || replay.is_some(),
            exclusion: None,
            search,
            until_steady,
            replay,
            early_end: None,
            writes: spec.read_share < 1.0,
            until: spec.until,
        })
    }

    /// With `true`, an operation that overlaps one in flight waits for it when one of the two writes: for verification.
    pub fn exclusive(&mut self, exclusive: bool) {
        self.exclusion = exclusive.then(Box::default);
        self.is_followed |= exclusive;
    }

    /// The job's next step at `now`. An operation that is returned counts as in flight.
    #[inline(always)]
    pub fn next(&mut self, now: Time) -> JobStep {
        let mut now = now;
        if self.stage != Stage::Offering || self.early_end.is_some() {
            match self.turn(now) {
                Turn::Offer(offered_at) => now = offered_at,
                Turn::Other(step) => return step,
            }
        }
        if self.in_flight >= self.queue_depth {
            return JobStep::WaitForCompletion;
        }
        if now >= self.ends_at {
            let step = self.finish();
            return self.take(step, now);
        }
        if now < self.pacing.opens_at() {
            return match self.sync_when_idle() {
                Step::Offer => JobStep::WaitUntil(self.pacing.opens_at().min(self.ends_at)),
                step => self.take(step, now),
            };
        }
        let op = match &self.exclusion {
            None => self.draw(now),
            Some(_) => match self.draw_exclusively(now) {
                Some(op) => op,
                None => return JobStep::WaitForCompletion,
            },
        };
        if u64::from(op.bytes) > self.bytes_left {
            let step = self.finish();
            return self.take(step, now);
        }
        // Not one after the other: two neighbours in memory are subtracted as a vector, which takes three times as many
        // instructions.
        self.ops_left -= 1;
        if self.ops_left == 0 {
            self.ends_at = ENDED;
        }
        self.pacing.started();
        self.bytes_left -= u64::from(op.bytes);
        self.in_flight += 1;
        if self.syncs.are_wanted() && op.kind.is_write() && self.syncs.write_started() {
            self.stage = Stage::Draining;
        }
        JobStep::Io(op)
    }

    /// Goes through what comes before an offer: the syncs of an early end, and the stages other than offering.
    #[cold]
    fn turn(&mut self, now: Time) -> Turn {
        let mut now = now;
        if let Some(end) = &mut self.early_end {
            match end.next() {
                Some(sync) => return Turn::Other(JobStep::Io(Op { due: now, ..sync })),
                None if end.begins_rest() && !self.writes => self.stop(),
                None => {}
            }
            now = EarlyEnd::OFFERED_AT;
        }
        if self.stage == Stage::Offering {
            return Turn::Offer(now);
        }
        if let Some(replay) = &mut self.replay {
            return Turn::Other(replay.next(now));
        }
        match self.advance() {
            Step::Offer => Turn::Offer(now),
            step => Turn::Other(self.take(step, now)),
        }
    }

    /// Each operation that `next` gave out is to be reported once, also when it failed.
    #[inline(always)]
    pub fn completed(&mut self, now: Time, op: &Op, result: Result<u32, i32>) {
        if self.is_followed {
            return self.completed_before_followers(now, &{ *op }, result);
        }
        self.in_flight -= 1;
        self.count_completed(now, op, result);
    }

    #[inline(never)]
    fn completed_before_followers(&mut self, now: Time, op: &Op, result: Result<u32, i32>) {
        let now = match &self.early_end {
            None => now,
            Some(end) if end.is_syncing() => return,
            Some(_) => EarlyEnd::COMPLETED_AT,
        };
        if let Some(replay) = &mut self.replay {
            return replay.completed(now, op);
        }
        self.in_flight -= 1;
        if self.search.is_some() {
            self.search_on(now, op, result.is_ok());
        }
        if self.until_steady.is_some() && result.is_ok() {
            self.look_for_steadiness(now, op);
        }
        if let Some(exclusion) = &mut self.exclusion {
            exclusion.release(*op);
        }
        self.count_completed(now, op, result);
    }

    #[inline(always)]
    fn count_completed(&mut self, now: Time, op: &Op, result: Result<u32, i32>) {
        if self.syncs.are_wanted() {
            if op.kind.is_sync() {
                return self.syncs.sync_completed();
            }
            if op.kind.is_write() {
                self.syncs.write_completed(op.file, result.is_ok());
            }
        }
        self.pacing.completed(now);
    }

    /// Instead of `completed`, for an operation that clears and that the target does not take.
    #[cold]
    pub fn refused(&mut self, now: Time, op: &Op) {
        if let Some(replay) = &mut self.replay {
            replay.refused();
        }
        self.completed(now, op, Ok(0));
    }

    /// From when on `next` has something to offer if nothing completes before; `None` when only a completion helps.
    pub fn next_wakeup(&self) -> Option<Time> {
        if let Some(replay) = &self.replay {
            return replay.next_wakeup();
        }
        let is_held = self.exclusion.as_ref().is_some_and(|e| e.is_holding());
        let waits_for_time = self.stage == Stage::Offering && self.in_flight < self.queue_depth && !is_held;
        waits_for_time.then(|| self.pacing.opens_at().min(self.ends_at))
    }

    /// Whether the measurements until now are to be forgotten, because the search has just found its depth: true once.
    #[inline]
    pub fn measures_anew(&mut self) -> bool {
        self.search.as_mut().is_some_and(|search| search.measures_anew())
    }

    /// What the search for a queue depth has come to; None if the job has none.
    pub fn searched(&self) -> Option<DepthSearchResult> {
        self.search.as_ref().map(|search| search.searched())
    }

    /// Whether the steady state that the job runs for was reached; None if it runs for none.
    pub fn steadiness(&self) -> Option<Steadiness> {
        self.until_steady.as_ref().map(|until| until.steadiness())
    }

    /// How faithful the replay of a trace has been; None if the job replays none.
    pub fn replayed(&self) -> Option<ReplayRecord> {
        self.replay.as_ref().map(|replay| replay.record())
    }

    /// Operations offered and not yet completed.
    pub fn in_flight(&self) -> u32 {
        self.replay.as_ref().map_or(self.in_flight, |replay| replay.in_flight())
    }

    /// How far the job is on the way to its nearest bound, 0 to 1.
    pub fn progress(&self, now: Time) -> Option<f64> {
        if let Some(replay) = &self.replay {
            return Some(replay.progress());
        }
        let bounds = [
            self.until.ops.map(|bound| (bound - self.ops_left, bound)),
            self.until.bytes.map(|bound| (bound - self.bytes_left, bound)),
            self.until.duration_ns.map(|bound| (now.min(bound), bound)),
        ];
        match self.stage {
            Stage::Done => Some(1.0),
            _ => bounds.into_iter().flatten().map(|(done, bound)| done as f64 / bound as f64).reduce(f64::max),
        }
    }

    /// The measured part ends before the job does. What is next are the syncs that are due where a job ends, one for
    /// each file written until then; afterwards, no longer measured and without pauses, what it still writes, so that
    /// files are whole. Nothing may be in flight. Once is enough.
    pub fn end_early(&mut self, now: Time) {
        if self.early_end.is_none() {
            let end = EarlyEnd::new(self.syncs.take_written(), now);
            self.early_end = Some(Box::new(end));
            self.is_followed = true;
        }
    }

    /// Whether it may write.
    #[inline]
    pub fn writes(&self) -> bool {
        self.writes
    }

    /// Whether what completes now belongs to what is measured; false in what follows an early end.
    #[inline]
    pub fn is_measured(&self) -> bool {
        self.early_end.as_ref().is_none_or(|end| end.is_syncing())
    }

    /// Offer nothing more, not even a sync; `Done` once nothing is in flight.
    pub fn stop(&mut self) {
        if let Some(replay) = &mut self.replay {
            return replay.stop();
        }
        self.syncs.cancel();
        self.stage = Stage::Finishing;
    }

    /// An operation that had to wait, or the next one; none if it overlaps one in flight. One that exceeds the bytes left
    /// is not to start, and so claims nothing.
    #[inline(never)]
    fn draw_exclusively(&mut self, now: Time) -> Option<Op> {
        let held = self.exclusion.as_mut().and_then(|exclusion| exclusion.take_held());
        let op = match held {
            None => self.draw(now),
            Some(op) => Op { due: self.pacing.due(now), ..op },
        };
        let starts = u64::from(op.bytes) > self.bytes_left || self.exclusion.as_mut().is_none_or(|e| e.admit(op));
        starts.then_some(op)
    }

    #[inline(always)]
    fn draw(&mut self, now: Time) -> Op {
        let kind = if self.direction.reads(&self.pacing) {
            OpKind::Read
        } else {
            self.durable.as_mut().map_or(OpKind::Write, DurableWrites::next)
        };
        let course = match &mut self.course_of_writes {
            Some(of_writes) if kind.is_write() => of_writes,
            _ => &mut self.course,
        };
        let place = course.next();
        Op { kind, file: place.file, offset: place.offset, bytes: place.bytes, due: self.pacing.due(now) }
    }

    /// Reports a completion to the search, and does what it asks for.
    #[cold]
    fn search_on(&mut self, now: Time, op: &Op, succeeded: bool) {
        let Some(search) = &mut self.search else {
            return;
        };
        if !op.kind.is_sync() {
            search.completed(now, now.saturating_sub(op.due), succeeded);
        }
        if self.in_flight == 0 {
            search.drained(now);
        }
        self.queue_depth = search.depth();
        if search.is_over() {
            self.ends_at = self.ends_at.min(now);
        }
    }

    /// Reports a completion to the search for a steady rate, and ends the job once it is.
    #[cold]
    fn look_for_steadiness(&mut self, now: Time, op: &Op) {
        let Some(until) = &mut self.until_steady else {
            return;
        };
        if !op.kind.is_sync() {
            until.completed(now, op.bytes);
        }
        if until.is_reached() {
            self.ends_at = self.ends_at.min(now);
        }
    }

    #[cold]
    fn finish(&mut self) -> Step {
        self.stage = Stage::Finishing;
        self.advance()
    }

    /// Before the time of the next operation: a sync that is due as soon as nothing else is.
    #[cold]
    fn sync_when_idle(&mut self) -> Step {
        if self.in_flight == 0 && self.syncs.is_due_when_idle() {
            self.stage = Stage::Draining;
            return self.advance();
        }
        Step::Offer
    }

    #[inline(always)]
    fn take(&mut self, step: Step, now: Time) -> JobStep {
        match step {
            Step::Sync(file) => {
                self.in_flight += 1;
                JobStep::Io(Op { kind: self.syncs.kind(), file, offset: 0, bytes: 0, due: now })
            }
            Step::Done => JobStep::Done,
            Step::Offer | Step::Wait => JobStep::WaitForCompletion,
        }
    }

    /// Goes through the stages as far as completions allow.
    #[cold]
    fn advance(&mut self) -> Step {
        loop {
            self.stage = match self.stage {
                Stage::Offering => return Step::Offer,
                Stage::Draining if !self.syncs.writes_in_flight() => {
                    self.syncs.begin_periodic();
                    Stage::Syncing
                }
                Stage::Finishing if self.in_flight == 0 => {
                    self.syncs.begin_final();
                    Stage::FinalSync
                }
                Stage::Syncing | Stage::FinalSync if self.in_flight < self.queue_depth => match self.syncs.start() {
                    Some(file) => return Step::Sync(file),
                    None if self.syncs.syncs_in_flight() => return Step::Wait,
                    None if self.stage == Stage::Syncing => Stage::Offering,
                    None => Stage::Done,
                },
                Stage::Done => return Step::Done,
                Stage::Replaying | Stage::Draining | Stage::Syncing | Stage::Finishing | Stage::FinalSync => {
                    return Step::Wait;
                }
            }
        }
    }
}

/// What a stage other than offering asks for. Small enough to come back in registers.
enum Step {
    Offer,
    Sync(u32),
    Wait,
    Done,
}

/// Whose turn it is. A type of its own: an operation that comes back through memory on the rare path as a `JobStep`
/// would have to be built in memory on the common one too.
enum Turn {
    /// The next operation's, offered at this time.
    Offer(Time),
    Other(JobStep),
}
