//! A trace's files, opened.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use trace::input::{Column, Gaps, Layout, Operations, ReadAt, ReadError, Reader, Source, open};
use workload::traced::TraceTable;

/// Opens the files of one trace.
pub(crate) fn reader(paths: &[PathBuf], table: Option<&TraceTable>, gaps: Gaps) -> Result<Box<dyn Reader>, ReadError> {
    let sources =
        paths.iter().map(|path| source(path).map_err(|error| ReadError(format!("{}: {error}", path.display()))));
    let layout = table.map(layout).transpose()?;
    open(sources.collect::<Result<_, _>>()?, layout.as_ref(), gaps)
}

fn source(path: &Path) -> io::Result<Source> {
    if path == Path::new("-") {
        return Ok(Source::Pipe(Box::new(io::stdin())));
    }
    let file = File::open(path)?;
    let metadata = file.metadata()?;
    if metadata.is_dir() {
        return Err(io::Error::from_raw_os_error(libc::EISDIR));
    }
    Ok(match metadata.is_file() {
        true => Source::File(Arc::new(WholeFile { length: metadata.len(), file })),
        false => Source::Pipe(Box::new(file)),
    })
}

struct WholeFile {
    file: File,
    length: u64,
}

impl ReadAt for WholeFile {
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        self.file.read_at(buffer, offset)
    }

    fn length(&self) -> u64 {
        self.length
    }
}

fn layout(table: &TraceTable) -> Result<Layout, ReadError> {
    let columns = table.columns.iter().map(|(name, unit)| {
        Ok(match name.as_str() {
            "time" => Column::Time { unit_ns: *unit },
            "latency" => Column::Latency { unit_ns: *unit },
            "offset" => Column::Offset { unit_bytes: *unit },
            "size" => Column::Size { unit_bytes: *unit },
            "operation" => Column::Operation,
            "device" => Column::Device,
            "pid" => Column::Pid,
            "process" => Column::Process,
            "-" => Column::Ignored,
            _ => return Err(ReadError(format!("{name}: no column of a trace"))),
        })
    });
    Ok(Layout {
        separator: u8::try_from(table.separator).map_err(|error| ReadError(error.to_string()))?,
        columns: columns.collect::<Result<_, _>>()?,
        ended: table.ended,
        operations: match table.one_reads {
            true => Operations::OneReads,
            false => Operations::ZeroReads,
        },
    })
}
