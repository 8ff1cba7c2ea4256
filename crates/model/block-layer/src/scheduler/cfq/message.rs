//! The messages of a scheduler at work: data, printed like the kernel's trace messages. Only CFQ has any.
//!
//! Source of the texts: `block/cfq-iosched.c` of 2.6.35, the patches of July 2010, and 2.6.37.

use std::fmt;

use crate::scheduler::cfq::queue::Workload;
use crate::scheduler::cfq::tunables::Version;
use crate::{IoClass, TaskId};
use events::time::Time;

/// One trace message of a scheduler.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SchedulerMessage {
    /// When it was written, in simulated time.
    pub at: Time,
    /// The queue that the message is about; None: the scheduler as a whole.
    pub queue: Option<QueueName>,
    /// What happened.
    pub event: Event,
}

/// A queue by the task that it was made for and the group in which it stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueueName {
    /// The task that it was made for.
    pub task: TaskId,
    /// Whether it holds sync requests.
    pub sync: bool,
    /// The number of its group; 0 is the root.
    pub group: u16,
}

/// Durations are in ticks of the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// A request came in (`insert_request`).
    Inserted,
    /// The queue was put into a service tree (`add_to_rr`).
    JoinedLine,
    /// The queue was taken out of its service tree (`del_from_rr`).
    LeftLine,
    /// The queue is served from now on (`set_active`).
    Activated {
        /// Its priority class.
        class: IoClass,
        /// Its kind of queue.
        workload: Workload,
    },
    /// A request went to the dispatch list (`dispatch_insert`).
    SentToDevice,
    /// A request left the scheduler (`dispatched a request`).
    Dispatched,
    /// The device is done with a request (`complete`).
    Completed {
        /// The request asked not to be idled for.
        no_idle: bool,
    },
    /// The slice's length was set (`set_slice`).
    SliceBegun {
        /// Its length.
        ticks: u64,
    },
    /// The slice is over (`slice expired`).
    SliceExpired {
        /// It was used up; else there was nothing left to serve, or another queue came first.
        timed_out: bool,
    },
    /// What was left of the slice, or overdrawn.
    Residual {
        /// Negative if it was overdrawn.
        ticks: i64,
    },
    /// What the slice is charged to its group (`sl_used`).
    SliceUsed {
        /// Whose text it is.
        version: Version,
        /// How long the queue was served.
        ticks: u64,
        /// Requests that were dispatched.
        requests: u32,
        /// Sectors of these.
        sectors: u64,
        /// What the group is charged.
        charge: u64,
        /// The charge is in requests, not in ticks.
        by_requests: bool,
    },
    /// The timer for idling was set (`arm_idle`).
    IdleArmed {
        /// Whose text it is.
        version: Version,
        /// For how long.
        ticks: u64,
        /// The group is idled for, not only the queue.
        on_group: bool,
    },
    /// The time of idling is over (`idle timer fired`).
    IdleTimerFired,
    /// The queue is kept until its next request although its slice is over (`will busy wait`).
    WaitsBusy,
    /// A queue took the device from the one that was served (`preempt`).
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
            Event::SliceUsed { version, ticks, requests, sectors, charge, by_requests } => match version {
                Version::Linux2_6_35 => write!(out, "sl_used={ticks}"),
                Version::GroupIdleV2 => {
                    write!(out, "sl_used={ticks}, disp={requests} sect={sectors}")
                }
                Version::Linux2_6_37 => {
                    let iops = u8::from(by_requests);
                    write!(out, "sl_used={ticks} disp={requests} charge={charge} iops={iops} sect={sectors}")
                }
            },
            Event::IdleArmed { version, ticks, on_group } => {
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
