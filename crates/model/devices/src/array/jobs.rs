//! What the disks are asked to do, in steps: each step's accesses are all sent, and the next follows when the last is
//! back.

use crate::array::layout::{Piece, Range};
use crate::array::{Array, Event};
use crate::commands_inside::CommandId;
use block_layer::Direction;
use events::time::Time;

#[derive(Clone, Debug, Default)]
pub(super) struct Jobs {
    jobs: Vec<Job>,
    free: Vec<u32>,
}

#[derive(Clone, Debug, Default)]
struct Job {
    accesses: u32,
    step: Option<Step>,
    /// Who waits for it. Kept with the number, so that no room is asked for each time.
    waiting: Vec<CommandId>,
}

#[derive(Clone, Debug)]
pub(super) enum Step {
    Fetch {
        lines: Range,
    },
    /// Reading what the new parity is made of.
    Gather {
        stripe: u64,
        ranges: Vec<Range>,
    },
    Write {
        stripe: u64,
    },
}

impl Jobs {
    /// Jobs that there is room for.
    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.jobs.len()
    }

    /// A job's number.
    pub(super) fn begin(&mut self, step: Step) -> u32 {
        let job = self.free.pop().unwrap_or_else(|| {
            self.jobs.push(Job::default());
            self.jobs.len() as u32 - 1
        });
        self.jobs[job as usize].step = Some(step);
        job
    }

    /// The command waits for the job from now on; false: it did already.
    pub(super) fn wait_for(&mut self, job: u32, id: CommandId) -> bool {
        let waiting = &mut self.jobs[job as usize].waiting;
        let is_new = waiting.last() != Some(&id);
        if is_new {
            waiting.push(id);
        }
        is_new
    }

    /// True if that was the step's last.
    fn access_done(&mut self, job: u32) -> bool {
        let accesses = &mut self.jobs[job as usize].accesses;
        *accesses -= 1;
        *accesses == 0
    }
}

impl Array {
    pub(super) fn send(&mut self, now: Time, direction: Direction, pieces: &[Piece], job: u32) {
        self.jobs.jobs[job as usize].accesses = pieces.len() as u32;
        for piece in pieces {
            self.back_end.send(now, direction, piece, job);
        }
    }

    /// One of a job's accesses is done, and after the last of its step the next one follows.
    pub(super) fn access_done(&mut self, now: Time, job: u32) {
        if !self.jobs.access_done(job) {
            return;
        }
        match self.jobs.jobs[job as usize].step.take() {
            Some(Step::Fetch { lines }) => {
                for line in lines {
                    self.lines.arrive(line);
                }
                self.end_job(now, job);
            }
            Some(Step::Gather { stripe, ranges }) => {
                self.jobs.jobs[job as usize].step = Some(Step::Write { stripe });
                self.write_gathered(now, stripe, &ranges, job);
            }
            Some(Step::Write { stripe }) => {
                // Nobody waits for what the cache has acknowledged.
                if self.jobs.jobs[job as usize].waiting.is_empty() {
                    self.destaged(now, stripe);
                }
                self.end_job(now, job);
                self.destage(now);
            }
            None => unreachable!("a job has a step as long as it has accesses"),
        }
    }

    fn end_job(&mut self, now: Time, job: u32) {
        let mut waiting = std::mem::take(&mut self.jobs.jobs[job as usize].waiting);
        for id in waiting.drain(..) {
            if self.inside.part_done(id) {
                match self.inside.command(id).direction {
                    Direction::Read => self.answer_read(now, id),
                    Direction::Write => self.events.put(now, Event::Complete(id)),
                }
            }
        }
        self.jobs.jobs[job as usize].waiting = waiting;
        self.jobs.free.push(job);
    }
}
