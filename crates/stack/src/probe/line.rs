//! Events of the model in the terms of the kernel's traces.

use std::collections::BTreeMap;

use trace::block::{Device, Flags, Op, TraceLine, What};

use block_layer::scheduler::SchedulerMessage;
use block_layer::{Direction, EventKind, QueueEvent, TaskId};
use events::time::Time;
use memory::cache::{FLUSHER, JOURNAL, OLD_DATA_FLUSHER};

/// The number of a drive's device: that of the SCSI disks sda, sdb, ...
pub fn device(drive: u16) -> Device {
    Device::new(8, 16 * u32::from(drive))
}

/// sda, ..., sdz, sdaa, ...
pub(super) fn device_name(drive: u16) -> String {
    let (mut letters, mut left) = (Vec::new(), u32::from(drive) + 1);
    while left > 0 {
        letters.push(char::from(b'a' + ((left - 1) % 26) as u8));
        left = (left - 1) / 26;
    }
    format!("sd{}", letters.iter().rev().collect::<String>())
}

/// What tasks are called, by their pids: those of the phase, and the machine's own.
pub(super) fn names(tasks: &[(TaskId, String)]) -> BTreeMap<u32, String> {
    let own = [
        (FLUSHER, "flusher"),
        (OLD_DATA_FLUSHER, "old_flusher"),
        (JOURNAL, "journal"),
    ];
    let of_phase = tasks.iter().map(|(task, name)| (*task, name.as_str()));
    let names = of_phase.chain(own);
    names
        .map(|(task, name)| (pid(task), name.to_owned()))
        .chain([(NOBODY, "<idle>".to_owned())])
        .collect()
}

/// `began`: the time that the trace calls 0.
pub(super) fn line(event: &QueueEvent, began: Time) -> TraceLine {
    TraceLine {
        at_ns: event.at.saturating_sub(began),
        cpu: u32::from(event.cpu),
        device: device(event.drive),
        pid: event.task.map_or(NOBODY, pid),
        sector: event.start,
        sectors: event.sectors,
        op: match event.direction {
            Direction::Read => Op::Read,
            Direction::Write => Op::Write,
        },
        flags: Flags {
            // Kernels do not mark reads although somebody waits for them.
            sync: event.sync && event.direction == Direction::Write,
            read_ahead: event.read_ahead,
            metadata: event.metadata,
        },
        error: 0,
        what: what(event.kind),
    }
}

/// Of whom traces say that nobody runs.
const NOBODY: u32 = 0;

fn pid(task: TaskId) -> u32 {
    task + 1
}

fn what(kind: EventKind) -> What {
    match kind {
        EventKind::Queue => What::Queue,
        EventKind::GetRequest => What::GetRequest,
        EventKind::Sleep => What::Sleep,
        EventKind::Insert => What::Insert,
        EventKind::BackMerge => What::BackMerge,
        EventKind::FrontMerge => What::FrontMerge,
        EventKind::RequestMerge => What::RequestMerge,
        EventKind::Issue => What::Issue,
        EventKind::Complete => What::Complete,
        EventKind::Plug => What::Plug,
        EventKind::Unplug { requests, by_timer } => What::Unplug {
            requests: u64::from(requests),
            by_timer,
        },
        EventKind::Message(message) => What::Message(text(message)),
    }
}

/// With the pid that the queue's task has in the trace.
fn text(message: SchedulerMessage) -> String {
    let mut message = message;
    if let Some(queue) = &mut message.queue {
        queue.task = pid(queue.task);
    }
    message.to_string()
}
