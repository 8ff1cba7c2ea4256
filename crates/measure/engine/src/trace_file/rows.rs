//! A trace's requests for who reads tables.

use std::collections::BTreeMap;

use trace::input::{ReadError, Reader};
use trace::output::Rows;
use trace::study::Study;

use super::source::reader;
use super::spec::{Batch, TraceSpec, prepared};

/// Requests of a trace, some at a time, as columns.
pub struct TraceRows {
    reader: Box<dyn Reader>,
    study: Study,
    batch: Batch,
    rows: Rows,
    ended: bool,
}

impl TraceRows {
    /// Opens the files.
    pub fn open(spec: &TraceSpec) -> Result<TraceRows, ReadError> {
        Ok(TraceRows {
            reader: reader(&spec.paths, spec.table.as_ref(), spec.gaps())?,
            study: prepared(spec)?,
            batch: Batch::new(),
            rows: Rows::default(),
            ended: false,
        })
    }

    /// About this many rows; None at the end.
    pub fn next(&mut self, count: usize) -> Result<Option<Vec<Vec<u8>>>, ReadError> {
        while !self.ended && self.rows.len() < count {
            self.batch.clear();
            self.ended = !self.reader.read(&mut self.batch)?;
            for event in &self.batch {
                self.study.add(event, |io| self.rows.add(io));
            }
        }
        Ok((!self.rows.is_empty()).then(|| self.rows.take()))
    }

    /// The time of the first event on the trace's clock; None before it was read.
    pub fn began_ns(&self) -> Option<u64> {
        self.study.began_ns()
    }

    /// The trace's names of the devices up to here that have no major and minor.
    pub fn device_names(&mut self) -> (BTreeMap<u32, String>, bool) {
        let about = self.reader.about();
        (about.device_names.clone(), about.devices_numbered)
    }

    /// What the tasks are called; complete at the end.
    pub fn names(&mut self) -> BTreeMap<u32, String> {
        self.reader.about().names.clone()
    }
}
