//! What a scheduler says as it works: data, which read as the kernel's trace messages do. Only CFQ says anything.
//!
//! Source of the texts: `block/cfq-iosched.c` of 2.6.35, the patches of July 2010, and 2.6.37.

use std::fmt;

use crate::block::{IoClass, TaskId};
use crate::scheduler::cfq::{Version, Workload};
use crate::time::Time;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SchedulerMessage {
    pub at: Time,
    /// Of which queue it speaks; None: of the scheduler as a whole.
    pub queue: Option<QueueName>,
    pub event: Event,
}

/// A queue by the task that it was made for and the group in which it stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueueName {
    pub task: TaskId,
    pub sync: bool,
    pub group: u16,
}

/// Durations are in ticks of the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    Inserted,
    JoinedLine,
    LeftLine,
    Activated {
        class: IoClass,
        workload: Workload,
    },
    SentToDevice,
    Dispatched,
    Completed {
        no_idle: bool,
    },
    SliceBegun {
        ticks: u64,
    },
    SliceExpired {
        timed_out: bool,
    },
    /// What was left of the slice, or overdrawn.
    Residual {
        ticks: i64,
    },
    SliceUsed {
        version: Version,
        ticks: u64,
        requests: u32,
        sectors: u64,
        charge: u64,
        /// The charge is in requests, not in ticks.
        by_requests: bool,
    },
    IdleArmed {
        version: Version,
        ticks: u64,
        on_group: bool,
    },
    IdleTimerFired,
    WaitsBusy,
    Preempted,
}

impl fmt::Display for SchedulerMessage {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.queue {
            Some(queue) => write!(out, "cfq{queue} {}", self.event),
            None => write!(out, "cfq {}", self.event),
        }
    }
}

/// The task for the process and the group's number for its path; the root's is the path alone.
impl fmt::Display for QueueName {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = if self.sync { 'S' } else { 'A' };
        write!(out, "{}{kind} /", self.task)?;
        if self.group > 0 {
            write!(out, "{}", self.group)?;
        }
        Ok(())
    }
}

impl fmt::Display for Event {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Event::Inserted => write!(out, "insert_request"),
            Event::JoinedLine => write!(out, "add_to_rr"),
            Event::LeftLine => write!(out, "del_from_rr"),
            Event::Activated { class, workload } => {
                let class = match class {
                    IoClass::BestEffort => 0,
                    IoClass::RealTime => 1,
                    IoClass::Idle => 2,
                };
                write!(out, "set_active wl_prio:{class} wl_type:{}", workload as u8)
            }
            Event::SentToDevice => write!(out, "dispatch_insert"),
            Event::Dispatched => write!(out, "dispatched a request"),
            Event::Completed { no_idle } => write!(out, "complete rqnoidle {}", u8::from(no_idle)),
            Event::SliceBegun { ticks } => write!(out, "set_slice={ticks}"),
            Event::SliceExpired { timed_out } => {
                write!(out, "slice expired t={}", u8::from(timed_out))
            }
            Event::Residual { ticks } => write!(out, "resid={ticks}"),
            Event::SliceUsed {
                version,
                ticks,
                requests,
                sectors,
                charge,
                by_requests,
            } => match version {
                Version::Linux2_6_35 => write!(out, "sl_used={ticks}"),
                Version::GroupIdleV2 => {
                    write!(out, "sl_used={ticks}, disp={requests} sect={sectors}")
                }
                Version::Linux2_6_37 => {
                    let iops = u8::from(by_requests);
                    write!(
                        out,
                        "sl_used={ticks} disp={requests} charge={charge} iops={iops} sect={sectors}"
                    )
                }
            },
            Event::IdleArmed {
                version,
                ticks,
                on_group,
            } => {
                write!(out, "arm_idle: {ticks}")?;
                if version.has_group_idle() {
                    write!(out, " group_idle: {}", u8::from(on_group))?;
                }
                Ok(())
            }
            Event::IdleTimerFired => write!(out, "idle timer fired"),
            Event::WaitsBusy => write!(out, "will busy wait"),
            Event::Preempted => write!(out, "preempt"),
        }
    }
}
