//! Block events as the text that tracefs shows (`trace`), which trace-cmd, perf and scripts for either read.
//!
//! Source: `include/trace/events/block.h` of 5.x and 6.x (docs/model/sources/traces.md#ftrace). Requests are written
//! without their I/O priority, as until Linux 6.10. Times are rounded to microseconds, as tracefs does.

use std::collections::BTreeMap;
use std::fmt::Write;

use crate::event::{Step, TraceEvent, rwbs};
use base::SECTOR_BYTES;

/// An unfinished text. What is added must be in the order of time.
#[derive(Clone, Debug)]
pub struct Text {
    /// By pid, what the tasks are called.
    names: BTreeMap<u32, String>,
    cpus: u32,
    lines: u64,
    text: String,
}

/// The kernel's limit for a name.
const NAME_CHARACTERS: usize = 15;

impl Text {
    /// An empty text; `names` are the tasks' names by number.
    pub fn new(names: BTreeMap<u32, String>) -> Text {
        Text { names, cpus: 0, lines: 0, text: String::new() }
    }

    /// Appends an event, if it is one of the kernel's; events come in the order of time.
    pub fn add(&mut self, event: &TraceEvent) {
        let task = self.task(event);
        if let Some(text) = text(event, &task) {
            self.line(event, &task, &text);
        }
    }

    /// Appends a message of a scheduler: not an event of the kernel, but the blk tracer's line; a mark is what every
    /// reader takes for text.
    pub fn message(&mut self, event: &TraceEvent, text: &str) {
        let task = self.task(event);
        let (major, minor) = (event.device.major(), event.device.minor());
        let text = format!("tracing_mark_write: {major},{minor} m N {text}");
        self.line(event, &task, &text);
    }

    fn task(&self, event: &TraceEvent) -> String {
        match self.names.get(&event.pid) {
            Some(name) => name.chars().take(NAME_CHARACTERS).collect(),
            None => "<...>".to_owned(),
        }
    }

    fn line(&mut self, event: &TraceEvent, task: &str, text: &str) {
        self.cpus = self.cpus.max(u32::from(event.cpu) + 1);
        self.lines += 1;
        // The next of a half and more, also at the end of time.
        let microseconds = event.at_ns / 1000 + event.at_ns % 1000 / 500;
        // Writing into a String cannot fail.
        let _ = writeln!(
            self.text,
            "{task:>16}-{:<7} [{:03}] ..... {:>5}.{:06}: {text}",
            event.pid,
            event.cpu,
            microseconds / 1_000_000,
            microseconds % 1_000_000,
        );
    }

    /// The whole text, with the header that tracefs writes.
    pub fn finish(self) -> String {
        format!(
            "# tracer: nop\n#\n# entries-in-buffer/entries-written: {}/{}   #P:{}\n#\n{COLUMNS}{}",
            self.lines, self.lines, self.cpus, self.text
        )
    }
}

/// The event's name and its text in the event's own format (`print fmt`); None for an event without one.
fn text(event: &TraceEvent, task: &str) -> Option<String> {
    let device = format!("{},{}", event.device.major(), event.device.minor());
    let rwbs = rwbs(event.op, event.marks);
    let bytes = u64::from(event.sectors) * SECTOR_BYTES;
    let place = format!("{} + {}", event.sector, event.sectors);
    let argument = event.argument;
    let bio = |name| format!("{name}: {device} {rwbs} {place} [{task}]");
    let request = |name| format!("{name}: {device} {rwbs} {bytes} () {place} [{task}]");
    let ended = |name| format!("{name}: {device} {rwbs} () {place} [{}]", event.error);
    Some(match event.step {
        Step::Queue => bio("block_bio_queue"),
        Step::GetRequest => bio("block_getrq"),
        Step::Sleep => bio("block_sleeprq"),
        Step::BackMerge => bio("block_bio_backmerge"),
        Step::FrontMerge => bio("block_bio_frontmerge"),
        Step::RequestMerge => request("block_rq_merge"),
        Step::Insert => request("block_rq_insert"),
        Step::Issue => request("block_rq_issue"),
        Step::Requeue => ended("block_rq_requeue"),
        Step::Complete => ended("block_rq_complete"),
        Step::BioComplete => {
            format!("block_bio_complete: {device} {rwbs} {place} [{}]", event.error)
        }
        Step::Split => format!("block_split: {device} {rwbs} {} / {argument} [{task}]", event.sector),
        Step::Plug => format!("block_plug: [{task}]"),
        Step::Unplug => format!("block_unplug: [{task}] {argument}"),
        // Of its own name until 2.6.38; queues have no such timer any more.
        Step::TimerUnplug => format!("block_unplug_timer: [{task}] {argument}"),
        Step::Remap
        | Step::Message
        | Step::Arrival
        | Step::DeviceDone
        | Step::WholeDone
        | Step::Lost
        | Step::Restart => return None,
    })
}

const COLUMNS: &str = "\
#                                _-----=> irqs-off/BH-disabled
#                               / _----=> need-resched
#                              | / _---=> hardirq/softirq
#                              || / _--=> preempt-depth
#                              ||| / _-=> migrate-disable
#                              |||| /     delay
#           TASK-PID     CPU#  |||||  TIMESTAMP  FUNCTION
#              | |         |   |||||     |         |
";
