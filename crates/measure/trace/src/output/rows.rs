//! A row per request, as columns of fixed width: what other programs read as Parquet.

use crate::request::Io;

/// The columns with what a value is: `u64`, `u32`, `u16` or `i16`, little-endian. A time that is not known is the largest
/// number of its type.
pub const ROW_COLUMNS: &[(&str, &str)] = &[
    ("arrived_ns", "u64"),
    ("queued_ns", "u64"),
    ("inserted_ns", "u64"),
    ("issued_ns", "u64"),
    ("completed_ns", "u64"),
    ("device", "u32"),
    ("pid", "u32"),
    ("cpu", "u16"),
    ("operation", "u16"),
    ("marks", "u16"),
    ("sector", "u64"),
    ("sectors", "u32"),
    ("merged", "u32"),
    ("requeues", "u16"),
    ("split", "u16"),
    ("error", "i16"),
];

/// Unfinished rows.
#[derive(Clone, Debug, Default)]
pub struct Rows {
    /// As many as `ROW_COLUMNS`.
    columns: Vec<Vec<u8>>,
    count: usize,
}

impl Rows {
    /// Appends a request.
    pub fn add(&mut self, io: &Io) {
        self.columns.resize(ROW_COLUMNS.len(), Vec::new());
        let mut columns = self.columns.iter_mut();
        let mut put = |bytes: &[u8]| {
            if let Some(column) = columns.next() {
                column.extend_from_slice(bytes);
            }
        };
        let times = [io.queued_ns, io.inserted_ns, io.issued_ns, io.completed_ns];
        put(&io.arrived_ns().to_le_bytes());
        for at_ns in times {
            put(&at_ns.unwrap_or(u64::MAX).to_le_bytes());
        }
        put(&io.device.0.to_le_bytes());
        put(&io.pid.to_le_bytes());
        put(&io.cpu.to_le_bytes());
        put(&(io.kind() as u16).to_le_bytes());
        put(&u16::from(io.marks.0).to_le_bytes());
        put(&io.sector.to_le_bytes());
        put(&io.sectors.to_le_bytes());
        put(&io.merged.to_le_bytes());
        put(&io.requeues.to_le_bytes());
        put(&u16::from(io.split).to_le_bytes());
        put(&io.error.to_le_bytes());
        self.count += 1;
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.count
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// The columns' bytes, in the order of `ROW_COLUMNS`; none are left.
    pub fn take(&mut self) -> Vec<Vec<u8>> {
        self.count = 0;
        std::mem::take(&mut self.columns)
    }
}
