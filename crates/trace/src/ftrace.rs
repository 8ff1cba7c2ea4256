//! Block events as the text that tracefs shows (`trace`), which trace-cmd, perf and scripts for either read.
//!
//! Source: note on block-trace formats (`include/trace/events/block.h`). Requests are told without their I/O priority, as
//! until Linux 6.10. Times are rounded to microseconds, as tracefs does.

use std::collections::BTreeMap;
use std::fmt::Write;

use crate::block::{TraceLine, What};

/// A text under way. What is added must be in the order of time.
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
        Text {
            names,
            cpus: 0,
            lines: 0,
            text: String::new(),
        }
    }

    /// Appends a line; events come in the order of time.
    pub fn add(&mut self, line: &TraceLine) {
        self.cpus = self.cpus.max(line.cpu + 1);
        self.lines += 1;
        let task = match self.names.get(&line.pid) {
            Some(name) => name.chars().take(NAME_CHARACTERS).collect(),
            None => "<...>".to_owned(),
        };
        let microseconds = (line.at_ns + 500) / 1000;
        // Writing into a String cannot fail.
        let _ = writeln!(
            self.text,
            "{task:>16}-{:<7} [{:03}] ..... {:>5}.{:06}: {}",
            line.pid,
            line.cpu,
            microseconds / 1_000_000,
            microseconds % 1_000_000,
            event(line, &task),
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

/// Of the events' own format, `print fmt`, and their name before it.
fn event(line: &TraceLine, task: &str) -> String {
    let device = format!("{},{}", line.device.major(), line.device.minor());
    let (rwbs, bytes) = (line.rwbs(), u64::from(line.sectors) * 512);
    let place = format!("{} + {}", line.sector, line.sectors);
    let bio = |name| format!("{name}: {device} {rwbs} {place} [{task}]");
    let request = |name| format!("{name}: {device} {rwbs} {bytes} () {place} [{task}]");
    let ended = |name| format!("{name}: {device} {rwbs} () {place} [{}]", line.error);
    match &line.what {
        What::Queue => bio("block_bio_queue"),
        What::GetRequest => bio("block_getrq"),
        What::Sleep => bio("block_sleeprq"),
        What::BackMerge => bio("block_bio_backmerge"),
        What::FrontMerge => bio("block_bio_frontmerge"),
        What::RequestMerge => request("block_rq_merge"),
        What::Insert => request("block_rq_insert"),
        What::Issue => request("block_rq_issue"),
        What::Requeue => ended("block_rq_requeue"),
        What::Complete => ended("block_rq_complete"),
        What::Plug => format!("block_plug: [{task}]"),
        What::Unplug {
            requests,
            by_timer: false,
        } => format!("block_unplug: [{task}] {requests}"),
        // Of its own name until 2.6.38; queues have no such timer any more.
        What::Unplug { requests, .. } => format!("block_unplug_timer: [{task}] {requests}"),
        // Not an event of the kernel, but the blk tracer's line; a mark is what every reader takes for text.
        What::Message(text) => format!("tracing_mark_write: {device} m N {text}"),
    }
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
