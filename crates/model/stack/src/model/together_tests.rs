//! A load beside who makes files and beside who sorts, and whose end stops whom.

use serde_json::{Value, json};

use super::readers::tests::shipped;
use super::tests::load;
use super::*;

const SECOND: u64 = 1_000_000_000;

fn machine(name: &str) -> MachineSpec {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../machines/");
    MachineSpec::from_json(shipped(format!("{path}{name}.toml").as_ref())).unwrap()
}

/// Reads past the page cache, 4 KiB each, for at most this long.
pub(super) fn reads(duration_ns: u64) -> Value {
    let mut phase = load();
    phase["kind"] = json!("load");
    phase["groups"][0]["engine"] = json!("psync");
    let job = &mut phase["groups"][0]["jobs"][0];
    job["queue_depth"] = json!(1);
    job["until"] = json!({ "ops": null, "bytes": null, "duration_ns": duration_ns });
    phase
}

pub(super) fn creates(files: u64) -> Value {
    json!({
        "kind": "metadata", "name": "files",
        "threads": [{
            "directory": "d", "beneath": null, "paths": "full", "cpus": null,
            "job": {
                "name": "t", "files": files, "file_bytes": 4096, "write_bytes": 4096, "sync": "before_close",
                "keep": true, "until_full": false, "subdirectories": null,
                "names": { "bytes": 40, "random_bytes": 24, "first": 0, "step": 1 }, "seed": 5
            }
        }]
    })
}

fn sorts() -> Value {
    json!({
        "kind": "sort", "name": "sort", "processes": 2, "process_bytes": 12u64 << 20,
        "memory_limit_bytes": 16u64 << 20, "swap_bytes": null, "passes": 1, "seed": 3
    })
}

fn run(machine: &MachineSpec, phases: &[Value], stops_with: Option<usize>) -> Result<Vec<Value>, SpecError> {
    let mut model = Model::new(machine).unwrap();
    let together = json!({ "kind": "together", "phases": phases, "stops_with": stops_with });
    model.begin(ObservedPhase::from_json(together)?)?;
    model.run(|_| true);
    model.check().unwrap();
    let record = serde_json::to_value(model.end(0, "test")).unwrap();
    Ok(record["phases"].as_array().unwrap().clone())
}

pub(super) fn elapsed_ns(record: &Value) -> u64 {
    record["elapsed_ns"].as_u64().unwrap()
}

fn reads_of(record: &Value) -> u64 {
    record["groups"][0]["jobs"][0]["read"]["count"].as_u64().unwrap()
}

#[test]
fn each_of_those_that_run_together_has_its_record() {
    let machine = machine("xfs-8p");
    let phases = [reads(SECOND / 10), creates(200)];
    let records = run(&machine, &phases, None).unwrap();
    assert_eq!(elapsed_ns(&records[0]) / 10_000_000, 10);
    assert!(reads_of(&records[0]) > 100, "{}", records[0]);
    let created = &records[1]["groups"][0]["jobs"][0]["ops"]["create"]["count"];
    assert_eq!(created, 200, "{}", records[1]);
    assert_eq!(records, run(&machine, &phases, None).unwrap());
}

#[test]
fn the_end_of_one_stops_the_others() {
    let machine = machine("xfs-8p");
    let phases = [reads(1000 * SECOND), creates(200)];
    let records = run(&machine, &phases, Some(1)).unwrap();
    assert!(elapsed_ns(&records[0]) < SECOND, "{}", records[0]);
    assert!(elapsed_ns(&records[0]).abs_diff(elapsed_ns(&records[1])) < SECOND / 100);
    assert_eq!(records[0]["stopped"], false);
    let phases = [reads(SECOND / 100), creates(10_000_000)];
    let records = run(&machine, &phases, Some(0)).unwrap();
    assert!(elapsed_ns(&records[1]) < SECOND, "{}", records[1]);
}

/// They share the drive that holds the file and the swap area: each is slower beside the other.
#[test]
fn who_sorts_and_who_reads_share_a_drive() {
    let machine = machine("quad-xeon");
    let alone = run(&machine, &[sorts()], None).unwrap();
    let beside = run(&machine, &[sorts(), reads(10_000 * SECOND)], Some(0)).unwrap();
    assert!(alone[0]["measures"]["swap_out_bytes"].as_f64().unwrap() > 1e6);
    let [alone, beside] = [&alone[0], &beside[0]].map(elapsed_ns);
    assert!(beside * 2 > alone * 3, "{beside} {alone}");
}

/// Reads of a file of 16 MiB through the page cache beside processes that have so much of 32 MiB: how many reads there were
/// in 20 s, and how many bytes the processes swapped.
fn beside_processes(kernel: &str, process_mib: u64) -> (u64, f64) {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../machines/quad-xeon.toml");
    let mut spec = shipped(path.as_ref());
    spec["kernel"] = json!(kernel);
    spec["memory"] = json!({ "bytes": 32 << 20 });
    spec["drives"][0].as_object_mut().unwrap().remove("filesystem");
    let machine = MachineSpec::from_json(spec).unwrap();
    let mut through_cache = reads(20 * SECOND);
    through_cache["groups"][0]["direct"] = json!(false);
    through_cache["groups"][0]["jobs"][0]["read_share"] = json!(1.0);
    through_cache["groups"][0]["jobs"][0]["length_bytes"] = json!(16 << 20);
    let mut processes = sorts();
    processes["process_bytes"] = json!(process_mib << 19);
    processes["memory_limit_bytes"] = json!(32 << 20);
    processes["passes"] = json!(1000);
    let records = run(&machine, &[through_cache, processes], Some(0)).unwrap();
    let swapped = records[1]["measures"]["swap_out_bytes"].as_f64().unwrap();
    (reads_of(&records[0]), swapped)
}

#[test]
fn files_have_the_memory_that_processes_leave() {
    let (many, _) = beside_processes("2.5.59", 4);
    let (few, swapped) = beside_processes("2.5.59", 24);
    assert!(few * 3 < many, "{few} {many}");
    assert_eq!(swapped, 0.0, "clean pages of files go first");
}

#[test]
fn from_2_6_on_processes_swap_before_files_have_nothing() {
    assert_eq!(beside_processes("2.5.75", 28).1, 0.0);
    let (_, swapped) = beside_processes("2.6.20", 28);
    assert!(swapped > 1e6, "{swapped}");
}

#[test]
fn what_cannot_run_together_is_refused() {
    let refused = |phases: &[Value], stops| {
        let error = run(&machine("xfs-8p"), phases, stops).unwrap_err();
        (error.key, error.what)
    };
    let (key, what) = refused(&[reads(1), reads(1)], None);
    assert_eq!(key, "phases.1");
    assert!(what.starts_with("reads and writes are there already"), "{what}");
    assert_eq!(refused(&[reads(1)], Some(1)).0, "stops_with");
    assert_eq!(refused(&[], None).0, "phases");
    let nested = json!({ "kind": "together", "phases": [reads(1)], "stops_with": null });
    assert_eq!(refused(&[nested], None).0, "phases.0");
}

/// The end of a job of a load stops its other jobs, also one that waits for its time.
#[test]
fn a_job_can_end_those_beside_it() {
    let mut phase = reads(SECOND / 10);
    let mut other = phase["groups"][0].clone();
    other["name"] = json!("other");
    other["jobs"][0]["name"] = json!("other");
    other["jobs"][0]["until"]["duration_ns"] = json!(1000 * SECOND);
    let mut rare = other.clone();
    rare["name"] = json!("rare");
    rare["jobs"][0]["name"] = json!("rare");
    rare["jobs"][0]["arrival"] = json!({ "kind": "open", "rate_per_s": 0.01, "spacing": "constant" });
    phase["groups"].as_array_mut().unwrap().extend([other, rare]);
    phase["stops_with"] = json!({ "jobs": ["j"], "any": false });
    let records = run(&machine("one_disk"), &[phase.clone()], None).unwrap();
    assert!(elapsed_ns(&records[0]) < SECOND / 5, "{}", records[0]);
    phase["stops_with"] = json!({ "jobs": ["nobody"], "any": false });
    let error = run(&machine("one_disk"), &[phase], None).unwrap_err();
    assert_eq!(error.key, "stops_with");
}
