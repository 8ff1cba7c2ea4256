//! Labels of what was counted, and reasons for figures that a trace does not determine.

use std::collections::BTreeMap;

use super::group::{Group, GroupFigures};
use super::maps::Maps;
use super::slowest_requests::SlowRequest;
use crate::event::{STEPS, Step};
use crate::input::TraceInfo;
use base::SECTOR_BYTES;

/// The classes of size, in sectors, go from here ...
pub(super) const SMALLEST: u32 = 1;
/// ... to here; the last holds what is larger.
pub(super) const LARGEST: u32 = 1 << 13;
/// Tasks beyond those that are counted each.
pub(super) const OTHERS: u32 = u32::MAX;

pub(super) fn size_name(sectors: u32) -> String {
    let bytes = u64::from(sectors) * SECTOR_BYTES;
    match sectors {
        LARGEST => format!("{} and more", base::units::format_bytes(bytes / 2)),
        _ => format!("up to {}", base::units::format_bytes(bytes)),
    }
}

/// Tasks of one name together.
pub(super) fn by_process(by_pid: &BTreeMap<u32, Group>, about: &TraceInfo) -> Vec<GroupFigures> {
    let mut by_name: BTreeMap<String, Group> = BTreeMap::new();
    for (pid, group) in by_pid {
        let name = match about.names.get(pid) {
            Some(name) => name.clone(),
            None if *pid == OTHERS => "others".into(),
            None if *pid == 0 => "unknown".into(),
            None => format!("task {pid}"),
        };
        by_name.entry(name).or_default().merge(group);
    }
    let mut figures: Vec<GroupFigures> = by_name.into_iter().map(|(name, group)| group.figures(name)).collect();
    figures.sort_by_key(|group| std::cmp::Reverse((group.bytes, group.count)));
    figures
}

pub(super) fn shown_names(
    by_pid: &BTreeMap<u32, Group>,
    slowest: &[SlowRequest],
    maps: &Maps,
    about: &TraceInfo,
) -> BTreeMap<u32, String> {
    let ahead = slowest.iter().flat_map(|slow| slow.ahead.iter().map(|task| task.pid));
    let pids = slowest.iter().map(|slow| slow.pid).chain(ahead);
    let pids = pids.chain(by_pid.keys().copied()).chain(maps.by_pid.keys().copied());
    pids.filter_map(|pid| Some((pid, about.names.get(&pid)?.clone()))).collect()
}

/// What needs events that the trace has none of.
pub(super) fn absent(events: &[u64; STEPS], waits_told: bool) -> BTreeMap<&'static str, String> {
    let has = |step: Step| events[step as usize] > 0;
    let rows = has(Step::Arrival) || has(Step::DeviceDone) || has(Step::WholeDone);
    let mut absent = BTreeMap::new();
    let mut lacks = |figure: &'static str, reason: &str| {
        absent.insert(figure, reason.to_owned());
    };
    if !has(Step::Queue) && !has(Step::WholeDone) && !waits_told {
        lacks("whole_ns", "the trace has no event of an I/O's entering the block layer");
    }
    if !has(Step::Queue) && !waits_told {
        lacks("queue_ns", "the trace has no event of an I/O's entering the block layer");
    }
    if !has(Step::Insert) {
        let reason = "no request was inserted into a scheduler, or the trace leaves that event out";
        lacks("scheduler_ns", reason);
    }
    let completes = has(Step::Complete) || has(Step::BioComplete);
    let paired = has(Step::Issue) && completes;
    if !(paired || has(Step::DeviceDone)) {
        lacks("device_ns", "the trace does not tell when the device got a request and when it ended");
    }
    if completes && !has(Step::Issue) {
        lacks("depth_max", "the trace tells when requests ended, not when the driver got them");
    }
    if has(Step::Arrival) {
        lacks("latency", "the trace tells when I/Os arrive, not when they end");
    }
    if rows {
        lacks("merges", "the trace has a line per I/O and none about what became of it");
        lacks("depth_max", "the trace has a line per I/O: what was under way is only known on average");
    }
    absent
}
