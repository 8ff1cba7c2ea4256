//! Sorting as a load on memory: a process for each share, all in one control group that has less than they need.
//!
//! A process is this program once more (process.rs).

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, Write};
use std::process::ExitCode;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

use engine::marker::Window;
use engine::{Sort, SortSpec};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::failure::Failure;
use crate::process::{Process, described, run_as_told};
use crate::{system, tick};

/// What makes a process of this program sort.
pub const WORD: &str = "sort";
const VMSTAT: &str = "/proc/vmstat";
/// What pswpin and pswpout count (`mm/page_io.c` of 6.1), on this architecture.
const PAGE_BYTES: u64 = 4096;
/// How often the group's swap is looked at, as on a host.
const LOOK_EVERY: Duration = Duration::from_millis(100);
const A_WHILE: Duration = Duration::from_secs(3600);

/// What a process receives.
#[derive(Deserialize)]
struct Share {
    sort: SortSpec,
    cpus: Option<Vec<usize>>,
}

/// One of the processes.
pub fn process() -> ExitCode {
    let pin = |share: &Share| match &share.cpus {
        Some(cpus) => system::pin(cpus).map_err(described),
        None => Ok(()),
    };
    run_as_told(pin, |share| {
        let sort = Sort::start(share.sort).map_err(described)?;
        loop {
            if let Some(record) = sort.wait(A_WHILE) {
                return serde_json::to_value(record).map_err(described);
            }
        }
    })
}

/// Runs a process for each share of `processes`, from one moment on, to their ends.
///
/// Tells as `record` their `records`, what the machine had swapped since boot `before`, when the `first` was done and
/// `after`, and of the group `swap_bytes_max` and `memory_bytes_max`, null if the kernel does not report them; as `ops`
/// the passes of all.
pub fn run(processes: &[Value], group: &str) -> Result<Value, Failure> {
    let mut begun = Vec::new();
    for share in processes {
        begun.push(Process::begin(WORD, share, group)?);
    }
    let before = swapped()?;
    let (mut children, outputs): (Vec<_>, Vec<_>) =
        begun.into_iter().map(|one| (one.child, (one.input, one.output))).unzip();
    let (sender, ends) = channel();
    let mut goes = Vec::new();
    for (number, (input, mut output)) in outputs.into_iter().enumerate() {
        goes.push(input);
        let sender = sender.clone();
        thread::spawn(move || {
            let mut said = String::new();
            // An incomplete line is no record.
            let _ = output.read_line(&mut said);
            let _ = sender.send((number, said));
        });
    }
    let window = Window::new(1);
    tick::wait();
    window.enter();
    for go in &mut goes {
        // A process that has died reports nothing, which is noticed.
        let _ = go.write_all(b"go\n");
    }
    let mut said = vec![String::new(); children.len()];
    let (mut left, mut first, mut most) = (children.len(), None, None);
    while left > 0 {
        most = most.max(number(group, "memory.swap.current"));
        match ends.recv_timeout(LOOK_EVERY) {
            Ok((number, text)) => {
                said[number] = text;
                left -= 1;
                if first.is_none() {
                    first = Some(swapped()?);
                }
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => break,
        }
    }
    window.leave();
    let after = swapped()?;
    for child in &mut children {
        let _ = child.wait();
    }
    let records = records(&said, group)?;
    let passes: usize = records.iter().map(|one| one["passes"].as_array().map_or(0, Vec::len)).sum();
    let record = json!({
        "records": records, "before": before, "first": first, "after": after,
        "swap_bytes_max": most, "memory_bytes_max": number(group, "memory.peak"),
    });
    Ok(json!({ "record": record, "ops": passes }))
}

fn records(said: &[String], group: &str) -> Result<Vec<Value>, Failure> {
    let parsed = said.iter().enumerate().map(|(number, text)| {
        let record: Option<Value> = serde_json::from_str(text).ok();
        match record {
            Some(record) if record.get("failed").is_none() => Ok(record),
            other => {
                let why = match other {
                    Some(answer) => answer["failed"].to_string(),
                    None if killed_for_memory(group) => {
                        "the kernel killed it for lack of memory: the limit and the swap are used up".into()
                    }
                    None => "it ended early".into(),
                };
                Err(Failure::of_machine(format!("sort.{}: {why}", number + 1)))
            }
        }
    });
    parsed.collect()
}

fn killed_for_memory(group: &str) -> bool {
    let events = fs::read_to_string(format!("{group}/memory.events")).unwrap_or_default();
    field(&events, "oom_kill").is_some_and(|kills| kills > 0)
}

fn number(group: &str, file: &str) -> Option<u64> {
    let text = fs::read_to_string(format!("{group}/{file}")).ok()?;
    text.trim().parse().ok()
}

/// Since boot, of the whole machine, by metric; without those that this kernel does not count (VM_EVENT_COUNTERS).
fn swapped() -> Result<Value, Failure> {
    let text = fs::read_to_string(VMSTAT).map_err(|error| Failure::os(VMSTAT, &error))?;
    let counted = [("swap_in_bytes", "pswpin"), ("swap_out_bytes", "pswpout")]
        .into_iter()
        .filter_map(|(metric, name)| Some((metric, field(&text, name)? * PAGE_BYTES)));
    Ok(json!(counted.collect::<BTreeMap<_, _>>()))
}

/// The number of a name in a text of lines `name number`.
fn field(text: &str, name: &str) -> Option<u64> {
    let mut lines = text.lines().filter_map(|line| line.split_once(' '));
    lines.find(|(first, _)| *first == name)?.1.trim().parse().ok()
}
