//! Lines of trace events as text: what tracefs shows, `trace-cmd report` and `perf script` print.
//!
//! ```text
//! fio-13636   [000] .....   897.653084: block_bio_queue: 254,0 RA 27037728 + 2048 [fio]
//! fio 13122 [001]   866.396221:  block:block_rq_complete: 254,0 DS () 319301424 + 8 0x2,0,4 [0]
//! ```
//!
//! `trace-cmd report -l` has the CPU without brackets before the letters for the context, `--ts-diff` adds the time since
//! the event before, and `-R` prints fields by name: `dev=7340032 sector=0 nr_sector=128 rwbs=WS comm=fio`.

use super::stream::DecodeLine;
use super::trace_info::{LastEventTimes, TraceInfo};
use super::words::{Words, device, number, signed, time_ns};
use crate::event::{Device, NO_DETAIL, Step, TraceEvent, op_and_marks};

/// Reads such lines.
#[derive(Default)]
pub(crate) struct EventText {
    last: LastEventTimes,
    /// The CPU whose next event ends a loss, None if that of any does, and the number of lost events.
    loss: Option<(Option<u16>, u64)>,
}

/// What stands before an event.
struct Head<'a> {
    name: &'a [u8],
    pid: u32,
    cpu: u16,
    at_ns: u64,
    event: &'a [u8],
    rest: Words<'a>,
}

const SECOND_NS: u64 = 1_000_000_000;

impl DecodeLine for EventText {
    fn line(&mut self, line: &[u8], events: &mut Vec<TraceEvent>, about: &mut TraceInfo) {
        if line.is_empty() || line[0] == b'#' || line.starts_with(b"cpus=") {
            return;
        }
        about.records += 1;
        if let Some((cpu, count)) = lost(line) {
            self.loss = Some((Some(cpu), count));
            return;
        }
        if let Some((place, count)) = perf_lost(line) {
            match place {
                Some((cpu, at_ns)) => {
                    events.push(self.last.loss(cpu, at_ns, count));
                    self.last.seen(cpu, at_ns);
                }
                None => {
                    let before = self.loss.take().map_or(0, |(_, before)| before);
                    self.loss = Some((None, before + count));
                }
            }
            return;
        }
        if is_frame(line) {
            about.records -= 1;
            return;
        }
        let Some(head) = head(line) else {
            let text = String::from_utf8_lossy(&line[..line.len().min(80)]).into_owned();
            return about.malformed(|| format!("no event in the line: {text}"));
        };
        let ends = |loss: &mut (Option<u16>, u64)| loss.0.is_none_or(|cpu| cpu == head.cpu);
        if let Some((_, count)) = self.loss.take_if(ends) {
            events.push(self.last.loss(head.cpu, head.at_ns, count));
        }
        self.last.seen(head.cpu, head.at_ns);
        let Some(event) = event(&head) else {
            match head.event.starts_with(b"block_") && step(head.event).is_some() {
                true => {
                    let text = String::from_utf8_lossy(&line[..line.len().min(120)]).into_owned();
                    about.malformed(|| format!("an event without its numbers: {text}"));
                }
                false => about.records_skipped += 1,
            }
            return;
        };
        if head.name != b"<...>" {
            about.name(head.pid, head.name);
        }
        events.push(event);
    }
}

/// Whether a text of such lines begins so.
pub(crate) fn recognises(line: &[u8]) -> bool {
    line.starts_with(b"# tracer:") || perf_lost(line).is_some() || head(line).is_some()
}

/// `CPU:1 [LOST 23 EVENTS]` of tracefs, `CPU:1 [23 EVENTS DROPPED]` of trace-cmd, either without a number.
fn lost(line: &[u8]) -> Option<(u16, u64)> {
    let rest = line.strip_prefix(b"CPU:")?;
    let mut words = Words(rest);
    let cpu = words.number()?;
    words.take(b'[')?;
    let inside = words.until(b']')?;
    let mut count = 0;
    let mut says_lost = false;
    let mut words = Words(inside);
    while let Some(word) = words.next() {
        count = number(word).unwrap_or(count);
        says_lost |= matches!(word, b"LOST" | b"DROPPED");
    }
    says_lost.then_some((cpu as u16, count))
}

/// `swapper 0 [001] 12.345678: PERF_RECORD_LOST lost 23`, as `perf script --show-lost-events` prints it: events of that
/// CPU between the one before and that time, and how many. Without the time, of any CPU.
fn perf_lost(line: &[u8]) -> Option<(Option<(u16, u64)>, u64)> {
    let name = b"PERF_RECORD_LOST";
    let at = memchr::memmem::find(line, name)?;
    let count = line[at..].rsplit(|&byte| byte == b' ').find_map(number)?;
    let mut time = None;
    let mut cpu = 0;
    let mut words = Words(&line[..at]);
    while let Some(word) = words.next() {
        let inside = word.strip_prefix(b"[").and_then(|word| word.strip_suffix(b"]"));
        cpu = inside.and_then(number).unwrap_or(cpu);
        let digits = word.strip_suffix(b":").filter(|word| word.contains(&b'.'));
        time = digits.and_then(|word| time_ns(word, SECOND_NS)).or(time);
    }
    Some((time.map(|at_ns| (cpu as u16, at_ns)), count))
}

/// `    ffffffff811f2d42 blk_update_request ([kernel.kallsyms])`: a frame of the stack that perf prints below an event.
fn is_frame(line: &[u8]) -> bool {
    let mut words = Words(line);
    let is_address = |word: &[u8]| word.len() >= 4 && word.iter().all(u8::is_ascii_hexdigit);
    line.first().is_some_and(u8::is_ascii_whitespace)
        && line.trim_ascii_end().last() == Some(&b')')
        && words.next().is_some_and(is_address)
}

#[inline]
fn head(line: &[u8]) -> Option<Head<'_>> {
    bracketed(line).or_else(|| head_of_latency(line))
}

#[inline]
fn bracketed(line: &[u8]) -> Option<Head<'_>> {
    // The name of a task may hold anything; the CPU in brackets comes after it, and the first `: ` after the time.
    let mut from = 0;
    loop {
        let open = from + memchr::memchr(b'[', &line[from..])?;
        from = open + 1;
        let close = line[from..].iter().take(6).position(|&byte| byte == b']');
        let Some(cpu) = close.and_then(|length| number(&line[from..from + length])) else {
            continue;
        };
        let (name, pid) = task(&line[..open])?;
        let mut rest = Words(&line[from + close? + 1..]);
        let mut time = rest.next()?;
        if !time.ends_with(b":") {
            // Letters for the context in which it ran.
            time = rest.next()?;
        }
        let at_ns = time_ns(time.strip_suffix(b":")?, SECOND_NS)?;
        return headed(name, pid, cpu, at_ns, rest);
    }
}

/// What begins with an event's name, after what stands before it.
#[inline]
fn headed<'a>(name: &'a [u8], pid: u32, cpu: u64, at_ns: u64, mut rest: Words<'a>) -> Option<Head<'a>> {
    let mut event = rest.next()?;
    if event.starts_with(b"(+") {
        event = rest.next()?;
    }
    event = event.strip_suffix(b":")?;
    if let Some(at) = memchr::memchr(b':', event) {
        event = &event[at + 1..];
    }
    Some(Head { name, pid, cpu: cpu as u16, at_ns, event, rest })
}

/// `fio-27466   1.....  3912.381042: block_getrq: ...`: the CPU, and letters for the context.
fn head_of_latency(line: &[u8]) -> Option<Head<'_>> {
    let mut rest = Words(line);
    let mut context: &[u8] = &[];
    while let Some(word) = rest.next() {
        let time = word.strip_suffix(b":").and_then(|text| time_ns(text, SECOND_NS));
        if let Some(at_ns) = time.filter(|_| word.contains(&b'.')) {
            let digits = context.iter().take_while(|byte| byte.is_ascii_digit()).count();
            let marks = &context[digits..];
            let cpu = number(&context[..digits])?;
            let is_marks = marks.len() >= MARKS_MIN && marks.iter().all(|byte| byte.is_ascii_graphic());
            let before = context.as_ptr() as usize - line.as_ptr() as usize;
            let (name, pid) = task(&line[..before]).filter(|_| is_marks)?;
            return headed(name, pid, cpu, at_ns, rest);
        }
        context = word;
    }
    None
}

/// Interrupts off, rescheduling, hard or soft interrupt, depth of preemption: four at least.
const MARKS_MIN: usize = 4;

/// `fio-13636 ` or `fio 13636 ` or, of perf, `fio 13636/13640 `; tracefs may add a process in brackets.
fn task(text: &[u8]) -> Option<(&[u8], u32)> {
    let mut text = text.trim_ascii();
    if text.ends_with(b")") {
        let open = text.iter().rposition(|&byte| byte == b'(')?;
        text = text[..open].trim_ascii_end();
    }
    let is_end = |byte: &u8| matches!(byte, b'-' | b' ' | b'/');
    let before = text.iter().rposition(is_end)?;
    let pid = number(&text[before + 1..])?;
    let mut name = text[..before].trim_ascii_end();
    if text[before] == b'/' {
        let before = name.iter().rposition(|&byte| byte == b' ')?;
        name = name[..before].trim_ascii_end();
    }
    Some((name, u32::try_from(pid).ok()?))
}

fn step(event: &[u8]) -> Option<Step> {
    Some(match event {
        b"block_bio_queue" => Step::Queue,
        b"block_sleeprq" => Step::Sleep,
        b"block_getrq" => Step::GetRequest,
        b"block_bio_backmerge" => Step::BackMerge,
        b"block_bio_frontmerge" => Step::FrontMerge,
        b"block_rq_merge" => Step::RequestMerge,
        b"block_rq_insert" => Step::Insert,
        b"block_rq_issue" => Step::Issue,
        b"block_rq_requeue" => Step::Requeue,
        b"block_rq_complete" => Step::Complete,
        b"block_bio_complete" => Step::BioComplete,
        b"block_split" => Step::Split,
        b"block_bio_remap" => Step::Remap,
        b"block_plug" => Step::Plug,
        b"block_unplug" => Step::Unplug,
        b"block_unplug_timer" => Step::TimerUnplug,
        _ => return None,
    })
}

/// None of another event, and of a line that is not as the kernel prints it.
#[inline]
fn event(head: &Head<'_>) -> Option<TraceEvent> {
    let step = step(head.event)?;
    let mut event = TraceEvent { pid: head.pid, cpu: head.cpu, ..TraceEvent::new(head.at_ns, step) };
    let mut words = head.rest;
    if memchr::memchr(b'=', words.0).is_some() && named(&words, b"rwbs").or(named(&words, b"comm")).is_some() {
        return by_names(event, words);
    }
    if matches!(step, Step::Plug | Step::Unplug | Step::TimerUnplug) {
        if step != Step::Plug {
            let last = memchr::memrchr(b']', words.0)?;
            event.argument = number(words.0[last + 1..].trim_ascii())?;
        }
        return Some(event);
    }
    event.device = device(words.next()?, b',')?;
    (event.op, event.marks) = op_and_marks(words.next()?);
    if matches!(step, Step::Issue | Step::Insert | Step::RequestMerge) && !words.0.trim_ascii_start().starts_with(b"(")
    {
        words.number()?;
    }
    if words.take(b'(').is_some() {
        words.until(b')')?;
    }
    event.sector = words.number()?;
    match step {
        Step::Split => {
            words.take(b'/')?;
            event.argument = words.number()?;
            return Some(event);
        }
        _ => words.take(b'+')?,
    }
    event.sectors = u32::try_from(words.number()?).ok()?;
    match step {
        Step::Remap => {
            // ` <- (8,16) 2048`
            words.until(b'(')?;
            event.detail = device(words.until(b')')?, b',')?.0;
            event.argument = words.number()?;
        }
        Step::Complete | Step::BioComplete | Step::Requeue => {
            words.until(b'[')?;
            event.error = signed(words.until(b']')?)?.clamp(-4095, 4095) as i16;
        }
        _ => {}
    }
    Some(event)
}

/// The value of a field that is printed as `name=value`.
fn named<'a>(words: &Words<'a>, name: &[u8]) -> Option<&'a [u8]> {
    let mut words = *words;
    while let Some(word) = words.next() {
        if let Some(value) = word.strip_prefix(name).and_then(|rest| rest.strip_prefix(b"=")) {
            return Some(value);
        }
    }
    None
}

/// The event of the fields that its record has (include/trace/events/block.h).
fn by_names(mut event: TraceEvent, words: Words<'_>) -> Option<TraceEvent> {
    let numbered = |name: &[u8]| named(&words, name).and_then(number);
    match event.step {
        Step::Plug => return Some(event),
        Step::Unplug | Step::TimerUnplug => {
            event.argument = numbered(b"nr_rq")?;
            return Some(event);
        }
        Step::Split => event.argument = numbered(b"new_sector")?,
        Step::Remap => {
            event.argument = numbered(b"old_sector")?;
            event.detail = numbered(b"old_dev").map_or(NO_DETAIL, |device| device as u32);
        }
        Step::Complete | Step::BioComplete => {
            event.error = signed(named(&words, b"error")?)?.clamp(-4095, 4095) as i16;
        }
        _ => {}
    }
    let device = numbered(b"dev")?;
    event.device = Device::new((device >> KERNEL_MINOR_BITS) as u32, device as u32);
    (event.op, event.marks) = op_and_marks(named(&words, b"rwbs")?);
    event.sector = numbered(b"sector")?;
    if event.step != Step::Split {
        event.sectors = u32::try_from(numbered(b"nr_sector")?).ok()?;
    }
    Some(event)
}

/// Of the kernel's own dev_t.
const KERNEL_MINOR_BITS: u32 = 20;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::Op;

    #[test]
    fn other_forms_of_trace_cmds_report_are_read_alike() {
        let plain = read("  fio-27466 [001]  3912.381055: block_rq_issue: 7,0 WS 65536 () 8 + 128 0x2,0,4 [fio]");
        for line in [
            "  fio-27466   1.....  3912.381055: block_rq_issue: 7,0 WS 65536 () 8 + 128 0x2,0,4 [fio]",
            "  fio-27466 [001]  3912.381055: (+7) block_rq_issue: 7,0 WS 65536 () 8 + 128 0x2,0,4 [fio]",
            "  fio-27466 [001]  3912.381055: block_rq_issue:  dev=7340032 sector=8 nr_sector=128 bytes=65536 ioprio=16388 rwbs=WS comm=fio cmd=",
        ] {
            assert_eq!(read(line), plain, "{line}");
        }
        let complete = read(
            "  ksoftirqd/1-22 [001]  3912.381433: block_rq_complete:  dev=7340032 sector=8 nr_sector=128 error=-5 ioprio=16388 rwbs=WS cmd=",
        );
        assert_eq!((complete.error, complete.sectors, complete.device), (-5, 128, plain.device));
    }

    fn read(line: &str) -> TraceEvent {
        let mut events = Vec::new();
        let mut about = TraceInfo::default();
        EventText::default().line(line.as_bytes(), &mut events, &mut about);
        assert_eq!(about.malformed, 0, "{:?}", about.first_malformed);
        events[0]
    }

    #[test]
    fn a_loss_without_its_time_lasts_until_the_next_event_of_any_cpu() {
        let mut reader = EventText::default();
        let (mut events, mut about) = (Vec::new(), TraceInfo::default());
        for line in [
            "  dd  4242 [001]   100.0001: block:block_rq_issue: 8,0 W 4096 () 2048 + 8 [dd]",
            "        ffffffff811f2d42 blk_update_request ([kernel.kallsyms])",
            "PERF_RECORD_LOST lost 11",
            "PERF_RECORD_LOST lost 12",
            "  swapper 0 [000]   102.0002: block:block_rq_complete: 8,0 W () 2048 + 8 [0]",
        ] {
            reader.line(line.as_bytes(), &mut events, &mut about);
        }
        let steps: Vec<Step> = events.iter().map(|event| event.step).collect();
        assert_eq!(steps, [Step::Issue, Step::Lost, Step::Complete]);
        assert_eq!((events[1].sectors, events[1].argument), (23, 102_000_200_000));
        assert_eq!((about.records, about.malformed), (4, 0));
    }

    #[test]
    fn lines_of_tracefs_trace_cmd_and_perf_are_read() {
        let queue =
            read("             fio-13636   [000] .....   897.653084: block_bio_queue: 254,0 RA 27037728 + 2048 [fio]");
        assert_eq!((queue.at_ns, queue.pid, queue.sector, queue.sectors), (897_653_084_000, 13636, 27_037_728, 2048));
        assert_eq!((queue.step, queue.op, queue.device), (Step::Queue, Op::Read, Device::new(254, 0)));
        let split = read(" a b [x]-1   [000] .....   897.653122: block_split: 254,0 RA 27037728 / 27039760 [a b [x]]");
        assert_eq!((split.step, split.argument), (Step::Split, 27_039_760));
        let complete = read(
            "             fio-15353 [001]   979.333266: block_rq_complete:    254,0 WS () 43321344 + 2048 0x2,0,4 [-5]",
        );
        assert_eq!((complete.step, complete.error, complete.cpu), (Step::Complete, -5, 1));
        let issue = read(
            " kworker/1:1H-kb    44 [001]   866.396008:       block:block_rq_issue: 254,0 DS 4096 () 319301424 + 8 0x2,0,4 [kworker/1:1H]",
        );
        assert_eq!((issue.step, issue.op, issue.pid, issue.sector), (Step::Issue, Op::Discard, 44, 319_301_424));
        let unplug = read("          python 12242 [001]   866.395982:         block:block_unplug: [python] 17");
        assert_eq!((unplug.step, unplug.argument), (Step::Unplug, 17));
        let remap = read(" x-1 [000] d..1. 1.000001: block_bio_remap: 8,0 WS 4096 + 8 <- (8,1) 2048");
        assert_eq!((remap.sent_from(), remap.sector, remap.argument), (Some(Device::new(8, 1)), 4096, 2048));
    }
}
