//! Which format a file has, by what it holds.

use std::io::{self, Read};
use std::sync::Arc;

use super::blkparse::Gaps;
use super::columns::{Layout, Table};
use super::merged_files::MergedFiles;
use super::random_access::{Range, ReadAt};
use super::stream::{Decode, DecodeLine, DecodedStream, Lines, Reader, plain};
use super::tables::{self, IoLog, Snoop};
use super::trace_info::{ReadError, TraceInfo};
use super::vscsi::Vscsi;
use super::{blkparse, blktrace, compression, event_text, perf_data, public, trace_dat};

/// Where a trace's bytes come from.
pub enum Source {
    /// A file.
    File(Arc<dyn ReadAt>),
    /// A pipe.
    Pipe(Box<dyn Read + Send>),
}

/// The bytes that are examined to recognise the format.
const LOOKED_AT: usize = 1 << 16;
/// Formats that are read here and there come whole into memory from pipes and packed files.
const WHOLE_BYTES_MAX: u64 = 1 << 30;

/// How the caller wants the files to be read.
#[derive(Clone, Copy)]
struct ReadOptions<'a> {
    layout: Option<&'a Layout>,
    gaps: Gaps,
}

/// Opens the files of one trace; `layout` names the columns of a table that is not recognised; `gaps`, what numbers
/// mean that a text of blkparse leaves out.
pub fn open(sources: Vec<Source>, layout: Option<&Layout>, gaps: Gaps) -> Result<Box<dyn Reader>, ReadError> {
    let how = ReadOptions { layout, gaps };
    let mut readers: Vec<Box<dyn Reader>> = Vec::new();
    let mut format = String::new();
    for source in sources {
        let mut reader = open_one(source, how)?;
        let found = reader.about().format.clone();
        if !format.is_empty() && format != found {
            return Err(ReadError(format!("the files are not of one trace: {format} and {found}")));
        }
        format = found;
        readers.push(reader);
    }
    if readers.is_empty() {
        return Err(ReadError("no file".into()));
    }
    Ok(Box::new(MergedFiles::new(readers, TraceInfo::of(format))))
}

fn open_one(source: Source, how: ReadOptions<'_>) -> Result<Box<dyn Reader>, ReadError> {
    let mut start = vec![0; LOOKED_AT];
    let length = match &source {
        Source::File(file) => file.read_at(0, &mut start).map_err(|error| ReadError(error.to_string()))?,
        Source::Pipe(_) => 0,
    };
    start.truncate(length);
    match source {
        Source::File(file) if start.starts_with(trace_dat::MAGIC) => trace_dat::open(&file),
        Source::File(file) if start.starts_with(perf_data::MAGIC) => Ok(Box::new(perf_data::open(&file)?)),
        Source::File(file) => stream(Box::new(Range::of(&file, 0, u64::MAX)), how),
        Source::Pipe(pipe) => stream(pipe, how),
    }
}

/// From its beginning on, whatever it is packed with.
fn stream(mut input: Box<dyn Read + Send>, how: ReadOptions<'_>) -> Result<Box<dyn Reader>, ReadError> {
    // Once packed, twice packed; no further.
    for _ in 0..3 {
        let start = beginning(&mut input)?;
        let packing = compression::recognise(&start);
        let whole = start.starts_with(trace_dat::MAGIC) || start.starts_with(perf_data::MAGIC);
        let again: Box<dyn Read + Send> = Box::new(io::Cursor::new(start.clone()).chain(input));
        if whole {
            return whole_file(again, how);
        }
        match packing {
            Some(name) => input = compression::of(name, again)?,
            None => return recognised(&start, again, how),
        }
    }
    Err(ReadError("packed more than twice".into()))
}

fn whole_file(input: Box<dyn Read + Send>, how: ReadOptions<'_>) -> Result<Box<dyn Reader>, ReadError> {
    let mut bytes = Vec::new();
    let read = input.take(WHOLE_BYTES_MAX + 1).read_to_end(&mut bytes);
    if bytes.len() as u64 > WHOLE_BYTES_MAX {
        return Err(ReadError(
            "it has to be read here and there, and holds more than 1 GiB: unpack it into a file first".into(),
        ));
    }
    let mut opened = open_one(Source::File(Arc::new(bytes)), how);
    if let (Ok(reader), Err(error)) = (&mut opened, &read) {
        // What a damaged archive still gives is read.
        reader.about().malformed(|| format!("the file can't be read further: {error}"));
    }
    opened.map_err(|found| match read {
        Ok(_) => found,
        Err(error) => ReadError(format!("{error}; of what could be read: {found}")),
    })
}

fn beginning(input: &mut Box<dyn Read + Send>) -> Result<Vec<u8>, ReadError> {
    let mut start = Vec::new();
    let read = input.take(LOOKED_AT as u64).read_to_end(&mut start);
    match read {
        // The next reader gets the error.
        Err(error) if start.is_empty() => Err(ReadError(error.to_string())),
        _ => Ok(start),
    }
}

fn recognised(start: &[u8], input: Box<dyn Read + Send>, how: ReadOptions<'_>) -> Result<Box<dyn Reader>, ReadError> {
    if start.is_empty() {
        return Err(ReadError("the file is empty".into()));
    }
    if let Some(layout) = how.layout {
        return lines(input, "table", Table::new(layout.clone()));
    }
    if let Some(magic) = blktrace::u32_at(start, 0) {
        if magic & !0xff == blktrace::MAGIC {
            let format = format!("blktrace {}", magic as u8);
            return decoded(input, format, blktrace::Blktrace::default());
        }
        if magic.swap_bytes() & !0xff == blktrace::MAGIC {
            return Err(ReadError(
                "blktrace of a big-endian machine: print it there with blkparse, and give iolab the text".into(),
            ));
        }
    }
    if start.starts_with(b"BZh") {
        return Err(ReadError(BZIP2.into()));
    }
    let is_text = !start.iter().take(4096).any(|&byte| byte == 0);
    if is_text {
        return text(start, input, how.gaps);
    }
    if let Some(vscsi) = Vscsi::of(start) {
        return decoded(input, "vSCSI".into(), vscsi);
    }
    Err(ReadError(UNKNOWN.into()))
}

const UNKNOWN: &str =
    "not a trace that iolab knows (docs/traces.md lists them); name the columns of a table with --columns";
const BZIP2: &str = "packed with bzip2, which iolab does not unpack: bzcat FILE | iolab trace -";
const UNTIMED: &str = "iosnoop without times of its I/Os: record again with iosnoop -ts, which adds STARTs and ENDs";
/// A text that is none of these for this many lines is something else.
const LINES_LOOKED_AT: usize = 200;

fn text(start: &[u8], input: Box<dyn Read + Send>, gaps: Gaps) -> Result<Box<dyn Reader>, ReadError> {
    let first = start.split(|&byte| byte == b'\n').next();
    let first = plain(first.unwrap_or_default());
    if first.starts_with(b"fio version ") {
        let version = if first.starts_with(b"fio version 3") { "3" } else { "2" };
        return lines(input, &format!("fio iolog {version}"), IoLog::new());
    }
    for line in start.split(|&byte| byte == b'\n').take(LINES_LOOKED_AT) {
        let line = plain(line);
        if let Some(name) = tables::snoop(line) {
            if line.starts_with(b"COMM") {
                return Err(ReadError(UNTIMED.into()));
            }
            return lines(input, name, Snoop::default());
        }
        if tables::snoop_without_headings(line).is_some() {
            return lines(input, "biosnoop", Snoop::default());
        }
        if event_text::recognises(line) {
            return lines(input, "trace events as text", event_text::EventText::default());
        }
        if blkparse::recognises(line) {
            return lines(input, "blkparse", blkparse::Blkparse::new(gaps));
        }
        if let Some((name, layout)) = public::known(line).or_else(|| public::meta(line)) {
            return lines(input, name, Table::new(layout));
        }
    }
    Err(ReadError(UNKNOWN.into()))
}

fn lines(
    input: Box<dyn Read + Send>,
    format: &str,
    decoder: impl DecodeLine + 'static,
) -> Result<Box<dyn Reader>, ReadError> {
    decoded(input, format.to_owned(), Lines(decoder))
}

fn decoded(
    input: Box<dyn Read + Send>,
    format: String,
    decoder: impl Decode + 'static,
) -> Result<Box<dyn Reader>, ReadError> {
    Ok(Box::new(DecodedStream::new(input, decoder, TraceInfo::of(format))))
}
