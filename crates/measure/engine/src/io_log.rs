//! What each operation took, one by one, on the clock that others have too.

use std::fs::File;
use std::io::{self, BufWriter, Write};

use base::time::Time;
use workload::job::Op;
use workload::measure::op_name;

/// The operations of a group until now.
#[derive(Debug)]
pub struct IoLog {
    path: String,
    entries: Vec<Entry>,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    op: Op,
    ended: Time,
    result: i32,
}

impl IoLog {
    pub fn new(path: String) -> IoLog {
        IoLog { path, entries: Vec::new() }
    }

    /// One is over; `result`: as its completion carried it.
    #[cold]
    pub fn add(&mut self, op: Op, ended: Time, result: i32) {
        self.entries.push(Entry { op, ended, result });
    }

    /// Writes the lines. `origin_ns`: the group's zero on CLOCK_MONOTONIC.
    pub fn write(self, origin_ns: u64) -> Result<(), String> {
        self.lines(origin_ns).map_err(|error| format!("the log of operations, {}: {error}", self.path))
    }

    fn lines(&self, origin_ns: u64) -> io::Result<()> {
        let mut file = BufWriter::new(File::create(&self.path)?);
        writeln!(file, "ended_ns,latency_ns,operation,file,offset_bytes,length_bytes,result")?;
        for Entry { op, ended, result } in &self.entries {
            writeln!(
                file,
                "{},{},{},{},{},{},{result}",
                origin_ns + ended,
                ended.saturating_sub(op.due),
                op_name(op.kind),
                op.file,
                op.offset,
                op.bytes
            )?;
        }
        file.flush()
    }
}
