//! This program once more, as a process in a control group of its own: it receives its share in a line, joins the group,
//! says that it is ready, and when it is told to go does its share and reports the record, or `{"failed": why}`.

use std::fs;
use std::io::{self, BufRead, BufReader, StdinLock, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitCode, Stdio};

use serde::Deserialize;
use serde_json::{Value, json};

use crate::failure::Failure;

const PROGRAM: &str = "/init";
const READY: &str = "ready";

/// What a process receives, in a line: what it is to do, and the control group that it joins.
#[derive(Deserialize)]
struct Told<S> {
    #[serde(flatten)]
    share: S,
    group: String,
}

/// The side of the process: `prepare` comes before it is ready, `work` yields its record.
pub fn run_as_told<S: for<'de> Deserialize<'de>>(
    prepare: impl FnOnce(&S) -> Result<(), String>,
    work: impl FnOnce(S) -> Result<Value, String>,
) -> ExitCode {
    match as_told(io::stdin().lock(), prepare, work) {
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

fn as_told<S: for<'de> Deserialize<'de>>(
    mut input: StdinLock,
    prepare: impl FnOnce(&S) -> Result<(), String>,
    work: impl FnOnce(S) -> Result<Value, String>,
) -> Result<Value, String> {
    let mut line = String::new();
    input.read_line(&mut line).map_err(described)?;
    let told: Told<S> = serde_json::from_str(&line).map_err(described)?;
    fs::write(format!("{}/cgroup.procs", told.group), "0").map_err(described)?;
    prepare(&told.share)?;
    println!("{READY}");
    input.read_line(&mut line).map_err(described)?;
    work(told.share)
}

/// An error in words.
pub fn described(error: impl ToString) -> String {
    error.to_string()
}

/// One of them.
pub struct Process {
    /// To wait for its end.
    pub child: Child,
    /// To tell it to go.
    pub input: ChildStdin,
    /// Where it reports.
    pub output: BufReader<ChildStdout>,
}

impl Process {
    /// Starts it with its share, to be done in that control group, and waits until it is ready.
    pub fn begin(word: &str, share: &Value, group: &str) -> Result<Process, Failure> {
        let failed = |error: io::Error| Failure::os(PROGRAM, &error);
        let mut command = Command::new(PROGRAM);
        command.arg(word).stdin(Stdio::piped()).stdout(Stdio::piped());
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
            return Err(Failure::of_machine(format!("a process of its own to {word}: {}", said.trim())));
        }
        Ok(Process { child, input, output })
    }
}
