//! Which parts of a machine a phase uses, determined before it runs: the keys that those read are the only ones that
//! matter to it. `World::touched` reports afterwards which parts it did use; tests compare the two.

use std::collections::BTreeSet;

use serde::Deserialize;

use crate::key_reader::{KeyReader, is_read, when_read};
use crate::machine::MachineSpec;
use events::SpecError;
use memory::cache::PAGE_BYTES;
use workload::phase::EngineKind;
use workload::spec::{BlockSize, WriteBlocks};

/// The keys of a phase that determine what it uses: the keys of `AnyPhase`, others ignored.
#[derive(Clone, Debug, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
enum PhaseUse {
    Load { files: Vec<FileUse>, groups: Vec<GroupUse> },
    Metadata { threads: Vec<FileUse> },
    Sort {},
}

#[derive(Clone, Debug, Deserialize)]
struct FileUse {
    #[serde(default)]
    place: Option<u32>,
}

#[derive(Clone, Debug, Deserialize)]
struct GroupUse {
    engine: EngineKind,
    direct: bool,
    #[serde(default)]
    poll: bool,
    #[serde(default)]
    cgroup: Option<String>,
    jobs: Vec<JobUse>,
}

impl GroupUse {
    fn submits_several(&self) -> bool {
        let depth: u32 = self.jobs.iter().map(|job| job.queue_depth).sum();
        let is_async = matches!(self.engine, EngineKind::Libaio | EngineKind::IoUring);
        is_async && self.direct && depth > 1
    }

    fn reaps_by_calls(&self, machine: &MachineSpec) -> bool {
        let is_ring = self.engine == EngineKind::IoUring;
        self.direct && (self.engine == EngineKind::Libaio || is_ring && !machine.kernel().has_rings())
    }

    fn has_large_operations(&self) -> bool {
        self.direct && self.jobs.iter().any(JobUse::has_large_operations)
    }
}

#[derive(Clone, Debug, Deserialize)]
struct JobUse {
    files: Vec<u32>,
    #[serde(default)]
    queue_depth: u32,
    read_share: f64,
    #[serde(default)]
    blocks: Vec<BlockSize>,
    #[serde(default)]
    writes: Option<WriteBlocks>,
    #[serde(default)]
    sync: Option<serde_json::Value>,
    #[serde(default)]
    sync_at_end: bool,
    #[serde(default)]
    dsync_every: Option<u64>,
    #[serde(default)]
    osync_every: Option<u64>,
    #[serde(default)]
    replay: Option<ReplayUse>,
}

impl JobUse {
    /// What a trace has is not looked through.
    fn has_large_operations(&self) -> bool {
        let of_writes = self.writes.iter().flat_map(|writes| &writes.blocks);
        let mut blocks = self.blocks.iter().chain(of_writes);
        self.replay.is_some() || blocks.any(|block| u64::from(block.bytes) > PAGE_BYTES)
    }

    /// sync_file_range(2) writes nothing of the drive's cache or of a log.
    fn makes_durable_by_calls(&self) -> bool {
        self.sync.as_ref().is_some_and(|sync| sync["kind"] != "sync_file_range")
    }
}

#[derive(Clone, Debug, Deserialize)]
struct ReplayUse {
    flushes: bool,
}

/// A key that no phase reads, and when it would be read; None: never.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnreadKey {
    /// Dotted path in the machine's file.
    pub key: String,
    /// As a phrase.
    pub read_when: Option<String>,
}

/// Of the keys, by their dotted paths, those that none of the phases reads on that machine.
pub fn unread(
    machine: &MachineSpec,
    phases: &[serde_json::Value],
    keys: &[String],
) -> Result<Vec<UnreadKey>, SpecError> {
    let mut used = BTreeSet::new();
    for phase in phases {
        let phase: PhaseUse =
            serde_json::from_value(phase.clone()).map_err(|error| SpecError::of("phase", error.to_string()))?;
        used.extend(key_readers(&phase, machine));
    }
    Ok(keys
        .iter()
        .filter(|key| !is_read(key, &used))
        .map(|key| UnreadKey { key: key.clone(), read_when: when_read(key) })
        .collect())
}

fn key_readers(phase: &PhaseUse, machine: &MachineSpec) -> BTreeSet<KeyReader> {
    let mut used = BTreeSet::from([KeyReader::Cpus]);
    match phase {
        PhaseUse::Load { files, groups } => {
            for group in groups {
                of_group(group, files, machine, &mut used);
            }
        }
        PhaseUse::Metadata { threads } => {
            for thread in threads {
                let place = thread.place.unwrap_or(0) as usize;
                if place < machine.drive_count() {
                    of_files(place, machine, &mut used);
                }
            }
        }
        PhaseUse::Sort {} => {
            used.insert(KeyReader::Swap);
            if let Some(drive) = machine.swap_drive() {
                used.insert(KeyReader::Drive(drive as u16));
                if machine.has_detailed_cpus() {
                    used.insert(KeyReader::Completion(drive as u16));
                }
                used.extend(of_scheduler(drive, machine));
            }
        }
    }
    used
}

fn of_group(group: &GroupUse, files: &[FileUse], machine: &MachineSpec, used: &mut BTreeSet<KeyReader>) {
    let drives = machine.drive_count();
    for job in &group.jobs {
        for file in job.files.iter().filter_map(|&file| files.get(file as usize)) {
            let place = file.place.unwrap_or(0) as usize;
            if place >= drives {
                used.insert(KeyReader::Mount((place - drives) as u16));
                continue;
            }
            of_drive(place, group, machine, used);
            if machine.has_filesystem(place) {
                used.insert(KeyReader::Filesystem(place as u16));
            }
            let syncs = job.read_share < 1.0
                && (job.makes_durable_by_calls()
                    || job.sync_at_end
                    || job.dsync_every.is_some()
                    || job.osync_every.is_some())
                || job.replay.as_ref().is_some_and(|replay| replay.flushes);
            let ext = machine.ext(place);
            let is_journaled =
                machine.kernel().flushes_caches() && ext.is_some_and(|(mount, _)| mount.variant.is_journaled);
            if job.read_share < 1.0 && machine.journals_data(place) {
                used.insert(KeyReader::MetadataJournal(place as u16));
            }
            if syncs && machine.kernel().flushes_caches() {
                used.insert(KeyReader::Flushes(place as u16));
                if is_journaled {
                    used.insert(KeyReader::MetadataJournal(place as u16));
                }
            }
            let starts_writeback = job.read_share < 1.0 && job.sync.is_some();
            if is_journaled && (syncs || starts_writeback) {
                used.insert(KeyReader::Allocation(place as u16));
            }
            if group.direct {
                continue;
            }
            used.extend([KeyReader::Copies, KeyReader::PageCache]);
            if job.read_share > 0.0 {
                used.insert(KeyReader::ReadAhead);
            }
            if job.read_share < 1.0 {
                used.insert(KeyReader::Writeback);
                if machine.throttles_writeback(place) {
                    used.extend([KeyReader::Flushes(place as u16), KeyReader::Seeks(place as u16)]);
                }
                if machine.is_journaled() {
                    used.insert(KeyReader::Journal);
                }
            }
        }
    }
}

/// What makes files there reads: their filesystem, which writes to the drive.
fn of_files(place: usize, machine: &MachineSpec, used: &mut BTreeSet<KeyReader>) {
    let number = place as u16;
    used.extend([KeyReader::Filesystem(number), KeyReader::Drive(number)]);
    used.extend(of_scheduler(place, machine));
    if let Some((mount, _)) = machine.ext(place) {
        used.insert(KeyReader::Metadata(number));
        if mount.variant.is_journaled {
            used.insert(KeyReader::MetadataJournal(number));
        }
    }
    if machine.has_detailed_cpus() {
        used.insert(KeyReader::Completion(number));
    }
    if machine.kernel().flushes_caches() {
        used.insert(KeyReader::Flushes(number));
    }
}

fn of_scheduler(drive: usize, machine: &MachineSpec) -> impl Iterator<Item = KeyReader> + use<> {
    let scheduler = machine.scheduler(drive);
    let seeks = !scheduler.is_multi_queue() || scheduler.name() == "bfq";
    let read = [
        (KeyReader::Seeks(drive as u16), seeks),
        (KeyReader::Priorities, scheduler.reads_priorities()),
        (KeyReader::Ticks, scheduler.reads_hz()),
    ];
    read.into_iter().filter(|(_, is)| *is).map(|(part, _)| part)
}

fn of_drive(drive: usize, group: &GroupUse, machine: &MachineSpec, used: &mut BTreeSet<KeyReader>) {
    used.extend([KeyReader::Calls, KeyReader::Drive(drive as u16)]);
    if machine.has_detailed_cpus() {
        used.insert(KeyReader::Completion(drive as u16));
    }
    if group.reaps_by_calls(machine) {
        used.insert(KeyReader::ReapCalls);
    }
    if group.submits_several() {
        used.insert(KeyReader::Batches);
    }
    if group.has_large_operations() {
        used.insert(KeyReader::LargeOperations);
    }
    if group.poll {
        used.insert(KeyReader::Polling(drive as u16));
    }
    used.extend(of_scheduler(drive, machine));
    if group.cgroup.is_some() && machine.scheduler(drive).reads_groups() && !machine.shares_by_cost() {
        used.insert(KeyReader::Groups);
    }
    if group.cgroup.is_some() && machine.changes_priorities() && machine.scheduler(drive).reads_policies() {
        used.insert(KeyReader::Policies);
    }
    if group.cgroup.is_some() && machine.has_limits() {
        used.insert(KeyReader::Limits);
    }
    if group.cgroup.is_some() && machine.protects_latencies() {
        used.insert(KeyReader::Latencies);
    }
    if group.cgroup.is_some() && machine.shares_by_cost() {
        used.insert(KeyReader::Cost);
    }
}

#[cfg(test)]
pub(super) mod tests {
    use std::path::{Path, PathBuf};

    use serde_json::{Value, json};

    use super::*;
    use crate::model::{Model, ObservedPhase};

    /// A machine that comes with iolab, with its devices and mounts in place of their names, as Python hands it over;
    /// of many equal drives two.
    pub(in crate::model) fn shipped(path: &Path) -> Value {
        let folder = path.parent().unwrap();
        let mut machine = of_toml(path);
        let mut drives = Vec::new();
        for mut drive in machine["drives"].as_array().cloned().unwrap_or_default() {
            let table = drive.as_object_mut().unwrap();
            let count = table.remove("count").and_then(|count| count.as_u64());
            let cpus = table.remove("interrupt_cpus");
            if let Some(name) = table["device"].as_str() {
                table["device"] = of_toml(&folder.join("devices").join(format!("{name}.toml")));
            }
            for number in 0..count.unwrap_or(1).min(2) as usize {
                let mut one = drive.clone();
                if let Some(cpus) = &cpus {
                    one["interrupt_cpu"] = cpus[number].clone();
                }
                drives.push(one);
            }
        }
        machine["drives"] = drives.into();
        let mounts = machine.get_mut("mounts").and_then(Value::as_array_mut);
        for mount in mounts.into_iter().flatten() {
            let name = mount["mount"].as_str().unwrap();
            *mount = of_toml(&folder.join("mounts").join(format!("{name}.toml")));
        }
        machine
    }

    /// A file's table with all that its tables are `like`.
    fn of_toml(path: &Path) -> Value {
        let text = std::fs::read_to_string(path).unwrap();
        let mut own = serde_json::to_value(toml::from_str::<toml::Table>(&text).unwrap()).unwrap();
        let folder = path.parent().unwrap();
        if let Some(disk) = own.get_mut("disk") {
            take_over(disk, folder);
            disk.as_object_mut().unwrap().remove("kind");
        }
        take_over(&mut own, folder);
        own
    }

    fn take_over(own: &mut Value, folder: &Path) {
        let Some(like) = own.as_object_mut().unwrap().remove("like") else {
            return;
        };
        let mut taken = of_toml(&folder.join(format!("{}.toml", like.as_str().unwrap())));
        merge(&mut taken, own);
        *own = taken;
    }

    fn merge(taken: &mut Value, own: &Value) {
        match (taken.as_object_mut(), own.as_object()) {
            (Some(table), Some(own)) => {
                for (key, value) in own {
                    merge(table.entry(key.clone()).or_insert(Value::Null), value);
                }
            }
            _ => *taken = own.clone(),
        }
    }

    fn all_shipped() -> Vec<(String, Value)> {
        let folder = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../machines"));
        let paths = std::fs::read_dir(&folder).unwrap();
        let mut paths: Vec<PathBuf> = paths.map(|entry| entry.unwrap().path()).collect();
        paths.retain(|path| path.extension().is_some_and(|extension| extension == "toml"));
        paths.sort();
        let found = paths.iter();
        found.map(|path| (path.display().to_string(), shipped(path))).collect()
    }

    /// The phases one after the other on a new machine; None: it has no mechanism for them.
    fn run(machine: &MachineSpec, phases: &[Value]) -> Option<(Model, Vec<Value>)> {
        let mut model = Model::new(machine).unwrap();
        let mut records = Vec::new();
        for phase in phases {
            model.begin(ObservedPhase::from_json(phase.clone()).unwrap()).ok()?;
            model.run(|_| true);
            records.push(serde_json::to_value(model.end(0, "test")).unwrap());
        }
        Some((model, records))
    }

    /// By what they do: writes, and reads of what was written, direct and buffered, on the first drive and the first
    /// mount.
    fn sequences(machine: &MachineSpec) -> Vec<Vec<Value>> {
        let mount = machine.drive_count();
        vec![
            vec![load(true, 0.0, 0)],
            vec![load(true, 0.0, 0), load(true, 1.0, 0)],
            vec![load(false, 0.0, 0)],
            vec![load(false, 0.0, 0), load(false, 1.0, 0)],
            vec![load(true, 0.0, mount)],
        ]
    }

    /// Every number in the table by its dotted path.
    fn numbers(value: &Value, path: &str, found: &mut Vec<(String, Value)>) {
        let inside = |key: &str| match path {
            "" => key.to_owned(),
            _ => format!("{path}.{key}"),
        };
        match value {
            Value::Object(table) => {
                for (key, inner) in table {
                    numbers(inner, &inside(key), found);
                }
            }
            Value::Array(array) => {
                for (number, inner) in array.iter().enumerate() {
                    numbers(inner, &inside(&number.to_string()), found);
                }
            }
            Value::Number(_) => found.push((path.to_owned(), value.clone())),
            _ => {}
        }
    }

    fn load(direct: bool, read_share: f64, place: usize) -> Value {
        let job = json!({
            "name": "j", "files": [0], "file_order": "sequential", "pattern": { "kind": "sequential" },
            "read_share": read_share, "blocks": [{ "bytes": 4096, "weight": 1.0 }], "align_bytes": 4096,
            "offset_bytes": 0, "length_bytes": 1 << 20, "queue_depth": 1,
            "arrival": { "kind": "closed", "think_ns": 0, "think_every": 1 },
            "until": { "ops": null, "bytes": 1 << 17, "duration_ns": null }, "sync": null,
            "sync_at_end": read_share < 1.0, "seed": 5
        });
        json!({
            "name": "phase", "warm_up_ns": 0, "interval_ns": 1_000_000_000u64, "cut_transient": false,
            "verify": false, "drop_caches": true, "ends_with_first": false, "seed": 7,
            "files": [{
                "path": "f", "base_bytes": 0, "size_bytes": 1 << 20, "create": true, "extend": false,
                "place": place, "beneath": null, "identity": null
            }],
            "groups": [{
                "name": "g", "engine": "psync", "direct": direct, "cpus": null, "batch": null,
                "fixed_buffers": false, "registered_files": false, "poll": false, "sqpoll": false,
                "sqpoll_cpu": null, "fresh_data": false, "close_in_time": false, "cgroup": null,
                "jobs": [job]
            }]
        })
    }

    fn declared(phases: &[Value], machine: &MachineSpec) -> BTreeSet<KeyReader> {
        let of_phase = |phase: &Value| {
            let mut phase = phase.clone();
            phase["kind"] = json!("load");
            key_readers(&serde_json::from_value(phase).unwrap(), machine)
        };
        phases.iter().flat_map(of_phase).collect()
    }

    /// What every machine that comes with iolab has used when a phase is over is what was determined before.
    #[test]
    fn a_phase_uses_what_is_declared_and_nothing_else() {
        let mut asked = 0;
        for (name, machine) in all_shipped() {
            let machine = MachineSpec::from_json(machine).unwrap();
            for phases in sequences(&machine) {
                let Some((model, _)) = run(&machine, &phases) else {
                    continue;
                };
                // What a scheduler or a journal looks at leaves no trace of its own.
                let untraced = [
                    KeyReader::Priorities,
                    KeyReader::Policies,
                    KeyReader::Ticks,
                    KeyReader::Journal,
                    KeyReader::ReapCalls,
                    KeyReader::Batches,
                    KeyReader::LargeOperations,
                    KeyReader::Seeks(0),
                    KeyReader::Seeks(1),
                ];
                let mut declared = declared(&phases, &machine);
                declared.retain(|one| !untraced.contains(one));
                assert_eq!(&declared, model.world.touched(), "{name} {phases:?}");
                asked += 1;
            }
        }
        assert!(asked >= 30, "only {asked} were possible");
    }

    /// Each number in the file of every such machine is read, or makes no difference: with all others changed at once
    /// the records are the same to the bit.
    #[test]
    fn what_nothing_reads_makes_no_difference() {
        let mut changed_keys = 0;
        for (name, machine) in all_shipped() {
            let spec = MachineSpec::from_json(machine.clone()).unwrap();
            for phases in sequences(&spec) {
                let Some((_, records)) = run(&spec, &phases) else {
                    continue;
                };
                let used = declared(&phases, &spec);
                let mut found = Vec::new();
                numbers(&machine, "", &mut found);
                found.retain(|(key, _)| !is_read(key, &used));
                let mut other = machine.clone();
                let mut keys = Vec::new();
                for (key, value) in found {
                    let pointer = format!("/{}", key.replace('.', "/"));
                    let more = match value.as_u64() {
                        Some(number) => json!(number * 2 + 1),
                        None => json!(value.as_f64().unwrap() / 2.0),
                    };
                    let mut tried = other.clone();
                    *tried.pointer_mut(&pointer).unwrap() = more;
                    if MachineSpec::from_json(tried.clone()).is_ok() {
                        other = tried;
                        keys.push(key);
                    }
                }
                let spec = MachineSpec::from_json(other).unwrap();
                let (_, others) = run(&spec, &phases).unwrap();
                assert_eq!(records, others, "{name}: {keys:?}");
                changed_keys += keys.len();
            }
        }
        assert!(changed_keys > 100, "only {changed_keys} could be changed");
    }
}
