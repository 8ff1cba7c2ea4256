//! When pages of a buffered read are there: with their own bio, or with all of the window.

use serde_json::json;

use super::tests::{load, run};
use super::*;

/// How long the longest of this many reads of 4 KiB from a file's start on takes, in ms, before a server of 1 ms for
/// each request.
fn longest_read_ms(kernel: &str, max_sectors_kb: u32, reads: u32) -> u64 {
    let record = read(kernel, max_sectors_kb, reads, 4096);
    let latency = &record["groups"][0]["jobs"][0]["read"]["latency"];
    latency["max_ns"].as_u64().unwrap() / 1_000_000
}

/// The record of this many reads in sequence.
fn read(kernel: &str, max_sectors_kb: u32, reads: u32, bytes: u32) -> serde_json::Value {
    read_with(kernel, max_sectors_kb, reads, bytes, 300, None)
}

fn read_with(
    kernel: &str,
    max_sectors_kb: u32,
    reads: u32,
    bytes: u32,
    page_copy_ns: u32,
    copy_call_ns: Option<u32>,
) -> serde_json::Value {
    let machine = MachineSpec::from_json(json!({
        "kernel": kernel,
        "cpus": {
            "count": 1, "time_slice_ns": 3_000_000, "call_ns": 2000, "completion_ns": 2000,
            "page_copy_ns": page_copy_ns, "copy_call_ns": copy_call_ns, "jitter": 0.0
        },
        "memory": { "bytes": 256 << 20 },
        "drives": [{
            "queue": { "max_sectors_kb": max_sectors_kb },
            "device": {
                "kind": "lun", "capacity_bytes": 1u64 << 32, "queue_depth": 32, "adapter_ns": 0, "link_ns": 0,
                "controller_ns": 0, "controller_commands_per_s": 1_000_000_000, "link_bytes_per_s": 100_000_000_000u64,
                "cache": {
                    "line_bytes": 4096, "read_bytes": 0, "write_bytes": 0, "high_percent": 80, "low_percent": 40,
                    "idle_flush_ns": 1_000_000_000
                },
                "back_end": { "access_ns": 1_000_000, "servers": 1, "bytes_per_s": 100_000_000_000u64 }
            }
        }]
    }));
    let mut model = Model::new(&machine.unwrap()).unwrap();
    let mut phase = load();
    let group = &mut phase["groups"][0];
    group["engine"] = json!("psync");
    group["direct"] = json!(false);
    let job = &mut group["jobs"][0];
    job["read_share"] = json!(1.0);
    job["pattern"] = json!({ "kind": "sequential" });
    job["queue_depth"] = json!(1);
    job["blocks"] = json!([{ "bytes": bytes, "weight": 1.0 }]);
    job["until"] = json!({ "ops": reads, "bytes": null, "duration_ns": null });
    let record = run(&mut model, serde_json::from_value(phase).unwrap());
    serde_json::to_value(record).unwrap()
}

#[test]
fn a_call_copies_a_page_once_however_often_it_waits() {
    let record = read("3.0", 128, 16, 1 << 20);
    let used_ns = record["process_cpu_system_ns"].as_u64().unwrap() / 16;
    // 256 pages of 300 ns, the call, and at most 8 times the 2 us of who was woken.
    assert!((70_000..=94_800).contains(&used_ns), "{used_ns}");
}

#[test]
fn a_call_that_copies_has_a_cost_of_its_own() {
    let used_ns = |copy_call_ns| {
        let record = read_with("6.1", 128, 64, 65_536, 300, copy_call_ns);
        record["process_cpu_system_ns"].as_u64().unwrap()
    };
    assert_eq!(used_ns(None), used_ns(Some(2000)), "that of any call");
    // Of 64 calls, the first has nothing to copy when it begins.
    assert_eq!(used_ns(None) - used_ns(Some(500)), 63 * 1500);
}

#[test]
fn a_call_that_is_plugged_has_nothing_in_flight_while_it_copies() {
    // Copying 128 KiB takes as long as a request.
    let took_ms = |kernel| {
        let record = read_with(kernel, 512, 16, 1 << 20, 31_250, None);
        let jobs = &record["groups"][0]["jobs"][0];
        jobs["read"]["latency"]["mean_ns"].as_f64().unwrap() / 1e6
    };
    // 4 requests of 256 KiB, each copied before the next is sent; 8 of 128 KiB, each copied while the next is read.
    let [plugged, not] = ["3.2.5", "3.3"].map(took_ms);
    assert!((11.5..12.5).contains(&plugged), "{plugged}");
    assert!((8.0..9.5).contains(&not), "{not}");
}

#[test]
fn in_2_4_a_page_is_there_with_its_buffer() {
    // The second finds the first of a window of three pages under way.
    assert_eq!(longest_read_ms("2.4.20", 4, 2), 1);
}

#[test]
fn before_4_3_each_bio_ends_alone_and_later_what_was_cut_from_one_ends_together() {
    // A window of 16 KiB: four bios of a page.
    assert_eq!(longest_read_ms("3.0", 4, 1), 1);
    assert_eq!(longest_read_ms("4.2", 4, 1), 1);
    assert_eq!(longest_read_ms("4.3", 4, 1), 4);
    assert_eq!(longest_read_ms("4.3", 16, 1), 1);
}
