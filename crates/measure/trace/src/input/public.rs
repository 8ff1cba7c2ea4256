//! Public traces that are tables, known by how their lines look.

use super::columns::{Column, Layout, Operations, unquoted};
use super::vscsi::hexadecimal;
use super::words::{number, time_ns};
use base::SECTOR_BYTES;

const MICROSECOND_NS: u64 = 1_000;
const SECOND_NS: u64 = 1_000_000_000;
/// The public trace that a line is of: its name and how it is read.
pub(crate) fn known(line: &[u8]) -> Option<(&'static str, Layout)> {
    use Column::{Device, Host, Ignored, Latency, Major, Offset, Operation, Pid, Process, Size, Time};
    let fields = line.split(|&byte| byte == b',');
    let commas: Vec<&[u8]> = fields.map(unquoted).collect();
    let is_time = |at: usize| commas.get(at).is_some_and(|field| time_ns(field, SECOND_NS).is_some());
    let has_point = |at: usize| commas.get(at).is_some_and(|field| field.contains(&b'.'));
    let moves = |at: usize| matches!(commas.get(at), Some([b'R' | b'W' | b'r' | b'w']));
    let digits = |at: usize| commas.get(at).is_some_and(|field| number(field).is_some());
    let layout = |separator: u8, columns: &[Column], ended: bool| Layout {
        separator,
        columns: columns.to_vec(),
        ended,
        operations: Operations::ZeroReads,
    };
    let bytes = |column: fn(u64) -> Column| column(1);
    let offset = |unit_bytes| Offset { unit_bytes };
    let size = |unit_bytes| Size { unit_bytes };
    if commas.len() == 7 && digits(0) && commas[0].len() == 18 && digits(4) && digits(6) {
        // Windows' time of 100 ns, at which the I/O was issued.
        let columns =
            [Time { unit_ns: 100 }, Host, Device, Operation, bytes(offset), bytes(size), Latency { unit_ns: 100 }];
        return Some(("MSR Cambridge", layout(b',', &columns, false)));
    }
    if commas.len() == 5 && digits(0) && matches!(commas[1], b"R" | b"W") && digits(2) && digits(4) {
        let time = Time { unit_ns: MICROSECOND_NS };
        let columns = [Device, Operation, bytes(offset), bytes(size), time];
        return Some(("Alibaba", layout(b',', &columns, false)));
    }
    let is_scsi = |at: usize| commas[at].len() == 2 && hexadecimal(commas[at]).is_some();
    let is_cloud_physics = matches!(commas[0], b"1" | b"2") && [1, 3, 4].into_iter().all(digits);
    if commas.len() == 5 && is_cloud_physics && is_scsi(2) {
        let columns = [Ignored, Time { unit_ns: SECOND_NS }, Operation, bytes(size), offset(SECTOR_BYTES)];
        let operations = Operations::Scsi;
        let read = layout(b',', &columns, false);
        return Some(("CloudPhysics", Layout { operations, ..read }));
    }
    if commas.len() == 5 && (0..5).all(digits) && matches!(commas[3], b"0" | b"1") {
        let columns = [Time { unit_ns: SECOND_NS }, offset(SECTOR_BYTES), size(SECTOR_BYTES), Operation, Device];
        return Some(("Tencent", layout(b',', &columns, false)));
    }
    if commas.len() >= 5 && (0..3).all(digits) && moves(3) && is_time(4) {
        // "SPC Trace File Format Specification", revision 1.0.1: application storage unit, block, bytes, seconds.
        let columns = [Device, offset(SECTOR_BYTES), bytes(size), Operation, Time { unit_ns: SECOND_NS }];
        return Some(("SPC", layout(b',', &columns, false)));
    }
    let responded = is_time(1) || commas.get(1).is_some_and(|field| field.is_empty());
    if commas.len() == 6 && is_time(0) && has_point(0) && responded && moves(2) && (3..6).all(digits) {
        let columns = [
            Time { unit_ns: SECOND_NS },
            Latency { unit_ns: SECOND_NS },
            Operation,
            Device,
            bytes(offset),
            bytes(size),
        ];
        return Some(("Systor '17", layout(b',', &columns, false)));
    }
    let blanks: Vec<&[u8]> = line.split(|byte| byte.is_ascii_whitespace()).filter(|word| !word.is_empty()).collect();
    let digits = |at: usize| blanks.get(at).is_some_and(|field| number(field).is_some());
    if blanks.len() == 9 && digits(0) && digits(1) && digits(3) && digits(4) && matches!(blanks[5], b"W" | b"R") {
        let columns = [
            Time { unit_ns: 1 },
            Pid,
            Process,
            offset(SECTOR_BYTES),
            size(SECTOR_BYTES),
            Operation,
            Major,
            Device,
            Ignored,
        ];
        return Some(("FIU", layout(b' ', &columns, false)));
    }
    None
}

const BLOCK_BYTES: u64 = 8 << 20;

/// Meta's traces of its bulk storage, by how many columns they have; their names come in a file of their own, or in the
/// first line.
///
/// Source: the description of the Baleen traces (Wong et al., FAST 2024) and the code that reads them there: blocks of
/// 8 MiB, bytes, seconds, and a number for each operation. `op_count` is how often a line happened within its second.
pub(crate) fn meta(line: &[u8]) -> Option<(&'static str, Layout)> {
    const NAMES: [&str; 4] = [
        "block_id io_offset io_size op_time op_name user_namespace user_name",
        "block_id io_offset io_size op_time op_name pipeline user_namespace user_name",
        "block_id io_offset io_size op_time op_name user_namespace user_name host_name op_count",
        "block_id io_offset io_size op_time op_name user_namespace user_name rs_shard_id op_count host_name",
    ];
    let separator = if line.contains(&b',') { b',' } else { b' ' };
    let line = line.strip_prefix(b"#").unwrap_or(line).trim_ascii();
    let found: Vec<&[u8]> = line.split(|&byte| byte == separator).collect();
    let is = |at: usize, what: fn(&[u8]) -> bool| found.get(at).is_some_and(|field| what(field));
    let is_number: fn(&[u8]) -> bool = |field| number(field).is_some();
    if ["io_offset", "io_size", "op_time"].iter().all(|name| found.contains(&name.as_bytes())) {
        return Some(("Meta", meta_layout(separator, &found)));
    }
    let is_time: fn(&[u8]) -> bool = |field| field.contains(&b'.') && time_ns(field, SECOND_NS).is_some();
    let is_operation: fn(&[u8]) -> bool = |field| matches!(field, [b'1'..=b'6'] | b"100");
    if !((0..3).all(|at| is(at, is_number)) && is(3, is_time) && is(4, is_operation)) {
        return None;
    }
    let columns = NAMES.iter().map(|names| names.as_bytes().split(|&byte| byte == b' '));
    let columns = columns.map(Iterator::collect::<Vec<_>>);
    let known = columns.into_iter().find(|names| names.len() == found.len())?;
    Some(("Meta", meta_layout(separator, &known)))
}

fn meta_layout(separator: u8, names: &[&[u8]]) -> Layout {
    let columns = names.iter().map(|&name| match name {
        b"block_id" => Column::Block { bytes: BLOCK_BYTES },
        b"op_time" => Column::Time { unit_ns: SECOND_NS },
        b"io_offset" => Column::Offset { unit_bytes: 1 },
        b"io_size" => Column::Size { unit_bytes: 1 },
        b"op_name" => Column::Operation,
        b"host_name" => Column::Device,
        _ => Column::Ignored,
    });
    Layout { separator, columns: columns.collect(), ended: false, operations: Operations::Meta }
}
