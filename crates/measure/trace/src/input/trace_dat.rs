//! `trace.dat` of trace-cmd, versions 6 and 7: sub-buffers of each CPU behind a header.
//!
//! Source: trace-cmd.dat.v6(5) and trace-cmd.dat.v7(5).

use std::io::Read;
use std::sync::Arc;

use super::compression;
use super::header::{Cursor, page_format};
use super::merged_files::MergedFiles;
use super::random_access::{FileTail, Range, ReadAt};
use super::recordings::Recordings;
use super::records::Records;
use super::stream::Reader;
use super::trace_info::{ReadError, TraceInfo};
use crate::event::TraceEvent;
use crate::page::{LostEvents, Page, PageFormat, RawEvent};

/// What it begins with.
pub(crate) const MAGIC: &[u8] = b"\x17\x08\x44tracing";
const CPUS_MAX: u32 = 1 << 16;

/// Its header.
struct Header {
    about: TraceInfo,
    page: PageFormat,
    records: Arc<Records>,
    /// CPU, where its data is, and how long.
    cpus: Vec<(u32, u64, u64)>,
    /// The data lie in chunks of zlib or zstd.
    compression: Option<String>,
}

/// Opens such a file, or several that were put into one.
pub(crate) fn open(file: &Arc<dyn ReadAt>) -> Result<Box<dyn Reader>, ReadError> {
    let (first, mut end) = open_one(file)?;
    let mut all = Recordings::new(first);
    while let Some(at) = next_magic(file, end) {
        let further: Arc<dyn ReadAt> = Arc::new(FileTail { file: Arc::clone(file), at });
        match open_one(&further) {
            Ok((recording, length)) => {
                all.push(recording);
                end = at.saturating_add(length);
            }
            Err(error) => {
                let about = all.about();
                about.malformed(|| format!("another trace.dat begins at byte {at}: {error}"));
                break;
            }
        }
    }
    Ok(Box::new(all))
}

/// What may lie behind a recording's events and is none of them.
const TAIL_BYTES: u64 = 1 << 16;

/// Where another file begins, not far behind the end of one.
fn next_magic(file: &Arc<dyn ReadAt>, end: u64) -> Option<u64> {
    if end >= file.length() {
        return None;
    }
    // Mostly at once: only then is little read of many short recordings.
    [MAGIC.len() as u64, TAIL_BYTES].into_iter().find_map(|bytes| {
        let mut tail = Vec::new();
        let read = Range::of(file, end, bytes).read_to_end(&mut tail);
        let at = memchr::memmem::find(&tail, MAGIC).filter(|_| read.is_ok())?;
        Some(end + at as u64)
    })
}

/// One recording, and where its events end.
fn open_one(file: &Arc<dyn ReadAt>) -> Result<(MergedFiles, u64), ReadError> {
    let mut cursor = Cursor(Range::of(file, 0, u64::MAX));
    cursor.skip(MAGIC.len() as u64)?;
    let version = cursor.text()?;
    if cursor.bytes(2)?[0] != 0 {
        return Err(ReadError("trace.dat of a big-endian machine: not readable here".into()));
    }
    cursor.u32()?;
    let mut about = TraceInfo::of(format!("trace.dat {version}"));
    let header = match version.as_str() {
        "6" => version_6(cursor, about)?,
        "7" => version_7(file, cursor, &mut about)?,
        _ => {
            return Err(ReadError(format!("trace.dat of version {version}; 6 and 7 are the ones that are known")));
        }
    };
    let ends = header.cpus.iter().map(|&(_, offset, length)| offset.saturating_add(length));
    let end = ends.max().unwrap_or(0);
    let readers = header.cpus.iter().map(|&(cpu, offset, length)| {
        // The number of chunks before the first is not counted in the length.
        let before = if header.compression.is_some() { 4 } else { 0 };
        let range = Range::of(file, offset, length.saturating_add(before));
        let input: Box<dyn Read + Send> = match &header.compression {
            None => Box::new(range),
            Some(name) => Box::new(compression::Chunks::new(range, name)?),
        };
        let reader: Box<dyn Reader> = Box::new(Cpu {
            cpu: cpu as u16,
            input,
            left: header.compression.is_none().then_some(length),
            buffer: Vec::new(),
            page: header.page,
            records: Arc::clone(&header.records),
            reached_ns: None,
            about: TraceInfo::default(),
        });
        Ok(reader)
    });
    let readers = readers.collect::<Result<Vec<_>, ReadError>>()?;
    Ok((MergedFiles::new(readers, header.about), end))
}

fn version_6(mut cursor: Cursor<Range>, mut about: TraceInfo) -> Result<Header, ReadError> {
    let page = page_format(&cursor.named()?)?;
    cursor.named()?;
    cursor.skip_tracers()?;
    let formats = cursor.formats(&mut about)?;
    let symbols = u64::from(cursor.u32()?);
    cursor.skip(symbols)?;
    let texts = u64::from(cursor.u32()?);
    cursor.skip(texts)?;
    cursor.names(&mut about)?;
    let count = cursor.u32()?.min(CPUS_MAX);
    let mut kind = cursor.bytes(10)?;
    if kind.starts_with(b"options") {
        loop {
            let option = cursor.u16()?;
            if option == 0 {
                break;
            }
            let length = u64::from(cursor.u32()?);
            cursor.skip(length)?;
        }
        kind = cursor.bytes(10)?;
    }
    if !kind.starts_with(b"flyrecord") {
        return Err(ReadError("trace.dat without recorded buffers (it holds text of a latency tracer)".into()));
    }
    let cpus = (0..count).map(|cpu| Ok((cpu, cursor.u64()?, cursor.u64()?)));
    Ok(Header {
        cpus: cpus.collect::<Result<_, ReadError>>()?,
        page,
        records: records(&formats)?,
        about,
        compression: None,
    })
}

const SECTION_COMPRESSED: u16 = 1;
const OPTION_DONE: u16 = 0;
const OPTION_BUFFER: u16 = 3;
const OPTION_HEADER: u16 = 16;
const OPTION_FORMATS: u16 = 18;
const OPTION_NAMES: u16 = 21;
const SECTIONS_MAX: u32 = 1000;

fn version_7(file: &Arc<dyn ReadAt>, mut cursor: Cursor<Range>, about: &mut TraceInfo) -> Result<Header, ReadError> {
    let compression = cursor.text()?;
    cursor.text()?;
    let mut next = cursor.u64()?;
    let (mut page, mut formats, mut cpus) = (None, Vec::new(), Vec::new());
    let mut chunked = false;
    for _ in 0..SECTIONS_MAX {
        if next == 0 {
            break;
        }
        let mut options = section(file, next, &compression)?;
        loop {
            let option = options.u16()?;
            let length = u64::from(options.u32()?);
            let mut data = Cursor(std::io::Cursor::new(options.bytes(length)?));
            match option {
                OPTION_DONE => {
                    next = data.u64()?;
                    break;
                }
                OPTION_HEADER => page = Some(page_format(&section(file, data.u64()?, &compression)?.named()?)?),
                OPTION_FORMATS => formats = section(file, data.u64()?, &compression)?.formats(about)?,
                OPTION_NAMES => section(file, data.u64()?, &compression)?.names(about)?,
                OPTION_BUFFER => {
                    let at = data.u64()?;
                    data.text()?;
                    data.text()?;
                    data.u32()?;
                    chunked = Cursor(Range::of(file, at + 2, 2)).u16()? & SECTION_COMPRESSED != 0;
                    for _ in 0..data.u32()?.min(CPUS_MAX) {
                        let (cpu, offset) = (data.u32()?, data.u64()?);
                        cpus.push((cpu, offset, data.u64()?));
                    }
                }
                _ => {}
            }
        }
    }
    Ok(Header {
        page: page.ok_or(ReadError("trace.dat without the format of its buffers".into()))?,
        records: records(&formats)?,
        cpus,
        about: std::mem::take(about),
        compression: chunked.then_some(compression),
    })
}

type Section = Cursor<Box<dyn Read + Send>>;

/// The content of the section that begins there.
fn section(file: &Arc<dyn ReadAt>, at: u64, compression: &str) -> Result<Section, ReadError> {
    let mut header = Cursor(Range::of(file, at, 16));
    header.u16()?;
    let flags = header.u16()?;
    header.u32()?;
    let length = header.u64()?;
    let begin = at.saturating_add(16);
    if flags & SECTION_COMPRESSED == 0 {
        return Ok(Cursor(Box::new(Range::of(file, begin, length))));
    }
    let packed = u64::from(Cursor(Range::of(file, begin, 4)).u32()?);
    let packed = Range::of(file, begin + 8, packed);
    Ok(Cursor(compression::of(compression, Box::new(packed))?))
}

fn records(formats: &[crate::format::EventFormat]) -> Result<Arc<Records>, ReadError> {
    let records = Records::new(formats).map_err(|error| ReadError(error.to_string()))?;
    Ok(Arc::new(records))
}

/// One CPU's sub-buffers.
struct Cpu {
    cpu: u16,
    input: Box<dyn Read + Send>,
    /// Bytes that are still to come by its header; None if they are packed.
    left: Option<u64>,
    buffer: Vec<u8>,
    page: PageFormat,
    records: Arc<Records>,
    /// The last event's time.
    reached_ns: Option<u64>,
    about: TraceInfo,
}

impl Reader for Cpu {
    fn read(&mut self, events: &mut Vec<TraceEvent>) -> Result<bool, ReadError> {
        // It grows with what is there: a file may claim to have many CPUs, and large sub-buffers.
        self.buffer.clear();
        let whole = self.page.subbuffer_bytes();
        let mut input = (&mut self.input).take(whole as u64);
        if let Err(error) = input.read_to_end(&mut self.buffer) {
            self.about.malformed(|| error.to_string());
            return Ok(self.cut(events));
        }
        let length = self.buffer.len();
        if self.left.is_some_and(|left| (length as u64) < left.min(whole as u64)) {
            let cpu = self.cpu;
            self.about.malformed(|| format!("the file ends within the events of CPU {cpu}"));
            return Ok(self.cut(events));
        }
        self.left = self.left.map(|left| left - length as u64);
        if self.buffer.is_empty() {
            return Ok(false);
        }
        let page = match Page::decode(&self.buffer, &self.page) {
            Ok(page) => page,
            Err(error) => {
                self.about.malformed(|| error.to_string());
                return Ok(self.buffer.len() == whole);
            }
        };
        if let Some(lost) = page.lost {
            let count = match lost {
                LostEvents::Events(count) => count,
                LostEvents::Uncounted => 0,
            };
            let since_ns = self.reached_ns.unwrap_or(page.started_ns);
            events.push(TraceEvent::lost(since_ns, page.started_ns, count, self.cpu));
        }
        for event in page.events() {
            match event {
                Ok(raw) => {
                    let reached_ns = self.reached_ns.unwrap_or(0).max(raw.at_ns);
                    self.reached_ns = Some(reached_ns);
                    let raw = RawEvent { at_ns: reached_ns, ..raw };
                    self.records.read(self.cpu, &raw, events, &mut self.about);
                }
                Err(error) => self.about.malformed(|| error.to_string()),
            }
        }
        Ok(true)
    }

    fn about(&mut self) -> &mut TraceInfo {
        &mut self.about
    }
}

impl Cpu {
    /// The other CPUs' events may continue, without those that are missing here. There are no more.
    fn cut(&self, events: &mut Vec<TraceEvent>) -> bool {
        let since_ns = self.reached_ns.unwrap_or(0);
        events.push(TraceEvent::lost(since_ns, u64::MAX, 0, self.cpu));
        false
    }
}
