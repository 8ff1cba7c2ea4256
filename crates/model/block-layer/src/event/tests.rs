use std::collections::BTreeMap;

use kernels::queue::{PlugRules, PoolRules, QueueRules};
use proptest::prelude::*;

use super::*;
use crate::RequestQueue;
use crate::invariants::tapped_queue::serve_tapped;
use crate::invariants::{self, Arrival};
use crate::scheduler::cfq::{Cfq, CfqTunables, Surroundings, Version};
use crate::scheduler::deadline::{Deadline, DeadlineVariant};
use crate::scheduler::noop::Noop;
use EventKind::*;
use events::time::MILLISECOND;

const SERVICE_NS: Time = 3 * MILLISECOND;

/// Few requests, so that tasks have to wait for them.
fn rules(plug: PlugRules) -> QueueRules {
    QueueRules { pool: PoolRules { requests: 3, ..PoolRules::LINUX_2_6_35 }, plug, ..invariants::rules() }
}

fn cfq() -> Box<dyn Scheduler> {
    let surroundings = Surroundings { hz: 1000, rotational: true };
    Box::new(Cfq::new(Version::GroupIdleV2, CfqTunables::default(), surroundings, &[1000]))
}

fn read(after_ns: Time, block: u64, task: TaskId) -> Arrival {
    Arrival { after_ns, direction: Direction::Read, sync: true, block, blocks: 1, task }
}

fn kinds(events: &[QueueEvent]) -> Vec<EventKind> {
    let kinds = events.iter().map(|event| event.kind);
    kinds.filter(|kind| !matches!(kind, Message(_))).collect()
}

fn emitted(rules: QueueRules, scheduler: Box<dyn Scheduler>, load: &[Arrival]) -> Vec<QueueEvent> {
    serve_tapped(&mut RequestQueue::new(rules, scheduler), load, 1, SERVICE_NS).events
}

#[test]
fn a_read_that_grows_while_the_queue_is_plugged() {
    let load = [read(0, 10, 0), read(0, 11, 0), read(0, 9, 0)];
    let events =
        emitted(rules(PlugRules::EXPLICIT), Box::new(Deadline::new(DeadlineVariant::C, Default::default())), &load);
    let unplug = Unplug { requests: 1, by_timer: false };
    let expected = [Queue, GetRequest, Plug, Insert, Queue, BackMerge, Queue, FrontMerge, unplug, Issue, Complete];
    assert_eq!(kinds(&events), expected);
    let [issue, complete] = [events[9], events[10]];
    assert_eq!((issue.start, issue.sectors, issue.task), (72, 24, Some(0)));
    assert_eq!((complete.at, complete.task), (SERVICE_NS, None));
}

#[test]
fn the_timer_lets_a_plugged_queue_go() {
    let events = emitted(rules(PlugRules::SELF), Box::new(Noop::default()), &[read(0, 10, 0)]);
    let unplug = events.iter().find(|event| matches!(event.kind, Unplug { .. })).unwrap();
    assert_eq!(unplug.at, 3 * MILLISECOND);
    assert_eq!(unplug.kind, Unplug { requests: 1, by_timer: true });
}

#[test]
fn who_waits_for_a_request_is_queued_once() {
    let load: Vec<Arrival> = (0..8).map(|n| read(0, 10 * n, n as TaskId)).collect();
    let events = emitted(rules(PlugRules::NONE), Box::new(Noop::default()), &load);
    let count = |kind| events.iter().filter(|event| event.kind == kind).count();
    assert_eq!([count(Queue), count(GetRequest), count(Complete)], [8; 3]);
    assert!(count(Sleep) > 0);
}

#[test]
fn what_the_scheduler_says_stands_where_it_said_it() {
    let events = emitted(rules(PlugRules::NONE), cfq(), &[read(0, 10, 0)]);
    let texts: Vec<String> = events
        .iter()
        .filter_map(|event| match event.kind {
            Message(message) => Some(message.to_string()),
            Issue => Some("issue".to_owned()),
            _ => None,
        })
        .collect();
    let place = |text: &str| texts.iter().position(|other| other.contains(text)).unwrap();
    assert!(place("insert_request") < place("issue"));
    assert!(place("issue") < place("arm_idle: 8 group_idle: 0"));
    assert!(place("arm_idle") < place("sl_used="));
}

#[test]
fn an_untapped_queue_keeps_nothing() {
    let mut queue = RequestQueue::new(rules(PlugRules::SELF), Box::new(Noop::default()));
    queue.submit(0, invariants::bench::bio(0, Direction::Read, 0));
    let mut events = Vec::new();
    queue.take_events(&mut events);
    assert_eq!(events, []);
}

proptest! {
    /// Each Q ends in exactly one of G, M and F; each G in an I; each I in a D, unless it is merged away; each D in
    /// a C; each P in a U; who sleeps was queued. Nothing goes back in time.
    #[test]
    fn what_begins_ends(
        load in invariants::arrivals(4),
        depth in 1usize..4,
        which in 0u8..3,
        plug in prop::sample::select(vec![PlugRules::NONE, PlugRules::SELF, PlugRules::EXPLICIT]),
    ) {
        let scheduler: Box<dyn Scheduler> = match which {
            0 => Box::new(Noop::default()),
            1 => Box::new(Deadline::new(DeadlineVariant::C, Default::default())),
            _ => cfq(),
        };
        let mut queue = RequestQueue::new(rules(plug), scheduler);
        let served = serve_tapped(&mut queue, &load, depth, SERVICE_NS);
        let events = &served.events;
        prop_assert!(events.is_sorted_by_key(|event| event.at));
        let count = |is: fn(&EventKind) -> bool| events.iter().filter(|event| is(&event.kind)).count() as u64;
        let counts = queue.counts();
        prop_assert_eq!(count(|kind| *kind == Queue), load.len() as u64);
        prop_assert_eq!(counts.bios, load.len() as u64);
        prop_assert_eq!(count(|kind| *kind == BackMerge), counts.merges_back);
        prop_assert_eq!(count(|kind| *kind == FrontMerge), counts.merges_front);
        prop_assert_eq!(count(|kind| *kind == RequestMerge), counts.merges_of_requests);
        prop_assert_eq!(count(|kind| *kind == GetRequest), counts.bios - counts.merges_back - counts.merges_front);
        prop_assert_eq!(count(|kind| *kind == Insert), counts.issued + counts.merges_of_requests);
        prop_assert_eq!(count(|kind| *kind == Complete), counts.completed);

        // What is in flight, by its place: bios by task, requests at the device.
        let (mut bios, mut issued, mut plugged) = (BTreeMap::new(), BTreeMap::new(), false);
        for event in events {
            let bio = (event.task, event.direction, event.start, event.sectors);
            let request = (event.direction, event.start, event.sectors);
            match event.kind {
                Queue => *bios.entry(bio).or_insert(0) += 1,
                Sleep => prop_assert!(bios.get(&bio).is_some_and(|&count| count > 0)),
                GetRequest | BackMerge | FrontMerge => {
                    let left = bios.get_mut(&bio);
                    prop_assert!(left.as_ref().is_some_and(|count| **count > 0), "{event:?}");
                    *left.unwrap() -= 1;
                }
                Issue => *issued.entry(request).or_insert(0) += 1,
                Complete => {
                    let left = issued.get_mut(&request);
                    prop_assert!(left.as_ref().is_some_and(|count| **count > 0), "{event:?}");
                    *left.unwrap() -= 1;
                }
                Plug => prop_assert!(!std::mem::replace(&mut plugged, true)),
                Unplug { .. } => prop_assert!(std::mem::replace(&mut plugged, false)),
                Insert | RequestMerge | Message(_) => {}
            }
        }
        prop_assert!(bios.values().all(|&left| left == 0));
        prop_assert!(issued.values().all(|&left| left == 0));
        prop_assert!(!plugged);
    }
}
