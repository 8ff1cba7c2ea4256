//! What crosses the border as JSON, as one JSON schema: Python's types are generated from it.

use pyo3::prelude::*;
use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, SchemaGenerator};
use serde_json::{Map, Value, json};

use crate::border::json;

/// A JSON schema (draft 2020-12) whose `$defs` has every type that goes in or comes out as JSON.
#[pyfunction]
pub fn schema() -> PyResult<String> {
    let mut inputs = SchemaSettings::draft2020_12().into_generator();
    add::<workload::phase::Phase>(&mut inputs);
    add::<workload::metadata::MetadataPhase>(&mut inputs);
    add::<engine::SortSpec>(&mut inputs);
    add::<engine::probe::Spec>(&mut inputs);
    add::<engine::trace_file::TraceSpec>(&mut inputs);
    add::<engine::extents::Bounds>(&mut inputs);
    #[cfg(feature = "model")]
    {
        add::<stack::machine::File>(&mut inputs);
        add::<stack::model::SortPhase>(&mut inputs);
        add::<stack::model::Probes>(&mut inputs);
    }
    let mut outputs = SchemaSettings::draft2020_12().for_serialize().into_generator();
    add::<workload::record::PhaseRecord>(&mut outputs);
    add::<workload::record::Snapshot>(&mut outputs);
    add::<workload::metadata::MetadataRecord>(&mut outputs);
    add::<engine::sorter::SortRecord>(&mut outputs);
    add::<engine::Features>(&mut outputs);
    add::<engine::probe::ProbeReports>(&mut outputs);
    #[cfg(feature = "model")]
    add::<stack::model::Record>(&mut outputs);
    add::<trace::block::BlockReport>(&mut outputs);
    add::<trace::sched::SwitchReport>(&mut outputs);
    add::<trace::profile::ProfileReport>(&mut outputs);
    add::<trace::extents::Examinations>(&mut outputs);
    add::<trace::study::TraceFigures>(&mut outputs);
    add::<workload::traced::ScheduleSummary>(&mut outputs);
    let mut defs: Map<String, Value> = inputs.take_definitions(true);
    defs.extend(outputs.take_definitions(true));
    json(&json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$defs": defs,
    }))
}

fn add<T: JsonSchema>(generator: &mut SchemaGenerator) {
    generator.subschema_for::<T>();
}
