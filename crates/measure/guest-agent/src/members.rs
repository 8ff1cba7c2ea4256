//! A load in control groups of version 2, which gives I/O to whole processes: one for each group (process.rs).

use std::io::{BufRead, Write};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use engine::Memory;
use engine::marker::{self, Window};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use workload::phase::Phase;

use crate::failure::Failure;
use crate::process::{Process, described, run_as_told};
use crate::tick;

/// What makes a process of this program offer its share of a load.
pub const WORD: &str = "load";
const A_WHILE: Duration = Duration::from_secs(3600);

/// What one process does.
#[derive(Clone, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Member {
    phase: Value,
    group: String,
}

#[derive(Deserialize)]
struct Share {
    phase: Box<Phase>,
}

/// One of the processes.
pub fn process() -> ExitCode {
    let prepare = |_: &Share| {
        marker::leave_to_another();
        engine::calibrate_clock();
        Ok(())
    };
    run_as_told(prepare, |share| {
        let handle = engine::start(*share.phase, Arc::new(Memory::new())).map_err(described)?;
        loop {
            if let Some(ended) = handle.wait(A_WHILE) {
                let record = ended.map_err(described)?;
                return Ok(json!({ "record": record, "ops": handle.snapshot().ops }));
            }
        }
    })
}

/// Has a process for each member offer its share, all from one moment on. Tells as `record` their `records`, in order, and
/// as `ops` the operations of all.
pub fn run(members: &[Member]) -> Result<Value, Failure> {
    let mut begun = Vec::new();
    for member in members {
        let share = json!({ "phase": member.phase });
        begun.push(Process::begin(WORD, &share, &member.group)?);
    }
    let window = Window::new(1);
    tick::wait();
    window.enter();
    for one in &mut begun {
        // A process that has died reports nothing, which is noticed.
        let _ = one.input.write_all(b"go\n");
    }
    let mut records = Vec::new();
    let mut ops = 0;
    for (one, member) in begun.iter_mut().zip(members) {
        let mut said = String::new();
        let _ = one.output.read_line(&mut said);
        let told: Value = serde_json::from_str(&said).unwrap_or_default();
        let Some(record) = told.get("record") else {
            let why = told.get("failed").and_then(Value::as_str);
            let why = why.unwrap_or("its process ended early");
            return Err(Failure::of_machine(format!("{}: {why}", member.group)));
        };
        records.push(record.clone());
        ops += told["ops"].as_u64().unwrap_or(0);
    }
    window.leave();
    for one in &mut begun {
        let _ = one.child.wait();
    }
    Ok(json!({ "record": { "records": records }, "ops": ops }))
}
