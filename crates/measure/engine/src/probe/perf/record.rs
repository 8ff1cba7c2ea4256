//! What the kernel writes into a perf ring: records of a type, a length and a body (perf_event_open(2)).

/// How many events a sample stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Period {
    /// As many as each.
    Fixed(u64),
    /// The sample has it.
    Recorded,
}

impl Period {
    /// The fields of a sample; their order is that of the kernel's `PERF_RECORD_SAMPLE`.
    pub fn sample_fields(self) -> u64 {
        let always = SAMPLE_TID | SAMPLE_TIME | SAMPLE_CPU | SAMPLE_CALLCHAIN;
        match self {
            // Asked to record a fixed period, the kernel samples software events one by one instead.
            Period::Fixed(_) => always,
            Period::Recorded => always | SAMPLE_PERIOD,
        }
    }
}

/// One record of the ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Record<'a> {
    /// A sample that an event triggered.
    Sample(Sample<'a>),
    /// This many records found no room in the ring before this one.
    Lost(u64),
    /// The kernel stopped sampling for a moment because it took too much time.
    Throttled,
    /// Anything else, which we did not ask for.
    Other,
}

/// Where a task was when the event's counter overflowed (PERF_RECORD_SAMPLE).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sample<'a> {
    /// The process (the kernel's tgid); 0 for an idle task.
    pub pid: u32,
    /// The thread.
    pub tid: u32,
    /// On the clock that the event was opened with, in nanoseconds.
    pub at_ns: u64,
    /// The CPU it ran on.
    pub cpu: u32,
    /// How many events this sample stands for.
    pub period: u64,
    chain: &'a [u8],
}

/// A record that contradicts itself; the rest of the ring's contents can't be understood.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Malformed;

/// Records one after the other.
#[derive(Clone, Debug)]
pub struct Records<'a> {
    rest: &'a [u8],
    period: Period,
}

impl<'a> Records<'a> {
    /// Reads `bytes`, whole records of events that have this period.
    pub fn new(bytes: &'a [u8], period: Period) -> Records<'a> {
        Records { rest: bytes, period }
    }
}

impl<'a> Iterator for Records<'a> {
    type Item = Result<Record<'a>, Malformed>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.is_empty() {
            return None;
        }
        let parsed = split(self.rest);
        // After a wrong length, the beginning of the next record is unknown.
        self.rest = parsed.map_or(&[], |(_, _, rest)| rest);
        Some(parsed.and_then(|(kind, body, _)| record(kind, body, self.period)).ok_or(Malformed))
    }
}

impl Sample<'_> {
    /// Addresses of the kernel's functions, innermost first; after the first they are where a call returns to.
    pub fn kernel_stack(&self) -> impl Iterator<Item = u64> {
        let words = self.chain.chunks_exact(8).map(word);
        let mut in_kernel = false;
        words.filter(move |&address| {
            if address >= CONTEXT_MAX {
                in_kernel = address == CONTEXT_KERNEL;
                return false;
            }
            in_kernel
        })
    }
}

fn split(bytes: &[u8]) -> Option<(u32, &[u8], &[u8])> {
    let kind = u32::from_ne_bytes(bytes.get(..4)?.try_into().ok()?);
    let length = usize::from(u16::from_ne_bytes(bytes.get(6..HEADER)?.try_into().ok()?));
    let body = bytes.get(HEADER..length)?;
    Some((kind, body, &bytes[length..]))
}

fn record(kind: u32, body: &[u8], period: Period) -> Option<Record<'_>> {
    Some(match kind {
        RECORD_SAMPLE => Record::Sample(sample(body, period)?),
        // The event's id, then the number.
        RECORD_LOST => Record::Lost(word(body.get(8..16)?)),
        RECORD_LOST_SAMPLES => Record::Lost(word(body.get(..8)?)),
        RECORD_THROTTLE => Record::Throttled,
        _ => Record::Other,
    })
}

fn sample(body: &[u8], period: Period) -> Option<Sample<'_>> {
    let half = |at: usize| Some(u32::from_ne_bytes(body.get(at..at + 4)?.try_into().ok()?));
    let (period, rest) = match period {
        Period::Fixed(period) => (period, body.get(24..)?),
        Period::Recorded => (word(body.get(24..32)?), body.get(32..)?),
    };
    let addresses = usize::try_from(word(rest.get(..8)?)).ok()?;
    Some(Sample {
        pid: half(0)?,
        tid: half(4)?,
        at_ns: word(body.get(8..16)?),
        cpu: half(16)?,
        period,
        chain: rest.get(8..8usize.checked_add(addresses.checked_mul(8)?)?)?,
    })
}

/// The number in eight bytes.
fn word(bytes: &[u8]) -> u64 {
    bytes.try_into().map_or(0, u64::from_ne_bytes)
}

const HEADER: usize = 8;
const RECORD_LOST: u32 = 2;
const RECORD_THROTTLE: u32 = 5;
const RECORD_SAMPLE: u32 = 9;
const RECORD_LOST_SAMPLES: u32 = 13;
const SAMPLE_TID: u64 = 1 << 1;
const SAMPLE_TIME: u64 = 1 << 2;
const SAMPLE_CALLCHAIN: u64 = 1 << 5;
const SAMPLE_CPU: u64 = 1 << 7;
const SAMPLE_PERIOD: u64 = 1 << 8;
/// Marks in a call chain: in whose code the addresses after them are.
const CONTEXT_KERNEL: u64 = -128i64 as u64;
const CONTEXT_MAX: u64 = -4095i64 as u64;

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(kind: u32, body: &[u8]) -> Vec<u8> {
        let length = (HEADER + body.len()) as u16;
        [&kind.to_ne_bytes()[..], &[0, 0], &length.to_ne_bytes(), body].concat()
    }

    fn sample_body(chain: &[u64]) -> Vec<u8> {
        let mut body = Vec::new();
        body.extend(11u32.to_ne_bytes());
        body.extend(12u32.to_ne_bytes());
        body.extend(13u64.to_ne_bytes());
        body.extend(1u64.to_ne_bytes());
        body.extend(7u64.to_ne_bytes());
        body.extend((chain.len() as u64).to_ne_bytes());
        body.extend(chain.iter().flat_map(|address| address.to_ne_bytes()));
        body
    }

    #[test]
    fn a_sample_tells_who_when_and_where_in_the_kernel() {
        let user = -512i64 as u64;
        let ring = [
            bytes(RECORD_LOST, &[[9u8; 8], 5u64.to_ne_bytes()].concat()),
            bytes(RECORD_SAMPLE, &sample_body(&[CONTEXT_KERNEL, 0xf1, 0xf2, user, 0x11])),
            bytes(77, &[]),
        ]
        .concat();
        let records: Vec<_> = Records::new(&ring, Period::Recorded).map(Result::unwrap).collect();
        let [Record::Lost(5), Record::Sample(sample), Record::Other] = records[..] else { panic!("{records:?}") };
        assert_eq!((sample.pid, sample.tid, sample.at_ns, sample.cpu, sample.period), (11, 12, 13, 1, 7));
        assert_eq!(sample.kernel_stack().collect::<Vec<_>>(), [0xf1, 0xf2]);
    }

    #[test]
    fn a_fixed_period_is_not_in_the_sample() {
        let mut body = sample_body(&[CONTEXT_KERNEL, 0xf1]);
        body.drain(24..32);
        let ring = bytes(RECORD_SAMPLE, &body);
        let record = Records::new(&ring, Period::Fixed(10)).next();
        let Some(Ok(Record::Sample(sample))) = record else { panic!("{record:?}") };
        assert_eq!(sample.period, 10);
        assert_eq!(sample.kernel_stack().collect::<Vec<_>>(), [0xf1]);
    }

    #[test]
    fn a_sample_longer_than_its_record_ends_the_reading() {
        let mut body = sample_body(&[CONTEXT_KERNEL, 1]);
        body[32] = 200;
        let ring = bytes(RECORD_SAMPLE, &body);
        assert_eq!(Records::new(&ring, Period::Recorded).collect::<Vec<_>>(), [Err(Malformed)]);
    }

    #[test]
    fn a_record_shorter_than_its_header_ends_the_reading() {
        for length in 0..HEADER as u16 {
            let mut ring = bytes(RECORD_THROTTLE, &[]);
            ring[6..8].copy_from_slice(&length.to_ne_bytes());
            ring.extend(bytes(RECORD_THROTTLE, &[]));
            assert_eq!(Records::new(&ring, Period::Recorded).collect::<Vec<_>>(), [Err(Malformed)]);
        }
    }
}
