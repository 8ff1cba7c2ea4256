//! A tracing instance of our own: buffers and events that nobody else uses, gone when we are done.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use trace::decode::WantedEvent;
use trace::format::EventFormat;

use super::Reason;
use super::tracefs::refusal;

/// Removed when dropped, with its buffers and all that was switched on in it.
pub struct Instance {
    path: PathBuf,
}

/// Few, large pieces cost fewer reads than many small ones: at 64 KiB a reader is called every thousand events. But
/// what is being written can't be read, so that small buffers are of smaller ones.
const SUB_BUFFER_KIB_MAX: u64 = 64;
const SUB_BUFFERS_MIN: u64 = 4;
/// How full a CPU's buffer is when its reader is woken. The rest is what the reader has time for.
const WAKE_AT_PERCENT: u32 = 25;

impl Instance {
    /// An instance that records nothing yet.
    pub fn make(tracefs: &Path, name: &str, buffer_bytes: u64) -> Result<Instance, Reason> {
        let path = tracefs.join("instances").join(name);
        std::fs::create_dir(&path).map_err(|error| refusal(&path, &error))?;
        let instance = Instance { path };
        instance.set("tracing_on", "0")?;
        // The clock of the engine's own times. Linux 3.14.
        instance.set("trace_clock", "mono")?;
        let buffer_kib = buffer_bytes.div_ceil(1024);
        let sub_buffer_kib = (buffer_kib / SUB_BUFFERS_MIN).clamp(1, SUB_BUFFER_KIB_MAX);
        // Options of newer kernels (6.8, 5.0) that only save work. The kernel rounds the size up to a power of two of
        // pages.
        let _ = instance.set("buffer_subbuf_size_kb", &sub_buffer_kib.to_string());
        let _ = instance.set("buffer_percent", &WAKE_AT_PERCENT.to_string());
        instance
            .set("buffer_size_kb", &buffer_kib.to_string())
            .map_err(|reason| format!("{reason} (buffers of {buffer_kib} KiB per CPU; ask for less)"))?;
        Ok(instance)
    }

    /// Switches events on, only where the filter holds; recording begins with `start`. Yields their layouts, and a note
    /// on each that this kernel lacks and the rest can do without.
    pub fn enable_all(&self, wanted: &[WantedEvent], filter: &str) -> Result<(Vec<EventFormat>, Vec<String>), Reason> {
        let (mut formats, mut missing) = (Vec::new(), Vec::new());
        for event in wanted {
            let directory = self.path.join("events").join(event.system).join(event.name);
            match format(&directory)? {
                Some(format) => {
                    if !filter.is_empty() {
                        write(&directory.join("filter"), filter)?;
                    }
                    write(&directory.join("enable"), "1")?;
                    formats.push(format);
                }
                None if event.required => {
                    return Err(format!("this kernel has no event {}/{}", event.system, event.name));
                }
                None => missing.push(format!("this kernel has no event {}/{}", event.system, event.name)),
            }
        }
        Ok((formats, missing))
    }

    pub fn start(&self) -> Result<(), Reason> {
        self.set("tracing_on", "1")
    }

    pub fn end(&self) {
        // Nothing is left to be done if this fails; removing the instance ends it as well.
        let _ = self.set("tracing_on", "0");
    }

    /// The text that describes the layout of a sub-buffer.
    pub fn header_page(&self) -> Result<String, Reason> {
        let path = self.path.join("events/header_page");
        // This file gives what fits into the first read and nothing afterwards.
        let mut text = vec![0; 4096];
        let length = File::open(&path).and_then(|mut file| file.read(&mut text));
        text.truncate(length.map_err(|error| refusal(&path, &error))?);
        Ok(String::from_utf8_lossy(&text).into_owned())
    }

    pub fn restrict_to(&self, pids: &[u32]) -> Result<(), Reason> {
        self.set("options/event-fork", "1")?;
        for pid in pids.iter().copied().flat_map(threads) {
            self.append("set_event_pid", &pid.to_string())?;
        }
        Ok(())
    }

    /// Every CPU that this kernel may ever have, online or not.
    pub fn cpus(&self) -> Result<Vec<u32>, Reason> {
        let path = self.path.join("per_cpu");
        let entries = std::fs::read_dir(&path).map_err(|error| refusal(&path, &error))?;
        let mut cpus: Vec<u32> = entries
            .filter_map(|entry| {
                let name = entry.ok()?.file_name();
                name.to_str()?.strip_prefix("cpu")?.parse().ok()
            })
            .collect();
        cpus.sort_unstable();
        Ok(cpus)
    }

    /// A CPU's sub-buffers as they are, to be read without waiting.
    pub fn raw_pipe(&self, cpu: u32) -> Result<File, Reason> {
        let path = self.cpu_directory(cpu).join("trace_pipe_raw");
        File::options().read(true).custom_flags(libc::O_NONBLOCK).open(&path).map_err(|error| refusal(&path, &error))
    }

    /// Events that found no room, on all CPUs, since the instance was made.
    pub fn events_lost(&self) -> Result<u64, Reason> {
        let mut lost = 0;
        for cpu in self.cpus()? {
            let path = self.cpu_directory(cpu).join("stats");
            let stats = std::fs::read_to_string(&path).map_err(|error| refusal(&path, &error))?;
            lost += lost_in(&stats);
        }
        Ok(lost)
    }

    fn cpu_directory(&self, cpu: u32) -> PathBuf {
        self.path.join(format!("per_cpu/cpu{cpu}"))
    }

    fn set(&self, file: &str, value: &str) -> Result<(), Reason> {
        write(&self.path.join(file), value)
    }

    fn append(&self, file: &str, value: &str) -> Result<(), Reason> {
        write_with(File::options().append(true), &self.path.join(file), value)
    }
}

const REMOVE_ATTEMPTS: u32 = 50;

impl Drop for Instance {
    fn drop(&mut self) {
        self.end();
        // Busy for the moment that whoever looked into it, an `ls` or a monitor, has a file of it open.
        for _ in 0..REMOVE_ATTEMPTS {
            match std::fs::remove_dir(&self.path) {
                Err(error) if error.kind() == io::ErrorKind::ResourceBusy => {
                    std::thread::sleep(Duration::from_millis(10));
                }
                _ => return,
            }
        }
    }
}

/// None when this kernel hasn't the event.
fn format(event: &Path) -> Result<Option<EventFormat>, Reason> {
    let path = event.join("format");
    match std::fs::read_to_string(&path) {
        Ok(text) => EventFormat::parse(&text).map(Some).map_err(|error| error.to_string()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(refusal(&path, &error)),
    }
}

/// Never makes a file: if there is none, this kernel lacks the feature.
fn write(path: &Path, value: &str) -> Result<(), Reason> {
    write_with(File::options().write(true), path, value)
}

fn write_with(options: &OpenOptions, path: &Path, value: &str) -> Result<(), Reason> {
    let written = options.open(path).and_then(|mut file| file.write_all(value.as_bytes()));
    written.map_err(|error| refusal(path, &error))
}

/// The tasks of a process: the kernel filters by task.
fn threads(pid: u32) -> Vec<u32> {
    let Ok(entries) = std::fs::read_dir(format!("/proc/{pid}/task")) else {
        return vec![pid];
    };
    entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok()).collect()
}

/// Overwritten before they were read, refused because an interrupt came at a full buffer, or dropped.
fn lost_in(stats: &str) -> u64 {
    let counted = ["overrun", "commit overrun", "dropped events"];
    stats
        .lines()
        .filter_map(|line| line.split_once(':'))
        .filter(|(name, _)| counted.contains(name))
        .filter_map(|(_, count)| count.trim().parse::<u64>().ok())
        .sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_ways_to_lose_an_event_are_counted_and_nothing_else() {
        let stats = "entries: 9\noverrun: 5\ncommit overrun: 2\nbytes: 77\noldest event ts:  1.5\n\
                     dropped events: 1\nread events: 12\n";
        assert_eq!(lost_in(stats), 8);
    }
}
