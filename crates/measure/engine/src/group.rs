//! A group at work: its jobs, its slots, and the two loops that drive them.

use std::io;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use base::time::Time;
use base::units::counted;
use base::usage::{Sample, Samples};
use workload::assemble::GroupMeasured;
use workload::job::{Job, JobStep, Op, OpKind};
use workload::measure::{Measure, Verdict, op_name};

use crate::backend::{Completion, IoQueue, Serial, WAIT_MAX_NS};
use crate::batch::Batcher;
use crate::buffers::Buffers;
use crate::clock::Clock;
use crate::contents::Contents;
use crate::io_log::IoLog;
use crate::progress::{Counts, PhaseState};
use crate::sleep::Sleeper;
use crate::usage::sample;
use crate::zones::Zones;

pub struct Group {
    pub index: usize,
    pub jobs: Vec<RunningJob>,
    /// Slot index = buffer index; each job owns a range of slots.
    pub slots: Vec<Slot>,
    pub contents: Contents,
    /// Zones that are emptied before they are written anew; None: there are none.
    pub zones: Option<Box<Zones>>,
    pub buffers: Rc<Buffers>,
    /// The paths of the phase's files, for error records.
    pub paths: Vec<String>,
    pub batch: Option<u32>,
    pub samples: Samples,
    pub shared: Arc<PhaseState>,
    /// The phase's first job that is done ends the measured part.
    pub ends_with_first: bool,
    /// The end of some of the phase's jobs stops the others.
    pub may_be_stopped: bool,
    pub notes: Vec<String>,
    pub log: Option<Box<IoLog>>,
    pub state: State,
}

#[derive(Debug, Default)]
pub struct State {
    in_flight: u32,
    jobs_done: usize,
    tick_at: Time,
    leave_at: Option<Time>,
    /// The end of other jobs has stopped those of this group.
    is_stopped: bool,
    /// Where the measured part ended, if another group's job was done first.
    cut: Option<Sample>,
}

pub struct RunningJob {
    name: String,
    /// Its end stops the phase's other jobs.
    stops: bool,
    job: Job,
    measure: Measure,
    idle: Vec<u32>,
    wake_at: Time,
    done: bool,
}

/// The operation in flight in a slot. In another order than in `Op` and copied field by field: a copy of the whole loads in
/// wider pieces than `Job::next` has just stored, and waits for each store (5 ns an operation).
#[derive(Clone, Copy)]
#[repr(C)]
pub struct Slot {
    due: Time,
    job: u32,
    file: u32,
    offset: u64,
    bytes: u32,
    kind: OpKind,
}

/// How often a thread looks for a stop, shows its progress and sees whether a sample is due.
const TICK_EVERY_NS: Time = 5_000_000;
/// The longest that finished operations wait for others to fill the batch, when the device stalls. Not less than a timer
/// tick, as arming a closer timer costs more than the batch saves.
const BATCH_WAIT_MAX_NS: Time = 4_000_000;
/// How long a stopped group waits for what is in flight.
const LEAVE_AFTER_NS: Time = 50_000_000;

const NEVER: Time = Time::MAX;

impl RunningJob {
    pub fn new(name: String, stops: bool, job: Job, measure: Measure, slots: std::ops::Range<u32>) -> RunningJob {
        // Taken from the end: low slots first, so that a shallow job reuses few buffers.
        RunningJob { name, stops, job, measure, idle: slots.rev().collect(), wake_at: NEVER, done: false }
    }

    #[cold]
    fn measure_anew(&mut self, now: Time, samples: &mut Samples) {
        self.measure.begin_anew(now);
        samples.add(sample(now));
    }
}

impl Slot {
    pub fn of(job: u32) -> Slot {
        Slot { due: 0, job, file: 0, offset: 0, bytes: 0, kind: OpKind::Read }
    }

    #[inline(always)]
    fn keep(&mut self, op: &Op) {
        self.due = op.due;
        self.file = op.file;
        self.offset = op.offset;
        self.bytes = op.bytes;
        self.kind = op.kind;
    }

    /// The operation, and the job whose it is.
    #[inline(always)]
    fn kept(&self) -> (Op, usize) {
        let Slot { due, job, file, offset, bytes, kind } = *self;
        (Op { kind, file, offset, bytes, due }, job as usize)
    }
}

impl Group {
    /// Until every job is done, or a stop has been waited out: then operations may still be in flight.
    pub fn run_queued<C: Clock, B: IoQueue>(&mut self, clock: C, backend: &mut B) -> io::Result<()> {
        let mut batcher = Batcher::new(self.batch);
        let mut sleeper = Sleeper::default();
        let mut now = clock.now();
        self.tick(now);
        self.offer_all(now, backend);
        while self.state.jobs_done < self.jobs.len() {
            let wake_at = self.next_wake();
            if now >= wake_at {
                self.wake(now, backend);
            } else if self.state.in_flight == 0 {
                sleeper.sleep_until(clock, wake_at.min(now + WAIT_MAX_NS));
            }
            if self.state.in_flight > 0 {
                let time_left = wake_at.saturating_sub(now + sleeper.lateness_ns());
                let want = if time_left == 0 { 0 } else { batcher.want(self.state.in_flight) };
                let longest = if want > 1 { BATCH_WAIT_MAX_NS } else { WAIT_MAX_NS };
                backend.submit(want, time_left.min(longest))?;
            }
            let mut reaped = 0;
            while reaped < batcher.most()
                && let Some(completion) = backend.reap()
            {
                now = clock.now();
                self.on_completion(completion, now, backend);
                reaped += 1;
            }
            if reaped == 0 {
                now = clock.now();
            }
            batcher.reaped(now, reaped);
            if now >= self.state.tick_at {
                let was_leaving = self.state.leave_at.is_some();
                let was_stopped = self.state.is_stopped;
                self.tick(now);
                if self.state.is_stopped && !was_stopped {
                    self.offer_all(now, backend);
                }
                if self.state.leave_at.is_some_and(|leave_at| now >= leave_at) {
                    break;
                }
                if self.state.leave_at.is_some() && !was_leaving {
                    backend.cancel();
                    self.offer_all(now, backend);
                }
            }
        }
        self.name_what_is_left();
        self.publish(now);
        Ok(())
    }

    pub fn run_serial<C: Clock, B: Serial>(&mut self, clock: C, backend: &mut B) {
        const SLOT: u32 = 0;
        let mut sleeper = Sleeper::default();
        let mut now = clock.now();
        self.tick(now);
        while self.state.jobs_done < self.jobs.len() {
            let mut wake_at = NEVER;
            for job in 0..self.jobs.len() {
                let running = &mut self.jobs[job];
                match running.job.next(now) {
                    JobStep::Io(op) => {
                        wake_at = now;
                        self.prepare(&op, SLOT);
                        let result = backend.execute(&op);
                        now = clock.now();
                        self.record(job, SLOT, &op, result, now);
                    }
                    JobStep::WaitUntil(time) => wake_at = wake_at.min(time),
                    JobStep::WaitForCompletion => {}
                    JobStep::Done => self.end(job),
                }
            }
            if self.ends_with_first && self.shared.first_done.load(Ordering::Relaxed) {
                self.cut(clock, backend);
                break;
            }
            if wake_at > now && self.state.jobs_done < self.jobs.len() {
                sleeper.sleep_until(clock, wake_at.min(now + WAIT_MAX_NS));
                now = clock.now();
            }
            if now >= self.state.tick_at {
                self.tick(now);
            }
        }
        self.publish(now);
    }

    /// Ends the measured part, with the syncs that belong to it; then writes what is left, so that who reads the files
    /// next finds them whole.
    #[cold]
    fn cut<C: Clock, B: Serial>(&mut self, clock: C, backend: &mut B) {
        let mut now = clock.now();
        // What each still writes, beginning with an operation that was offered.
        let mut rest: Vec<JobStep> = Vec::with_capacity(self.jobs.len());
        for running in &mut self.jobs {
            running.job.end_early(now);
            rest.push(loop {
                let next = running.job.next(now);
                let JobStep::Io(sync) = next else { break next };
                if !running.job.is_measured() {
                    break next;
                }
                let result = backend.execute(&sync);
                now = clock.now();
                if result == 0 {
                    running.measure.succeeded(now, &sync);
                } else {
                    let path = &self.paths[sync.file as usize];
                    running.measure.failed(now, &sync, -result, path, 0);
                }
                running.job.completed(now, &sync, Ok(0));
            });
        }
        self.state.cut = Some(sample(now));
        for (job, next) in rest.into_iter().enumerate() {
            self.complete_files(job, next, now, backend);
        }
    }

    fn complete_files<B: Serial>(&mut self, job: usize, mut next: JobStep, now: Time, backend: &mut B) {
        const SLOT: u32 = 0;
        while let JobStep::Io(op) = next {
            self.prepare(&op, SLOT);
            let running = &mut self.jobs[job];
            let result = backend.execute(&op);
            running.job.completed(now, &op, Ok(op.bytes));
            if result != op.bytes as i32 {
                self.notes.push(format!(
                    "job {:?}: its file is not whole, a {} after the measured part failed",
                    running.name,
                    op_name(op.kind)
                ));
                running.job.stop();
            }
            if self.shared.stop.load(Ordering::Relaxed) {
                running.job.stop();
            }
            next = running.job.next(now);
        }
    }

    /// The files are closed, and that belongs to the jobs.
    pub fn closed(&mut self, now: Time) {
        if self.state.cut.is_none() {
            self.jobs.iter_mut().for_each(|running| running.measure.finished_at(now));
        }
    }

    /// After the results are handed over: waits, for ever if need be, for what a hung device still owes, because the
    /// kernel writes into buffers that must not be freed before.
    pub fn drain<B: IoQueue>(&mut self, backend: &mut B) {
        while self.state.in_flight > 0 {
            if backend.submit(1, WAIT_MAX_NS).is_err() {
                std::mem::forget(Rc::clone(&self.buffers));
                return;
            }
            while backend.reap().is_some() {
                self.state.in_flight -= 1;
            }
        }
    }

    pub fn in_flight(&self) -> u32 {
        self.state.in_flight
    }

    /// Writes the log, if there is one; a failure is a note.
    pub fn write_log(&mut self, origin_ns: u64) {
        if let Some(Err(note)) = self.log.take().map(|log| log.write(origin_ns)) {
            self.notes.push(note);
        }
    }

    pub fn measured(&mut self, now: Time) -> GroupMeasured {
        GroupMeasured {
            jobs: self.jobs.drain(..).map(|running| running.measure.finish_of(&running.job)).collect(),
            notes: std::mem::take(&mut self.notes),
            samples: std::mem::replace(&mut self.samples, Samples::new(0, 1)),
            last_sample: self.state.cut.unwrap_or_else(|| sample(now)),
        }
    }

    #[cold]
    fn offer_all<B: IoQueue>(&mut self, now: Time, backend: &mut B) {
        for job in 0..self.jobs.len() {
            self.offer(job, now, backend);
        }
    }

    /// Asks the jobs whose time has come.
    #[cold]
    fn wake<B: IoQueue>(&mut self, now: Time, backend: &mut B) {
        for job in 0..self.jobs.len() {
            if now >= self.jobs[job].wake_at {
                self.jobs[job].wake_at = NEVER;
                self.offer(job, now, backend);
            }
        }
    }

    /// Records a completion, and puts the job's next operation in its place, without a detour through the idle slots.
    #[inline(always)]
    fn on_completion<B: IoQueue>(&mut self, completion: Completion, now: Time, backend: &mut B) {
        let Completion { slot, result } = completion;
        let (op, job) = self.slots[slot as usize].kept();
        let running = self.record(job, slot, &op, result, now);
        match running.job.next(now) {
            JobStep::Io(op) if running.idle.is_empty() => self.push(slot, &op, backend),
            JobStep::Io(op) => {
                self.push(slot, &{ op }, backend);
                self.offer(job, now, backend);
            }
            JobStep::WaitUntil(time) => {
                running.wake_at = time;
                self.leave_idle(slot, job);
            }
            JobStep::WaitForCompletion => self.leave_idle(slot, job),
            JobStep::Done => {
                self.leave_idle(slot, job);
                self.end(job);
            }
        }
    }

    /// Fills the job's idle slots with what it has to offer.
    #[cold]
    fn offer<B: IoQueue>(&mut self, job: usize, now: Time, backend: &mut B) {
        while let Some(&slot) = self.jobs[job].idle.last() {
            match self.jobs[job].job.next(now) {
                JobStep::Io(op) => {
                    self.jobs[job].idle.pop();
                    self.state.in_flight += 1;
                    self.push(slot, &op, backend);
                }
                JobStep::WaitUntil(time) => return self.jobs[job].wake_at = time,
                JobStep::WaitForCompletion => return,
                JobStep::Done => return self.end(job),
            }
        }
    }

    #[inline(always)]
    fn push<B: IoQueue>(&mut self, slot: u32, op: &Op, backend: &mut B) {
        self.slots[slot as usize].keep(op);
        self.prepare(op, slot);
        backend.push(slot, op);
    }

    /// Before an operation starts.
    #[inline(always)]
    fn prepare(&mut self, op: &Op, slot: u32) {
        if let Some(zones) = &self.zones {
            zones.prepare(op);
        }
        self.contents.prepare(op, &self.buffers, slot);
    }

    #[cold]
    fn leave_idle(&mut self, slot: u32, job: usize) {
        self.jobs[job].idle.push(slot);
        self.state.in_flight -= 1;
    }

    /// The job offers nothing more.
    #[cold]
    fn end(&mut self, job: usize) {
        let running = &mut self.jobs[job];
        if !running.done {
            running.done = true;
            self.state.jobs_done += 1;
            self.shared.job_done(running.stops);
        }
    }

    /// Records an operation that has ended, and returns the job whose it was. Who hears of it on rare paths alone gets
    /// a copy: the common path then keeps the operation in registers.
    #[inline(always)]
    fn record(&mut self, job: usize, slot: u32, op: &Op, result: i32, now: Time) -> &mut RunningJob {
        if let Some(log) = &mut self.log {
            log.add(*op, now, result);
        }
        if !op.has_completed(result) {
            return self.record_failure(job, slot, *op, result, now);
        }
        let running = &mut self.jobs[job];
        if let Contents::Stamps(stamps) = &self.contents {
            let report = |wrong| running.measure.mismatched(wrong);
            stamps.finish(&{ *op }, true, &self.buffers, slot, report);
        }
        running.measure.succeeded(now, op);
        running.job.completed(now, op, Ok(op.bytes));
        if running.job.measures_anew() {
            running.measure_anew(now, &mut self.samples);
        }
        running
    }

    #[cold]
    fn record_failure(&mut self, job: usize, slot: u32, op: Op, result: i32, now: Time) -> &mut RunningJob {
        if let Contents::Stamps(stamps) = &self.contents {
            stamps.finish(&op, false, &self.buffers, slot, |_| {});
        }
        self.failed(job, &op, result, now);
        let running = &mut self.jobs[job];
        if running.job.measures_anew() {
            running.measure_anew(now, &mut self.samples);
        }
        running
    }

    fn failed(&mut self, job: usize, op: &Op, result: i32, now: Time) {
        let running = &mut self.jobs[job];
        let errno = if result < 0 { -result } else { 0 };
        if op.kind.clears() && errno == libc::EOPNOTSUPP {
            return running.job.refused(now, op);
        }
        running.job.completed(now, op, Err(errno));
        if errno == libc::ECANCELED && self.state.leave_at.is_some() {
            return;
        }
        let verdict = running.measure.failed(now, op, errno, &self.paths[op.file as usize], op.offset);
        if verdict == Verdict::GiveUp && self.state.leave_at.is_none() {
            let reason = running.measure.last_failure().map_or("", |failure| &failure.name);
            let note = format!("job {:?} gave up: {} failed with {reason}", running.name, op_name(op.kind));
            if !self.notes.contains(&note) {
                self.notes.push(note);
            }
            running.job.stop();
        }
    }

    fn next_wake(&self) -> Time {
        self.jobs.iter().map(|running| running.wake_at).min().unwrap_or(NEVER)
    }

    #[cold]
    fn tick(&mut self, now: Time) {
        self.publish(now);
        if now >= self.samples.due() {
            self.samples.add(sample(now));
        }
        if self.state.leave_at.is_none() && self.shared.stop.load(Ordering::Relaxed) {
            self.state.leave_at = Some(now + LEAVE_AFTER_NS);
            self.jobs.iter_mut().for_each(|running| running.job.stop());
        }
        if self.may_be_stopped && !self.state.is_stopped && self.shared.others_are_done() {
            self.state.is_stopped = true;
            self.jobs.iter_mut().for_each(|running| running.job.stop());
        }
        self.state.tick_at = (now + TICK_EVERY_NS).min(self.samples.due());
    }

    fn publish(&self, now: Time) {
        let jobs = self.jobs.iter();
        // Who is stopped by others is as far as they are.
        let fractions = jobs.clone().map(|running| match self.may_be_stopped && !running.stops {
            true => Some(1.0),
            false => running.job.progress(now),
        });
        self.shared.groups[self.index].store(Counts {
            ops: jobs.clone().map(|running| running.measure.ops).sum(),
            bytes: jobs.clone().map(|running| running.measure.bytes).sum(),
            errors: jobs.map(|running| running.measure.errors()).sum(),
            fraction: fractions.reduce(|a, b| a.zip(b).map(|(a, b)| a.min(b))).flatten(),
        });
    }

    fn name_what_is_left(&mut self) {
        for running in self.jobs.iter().filter(|running| running.job.in_flight() > 0) {
            let count = running.job.in_flight();
            self.notes.push(format!(
                "job {:?}: {} had not come back when it was left",
                running.name,
                counted(count, "operation")
            ));
        }
    }
}
