//! Events of the model in the terms of the kernel's traces.

use std::collections::BTreeMap;

use trace::event::{Device, Marks, Op, Step, TraceEvent};

use block_layer::scheduler::SchedulerMessage;
use block_layer::{Direction, EventKind, QueueEvent, TaskId};
use events::time::Time;

/// What tasks are called, by their pids.
pub(super) fn names(tasks: &[(TaskId, String)]) -> BTreeMap<u32, String> {
    let names = tasks.iter();
    names.map(|(task, name)| (pid(*task), name.clone())).chain([(NOBODY, "<idle>".to_owned())]).collect()
}

/// An event of that device as traces show it, and a scheduler's own messages. `began`: the time that the trace calls 0.
pub(super) fn trace_event(event: &QueueEvent, device: Device, began: Time) -> (TraceEvent, Option<String>) {
    let mut message = None;
    let mut argument = 0;
    let step = match event.kind {
        EventKind::Queue => Step::Queue,
        EventKind::GetRequest => Step::GetRequest,
        EventKind::Sleep => Step::Sleep,
        EventKind::Insert => Step::Insert,
        EventKind::BackMerge => Step::BackMerge,
        EventKind::FrontMerge => Step::FrontMerge,
        EventKind::RequestMerge => Step::RequestMerge,
        EventKind::Issue => Step::Issue,
        EventKind::Complete => Step::Complete,
        EventKind::Plug => Step::Plug,
        EventKind::Unplug { requests, by_timer } => {
            argument = u64::from(requests);
            match by_timer {
                true => Step::TimerUnplug,
                false => Step::Unplug,
            }
        }
        EventKind::Message(said) => {
            message = Some(text(said));
            Step::Message
        }
    };
    let event = TraceEvent {
        sector: event.start,
        sectors: event.sectors,
        argument,
        device,
        pid: event.task.map_or(NOBODY, pid),
        cpu: event.cpu,
        op: match event.direction {
            Direction::Read => Op::Read,
            Direction::Write => Op::Write,
        },
        marks: marks(event),
        ..TraceEvent::new(event.at.saturating_sub(began), step)
    };
    (event, message)
}

fn marks(event: &QueueEvent) -> Marks {
    let marks = [
        // Kernels do not mark reads although a task waits for them.
        (event.sync && event.direction == Direction::Write, Marks::SYNC),
        (event.read_ahead, Marks::READ_AHEAD),
        (event.metadata, Marks::METADATA),
    ];
    let set = marks.into_iter().filter(|(set, _)| *set);
    set.fold(Marks::default(), |all, (_, mark)| all.with(mark))
}

/// The task in traces of a CPU that runs nothing.
const NOBODY: u32 = 0;

fn pid(task: TaskId) -> u32 {
    task + 1
}

/// With the pid that the queue's task has in the trace.
fn text(message: SchedulerMessage) -> String {
    let mut message = message;
    if let Some(queue) = &mut message.queue {
        queue.task = pid(queue.task);
    }
    message.to_string()
}
