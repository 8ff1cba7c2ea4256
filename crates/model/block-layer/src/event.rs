//! What a queue emits while a probe is attached: the events of block traces, as plain data.

use crate::scheduler::{Scheduler, SchedulerMessage};
use crate::{Bio, Direction, Request, Sector, TaskId};
use events::time::Time;

/// Something happened to a bio, a request or the queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueueEvent {
    /// When it happened.
    pub at: Time,
    /// The number under which the queue was tapped.
    pub drive: u16,
    /// What happened.
    pub kind: EventKind,
    /// On whose behalf; None of completions and of what the queue and its scheduler do by themselves.
    pub task: Option<TaskId>,
    /// The CPU on which a request's first bio was submitted; for a completion, the CPU on which it was done.
    pub cpu: u16,
    /// Read or write; only events with sectors have a direction.
    pub direction: Direction,
    /// A task waits for it.
    pub sync: bool,
    /// The I/O is for filesystem metadata.
    pub metadata: bool,
    /// Nobody has asked for the data yet.
    pub read_ahead: bool,
    /// 0 and 0 of what is not about sectors.
    pub start: Sector,
    /// Length in sectors of 512 bytes.
    pub sectors: u32,
}

/// With the letters that blktrace has for them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventKind {
    /// Q: a bio has come.
    Queue,
    /// G: it became a request.
    GetRequest,
    /// S: there was no request for it; its task sleeps until there is one. Q is not emitted again then.
    Sleep,
    /// M: it joined a request at its end.
    BackMerge,
    /// F: it joined a request at its beginning.
    FrontMerge,
    /// A request joined the one before it; the sectors are those of the one that joined.
    RequestMerge,
    /// I: a request was given to the scheduler.
    Insert,
    /// D: a request goes to the device.
    Issue,
    /// C: the device is done with it.
    Complete,
    /// P: the queue holds back what it has.
    Plug,
    /// U, UT: it lets go.
    Unplug {
        /// The requests that are allocated then, as kernels before 2.6.39 count them.
        requests: u32,
        /// The plug's timer has expired: UT.
        by_timer: bool,
    },
    /// m: a message of the scheduler.
    Message(SchedulerMessage),
}

/// Where events go. Off, it costs a look at a bool: nothing else of it is called then.
#[derive(Clone, Debug, Default)]
pub(super) struct Tap {
    on: bool,
    drive: u16,
    events: Vec<QueueEvent>,
    /// Bios that came and found no request: they will come again.
    waiting: Vec<WaitingBio>,
    messages: Vec<SchedulerMessage>,
    /// As it was emitted last.
    plugged: bool,
    /// The CPU of the bio or request that came last: the queue does there what it does by itself.
    cpu: u16,
}

type WaitingBio = (TaskId, Direction, Sector, u32);

impl Tap {
    pub(super) fn open(&mut self, drive: u16, plugged: bool) {
        *self = Tap { on: true, drive, plugged, ..Tap::default() };
    }

    #[inline]
    pub(super) fn is_on(&self) -> bool {
        self.on
    }

    pub(super) fn drain(&mut self, into: &mut Vec<QueueEvent>) {
        into.append(&mut self.events);
    }

    /// A bio comes, perhaps not for the first time.
    #[cold]
    pub(super) fn came(&mut self, now: Time, bio: &Bio) {
        let own = waiting(bio);
        match self.waiting.iter().position(|other| *other == own) {
            Some(place) => {
                self.waiting.remove(place);
            }
            None => self.bio(now, EventKind::Queue, bio),
        }
    }

    #[cold]
    pub(super) fn must_wait(&mut self, now: Time, bio: &Bio) {
        self.waiting.push(waiting(bio));
        self.bio(now, EventKind::Sleep, bio);
    }

    #[cold]
    pub(super) fn bio(&mut self, now: Time, kind: EventKind, bio: &Bio) {
        self.cpu = bio.cpu;
        self.events.push(QueueEvent {
            at: now,
            drive: self.drive,
            kind,
            task: Some(bio.task),
            cpu: bio.cpu,
            direction: bio.direction,
            sync: bio.sync,
            metadata: bio.metadata,
            read_ahead: bio.read_ahead,
            start: bio.start,
            sectors: bio.sectors,
        });
    }

    #[cold]
    pub(super) fn completed(&mut self, now: Time, request: &Request, cpu: u16) {
        self.request(now, EventKind::Complete, request);
        let event = self.events.last_mut().expect("just emitted");
        event.task = None;
        event.cpu = cpu;
        self.cpu = cpu;
    }

    #[cold]
    pub(super) fn request(&mut self, now: Time, kind: EventKind, request: &Request) {
        self.cpu = request.cpu;
        self.events.push(QueueEvent {
            at: now,
            drive: self.drive,
            kind,
            task: Some(request.task),
            cpu: request.cpu,
            direction: request.direction,
            sync: request.sync,
            metadata: request.metadata,
            read_ahead: request.read_ahead,
            start: request.start,
            sectors: request.sectors,
        });
    }

    /// Whether the queue is plugged now, and how many requests are allocated: reports a change. `by`: whose request
    /// it was that plugged it.
    #[cold]
    pub(super) fn plug(&mut self, now: Time, plugged: bool, requests: u32, by_timer: bool, by: Option<&Request>) {
        if self.plugged == plugged {
            return;
        }
        self.plugged = plugged;
        let kind = match plugged {
            true => EventKind::Plug,
            false => EventKind::Unplug { requests, by_timer },
        };
        let event = QueueEvent { task: by.map(|request| request.task), ..self.without_sectors(now, kind) };
        self.events.push(event);
    }

    /// The scheduler's messages since the last call.
    #[cold]
    pub(super) fn drain_messages(&mut self, scheduler: &mut dyn Scheduler) {
        let mut messages = std::mem::take(&mut self.messages);
        scheduler.take_messages(&mut messages);
        for message in messages.drain(..) {
            let event = self.without_sectors(message.at, EventKind::Message(message));
            self.events.push(event);
        }
        self.messages = messages;
    }

    fn without_sectors(&self, at: Time, kind: EventKind) -> QueueEvent {
        QueueEvent {
            at,
            drive: self.drive,
            kind,
            task: None,
            cpu: self.cpu,
            direction: Direction::Read,
            sync: false,
            metadata: false,
            read_ahead: false,
            start: 0,
            sectors: 0,
        }
    }
}

fn waiting(bio: &Bio) -> WaitingBio {
    (bio.task, bio.direction, bio.start, bio.sectors)
}

#[cfg(test)]
mod tests;
