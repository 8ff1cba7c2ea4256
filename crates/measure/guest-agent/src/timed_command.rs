//! A shell command, timed from its start to its end.

use std::io::{self, Read};
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use engine::marker::Window;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::failure::Failure;
use crate::{system, tick};

/// What is run, and where.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TimedCommand {
    shell: String,
    /// For `shell -c`.
    text: String,
    directory: String,
    /// `DEVICE` in the command's environment.
    device: String,
    cpus: Option<Vec<usize>>,
}

/// So much of the output is kept, its end.
const OUTPUT_KEPT_BYTES: usize = 8 << 10;

impl TimedCommand {
    /// Tells as `record` its times, how it ended and what it printed; as `ops` one. Nothing of it is left afterwards.
    pub fn run(&self) -> Result<Value, Failure> {
        let failed = |error: io::Error| Failure::os(&self.shell, &error);
        let started = SystemTime::now().duration_since(UNIX_EPOCH);
        let before = system::used_by_children().map_err(failed)?;
        let window = Window::new(1);
        tick::wait();
        let began = Instant::now();
        // Its CPUs are those of the thread that starts it.
        let (status, output, elapsed) = thread::scope(|scope| {
            let run = || {
                if let Some(cpus) = &self.cpus {
                    system::pin(cpus)?;
                }
                window.enter();
                let (mut child, mut printed) = self.start()?;
                let end = thread::spawn(move || end_of(&mut printed));
                let status = child.wait()?;
                window.leave();
                let elapsed = began.elapsed();
                // What it left in the background holds the pipe open.
                system::kill_all_others();
                Ok((status, end.join().unwrap_or_default(), elapsed))
            };
            scope.spawn(run).join().unwrap_or_else(|_| Err(io::Error::other("it ended early")))
        })
        .map_err(failed)?;
        let after = system::used_by_children().map_err(failed)?;
        let used: Vec<u64> = after.iter().zip(before).map(|(now, then)| now - then).collect();
        let record = json!({
            "started_unix_ns": started.map_or(0, |since| since.as_nanos() as u64),
            "elapsed_ns": elapsed.as_nanos() as u64,
            "used": used,
            "status": status.code(),
            "signal": status.signal(),
            "output": String::from_utf8_lossy(&output),
        });
        Ok(json!({ "record": record, "ops": 1 }))
    }

    fn start(&self) -> io::Result<(Child, io::PipeReader)> {
        let (printed, output) = io::pipe()?;
        let mut command = Command::new(&self.shell);
        command
            .args(["-c", &self.text])
            .current_dir(&self.directory)
            .env_clear()
            .envs([("PATH", system::PATH), ("LC_ALL", "C"), ("HOME", "/"), ("DEVICE", &self.device)])
            .stdin(Stdio::null())
            .stderr(output.try_clone()?)
            .stdout(output);
        Ok((command.spawn()?, printed))
    }
}

/// Reads to the end; the last bytes of it.
fn end_of(printed: &mut impl Read) -> Vec<u8> {
    let (mut kept, mut part) = (Vec::new(), vec![0; OUTPUT_KEPT_BYTES]);
    while let Ok(length @ 1..) = printed.read(&mut part) {
        kept.extend_from_slice(&part[..length]);
        kept.drain(..kept.len().saturating_sub(OUTPUT_KEPT_BYTES));
    }
    kept
}
