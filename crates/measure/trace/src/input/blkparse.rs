//! The text that blkparse prints by default.
//!
//! ```text
//!   8,0    1      123     0.001234567  4711  Q  WS 2048 + 8 [fio]
//! ```

use super::stream::DecodeLine;
use super::trace_info::{LastEventTimes, Numbers, TraceInfo};
use super::words::{Words, device, number, signed, time_ns};
use crate::event::{Step, TraceEvent, op_and_marks};

/// What numbers mean that are left out of a text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Gaps {
    /// The meaning of their number: see [`Blkparse`].
    #[default]
    Told,
    /// Somebody left lines out that are not needed.
    Filtered,
    /// Events were lost, or lines cut out.
    Lost,
}

/// Reads such lines; the summary after them is left out.
///
/// A recorder that finds no room loses events until a whole buffer is free again, so that thousands follow in a row. A
/// text that leaves numbers out every few lines was filtered; one that was cut has a gap for each device on each CPU.
pub(crate) struct Blkparse {
    gaps: Gaps,
    last: LastEventTimes,
    numbers: Numbers,
    /// Events whose gaps are not understood yet, and how many numbers are missing before each.
    held: Vec<(TraceEvent, u64)>,
    gaps_held: usize,
    filtered: u64,
}

/// Lines that are examined to decide this.
const LOOKED_AT: usize = 10_000;
/// Fewer lines in a row than these, on average ...
const LINES_OF_FILTERED: usize = 16;
/// ... and more gaps than this many cuts make: the text was filtered.
const CUTS: usize = 2;
const SECOND_NS: u64 = 1_000_000_000;

impl DecodeLine for Blkparse {
    fn line(&mut self, line: &[u8], events: &mut Vec<TraceEvent>, about: &mut TraceInfo) {
        let Some((event, sequence)) = event(line, about) else {
            // A line of the summary, an empty line, or an action that is not about I/O.
            about.records_skipped += u64::from(!line.is_empty());
            return;
        };
        about.records += 1;
        let Some(event) = event else {
            about.records_skipped += 1;
            return;
        };
        let missing = self.numbers.missing(event.device, event.cpu, sequence);
        if self.gaps != Gaps::Told {
            return self.pass(event, missing, events);
        }
        self.gaps_held += usize::from(missing > 0);
        self.held.push((event, missing));
        if self.held.len() >= LOOKED_AT {
            self.decide(events);
        }
    }

    fn end(&mut self, events: &mut Vec<TraceEvent>, about: &mut TraceInfo) {
        self.decide(events);
        if self.filtered > 0 {
            about.note(&format!(
                "the text was filtered: the numbers of {} are left out; if they were lost, say --gaps lost",
                base::units::counted(self.filtered, "event")
            ));
        }
    }
}

impl Blkparse {
    pub(crate) fn new(gaps: Gaps) -> Blkparse {
        Blkparse {
            gaps,
            last: LastEventTimes::default(),
            numbers: Numbers::default(),
            held: Vec::new(),
            gaps_held: 0,
            filtered: 0,
        }
    }

    fn decide(&mut self, events: &mut Vec<TraceEvent>) {
        if self.gaps == Gaps::Told {
            let often = self.gaps_held * LINES_OF_FILTERED > self.held.len();
            let cut = self.gaps_held <= CUTS * self.numbers.count();
            self.gaps = match often && !cut {
                true => Gaps::Filtered,
                false => Gaps::Lost,
            };
        }
        for (event, missing) in std::mem::take(&mut self.held) {
            self.pass(event, missing, events);
        }
    }

    fn pass(&mut self, event: TraceEvent, missing: u64, events: &mut Vec<TraceEvent>) {
        match self.gaps {
            _ if missing == 0 => {}
            Gaps::Filtered => self.filtered += missing,
            _ => events.push(self.last.loss(event.cpu, event.at_ns, missing)),
        }
        self.last.seen(event.cpu, event.at_ns);
        events.push(event);
    }
}

/// Whether a text of such lines has that line.
pub(crate) fn recognises(line: &[u8]) -> bool {
    event(line, &mut TraceInfo::default()).is_some_and(|(event, _)| event.is_some())
}

/// None of what is no line of an event; Some(None) of one that is not about I/O.
fn event(line: &[u8], about: &mut TraceInfo) -> Option<(Option<TraceEvent>, u64)> {
    let mut words = Words(line);
    let device = device(words.next()?, b',')?;
    let cpu = words.number()?;
    let sequence = words.number()?;
    let at_ns = time_ns(words.next()?, SECOND_NS)?;
    let pid = words.number()?;
    let step = match words.next()? {
        b"Q" => Step::Queue,
        b"M" => Step::BackMerge,
        b"F" => Step::FrontMerge,
        b"G" => Step::GetRequest,
        b"S" => Step::Sleep,
        b"R" => Step::Requeue,
        b"D" => Step::Issue,
        b"C" => Step::Complete,
        b"P" => Step::Plug,
        b"U" => Step::Unplug,
        b"UT" => Step::TimerUnplug,
        b"I" => Step::Insert,
        b"X" => Step::Split,
        b"A" => Step::Remap,
        _ => return Some((None, sequence)),
    };
    let mut event =
        TraceEvent { device, cpu: cpu as u16, pid: u32::try_from(pid).ok()?, ..TraceEvent::new(at_ns, step) };
    (event.op, event.marks) = op_and_marks(words.next()?);
    match step {
        Step::Plug => {}
        Step::Unplug | Step::TimerUnplug => {
            words.until(b']')?;
            event.argument = words.number()?;
        }
        Step::Split => {
            event.sector = words.number()?;
            words.take(b'/')?;
            event.argument = words.number()?;
        }
        _ => place(&mut event, words)?,
    }
    if let Some(open) = memchr::memchr(b'[', line).filter(|_| event.error == 0 && step != Step::Complete) {
        let name = line[open + 1..].strip_suffix(b"]").unwrap_or_default();
        let unplugs = matches!(step, Step::Unplug | Step::TimerUnplug);
        if !unplugs && !matches!(step, Step::Requeue | Step::Remap) {
            about.name(event.pid, name);
        }
    }
    Some((Some(event), sequence))
}

/// `2048 + 8`, or `[0]` alone of what has no sectors, and what follows.
fn place(event: &mut TraceEvent, mut words: Words<'_>) -> Option<()> {
    let first = words.next()?;
    if let Some(sector) = number(first) {
        event.sector = sector;
        if words.take(b'+').is_some() {
            event.sectors = u32::try_from(words.number()?).ok()?;
        }
        if event.step == Step::Remap {
            words.until(b'(')?;
            event.detail = device(words.until(b')')?, b',')?.0;
            event.argument = words.number()?;
        }
    }
    let error = memchr::memchr(b'[', words.0).map(|open| &words.0[open + 1..]);
    if event.step == Step::Complete
        && let Some(error) = error.and_then(|rest| rest.split(|&byte| byte == b']').next())
    {
        // With a format of one's own, a name may stand there.
        event.error = signed(error).unwrap_or(0).clamp(-4095, 4095) as i16;
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Losses in a text of lines with these CPUs and numbers, and whether it states that it was filtered.
    fn losses(lines: &[(u16, u64)], gaps: Gaps) -> (usize, bool) {
        let mut text = Blkparse::new(gaps);
        let (mut events, mut about) = (Vec::new(), TraceInfo::default());
        for (at, (cpu, number)) in lines.iter().enumerate() {
            let line = format!("8,0 {cpu} {number} 0.{at:09} 1 D R {} + 8 [a]", 8 * at);
            text.line(line.as_bytes(), &mut events, &mut about);
        }
        text.end(&mut events, &mut about);
        let lost = events.iter().filter(|event| event.step == Step::Lost);
        (lost.count(), !about.notes.is_empty())
    }

    #[test]
    fn a_name_where_the_error_belongs_hides_no_completion() {
        for (last, error) in [("[0]", 0), ("[65531]", 4095), ("[-5]", -5), ("[ksoftirqd/1]", 0)] {
            let line = format!("7,0 1 5 0.000391272 22 C WS 0 + 128 {last}");
            let (event, _) = event(line.as_bytes(), &mut TraceInfo::default()).unwrap();
            assert_eq!(event.map(|event| (event.step, event.error)), Some((Step::Complete, error)));
        }
    }

    #[test]
    fn a_text_that_leaves_out_numbers_all_the_time_was_filtered_and_one_that_was_cut_was_not() {
        let whole: Vec<_> = (1..40).map(|number| (number as u16 % 4, number)).collect();
        let every_third: Vec<_> = (1..40).map(|number| (0, 3 * number)).collect();
        // Ten lines of four CPUs, and ten of much later.
        let cut: Vec<_> = (0..20).map(|at| (at as u16 % 4, at / 4 + if at < 10 { 1 } else { 500 })).collect();
        assert_eq!(losses(&every_third, Gaps::Told), (0, true));
        assert_eq!(losses(&cut, Gaps::Told), (4, false));
        assert_eq!(losses(&cut, Gaps::Filtered), (0, true));
        assert_eq!(losses(&every_third, Gaps::Lost).0, 38);
        let of_each: Vec<_> = whole.iter().map(|&(cpu, number)| (cpu, number / 4 + 1)).collect();
        assert_eq!(losses(&of_each, Gaps::Told), (0, false));
    }
}
