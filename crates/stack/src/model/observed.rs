//! A phase with its probes, and a record with what they saw.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use workload::phase::Phase;

use super::kinds::{AnyPhase, AnyRecord};
use crate::Impossible;
use crate::block::QueueEvent;
use crate::probe::block::{BlockOptions, BlockProbe, Observation};
use crate::probe::nfs::{NfsObservation, NfsOptions, NfsProbe};
use crate::world::World;

/// A phase, and the probes that watch it.
#[derive(Clone, Debug)]
pub struct ObservedPhase {
    pub phase: AnyPhase,
    pub probes: Probes,
}

/// The probes that the model has, each with its options; extents are asked for when a phase is over.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Probes {
    pub block: Option<BlockOptions>,
    pub nfs: Option<NfsOptions>,
}

#[derive(Clone, Debug, Serialize)]
pub struct Record {
    #[serde(flatten)]
    pub phase: AnyRecord,
    pub probes: Observations,
}

#[derive(Clone, Debug, Default, Serialize)]
pub struct Observations {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub block: Option<Observation>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nfs: Option<NfsObservation>,
}

/// What watches a phase.
#[derive(Debug, Default)]
pub(super) struct Watch {
    block: Option<BlockProbe>,
    nfs: Option<NfsProbe>,
    events: Vec<QueueEvent>,
}

impl ObservedPhase {
    /// A phase's JSON, perhaps with the key `probes`.
    pub fn from_json(mut json: Value) -> Result<ObservedPhase, Impossible> {
        let probes = match json
            .as_object_mut()
            .and_then(|table| table.remove("probes"))
        {
            None => Probes::default(),
            Some(probes) => serde_json::from_value(probes)
                .map_err(|error| Impossible::of("probes", error.to_string()))?,
        };
        let phase = AnyPhase::from_json(json)?;
        Ok(ObservedPhase { phase, probes })
    }
}

impl Watch {
    pub(super) fn new(probes: &Probes, phase: &Phase, world: &mut World) -> Watch {
        let names: Vec<String> = phase
            .groups
            .iter()
            .map(|group| group.name.clone())
            .collect();
        let block = probes
            .block
            .map(|options| BlockProbe::new(&options, world.now(), &names));
        if block.is_some() {
            world.tap();
        }
        Watch {
            block,
            nfs: probes
                .nfs
                .map(|_| NfsProbe::new(world.now(), world.mounts())),
            events: Vec::new(),
        }
    }

    /// Takes what has happened since the last time.
    pub(super) fn look(&mut self, world: &mut World) {
        if let Some(block) = &mut self.block {
            world.take_events(&mut self.events);
            block.events(&mut self.events);
        }
    }

    /// What was seen, and the trace files by their names.
    pub(super) fn end(mut self, world: &mut World) -> (Observations, BTreeMap<String, Vec<u8>>) {
        self.look(world);
        let mut observations = Observations::default();
        let mut traces = BTreeMap::new();
        if let Some(block) = self.block {
            world.untap();
            let (observation, files) = block.finish(world.now());
            observations.block = Some(observation);
            traces.extend(files);
        }
        if let Some(nfs) = self.nfs {
            let (observation, files) = nfs.finish(world.now(), world.mounts());
            observations.nfs = Some(observation);
            traces.extend(files);
        }
        (observations, traces)
    }
}
