//! Mounts of the machine: direct I/O on their files is a request to the NFS client, which returns its cost for the
//! task.

use workload::job::{Op, OpKind};

use super::clock::Event;
use super::task::{Action, Operation};
use super::{Path, World};
use crate::key_reader::KeyReader;
use block_layer::TaskId;
use events::Component;
use events::time::Time;
use nfs::{self, DirectIo, Request};

impl World {
    /// The NFS client of each mount.
    pub fn mounts(&self) -> impl Iterator<Item = &DirectIo> {
        self.vfs.mounts()
    }

    pub(super) fn start_on_mount(&mut self, now: Time, number: TaskId, job: usize, op: Op, mount: usize) {
        let Some(operation) = operation(op.kind) else {
            // What is written directly is on the server when it completes.
            self.succeeded(now, number, job, &op);
            return;
        };
        let task = &mut self.tasks[number];
        match task.path() {
            Path::Direct => task.block(),
            _ => task.unblock(),
        }
        task.submitted();
        let id = self.operations.put(Operation { task: number, job, op, syncs_after: false, bios_left: 0 });
        let request = Request { tag: id.number(), thread: number, operation, bytes: op.bytes };
        self.touched.insert(KeyReader::Mount(mount as u16));
        self.vfs.mount_mut(mount).start(now, request);
        self.call_back_mount(now, mount);
    }

    /// The CPU time of an action on a mount, all of it spent before the call; None: it is not on one.
    pub(super) fn mount_cost(&mut self, number: TaskId, action: Action) -> Option<Time> {
        if !self.vfs.has_mounts() {
            return None;
        }
        let (op, reaps) = match action {
            Action::Start(_, op) | Action::Sync(_, op) => (op, false),
            Action::Reap(id) => (self.operations[id].op, true),
        };
        let mount = self.vfs.mount_of(self.phase.file(op.file))?;
        match operation(op.kind) {
            Some(operation) if !reaps => Some(self.vfs.mount_mut(mount).cpu_ns(number, operation)),
            _ => Some(0),
        }
    }

    /// Collects what the mount has done.
    pub(super) fn run_mount(&mut self, now: Time, number: usize) {
        let mount = self.vfs.mount_mut(number);
        mount.event_came(now);
        mount.advance(now);
        let mut done = mount.effects();
        for tag in done.drain(..) {
            self.complete_operation(now, self.operations.id(tag));
        }
        self.vfs.mount_mut(number).give_back(done);
        self.go_on_alone(number);
        self.call_back_mount(now, number);
    }

    /// Until the world's next event nobody but the mount does anything, and of that the world hears only what is done.
    /// To be called when all that follows from the present is in the event queue.
    fn go_on_alone(&mut self, number: usize) {
        let times = [self.clock.next_at(), self.cpus.next_event()];
        let next = times.into_iter().flatten().min();
        let mount = self.vfs.mount_mut(number);
        // With nothing in flight a phase may be over, and the next one begins now.
        while mount.in_flight() > 0
            && let Some(at) = mount.next_event()
            && next.is_none_or(|next| at < next)
        {
            mount.advance(at);
            if mount.has_effects() {
                self.clock.put(at, Event::Mount(number as u16));
                return;
            }
        }
    }

    fn call_back_mount(&mut self, now: Time, number: usize) {
        let event = Event::Mount(number as u16);
        self.vfs.mount_mut(number).call_back(now, event, &mut self.clock);
    }
}

fn operation(kind: OpKind) -> Option<nfs::Operation> {
    match kind {
        OpKind::Read => Some(nfs::Operation::Read),
        OpKind::Write | OpKind::DurableWrite | OpKind::OsyncWrite | OpKind::WriteZeroes => Some(nfs::Operation::Write),
        OpKind::Fsync | OpKind::Fdatasync | OpKind::SyncFileRange | OpKind::Discard => None,
    }
}
