//! Records of block tracepoints as the kernel's buffers hold them, by the formats that came with them.

use super::about::About;
use crate::block::Device;
use crate::decode::{Layouts, Wanted};
use crate::event::{Step, TraceEvent, op_and_marks};
use crate::format::{EventFormat, Field, FormatError, Number};
use crate::page::RawEvent;

/// Makes events of such records.
pub(crate) struct Records {
    layouts: Layouts<Layout>,
}

struct Layout {
    step: Step,
    pid: Number,
    device: Option<Number>,
    sector: Option<Number>,
    sectors: Option<Number>,
    argument: Option<Number>,
    error: Option<Number>,
    rwbs: Option<Field>,
    comm: Option<Field>,
}

/// The events that are read; none must be there.
const WANTED: &[Wanted] = &[];

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
];

impl Records {
    /// `formats` may hold others; an error says that there are none of block events at all.
    pub(crate) fn new(formats: &[EventFormat]) -> Result<Records, FormatError> {
        let block: Vec<EventFormat> = formats
            .iter()
            .filter(|format| STEPS.iter().any(|(name, _)| *name == format.name))
            .cloned()
            .collect();
        if block.is_empty() {
            return Err(FormatError::NoEvent(
                "block/block_rq_issue or any other of its system".into(),
            ));
        }
        Ok(Records {
            layouts: Layouts::new(WANTED, &block, Layout::new)?,
        })
    }

    /// Appends what a record tells.
    #[inline]
    pub(crate) fn read(
        &self,
        cpu: u16,
        raw: &RawEvent<'_>,
        events: &mut Vec<TraceEvent>,
        about: &mut About,
    ) {
        about.records += 1;
        match self
            .layouts
            .read(raw, |layout, record| layout.read(cpu, raw.at_ns, record))
        {
            Ok(Some((event, name))) => {
                if let Some(name) = name {
                    about.name(event.pid, name);
                }
                events.push(event);
            }
            Ok(None) => about.records_skipped += 1,
            Err(error) => about.malformed(|| error.to_string()),
        }
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
        let plug = matches!(step, Step::Plug | Step::Unplug);
        let completes = matches!(step, Step::Complete | Step::BioComplete);
        let argument: &[&str] = match step {
            Step::Split => &["new_sector"],
            Step::Remap => &["old_sector"],
            Step::Unplug => &["nr_rq"],
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
            error: number(completes, &["error", "errors"])?,
            rwbs: if plug {
                None
            } else {
                Some(format.field("rwbs")?)
            },
            comm: format.optional("comm").filter(|_| names_task),
        }))
    }

    #[inline]
    fn read<'a>(
        &self,
        cpu: u16,
        at_ns: u64,
        record: &'a [u8],
    ) -> Option<(TraceEvent, Option<&'a [u8]>)> {
        let number = |field: Option<Number>| field.map_or(Some(0), |field| field.read(record));
        let rwbs = match self.rwbs {
            Some(field) => field.bytes(record)?,
            None => b"N",
        };
        let (op, marks) = op_and_marks(rwbs);
        let event = TraceEvent {
            at_ns,
            sector: number(self.sector)?,
            argument: number(self.argument)?,
            sectors: number(self.sectors)? as u32,
            device: Device(number(self.device)? as u32),
            pid: self.pid.read(record)? as u32,
            cpu,
            error: (number(self.error)? as i64).clamp(-4095, 4095) as i16,
            step: self.step,
            op,
            marks,
        };
        Some((event, self.comm.and_then(|comm| comm.text(record))))
    }
}
