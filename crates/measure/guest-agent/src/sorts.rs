//! Sorting as a load on memory: a process for each share, all in one control group that has less than they need.
//!
//! A process is this program once more. It receives what to sort, reports that it is ready, and sorts on command.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitCode, Stdio};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

use engine::marker::Window;
use engine::{Sort, SortSpec};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::failure::Failure;
use crate::{system, tick};

/// What makes a process of this program sort.
pub const WORD: &str = "sort";
const PROGRAM: &str = "/init";
const READY: &str = "ready";
const VMSTAT: &str = "/proc/vmstat";
/// What pswpin and pswpout count (`mm/page_io.c` of 6.1), on this architecture.
const PAGE_BYTES: u64 = 4096;
/// How often the group's swap is looked at, as on a host.
const LOOK_EVERY: Duration = Duration::from_millis(100);
const A_WHILE: Duration = Duration::from_secs(3600);

/// What a process receives, in a line.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Share {
    sort: SortSpec,
    cpus: Option<Vec<usize>>,
    /// The control group that it joins.
    group: String,
}

/// One of the processes: reports that it is ready, and then the record of its sort, or `{"failed": why}`.
pub fn process() -> ExitCode {
    match sort_as_told() {
        Ok(record) => {
            println!("{record}");
            ExitCode::SUCCESS
        }
        Err(why) => {
            println!("{}", json!({ "failed": why }));
            ExitCode::FAILURE
        }
    }
}

fn sort_as_told() -> Result<Value, String> {
    let mut line = String::new();
    let mut input = io::stdin().lock();
    input.read_line(&mut line).map_err(described)?;
    let share: Share = serde_json::from_str(&line).map_err(described)?;
    fs::write(format!("{}/cgroup.procs", share.group), "0").map_err(described)?;
    if let Some(cpus) = &share.cpus {
        system::pin(cpus).map_err(described)?;
    }
    println!("{READY}");
    input.read_line(&mut line).map_err(described)?;
    let sort = Sort::start(share.sort).map_err(described)?;
    loop {
        if let Some(record) = sort.wait(A_WHILE) {
            return serde_json::to_value(record).map_err(described);
        }
    }
}

fn described(error: impl ToString) -> String {
    error.to_string()
}

/// Runs a process for each share of `processes`, from one moment on, to their ends.
///
/// Tells as `record` their `records`, what the machine had swapped since boot `before`, when the `first` was done and
/// `after`, and of the group `swap_bytes_max` and `memory_bytes_max`, null if the kernel does not report them; as `ops`
/// the passes of all.
pub fn run(processes: &[Value], group: &str) -> Result<Value, Failure> {
    let mut begun = Vec::new();
    for share in processes {
        begun.push(Process::begin(share, group)?);
    }
    let before = swapped()?;
    let (mut children, outputs): (Vec<_>, Vec<_>) = begun
        .into_iter()
        .map(|one| (one.child, (one.input, one.output)))
        .unzip();
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
    let passes: usize = records
        .iter()
        .map(|one| one["passes"].as_array().map_or(0, Vec::len))
        .sum();
    let record = json!({
        "records": records, "before": before, "first": first, "after": after,
        "swap_bytes_max": most, "memory_bytes_max": number(group, "memory.peak"),
    });
    Ok(json!({ "record": record, "ops": passes }))
}

struct Process {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Process {
    /// Starts it and waits until it is ready.
    fn begin(share: &Value, group: &str) -> Result<Process, Failure> {
        let failed = |error: io::Error| Failure::os(PROGRAM, &error);
        let mut command = Command::new(PROGRAM);
        command
            .arg(WORD)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped());
        let mut child = command.spawn().map_err(failed)?;
        let (Some(mut input), Some(output)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(Failure::of_machine("a process has no pipes".into()));
        };
        let mut input_line = share.clone();
        input_line["group"] = json!(group);
        writeln!(input, "{input_line}").map_err(failed)?;
        let mut output = BufReader::new(output);
        let mut said = String::new();
        output.read_line(&mut said).map_err(failed)?;
        if said.trim() != READY {
            return Err(Failure::of_machine(format!(
                "a process that sorts: {}",
                said.trim()
            )));
        }
        Ok(Process {
            child,
            input,
            output,
        })
    }
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
    lines
        .find(|(first, _)| *first == name)?
        .1
        .trim()
        .parse()
        .ok()
}
