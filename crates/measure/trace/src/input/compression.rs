//! What is packed, unpacked as it is read.

use std::io::{self, Read};

use super::trace_info::ReadError;

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
pub fn of(name: &str, input: Input) -> Result<Input, ReadError> {
    Ok(match name {
        "none" => input,
        "gzip" => Box::new(flate2::read::MultiGzDecoder::new(input)),
        "zlib" => Box::new(flate2::read::ZlibDecoder::new(input)),
        "zstd" => Box::new(Frames::new(input)),
        "xz" => Box::new(lzma_rust2::XzReader::new(input, true)),
        _ => {
            return Err(ReadError(format!("packed with {name}: zlib, zstd and xz are known")));
        }
    })
}

/// All frames of zstd, one after the other.
struct Frames {
    /// None between two frames.
    frame: Option<ruzstd::decoding::StreamingDecoder<PeekedInput, ruzstd::decoding::FrameDecoder>>,
    /// The input, while no frame has it.
    input: Option<PeekedInput>,
}

/// An input of which some bytes were looked at.
struct PeekedInput {
    ahead: Vec<u8>,
    input: Input,
}

impl PeekedInput {
    /// This many of the next bytes; fewer at the end.
    fn look(&mut self, count: usize) -> io::Result<&[u8]> {
        let missing = count.saturating_sub(self.ahead.len());
        (&mut self.input).take(missing as u64).read_to_end(&mut self.ahead)?;
        Ok(&self.ahead)
    }
}

impl Read for PeekedInput {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.ahead.is_empty() {
            return self.input.read(buffer);
        }
        let count = self.ahead.len().min(buffer.len());
        for (to, from) in buffer.iter_mut().zip(self.ahead.drain(..count)) {
            *to = from;
        }
        Ok(count)
    }
}

/// What zstd itself unpacks unless it is allowed more.
const WINDOW_BYTES_MAX: u64 = 128 << 20;
/// The longest head of a frame.
const FRAME_HEAD_BYTES: usize = 18;

/// How much a frame that begins so wants to be kept of what was unpacked, for later parts to refer to; None of what is
/// no whole head. RFC 8878, 3.1.1.1.
fn window_bytes(head: &[u8]) -> Option<u64> {
    let descriptor = *head.get(4)?;
    let is_single = descriptor & 0x20 != 0;
    if !is_single {
        let window = *head.get(5)?;
        let base = 1_u64 << (10 + (window >> 3));
        return Some(base + base / 8 * u64::from(window & 7));
    }
    let dictionary = [0, 1, 2, 4][usize::from(descriptor & 3)];
    let size = [1, 2, 4, 8][usize::from(descriptor >> 6)];
    let bytes = head.get(5 + dictionary..5 + dictionary + size)?;
    let mut whole = [0; 8];
    whole[..size].copy_from_slice(bytes);
    let content = u64::from_le_bytes(whole);
    Some(if size == 2 { content + 256 } else { content })
}

impl Frames {
    fn new(input: Input) -> Frames {
        Frames { frame: None, input: Some(PeekedInput { ahead: Vec::new(), input }) }
    }

    /// False when no frame follows.
    fn next_frame(&mut self) -> io::Result<bool> {
        let Some(mut input) = self.input.take() else {
            return Ok(false);
        };
        let head = input.look(FRAME_HEAD_BYTES)?;
        if head.is_empty() {
            return Ok(false);
        }
        if let Some(bytes) = window_bytes(head).filter(|&bytes| bytes > WINDOW_BYTES_MAX) {
            return Err(io::Error::other(format!(
                "a zstd frame with a window of {bytes} bytes; {WINDOW_BYTES_MAX} are the most"
            )));
        }
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
        Ok(Chunks { input, name: name.to_owned(), left, chunk: io::Cursor::default() })
    }

    fn next_chunk(&mut self) -> io::Result<()> {
        self.left -= 1;
        let (packed, plain) = (number(&mut self.input)?, number(&mut self.input)?);
        if packed > CHUNK_BYTES_MAX || plain > CHUNK_BYTES_MAX {
            return Err(io::Error::other(format!("a chunk of {packed} bytes for {plain}")));
        }
        let mut bytes = Vec::new();
        (&mut self.input).take(u64::from(packed)).read_to_end(&mut bytes)?;
        let unpacked = of(&self.name, Box::new(io::Cursor::new(bytes))).map_err(io::Error::other)?;
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

#[cfg(test)]
mod tests {
    use super::*;

    const MAGIC: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];

    fn unpacked(head: &[u8]) -> String {
        let bytes = [&MAGIC, head].concat();
        let mut input = of("zstd", Box::new(io::Cursor::new(bytes))).unwrap();
        input.read_to_end(&mut Vec::new()).unwrap_err().to_string()
    }

    #[test]
    fn a_large_window_is_refused_before_anything_is_reserved() {
        for head in [
            &[0x00, 21 << 3][..],
            &[0x00, 31 << 3 | 7],
            &[0xe0, 0, 0, 0, 0x80, 0, 0, 0, 0],
            &[0xe3, 1, 2, 3, 4, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f],
            &[0xa0, 0, 0, 0, 0x80],
        ] {
            assert!(unpacked(head).contains("with a window of"), "{head:?}");
        }
    }

    #[test]
    fn a_head_that_is_cut_is_an_error_of_the_decoder() {
        for length in 0..6 {
            let head = &[0xe0, 0, 0, 0, 0x80, 0][..length];
            assert!(!unpacked(head).contains("window of"));
        }
    }
}
