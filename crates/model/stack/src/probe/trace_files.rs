//! Traces of a phase as files, by their names.

use std::collections::BTreeMap;

use serde::Deserialize;
use trace::event::TraceEvent;
use trace::ftrace::Text;
use trace::output::Blktrace;

use crate::drive_name::DriveName;

/// How a trace is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TraceFormat {
    /// For each drive `DEVICE.blktrace.CPU`, which blkparse and btt read.
    Blktrace,
    /// `ftrace.txt`, as tracefs shows its events.
    Ftrace,
}

type Open = fn(u16) -> std::io::Result<Vec<u8>>;

/// Unfinished files. They are in memory: some 50 bytes an event, ftrace's twice as much.
#[derive(Clone, Debug)]
pub(super) enum TraceFiles {
    Blktrace { names: BTreeMap<u32, String>, sets: BTreeMap<u16, Blktrace<Open, Vec<u8>>> },
    Ftrace(Box<Text>),
}

impl TraceFiles {
    pub(super) fn new(format: TraceFormat, names: BTreeMap<u32, String>) -> TraceFiles {
        match format {
            TraceFormat::Blktrace => TraceFiles::Blktrace { names, sets: BTreeMap::new() },
            TraceFormat::Ftrace => TraceFiles::Ftrace(Box::new(Text::new(names))),
        }
    }

    pub(super) fn add(&mut self, drive: u16, event: &TraceEvent, message: Option<&str>) {
        match self {
            TraceFiles::Blktrace { names, sets } => {
                let open: Open = |_| Ok(Vec::new());
                let files = sets.entry(drive).or_insert_with(|| Blktrace::new(open, names.clone(), Some(0)));
                let written = match message {
                    Some(text) => files.message(event, text),
                    None => files.event(event),
                };
                // Memory takes whatever is written to it.
                written.unwrap_or_default();
            }
            TraceFiles::Ftrace(text) => match message {
                Some(message) => text.message(event, message),
                None => text.add(event),
            },
        }
    }

    pub(super) fn finish(self, drives: &[DriveName]) -> BTreeMap<String, Vec<u8>> {
        match self {
            TraceFiles::Blktrace { sets, .. } => {
                let files = sets.into_iter().flat_map(|(drive, set)| {
                    let name = &drives[usize::from(drive)].name;
                    let by_cpu = set.finish().unwrap_or_default().into_iter().enumerate();
                    by_cpu.map(move |(cpu, bytes)| (format!("{name}.blktrace.{cpu}"), bytes))
                });
                files.collect()
            }
            TraceFiles::Ftrace(text) => BTreeMap::from([("ftrace.txt".to_owned(), text.finish().into_bytes())]),
        }
    }
}
