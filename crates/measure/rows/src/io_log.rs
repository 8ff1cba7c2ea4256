//! fio's logs: `time in ms, value, direction, block size[, ...]`, a line per operation or per window.

use base::histogram::LatencyHistogram;

use crate::UnreadLine;
use crate::entry::digits;

/// Reads, writes, trims, syncs: what a log's third column counts from 0.
pub const DIRECTIONS: usize = 4;
/// Later lines count in the last interval.
pub const INTERVALS_MAX: usize = 256;

/// What the lines of one direction came to.
#[derive(Clone, Debug, Default)]
pub struct Direction {
    /// The histogram of all values.
    pub values: LatencyHistogram,
    /// The sum of the block sizes, in bytes.
    pub bytes: u64,
    /// The latest time stamp, in milliseconds; 0 without lines.
    pub last_ms: u64,
    /// By time; as many as reach to the last line.
    pub intervals: Vec<Interval>,
}

/// The lines of one direction whose time stamp falls into one interval.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Interval {
    /// Lines.
    pub count: u64,
    /// The sum of their block sizes, in bytes.
    pub bytes: u64,
    /// The sum of the values.
    pub sum: u64,
}

/// What the lines of one log add up to, by direction and interval.
#[derive(Clone, Debug)]
pub struct IoLog {
    interval_ms: u64,
    /// Reads, writes, trims, syncs, in this order.
    pub directions: [Direction; DIRECTIONS],
}

impl IoLog {
    /// `interval_ms`: the time that an interval spans, at least 1.
    pub fn new(interval_ms: u64) -> IoLog {
        IoLog { interval_ms: interval_ms.max(1), directions: Default::default() }
    }

    /// Adds whole lines, the first of which starts at `offset` of the file. Columns after the fourth are not read.
    pub fn add(&mut self, lines: &[u8], offset: u64) -> Result<(), UnreadLine> {
        let mut at = 0;
        while at < lines.len() {
            let unread = UnreadLine { offset: offset + at as u64 };
            at = self.line(lines, at).ok_or(unread)?;
        }
        Ok(())
    }

    /// Adds what other lines of the same file came to.
    pub fn merge(&mut self, other: &IoLog) {
        for (ours, theirs) in self.directions.iter_mut().zip(&other.directions) {
            ours.values.merge(&theirs.values);
            ours.bytes = ours.bytes.saturating_add(theirs.bytes);
            ours.last_ms = ours.last_ms.max(theirs.last_ms);
            let length = ours.intervals.len().max(theirs.intervals.len());
            ours.intervals.resize(length, Interval::default());
            for (mine, other) in ours.intervals.iter_mut().zip(&theirs.intervals) {
                mine.add(other);
            }
        }
    }

    /// Adds the line at `begin`; where the next one starts, `None` if it can't be read.
    #[inline]
    fn line(&mut self, lines: &[u8], begin: usize) -> Option<usize> {
        match lines[begin..] {
            [b'\n', ..] => return Some(begin + 1),
            [b'\r', b'\n', ..] => return Some(begin + 2),
            _ => {}
        }
        let (time_ms, at) = whole_number(lines, begin)?;
        let (value, at) = whole_number(lines, after_comma(lines, at)?)?;
        let (direction, at) = whole_number(lines, after_comma(lines, at)?)?;
        let (bytes, at) = whole_number(lines, after_comma(lines, at)?)?;
        let end = match lines.get(at) {
            None | Some(b'\n') => at,
            Some(b',' | b'\r') => at + lines[at..].iter().position(|&byte| byte == b'\n').unwrap_or(lines.len() - at),
            Some(_) => return None,
        };
        let place = usize::try_from(time_ms / self.interval_ms).unwrap_or(usize::MAX).min(INTERVALS_MAX - 1);
        self.directions.get_mut(usize::try_from(direction).ok()?)?.take(time_ms, value, bytes, place);
        Some(end + 1)
    }
}

impl Direction {
    #[inline]
    fn take(&mut self, time_ms: u64, value: u64, bytes: u64, place: usize) {
        self.values.record(value);
        self.bytes = self.bytes.saturating_add(bytes);
        self.last_ms = self.last_ms.max(time_ms);
        if place >= self.intervals.len() {
            self.intervals.resize(place + 1, Interval::default());
        }
        self.intervals[place].add(&Interval { count: 1, bytes, sum: value });
    }
}

impl Interval {
    #[inline]
    fn add(&mut self, other: &Interval) {
        self.count += other.count;
        self.bytes = self.bytes.saturating_add(other.bytes);
        self.sum = self.sum.saturating_add(other.sum);
    }
}

const DIGITS_MAX: usize = 18;

/// The number at `at`, after spaces, and where it ends.
#[inline]
fn whole_number(lines: &[u8], at: usize) -> Option<(u64, usize)> {
    let mut first = at;
    while lines.get(first) == Some(&b' ') {
        first += 1;
    }
    let (value, end) = digits(lines, first, 0);
    (1..=DIGITS_MAX).contains(&(end - first)).then_some((value, end))
}

#[inline]
fn after_comma(lines: &[u8], at: usize) -> Option<usize> {
    (lines.get(at) == Some(&b',')).then_some(at + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_all_versions_and_ends() {
        let mut log = IoLog::new(10);
        let lines = b"0, 100, 0, 4096\n9, 300, 0, 4096, 8192\n\n25,7,1,0,0x3001,5\r\n12,200,0,4096, 0, 0, 99";
        log.add(lines, 0).expect("a log");
        let [reads, writes, ..] = &log.directions;
        assert_eq!((reads.values.count(), reads.bytes, reads.last_ms), (3, 3 * 4096, 12));
        assert_eq!(reads.values.mean_ns(), Some(200.0));
        assert_eq!(reads.intervals.len(), 2);
        assert_eq!(reads.intervals[0], Interval { count: 2, bytes: 8192, sum: 400 });
        assert_eq!((writes.bytes, writes.intervals.len()), (0, 3));
    }

    #[test]
    fn pieces_come_to_the_same_as_the_whole() {
        let (first, second) = ("1,5,0,512\n9,6,1,512\n", "300,7,0,512\n");
        let mut whole = IoLog::new(1);
        whole.add(format!("{first}{second}").as_bytes(), 0).expect("a log");
        let (mut log, mut later) = (IoLog::new(1), IoLog::new(1));
        log.add(first.as_bytes(), 0).expect("a log");
        later.add(second.as_bytes(), 20).expect("a log");
        log.merge(&later);
        for (one, other) in log.directions.iter().zip(&whole.directions) {
            assert_eq!(one.values, other.values);
            assert_eq!(one.intervals, other.intervals);
            assert!(one.intervals.len() <= INTERVALS_MAX);
        }
    }

    #[test]
    fn a_line_that_is_none_is_named() {
        for bad in ["1,2,0", "1,-2,0,4", "1,2,4,4", "a,b,0,4", "1,2,0,4 x", "1,99999999999999999999,0,4"] {
            let mut log = IoLog::new(1);
            let text = format!("1,2,0,4\n{bad}\n");
            assert_eq!(log.add(text.as_bytes(), 5), Err(UnreadLine { offset: 13 }), "{bad}");
        }
    }
}
