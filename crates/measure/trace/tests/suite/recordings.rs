//! What a real kernel recorded, decoded from its pages, against what the kernel itself printed of it.

use crate::support::{format, in_order, microseconds, printed};
use serde::Serialize;
use serde_json::Value;
use trace::block;
use trace::event::{Step, TraceEvent};
use trace::format::EventFormat;
use trace::page::LostEvents;
use trace::recording::Item;
use trace::sched::{self, SchedDecoder, SchedEvent, SchedKind, State};
use trace::tracepoints::{BlockDecoder, EVENTS, GET_REQUEST};

fn formats(wanted: &[trace::decode::WantedEvent]) -> Vec<EventFormat> {
    wanted.iter().map(|wanted| format(wanted.name)).collect()
}

/// Block events of all CPUs in the order of time, and losses with the time of the event that follows.
fn block_events(name: &str) -> Vec<Result<TraceEvent, (u64, LostEvents)>> {
    let wanted = [EVENTS, &[GET_REQUEST]].concat();
    let decoder = BlockDecoder::new(EVENTS, &formats(&wanted)).expect("formats of a real kernel");
    let mut events = Vec::new();
    in_order(name, |cpu, item| match item {
        Item::Record(raw) => {
            let event = decoder.decode(cpu as u16, &raw).expect("a whole record");
            events.push(Ok(event.expect("an event that is wanted")));
        }
        Item::Lost(at_ns, lost) => events.push(Err((at_ns, lost))),
        Item::Garbled(error) => panic!("{error}"),
    });
    events
}

fn sched_events() -> Vec<SchedEvent> {
    let decoder = SchedDecoder::new(&formats(sched::EVENTS)).expect("formats of a real kernel");
    let mut events = Vec::new();
    in_order("sched", |cpu, item| {
        if let Item::Record(raw) = item {
            let event = decoder.decode(cpu, &raw).expect("a whole record");
            events.push(event.expect("an event that is wanted"));
        }
    });
    events
}

fn printed_name(step: Step) -> String {
    let name = step.name();
    match step {
        Step::Queue | Step::BioComplete => format!("block_bio_{}", name.trim_start_matches("bio_")),
        Step::BackMerge | Step::FrontMerge => format!("block_bio_{}", name.replace('_', "")),
        Step::Split => "block_split".into(),
        Step::GetRequest => "block_getrq".into(),
        _ => format!("block_rq_{}", name.trim_start_matches("request_")),
    }
}

#[test]
fn block_events_are_what_the_kernel_prints() {
    for name in ["block", "lost"] {
        let mut found: Vec<(u32, u64, String, String)> = block_events(name)
            .into_iter()
            .flatten()
            .map(|event| {
                let range = match event.step {
                    Step::Split => format!("{} / {}", event.sector, event.argument),
                    _ => format!("{} + {}", event.sector, event.sectors),
                };
                let text = format!("{} {range}", event.device.to_string().replace(':', ","));
                (u32::from(event.cpu), microseconds(event.at_ns), printed_name(event.step), text)
            })
            .collect();
        let mut expected: Vec<_> =
            printed(name).into_iter().map(|(cpu, at, event, text)| (cpu, at, event, device_and_range(&text))).collect();
        found.sort();
        expected.sort();
        assert!(!found.is_empty());
        assert_eq!(found, expected, "{name}");
    }
}

/// `7,0 WS 4096 () 24 + 8 be,0,4 [dd]` -> `7,0 24 + 8`
fn device_and_range(text: &str) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    let sign = words.iter().position(|&word| word == "+" || word == "/").expect("a range");
    format!("{} {}", words[0], words[sign - 1..=sign + 1].join(" "))
}

#[test]
fn lost_events_are_counted_by_the_page_after_them() {
    let events = block_events("lost");
    let lost: u64 = events
        .iter()
        .filter_map(|event| event.err())
        .map(|(_, lost)| match lost {
            LostEvents::Events(count) => count,
            LostEvents::Uncounted => 0,
        })
        .sum();
    let kept = events.iter().flatten().count() as u64;
    // 400 writes of queue, get request, insert, issue and complete, and the end of some others.
    assert!(lost > 0 && lost + kept >= 2000, "{lost} lost, {kept} kept");
}

#[test]
fn scheduler_events_are_what_the_kernel_prints() {
    let mut found: Vec<(u32, u64, String)> = sched_events()
        .into_iter()
        .map(|event| {
            let text = match event.kind {
                SchedKind::Switch { previous, previous_comm, state, next } => {
                    format!("{previous_comm} {previous} {} {next}", letter(state))
                }
                SchedKind::Waking { pid } | SchedKind::Wakeup { pid } => pid.to_string(),
            };
            (event.cpu, microseconds(event.at_ns), text)
        })
        .collect();
    let mut expected: Vec<_> = printed("sched")
        .into_iter()
        .map(|(cpu, at, event, text)| {
            let value = |key: &str| {
                let words = text.split_whitespace();
                let found = words.filter_map(|word| word.strip_prefix(key)).next();
                found.unwrap_or_default().to_owned()
            };
            let text = if event == "sched_switch" {
                let state = value("prev_state=").replace("R+", "R").replace(['t', 'P'], "T").replace('Z', "X");
                format!("{} {} {state} {}", value("prev_comm="), value("prev_pid="), value("next_pid="))
            } else {
                value("pid=")
            };
            (cpu, at, text)
        })
        .collect();
    found.sort();
    expected.sort();
    assert!(!found.is_empty());
    assert_eq!(found, expected);
}

fn letter(state: State) -> &'static str {
    match state {
        State::Preempted => "R",
        State::Sleep => "S",
        State::DiskSleep => "D",
        State::Idle => "I",
        State::Stopped => "T",
        State::Exited => "X",
    }
}

#[test]
fn the_report_of_a_recording_is_golden() {
    let events = block_events("block");
    let first = events.iter().flatten().next().expect("an event");
    let mut analysis = block::Analysis::new(first.at_ns, 100_000_000);
    let mut ended_ns = first.at_ns;
    for event in events.into_iter().flatten() {
        ended_ns = event.at_ns;
        analysis.add(&event);
    }
    let report = analysis.finish(ended_ns);
    let device = &report.devices[0];
    assert!(device.conservation.holds());
    assert_eq!((device.conservation.in_flight, device.conservation.unmatched, device.events_unmatched), (0, 0, 0));
    is_golden("block.json", &report);
}

#[test]
fn a_recording_without_the_events_of_get_request_says_the_same() {
    let report = |without: bool| {
        let mut analysis = block::Analysis::new(0, 1_000_000_000);
        for event in block_events("block").into_iter().flatten() {
            if !(without && event.step == Step::GetRequest) {
                analysis.add(&event);
            }
        }
        let mut report = analysis.finish(u64::MAX);
        report.devices[0].events.remove("get_request");
        report
    };
    assert_eq!(report(true), report(false));
}

#[test]
fn the_report_of_a_recording_with_losses_accounts_for_every_bio() {
    let events = block_events("lost");
    let mut analysis = block::Analysis::new(0, 1_000_000_000);
    for event in events {
        match event {
            Ok(event) => analysis.add(&event),
            Err((at_ns, lost)) => analysis.lost(at_ns, lost),
        }
    }
    let report = analysis.finish(u64::MAX);
    assert!(report.events_lost > 0);
    assert!(report.devices.iter().all(|device| device.conservation.holds()));
}

#[test]
fn the_report_of_recorded_switches_is_golden() {
    let events = sched_events();
    let mut analysis = sched::Analysis::new(events[0].at_ns, 100_000_000);
    // No stacks were recorded with them: here every switch-out has one.
    for event in &events {
        analysis.add(event);
        if let SchedKind::Switch { previous, .. } = event.kind
            && previous != 0
        {
            analysis.add_stack(event.at_ns + 300, event.cpu, previous, 1, previous % 2);
        }
    }
    let ended_ns = events[events.len() - 1].at_ns;
    let frames = |stack_id: u32| {
        let outer = if stack_id == 0 { "pipe_read" } else { "submit_bio_wait" };
        ["__schedule", "schedule", outer].map(str::to_owned).to_vec()
    };
    let report = analysis.finish(ended_ns, frames);
    is_golden("sched.json", &report);
}

/// What differs is kept beside the tests' other output, to be looked at and copied if it is right.
fn is_golden(name: &str, report: &impl Serialize) {
    let mut value = serde_json::to_value(report).expect("JSON");
    count_buckets(&mut value);
    let found = by_row(&value, 0);
    let golden = crate::support::fixture("../golden").join(name);
    let expected = std::fs::read_to_string(&golden).unwrap_or_default();
    if found.trim() != expected.trim() {
        let kept = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        std::fs::write(&kept, format!("{found}\n")).expect("room for the report");
        panic!("{} differs; if {} is right, copy it there", golden.display(), kept.display());
    }
}

/// Innermost tables and lists are rows, so that a difference shows each as one.
fn by_row(value: &Value, depth: usize) -> String {
    let parts: Vec<(String, &Value)> = match value {
        Value::Object(fields) => fields.iter().map(|(key, part)| (format!("{key:?}: "), part)).collect(),
        Value::Array(items) => items.iter().map(|part| (String::new(), part)).collect(),
        _ => Vec::new(),
    };
    if !parts.iter().any(|(_, part)| part.is_object() || part.is_array()) {
        return value.to_string();
    }
    let (begin, end) = if value.is_object() { ('{', '}') } else { ('[', ']') };
    let indent = " ".repeat(depth);
    let rows: Vec<String> =
        parts.iter().map(|(key, part)| format!("\n{indent} {key}{}", by_row(part, depth + 1))).collect();
    format!("{begin}{}\n{indent}{end}", rows.join(","))
}

/// Histograms as numbers of buckets: else they would be most of the page.
fn count_buckets(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            for (name, value) in fields {
                match value {
                    Value::Array(buckets) if name == "histogram" => *value = buckets.len().into(),
                    _ => count_buckets(value),
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(count_buckets),
        _ => {}
    }
}
