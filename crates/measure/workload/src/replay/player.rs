//! The job that replays: what next, what completed, when to be asked again.

use std::sync::Arc;

use super::fidelity::{Fidelity, ReplayRecord};
use super::places::AddressMap;
use super::waits::{OfferedIo, Waits};
use crate::job_error::JobError;
use crate::op::{JobStep, Op};
use crate::spec::JobSpec;
use crate::traced::{ReplaySpec, Schedule, ScheduledIo, Timing};
use base::time::Time;

/// A trace's I/Os, or those of some of its processes, on their way.
#[derive(Clone, Debug)]
pub(crate) struct Replay {
    schedule: Arc<Schedule>,
    places: AddressMap,
    files: Vec<u32>,
    turns: Turns,
    scale: Scale,
    start: Time,
    ends_at: Time,
    queue_depth: u32,
    in_flight: u32,
    /// When all of the queue depth was in flight last.
    full_until: Option<Time>,
    left: u64,
    total: u64,
    stopped: bool,
    fidelity: Fidelity,
}

/// Which comes next.
#[derive(Clone, Debug)]
enum Turns {
    /// Numbers in the schedule, and how many are through.
    Recorded(Vec<u32>, usize),
    Dependent(Box<Waits>),
}

/// From times of the trace to times of the replay: a factor in units of 2^-32.
#[derive(Clone, Copy, Debug)]
struct Scale(u128);

impl Scale {
    fn of(self, time: Time) -> Time {
        ((u128::from(time) * self.0) >> 32) as Time
    }
}

impl Replay {
    /// `spec` has passed `check`, but for what only the schedule shows; `file_sizes` are those of the phase.
    pub(crate) fn new(job: &JobSpec, spec: &ReplaySpec, file_sizes: &[u64]) -> Result<Replay, JobError> {
        let wrong = |message: String| JobError { job: job.name.clone(), key: "replay", message };
        let Some(schedule) = &spec.schedule else {
            return Err(wrong("its trace was not read".into()));
        };
        let digest = schedule.digest();
        if digest != spec.digest {
            return Err(wrong(format!(
                "{}: not the trace that the run began with ({digest} instead of {})",
                spec.trace.paths.join(" "),
                spec.digest
            )));
        }
        let sizes: Vec<u64> = job.files.iter().map(|&file| file_sizes[file as usize]).collect();
        let places =
            AddressMap::new(schedule, spec.mapping, spec.region_bytes, job.align_bytes, &sizes).map_err(wrong)?;
        let scale = Scale((spec.time_scale * 2f64.powi(32)) as u128);
        let last = spec.threads - 1;
        let mine = |process: u32| process.min(last) == spec.thread;
        let start = job.start_ns.unwrap_or(0);
        let indices = (0..).zip(&schedule.ios);
        let own: Vec<u32> = indices.filter(|(_, io)| mine(io.process)).map(|(index, _)| index).collect();
        let fidelity = Fidelity::new(own.iter().map(|&index| &schedule.ios[index as usize]));
        let total = own.len() as u64;
        let turns = match spec.timing {
            Timing::Recorded => Turns::Recorded(own, 0),
            Timing::Dependent => {
                let waits = Waits::new(schedule, mine, |time| scale.of(time), start);
                Turns::Dependent(Box::new(waits))
            }
        };
        Ok(Replay {
            schedule: Arc::clone(schedule),
            places,
            files: job.files.clone(),
            turns,
            scale,
            start,
            ends_at: job.until.duration_ns.unwrap_or(Time::MAX),
            queue_depth: job.queue_depth,
            in_flight: 0,
            full_until: None,
            left: total,
            total,
            stopped: false,
            fidelity,
        })
    }

    /// As `Job::next`.
    pub(crate) fn next(&mut self, now: Time) -> JobStep {
        if self.is_over(now) {
            return match self.in_flight {
                0 => JobStep::Done,
                _ => JobStep::WaitForCompletion,
            };
        }
        if self.in_flight >= self.queue_depth {
            return JobStep::WaitForCompletion;
        }
        match self.opens_at() {
            None => JobStep::WaitForCompletion,
            Some(at) if now < at => JobStep::WaitUntil(at.min(self.ends_at)),
            Some(_) => self.offer(now),
        }
    }

    /// As `Job::completed`.
    pub(crate) fn completed(&mut self, now: Time, op: &Op) {
        if self.in_flight == self.queue_depth {
            self.full_until = Some(now);
        }
        self.in_flight -= 1;
        self.fidelity.ended(now);
        if let Turns::Dependent(waits) = &mut self.turns {
            waits.completed(now, op);
        }
    }

    /// As `Job::refused`, before `completed`.
    pub(crate) fn refused(&mut self) {
        self.fidelity.refused();
    }

    /// As `Job::next_wakeup`.
    pub(crate) fn next_wakeup(&self) -> Option<Time> {
        let waits_for_time = !self.stopped && self.left > 0 && self.in_flight < self.queue_depth;
        let at = waits_for_time.then(|| self.opens_at())?;
        Some(at?.min(self.ends_at))
    }

    /// Operations offered and not yet completed.
    pub(crate) fn in_flight(&self) -> u32 {
        self.in_flight
    }

    /// Offer nothing more.
    pub(crate) fn stop(&mut self) {
        self.stopped = true;
    }

    /// 0 to 1.
    pub(crate) fn progress(&self) -> f64 {
        1.0 - self.left as f64 / self.total.max(1) as f64
    }

    /// How faithful it has been.
    pub(crate) fn record(&self) -> ReplayRecord {
        self.fidelity.record()
    }

    fn is_over(&self, now: Time) -> bool {
        self.stopped || self.left == 0 || now >= self.ends_at
    }

    fn opens_at(&self) -> Option<Time> {
        match &self.turns {
            Turns::Recorded(own, next) => {
                let &index = own.get(*next)?;
                Some(self.planned(&self.schedule.ios[index as usize]))
            }
            Turns::Dependent(waits) => waits.opens_at(),
        }
    }

    fn planned(&self, io: &ScheduledIo) -> Time {
        self.start.saturating_add(self.scale.of(io.at_ns))
    }

    /// The one that is due.
    fn offer(&mut self, now: Time) -> JobStep {
        let taken = match &mut self.turns {
            Turns::Recorded(own, next) => {
                let index = own[*next];
                *next += 1;
                Some(OfferedIo { index, due: 0, owner: (0, 0) })
            }
            Turns::Dependent(waits) => waits.take(now),
        };
        let Some(taken) = taken else {
            return JobStep::WaitForCompletion;
        };
        let io = self.schedule.ios[taken.index as usize];
        let planned = self.planned(&io);
        let due = match &self.turns {
            Turns::Recorded(..) => planned,
            Turns::Dependent(_) => taken.due,
        };
        let op = self.op(&io, due);
        if let Turns::Dependent(waits) = &mut self.turns {
            waits.started(&op, taken.owner);
        }
        self.left -= 1;
        self.in_flight += 1;
        self.fidelity.began(now, due, planned, self.full_until);
        JobStep::Io(op)
    }

    fn op(&self, io: &ScheduledIo, due: Time) -> Op {
        let place = self.places.of(io.device, io.sector, io.sectors);
        let file = self.files[place.slot as usize];
        match io.kind.is_sync() {
            true => Op { kind: io.kind, file, offset: 0, bytes: 0, due },
            false => Op { kind: io.kind, file, offset: place.offset, bytes: place.bytes, due },
        }
    }
}
