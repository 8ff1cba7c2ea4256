//! Records of block tracepoints (include/trace/events/block.h) as the kernel's buffers hold them, by the kernel's own
//! formats.

use crate::decode::{Layouts, WantedEvent};
use crate::event::{Device, NO_DETAIL, Step, TraceEvent, op_and_marks};
use crate::format::{EventFormat, Field, FormatError, Number};
use crate::page::RawEvent;

/// What to record. With only those that are required, merges and the time in the scheduler are not seen.
pub const EVENTS: &[WantedEvent] = &[
    wanted("block_bio_queue", true),
    wanted("block_split", false),
    wanted("block_bio_backmerge", false),
    wanted("block_bio_frontmerge", false),
    wanted("block_rq_merge", false),
    wanted("block_rq_insert", false),
    wanted("block_rq_issue", true),
    wanted("block_rq_requeue", false),
    wanted("block_rq_complete", true),
];

/// That a bio became a request. It can be decoded, but need not be recorded: later events imply it.
pub const GET_REQUEST: WantedEvent = wanted("block_getrq", false);

/// Recorded in addition for devices without requests. For others it only repeats what is known, at the cost of an
/// event.
pub const BIO_COMPLETE: WantedEvent = wanted("block_bio_complete", false);

/// Makes events of such records.
#[derive(Clone, Debug)]
pub struct BlockDecoder {
    layouts: Layouts<Layout>,
}

/// An event, and what its task is called.
type NamedEvent<'a> = (TraceEvent, Option<&'a [u8]>);

#[derive(Clone, Debug)]
struct Layout {
    step: Step,
    pid: Number,
    device: Option<Number>,
    sector: Option<Number>,
    sectors: Option<Number>,
    argument: Option<Number>,
    detail: Option<Number>,
    error: Option<Number>,
    rwbs: Option<Field>,
    comm: Option<Field>,
}

const STEPS: &[(&str, Step)] = &[
    ("block_bio_queue", Step::Queue),
    ("block_sleeprq", Step::Sleep),
    ("block_getrq", Step::GetRequest),
    ("block_bio_backmerge", Step::BackMerge),
    ("block_bio_frontmerge", Step::FrontMerge),
    ("block_rq_merge", Step::RequestMerge),
    ("block_rq_insert", Step::Insert),
    ("block_rq_issue", Step::Issue),
    ("block_rq_requeue", Step::Requeue),
    ("block_rq_complete", Step::Complete),
    ("block_bio_complete", Step::BioComplete),
    ("block_split", Step::Split),
    ("block_bio_remap", Step::Remap),
    ("block_plug", Step::Plug),
    ("block_unplug", Step::Unplug),
    ("block_unplug_timer", Step::TimerUnplug),
];

impl BlockDecoder {
    /// `required`: without these events there is nothing to decode. `formats` may hold those of other events; an error
    /// names what is missing.
    pub fn new(required: &[WantedEvent], formats: &[EventFormat]) -> Result<BlockDecoder, FormatError> {
        let block: Vec<EventFormat> =
            formats.iter().filter(|format| STEPS.iter().any(|(name, _)| *name == format.name)).cloned().collect();
        if block.is_empty() {
            return Err(FormatError::NoEvent("block/block_rq_issue or any other of its system".into()));
        }
        Ok(BlockDecoder { layouts: Layouts::new(required, &block, Layout::new)? })
    }

    /// None of a record of another event.
    #[inline]
    pub fn decode(&self, cpu: u16, raw: &RawEvent<'_>) -> Result<Option<TraceEvent>, FormatError> {
        self.layouts.read(raw, |layout, record| layout.read(cpu, raw.at_ns, record))
    }

    /// Also the task's name, if the record has it.
    #[inline]
    pub(crate) fn decode_named<'a>(&self, cpu: u16, raw: &RawEvent<'a>) -> Result<Option<NamedEvent<'a>>, FormatError> {
        self.layouts.read(raw, |layout, record| {
            let event = layout.read(cpu, raw.at_ns, record)?;
            Some((event, layout.comm.and_then(|comm| comm.text(record))))
        })
    }
}

impl Layout {
    fn new(format: &EventFormat) -> Result<Option<Layout>, FormatError> {
        let Some(&(_, step)) = STEPS.iter().find(|(name, _)| *name == format.name) else {
            return Ok(None);
        };
        let number = |wanted: bool, names: &[&str]| {
            let wanted = wanted.then(|| Number::of(format, names));
            wanted.transpose()
        };
        let plug = matches!(step, Step::Plug | Step::Unplug | Step::TimerUnplug);
        let completes = matches!(step, Step::Complete | Step::BioComplete);
        let argument: &[&str] = match step {
            Step::Split => &["new_sector"],
            Step::Remap => &["old_sector"],
            Step::Unplug | Step::TimerUnplug => &["nr_rq"],
            _ => &[],
        };
        // Of completions the task is whoever was interrupted, and the field is missing.
        let names_task = !completes && step != Step::Requeue;
        Ok(Some(Layout {
            step,
            pid: Number::of(format, &["common_pid"])?,
            device: number(!plug, &["dev"])?,
            sector: number(!plug, &["sector"])?,
            sectors: number(!plug && step != Step::Split, &["nr_sector"])?,
            argument: number(!argument.is_empty(), argument)?,
            detail: number(step == Step::Remap, &["old_dev"])?,
            error: number(completes, &["error", "errors"])?,
            rwbs: if plug { None } else { Some(format.field("rwbs")?) },
            comm: format.optional("comm").filter(|_| names_task),
        }))
    }

    #[inline]
    fn read(&self, cpu: u16, at_ns: u64, record: &[u8]) -> Option<TraceEvent> {
        let number = |field: Option<Number>| field.map_or(Some(0), |field| field.read(record));
        let rwbs = match self.rwbs {
            Some(field) => field.bytes(record)?,
            None => b"N",
        };
        let (op, marks) = op_and_marks(rwbs);
        Some(TraceEvent {
            at_ns,
            sector: number(self.sector)?,
            argument: number(self.argument)?,
            sectors: number(self.sectors)? as u32,
            device: Device(number(self.device)? as u32),
            detail: match self.detail {
                Some(field) => field.read(record)? as u32,
                None => NO_DETAIL,
            },
            pid: self.pid.read(record)? as u32,
            cpu,
            error: (number(self.error)? as i64).clamp(-4095, 4095) as i16,
            step: self.step,
            op,
            marks,
        })
    }
}

const fn wanted(name: &'static str, required: bool) -> WantedEvent {
    WantedEvent { system: "block", name, required }
}
