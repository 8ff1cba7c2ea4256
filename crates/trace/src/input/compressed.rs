//! What is packed, unpacked as it is read.

use std::io::{self, Read};

use super::about::ReadError;

type Input = Box<dyn Read + Send>;

/// What a file that begins so is packed with.
pub(crate) fn recognise(bytes: &[u8]) -> Option<&'static str> {
    match bytes {
        [0x1f, 0x8b, ..] => Some("gzip"),
        [0x28, 0xb5, 0x2f, 0xfd, ..] => Some("zstd"),
        [0xfd, b'7', b'z', b'X', b'Z', 0, ..] => Some("xz"),
        _ => None,
    }
}

/// The unpacked bytes.
pub(crate) fn of(name: &str, input: Input) -> Result<Input, ReadError> {
    Ok(match name {
        "none" => input,
        "gzip" => Box::new(flate2::read::MultiGzDecoder::new(input)),
        "zlib" => Box::new(flate2::read::ZlibDecoder::new(input)),
        "zstd" => Box::new(Frames::new(input)),
        "xz" => Box::new(lzma_rust2::XzReader::new(input, true)),
        _ => {
            return Err(ReadError(format!(
                "packed with {name}: zlib, zstd and xz are known"
            )));
        }
    })
}

/// All frames of zstd, one after the other.
struct Frames {
    /// None between two frames.
    frame: Option<ruzstd::decoding::StreamingDecoder<Peeked, ruzstd::decoding::FrameDecoder>>,
    /// The input, while no frame has it.
    input: Option<Peeked>,
}

/// An input with a byte that was looked at.
struct Peeked {
    first: Option<u8>,
    input: Input,
}

impl Read for Peeked {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if let (Some(first), Some(to)) = (self.first, buffer.first_mut()) {
            *to = first;
            self.first = None;
            return Ok(1);
        }
        self.input.read(buffer)
    }
}

impl Frames {
    fn new(input: Input) -> Frames {
        Frames {
            frame: None,
            input: Some(Peeked { first: None, input }),
        }
    }

    /// False when no frame follows.
    fn next_frame(&mut self) -> io::Result<bool> {
        let Some(mut input) = self.input.take() else {
            return Ok(false);
        };
        let mut first = [0];
        if input.read(&mut first)? == 0 {
            return Ok(false);
        }
        input.first = Some(first[0]);
        let decoder = ruzstd::decoding::StreamingDecoder::new(input);
        self.frame = Some(decoder.map_err(|error| io::Error::other(error.to_string()))?);
        Ok(true)
    }
}

impl Read for Frames {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            if self.frame.is_none() && !self.next_frame()? {
                return Ok(0);
            }
            let Some(frame) = &mut self.frame else {
                return Ok(0);
            };
            let count = frame.read(buffer)?;
            if count > 0 || buffer.is_empty() {
                return Ok(count);
            }
            self.input = self.frame.take().map(|frame| frame.into_inner());
        }
    }
}

/// The data of a CPU in `trace.dat` 7: a number of chunks, each packed by itself.
pub(crate) struct Chunks<R> {
    input: R,
    name: String,
    left: u32,
    chunk: io::Cursor<Vec<u8>>,
}

/// trace-cmd packs ten pages at a time.
const CHUNK_BYTES_MAX: u32 = 64 << 20;

impl<R: Read> Chunks<R> {
    pub(crate) fn new(mut input: R, name: &str) -> Result<Chunks<R>, ReadError> {
        // A CPU without data has no count either.
        let left = number(&mut input).unwrap_or(0);
        Ok(Chunks {
            input,
            name: name.to_owned(),
            left,
            chunk: io::Cursor::default(),
        })
    }

    fn next_chunk(&mut self) -> io::Result<()> {
        self.left -= 1;
        let (packed, plain) = (number(&mut self.input)?, number(&mut self.input)?);
        if packed > CHUNK_BYTES_MAX || plain > CHUNK_BYTES_MAX {
            return Err(io::Error::other(format!(
                "a chunk of {packed} bytes for {plain}"
            )));
        }
        let mut bytes = Vec::new();
        (&mut self.input)
            .take(u64::from(packed))
            .read_to_end(&mut bytes)?;
        let unpacked =
            of(&self.name, Box::new(io::Cursor::new(bytes))).map_err(io::Error::other)?;
        let mut chunk = Vec::new();
        unpacked.take(u64::from(plain)).read_to_end(&mut chunk)?;
        self.chunk = io::Cursor::new(chunk);
        Ok(())
    }
}

fn number(input: &mut impl Read) -> io::Result<u32> {
    let mut bytes = [0; 4];
    input.read_exact(&mut bytes)?;
    Ok(u32::from_le_bytes(bytes))
}

impl<R: Read> Read for Chunks<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            let count = self.chunk.read(buffer)?;
            if count > 0 || self.left == 0 || buffer.is_empty() {
                return Ok(count);
            }
            self.next_chunk()?;
        }
    }
}
