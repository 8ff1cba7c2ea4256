//! The kinds of phases that a machine runs, and of the records that become of them.

use std::collections::BTreeMap;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use workload::metadata::{MetadataPhase, MetadataRecord};
use workload::phase::Phase;
use workload::record::PhaseRecord;

use super::sort::{SortPhase, SortRecord};
use devices::flash::{FlashSpace, ProgrammedUnits};
use events::SpecError;

/// A phase of any kind.
#[derive(Clone, Debug)]
pub enum AnyPhase {
    /// Reads and writes of files or drives.
    Load(Phase),
    /// Metadata operations of threads on many files of an XFS filesystem.
    Metadata(MetadataPhase),
    /// Processes that sort more than their memory holds.
    Sort(SortPhase),
    /// Several of these that begin together, at most one of each kind.
    Together {
        /// In the order of their records.
        phases: Vec<AnyPhase>,
        /// The number of the one whose end stops the others; None: each continues to its own end.
        stops_with: Option<usize>,
    },
}

/// As JSON has it.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct TogetherPhase {
    phases: Vec<Value>,
    stops_with: Option<usize>,
}

/// Its record, in the shape that the same kind has on a host.
#[derive(Clone, Debug, Serialize, schemars::JsonSchema)]
#[serde(untagged)]
pub enum AnyRecord {
    /// Of reads and writes.
    Load(LoadRecord),
    /// Of metadata operations.
    Metadata(MetadataRecord),
    /// Of sorting.
    Sort(SortRecord),
    /// Of phases that began together.
    Together {
        /// In their order.
        phases: Vec<AnyRecord>,
    },
}

impl AnyPhase {
    /// From a phase's JSON, whose key `kind` names its kind: a load if there is none.
    pub(super) fn from_json(mut json: Value) -> Result<AnyPhase, SpecError> {
        let kind = json.as_object_mut().and_then(|table| table.remove("kind"));
        match kind.as_ref().map_or(Some("load"), Value::as_str) {
            Some("load") => Ok(AnyPhase::Load(read(json)?)),
            Some("metadata") => Ok(AnyPhase::Metadata(read(json)?)),
            Some("sort") => Ok(AnyPhase::Sort(read(json)?)),
            Some("together") => {
                let TogetherPhase { phases, stops_with } = read(json)?;
                let phases: Result<Vec<AnyPhase>, SpecError> = phases.into_iter().map(AnyPhase::from_json).collect();
                Ok(AnyPhase::Together { phases: phases?, stops_with })
            }
            _ => {
                let found = kind.unwrap_or_default();
                let what = format!("expected load, metadata, sort or together, found {found}");
                Err(SpecError::of("kind", what))
            }
        }
    }
}

/// The record of reads and writes, with what a drive shows of itself.
#[derive(Clone, Debug, Serialize, schemars::JsonSchema)]
pub struct LoadRecord {
    /// What each load has.
    #[serde(flatten)]
    pub phase: PhaseRecord,
    /// By metric; empty without flash.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub measures: BTreeMap<&'static str, f64>,
}

impl LoadRecord {
    /// `programmed`: by all drives since the phase began; `space`: of all drives at its end.
    pub fn new(phase: PhaseRecord, programmed: ProgrammedUnits, space: FlashSpace) -> LoadRecord {
        let amplification = programmed.amplification();
        let erases = amplification.map(|_| programmed.erased_blocks as f64);
        let measures = [
            ("write_amplification", amplification),
            ("flash_erases", erases),
            ("flash_free_percent", space.free_percent()),
            ("slc_fill_percent", space.slc_percent()),
            ("flash_celsius", space.celsius()),
        ];
        let known = |(name, value): (&'static str, Option<f64>)| value.map(|value| (name, value));
        LoadRecord { phase, measures: measures.into_iter().filter_map(known).collect() }
    }
}

impl AnyRecord {
    /// Whether the phase was ended before its time.
    pub fn stopped(&self) -> bool {
        match self {
            AnyRecord::Load(record) => record.phase.stopped,
            AnyRecord::Metadata(record) => record.phase.stopped,
            AnyRecord::Sort(record) => record.phase.stopped,
            AnyRecord::Together { phases } => phases.iter().any(AnyRecord::stopped),
        }
    }

    /// Simulated time from the phase's start to its end.
    pub fn elapsed_ns(&self) -> u64 {
        match self {
            AnyRecord::Load(record) => record.phase.elapsed_ns,
            AnyRecord::Metadata(record) => record.phase.elapsed_ns,
            AnyRecord::Sort(record) => record.phase.elapsed_ns,
            AnyRecord::Together { phases } => {
                let all = phases.iter().map(AnyRecord::elapsed_ns);
                all.max().unwrap_or(0)
            }
        }
    }
}

fn read<T: DeserializeOwned>(json: Value) -> Result<T, SpecError> {
    serde_json::from_value(json).map_err(|error| SpecError::of("phase", error.to_string()))
}
