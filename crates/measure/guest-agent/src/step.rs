//! What a plan is made of, and how each step is done.

use std::fs;
use std::io;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use engine::metadata::{self, MetadataPhase};
use engine::{Handle, Memory};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use workload::phase::Phase;

use crate::failure::Failure;
use crate::members::{self, Member};
use crate::port::Port;
use crate::timed_command::TimedCommand;
use crate::{sorts, system, tags};

/// One thing to do. The report of each is at its arm of `Agent::perform`.
#[derive(Deserialize)]
#[serde(tag = "do", rename_all = "snake_case", deny_unknown_fields)]
pub enum Step {
    /// Load the kernel module in `path`.
    Module { path: String, parameters: String },
    /// Wait until there is a file.
    Await { path: String, seconds: f64 },
    /// Write a kernel setting and read it back. `optional`: an absent file is reported, and no failure.
    Write { path: String, value: String, optional: bool },
    /// Write what a kernel's file shows, and words behind it, to another one. `optional`: as of `Write`.
    Copy { source: String, words: String, path: String, optional: bool },
    /// Start the search for a free tag where it always starts (tags.rs).
    Tags { disk: String },
    /// Run a program to its end.
    Run { argv: Vec<String> },
    /// Run a program with the console as its terminal.
    Console { argv: Vec<String> },
    /// Make the directory and mount a filesystem on it.
    Mount { source: String, place: String, filesystem: String, options: String },
    /// Make a directory.
    Directory { path: String },
    /// Offer I/O.
    Load { phase: Box<Phase> },
    /// Offer I/O, a process for each control group of version 2.
    Members { members: Vec<Member>, drop_caches: bool },
    /// Make, write, sync, close and unlink files.
    Metadata { phase: MetadataPhase, drop_caches: bool },
    /// Swap to a device.
    Swap { path: String },
    /// Sort memory, a process for each task given, all in one control group.
    Sort { processes: Vec<Value>, group: String, drop_caches: bool },
    /// Time a shell command.
    Command { command: TimedCommand, drop_caches: bool },
    /// Write what is dirty to the drives.
    Sync {},
    /// Tell where the kernel's functions are. `all`: also those outside of modules.
    Symbols { all: bool },
}

/// What steps leave behind for those after them.
pub struct Agent {
    memory: Arc<Memory>,
    /// Moves what is allocated next: a trial's seed decides how much of it there is.
    _ballast: Vec<u8>,
}

const PAGE_BYTES: usize = 4096;
const BALLAST_PAGES: u64 = 1024;
/// A phase's end is seen this late at most; its thread is not disturbed meanwhile.
const LOOK_EVERY: Duration = Duration::from_secs(1);
const AWAIT_EVERY: Duration = Duration::from_millis(10);

impl Agent {
    /// `seed` places what is allocated from now on.
    pub fn new(seed: u64) -> Agent {
        let pages = (seed % BALLAST_PAGES) as usize;
        let mut ballast = vec![0u8; pages * PAGE_BYTES];
        ballast.iter_mut().step_by(PAGE_BYTES).for_each(|byte| *byte = 1);
        // A kernel without it has no random numbers of its own either.
        let _ = system::seed_random_numbers(seed);
        Agent { memory: Arc::new(Memory::new()), _ballast: ballast }
    }

    /// Does the step; its report.
    pub fn perform(&mut self, step: &Step, port: &mut Port) -> Result<Value, Failure> {
        match step {
            Step::Module { path, parameters } => {
                system::load_module(path, parameters).map_err(|error| Failure::os(path, &error))?;
            }
            Step::Await { path, seconds } => wait_for(path, *seconds)?,
            Step::Write { path, value, optional } => return write(path, value, *optional),
            Step::Copy { source, words, path, optional } => {
                let shown = fs::read_to_string(source).map_err(|error| Failure::os(source, &error))?;
                return write(path, format!("{} {words}", shown.trim()).trim_end(), *optional);
            }
            Step::Tags { disk } => {
                tags::start_in_first_word(disk).map_err(|error| Failure::os(disk, &error))?;
            }
            Step::Run { argv } => run(argv)?,
            Step::Console { argv } => return console(argv),
            Step::Mount { source, place, filesystem, options } => {
                fs::create_dir_all(place).map_err(|error| Failure::os(place, &error))?;
                system::mount(source, place, filesystem, options)
                    .map_err(|error| Failure::os(&format!("mounting {filesystem} ({options})"), &error))?;
            }
            Step::Directory { path } => {
                fs::create_dir_all(path).map_err(|error| Failure::os(path, &error))?;
            }
            Step::Load { phase } => {
                let started = engine::start((**phase).clone(), Arc::clone(&self.memory));
                return finish(started.map_err(Failure::to_start)?);
            }
            Step::Members { members, drop_caches } => {
                if *drop_caches {
                    empty_caches()?;
                }
                return members::run(members);
            }
            Step::Metadata { phase, drop_caches } => {
                if *drop_caches {
                    empty_caches()?;
                }
                return finish(metadata::start(phase.clone()).map_err(Failure::to_start)?);
            }
            Step::Swap { path } => {
                system::swap_on(path).map_err(|error| Failure::os(path, &error))?;
            }
            Step::Sort { processes, group, drop_caches } => {
                if *drop_caches {
                    empty_caches()?;
                }
                return sorts::run(processes, group);
            }
            Step::Command { command, drop_caches } => {
                if *drop_caches {
                    empty_caches()?;
                }
                return command.run();
            }
            Step::Sync {} => system::sync(),
            Step::Symbols { all } => return symbols(*all, port),
        }
        Ok(Value::Null)
    }
}

/// The phase's record, and how many operations succeeded in all of it.
fn finish<W: engine::handle::Work>(handle: Handle<W>) -> Result<Value, Failure>
where
    W::Record: Serialize,
{
    loop {
        match handle.wait(LOOK_EVERY) {
            None => continue,
            Some(Ok(record)) => {
                return Ok(json!({ "record": record, "ops": handle.snapshot().ops }));
            }
            Some(Err(error)) => {
                return Err(Failure { what: error.to_string(), errno: Some(error.errno), step: None, of_plan: false });
            }
        }
    }
}

fn empty_caches() -> Result<(), Failure> {
    system::sync();
    write("/proc/sys/vm/drop_caches", "3", false)?;
    Ok(())
}

fn wait_for(path: &str, seconds: f64) -> Result<(), Failure> {
    let until = Instant::now() + Duration::from_secs_f64(seconds);
    while !Path::new(path).exists() {
        if Instant::now() >= until {
            let what = format!("{path} is not there {seconds} s after its driver was loaded");
            return Err(Failure::of_machine(what));
        }
        std::thread::sleep(AWAIT_EVERY);
    }
    Ok(())
}

/// `{"before": ..., "after": ...}`, or `{"absent": why}` of an optional file.
fn write(path: &str, value: &str, optional: bool) -> Result<Value, Failure> {
    let before = match fs::read_to_string(path) {
        Ok(before) => before,
        Err(error) if optional && error.kind() == io::ErrorKind::NotFound => {
            return Ok(json!({ "absent": format!("{path}: this kernel or device has no such file") }));
        }
        // Some files are for writing only.
        Err(error) if error.kind() != io::ErrorKind::NotFound => String::new(),
        Err(error) => return Err(Failure::os(path, &error)),
    };
    if let Err(error) = fs::write(path, value) {
        let refused = Failure::os(&format!("{path} = {value}"), &error);
        return if optional { Ok(json!({ "absent": refused.what })) } else { Err(refused) };
    }
    let after = fs::read_to_string(path).unwrap_or_default();
    Ok(json!({ "before": before.trim(), "after": after.trim() }))
}

fn run(argv: &[String]) -> Result<(), Failure> {
    let output = command(argv).stdin(Stdio::null()).output();
    let output = output.map_err(|error| Failure::os(&argv[0], &error))?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    let lines = said.lines().map(str::trim).filter(|line| !line.is_empty());
    let first: Vec<&str> = lines.take(3).collect();
    let what = format!("{}: {}: {}", argv.join(" "), output.status, first.join(" / "));
    Err(Failure::of_machine(what))
}

/// The program's exit status.
fn console(argv: &[String]) -> Result<Value, Failure> {
    let status = command(argv).status().map_err(|error| Failure::os(&argv[0], &error))?;
    Ok(json!({ "status": status.code() }))
}

fn command(argv: &[String]) -> Command {
    let mut command = Command::new(&argv[0]);
    command.args(&argv[1..]).env("PATH", system::PATH);
    command
}

/// Sends /proc/kallsyms' functions after a line with their number of bytes.
fn symbols(all: bool, port: &mut Port) -> Result<Value, Failure> {
    let path = "/proc/kallsyms";
    let text = fs::read_to_string(path).map_err(|error| Failure::os(path, &error))?;
    let mut kept = String::with_capacity(text.len());
    for line in text.lines().filter(|line| all || line.ends_with(']')) {
        let kind = line.split_ascii_whitespace().nth(1);
        if matches!(kind, Some("t" | "T" | "w" | "W" | "i")) {
            kept.push_str(line);
            kept.push('\n');
        }
    }
    port.emit(&json!({ "bytes": kept.len() }));
    port.send(kept.as_bytes());
    Ok(Value::Null)
}
