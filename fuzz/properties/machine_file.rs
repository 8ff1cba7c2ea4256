//! Any machine file is a machine or an error that names a key; a machine that is accepted does the I/O that it is asked
//! for and keeps the invariants of its stations. The first line picks a device, each further one changes a key of the file:
//! `drives.0.device.queue_depth=4`.

use serde_json::{Value, json};
use stack::machine::MachineSpec;
use stack::model::{AnyPhase, Model, ObservedPhase, Probes};

/// Building more than this much of a device takes longer than a fuzzer has patience.
const SECTORS_MAX: u64 = 1 << 34;
const OPS: u64 = 40;

pub fn check(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else {
        return;
    };
    let mut lines = text.lines();
    let mut machine = base(lines.next().unwrap_or_default());
    for line in lines {
        if let Some((key, value)) = line.split_once('=') {
            let value = serde_json::from_str(value).unwrap_or_else(|_| value.into());
            set(&mut machine, key, value);
        }
    }
    match MachineSpec::from_json(machine) {
        Err(error) => assert!(!error.what.is_empty(), "an error says what is wrong"),
        Ok(spec) => {
            let sectors = (0..spec.drive_count()).filter_map(|drive| spec.drive_sectors(drive));
            if sectors.sum::<u64>() <= SECTORS_MAX && spec.drive_count() <= 4 {
                run(&spec);
            }
        }
    }
}

fn run(spec: &MachineSpec) {
    let mut model = Model::new(spec).expect("what is checked can be built");
    for direct in [true, false] {
        let phase = AnyPhase::Load(serde_json::from_value(phase(direct)).expect("a good phase"));
        let probes = Probes::default();
        // A drive that is too small, or no memory.
        if model.begin(ObservedPhase { phase, probes }).is_ok() {
            model.run(|_| true);
            model.check().expect("the model keeps its invariants");
            model.end(0, "fuzz");
        }
    }
    sort(&mut model);
}

fn sort(model: &mut Model) {
    let phase = json!({
        "name": "sort", "processes": 3, "process_bytes": 600 << 10, "memory_limit_bytes": 1 << 20,
        "swap_bytes": 4 << 20, "passes": 1, "seed": 3
    });
    let phase = AnyPhase::Sort(serde_json::from_value(phase).expect("a good phase"));
    let probes = Probes::default();
    // No swap, or too little.
    if model.begin(ObservedPhase { phase, probes }).is_ok() {
        model.run(|_| true);
        model.end(0, "fuzz");
        model.check().expect("nothing is lost, and everybody ends");
    }
}

/// A good machine with a device of that kind.
pub fn base(device: &str) -> Value {
    let devices: [(&str, &str); 4] = [
        ("array", include_str!("../../machines/devices/eva_raid5.toml")),
        ("lun", include_str!("../../machines/devices/msa1000_lun.toml")),
        ("flash", include_str!("../../machines/devices/sata_ssd_2010.toml")),
        ("disk", include_str!("../../machines/devices/ide_7200_2003.toml")),
    ];
    let (_, text) = devices.into_iter().find(|(kind, _)| *kind == device).unwrap_or(devices[3]);
    let device: Value = toml::from_str(text).expect("a device of the project");
    json!({
        "kernel": "2.6.35",
        "cpus": {
            "count": 2, "time_slice_ns": 100_000_000, "call_ns": 2000, "completion_ns": 2000,
            "page_copy_ns": 1000, "jitter": 0.05
        },
        "memory": { "bytes": 16 << 20 },
        "drives": [{ "device": device, "filesystem": { "kind": "ext3" } }],
        "swap": { "drive": 0, "bytes": 8 << 20, "number_ns": 20.0, "fault_ns": 3000, "scan_ns": 200 }
    })
}

/// The key by its dotted path; what is on the way is made.
fn set(table: &mut Value, key: &str, value: Value) {
    let mut at = table;
    for part in key.split('.') {
        at = match at {
            Value::Array(list) => {
                let number = part.parse().unwrap_or(0usize).min(list.len());
                if number == list.len() {
                    if list.len() >= 8 {
                        return;
                    }
                    list.push(Value::Null);
                }
                &mut list[number]
            }
            other => {
                if !other.is_object() {
                    *other = json!({});
                }
                &mut other[part]
            }
        };
    }
    *at = value;
}

fn phase(direct: bool) -> Value {
    json!({
        "name": "load", "groups": [{
            "name": "g", "engine": if direct { "io_uring" } else { "psync" }, "direct": direct, "cpus": null,
            "batch": null, "fixed_buffers": false, "registered_files": false, "poll": false, "sqpoll": false,
            "sqpoll_cpu": null, "fresh_data": false, "close_in_time": false, "cgroup": null,
            "jobs": [{
                "name": "j", "files": [0], "file_order": "sequential", "pattern": { "kind": "uniform" },
                "read_share": 0.5, "blocks": [{ "bytes": 16384, "weight": 1.0 }], "align_bytes": 4096,
                "offset_bytes": 0, "length_bytes": 8 << 20, "queue_depth": 4,
                "arrival": { "kind": "closed", "think_ns": 0, "think_every": 1 },
                "until": { "ops": OPS, "bytes": null, "duration_ns": null }, "sync": null,
                "sync_at_end": true, "seed": 7
            }]
        }],
        "files": [{
            "path": "a", "base_bytes": 0, "size_bytes": 8 << 20, "create": true, "extend": true, "place": null
        }],
        "warm_up_ns": 0, "interval_ns": 10_000_000, "cut_transient": false, "verify": false,
        "drop_caches": false, "ends_with_first": false, "seed": 3
    })
}
