//! Runs the phases of a file, JSON as `_native.Load` takes them, and prints their rates: for tools that count what the
//! engine executes without Python around it.
//!
//! `valgrind --tool=callgrind load PHASES.json`, of an example that was built with `--release`

use std::time::Duration;

use engine::{Memory, start};
use workload::phase::Phase;

fn main() {
    let path = std::env::args().nth(1).expect("a file of phases");
    let text = std::fs::read_to_string(path).expect("a readable file");
    let phases: Vec<Phase> = serde_json::from_str(&text).expect("phases");
    let memory = Memory::default().into();
    for phase in phases {
        let load = start(phase, std::sync::Arc::clone(&memory)).expect("a phase that starts");
        let record = loop {
            if let Some(record) = load.wait(Duration::from_secs(60)) {
                break record.expect("a phase that runs");
            }
        };
        println!("{}", serde_json::to_string(&record).expect("a record"));
    }
}
