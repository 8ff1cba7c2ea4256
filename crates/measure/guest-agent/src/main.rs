#![deny(missing_docs)]
//! The first process of a guest machine (docs/guest.md): does the steps of `/plan.json` one after the other and reports
//! what came of each, a line of JSON a step, on the machine's debug port. Then the machine ends.
//!
//! It is linked statically and packed into an initramfs by python/iolab/machines/guest.

mod failure;
mod members;
mod port;
mod process;
mod sorts;
mod step;
mod system;
mod tags;
mod tick;
mod timed_command;

use std::process::ExitCode;
use std::time::Duration;

use serde::Deserialize;
use serde_json::{Value, json};

use failure::Failure;
use port::Port;
use step::{Agent, Step};

/// What the agent is to do.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Plan {
    /// Decides where the load's memory lies.
    seed: u64,
    /// The limit of the machine's own time, at which the step ends.
    limit_ns: u64,
    /// Steps and loads begin at multiples of it of the machine's own time; 0: at once.
    alignment_ns: i64,
    steps: Vec<Step>,
}

fn main() -> ExitCode {
    match std::env::args().nth(1).as_deref() {
        Some(sorts::WORD) => return sorts::process(),
        Some(members::WORD) => return members::process(),
        _ => {}
    }
    if std::process::id() != 1 {
        eprintln!("iolab's guest agent runs as the first process of a guest machine, and nowhere else");
        return ExitCode::from(2);
    }
    let Ok(mut port) = Port::open() else {
        eprintln!("iolab: this kernel gives no access to I/O ports (X86_IOPL_IOPERM)");
        return ExitCode::from(3);
    };
    let status = match run(&mut port) {
        Ok(()) => 0,
        Err(failed) => {
            port.emit(&json!({ "failed": failed }));
            1
        }
    };
    port.end_machine(status)
}

/// A load that never ends, or a kernel that loses its wake-ups, ends here; a sleeping thread disturbs nothing.
fn end_after(limit: Duration) {
    std::thread::spawn(move || {
        std::thread::sleep(limit);
        if let Ok(mut port) = Port::open() {
            let what = format!("the guest did not end within {} s of its own time", limit.as_secs_f64());
            port.emit(&json!({ "failed": Failure::of_machine(what) }));
            port.end_machine(1);
        }
    });
}

fn run(port: &mut Port) -> Result<(), Failure> {
    system::mount_own_filesystems()?;
    // A machine of little memory may refuse.
    let _ = system::map_own_pages();
    let text = std::fs::read_to_string("/plan.json").map_err(|error| Failure::os("/plan.json", &error))?;
    let plan: Plan = serde_json::from_str(&text).map_err(|error| Failure::what(format!("/plan.json: {error}")))?;
    port.emit(&json!({ "up": system::release() }));
    end_after(Duration::from_nanos(plan.limit_ns));
    tick::set_alignment(plan.alignment_ns);
    engine::marker::wait_before_each(tick::wait);
    let mut agent = Agent::new(plan.seed);
    for (number, step) in plan.steps.iter().enumerate() {
        tick::align();
        let answer: Value = agent.perform(step, port).map_err(|failed| failed.at(number))?;
        port.emit(&json!({ "step": number, "value": answer }));
    }
    port.emit(&json!({ "end": true }));
    Ok(())
}
