//! Traces of a phase as files, by their names.

use std::collections::BTreeMap;

use serde::Deserialize;
use trace::blktrace::{FileSet, WallTime};
use trace::block::TraceLine;
use trace::ftrace::Text;

use super::line::{device, device_name};

/// How a trace is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TraceFormat {
    /// For each drive `DEVICE.blktrace.CPU`, which blkparse and btt read.
    Blktrace,
    /// `ftrace.txt`, as tracefs shows its events.
    Ftrace,
}

/// Files under way. They are in memory: some 50 bytes an event, ftrace's twice as much.
#[derive(Clone, Debug)]
pub(super) enum TraceFiles {
    Blktrace {
        names: BTreeMap<u32, String>,
        sets: BTreeMap<u16, FileSet>,
    },
    Ftrace(Box<Text>),
}

impl TraceFiles {
    pub(super) fn new(format: TraceFormat, names: BTreeMap<u32, String>) -> TraceFiles {
        match format {
            TraceFormat::Blktrace => TraceFiles::Blktrace {
                names,
                sets: BTreeMap::new(),
            },
            TraceFormat::Ftrace => TraceFiles::Ftrace(Box::new(Text::new(names))),
        }
    }

    pub(super) fn add(&mut self, drive: u16, line: &TraceLine) {
        match self {
            TraceFiles::Blktrace { names, sets } => sets
                .entry(drive)
                // Simulated time has no date.
                .or_insert_with(|| FileSet::new(device(drive), WallTime::default(), names.clone()))
                .add(line),
            TraceFiles::Ftrace(text) => text.add(line),
        }
    }

    pub(super) fn finish(self) -> BTreeMap<String, Vec<u8>> {
        match self {
            TraceFiles::Blktrace { sets, .. } => {
                let files = sets.into_iter().flat_map(|(drive, set)| {
                    let name = device_name(drive);
                    let by_cpu = set.finish().into_iter().enumerate();
                    by_cpu.map(move |(cpu, bytes)| (format!("{name}.blktrace.{cpu}"), bytes))
                });
                files.collect()
            }
            TraceFiles::Ftrace(text) => {
                BTreeMap::from([("ftrace.txt".to_owned(), text.finish().into_bytes())])
            }
        }
    }
}
