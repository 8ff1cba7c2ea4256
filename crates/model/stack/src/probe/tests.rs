use proptest::prelude::*;

use super::block::{BlockOptions, BlockProbe, Observation};
use super::*;
use crate::drive_name::{DriveName, Driver};
use block_layer::invariants;
use block_layer::invariants::tapped_queue::{LoadOutcome, serve_tapped};
use block_layer::scheduler::noop::Noop;
use block_layer::{Counts, RequestQueue};
use events::time::{MILLISECOND, Time};

const SERVICE_NS: Time = 2 * MILLISECOND;

fn observed(load: &[invariants::Arrival], trace: Option<TraceFormat>) -> (LoadOutcome, Counts, Observation) {
    let mut queue = RequestQueue::new(invariants::rules(), Box::new(Noop::default()));
    let mut served = serve_tapped(&mut queue, load, 2, SERVICE_NS);
    let options = BlockOptions { interval_ns: 100 * MILLISECOND, trace };
    let mut probe = BlockProbe::new(&options, 0, &[], DriveName::of([Driver::Scsi]));
    probe.events(&mut served.events);
    let (observation, _) = probe.finish(served.ended, &[]);
    (served, queue.counts(), observation)
}

fn arrivals() -> impl Strategy<Value = Vec<invariants::Arrival>> {
    let drawn = (0..invariants::AFTER_NS_MAX, any::<bool>(), any::<bool>(), 0..200u64, 1..5u32, 0..4u32);
    prop::collection::vec(drawn.prop_map(invariants::Arrival::of), 1..120)
}

/// Each arrival that overlaps one before it goes somewhere else: events don't say which of two requests that end alike a
/// bio was merged with.
fn without_overlaps(load: Vec<invariants::Arrival>) -> Vec<invariants::Arrival> {
    let mut placed: Vec<invariants::Arrival> = Vec::new();
    for mut arrival in load {
        while placed.iter().any(|other| {
            arrival.block < other.block + u64::from(other.blocks)
                && other.block < arrival.block + u64::from(arrival.blocks)
        }) {
            arrival.block += 1_000;
        }
        placed.push(arrival);
    }
    placed
}

proptest! {
    #[test]
    fn a_bio_takes_as_long_as_the_report_says(load in arrivals().prop_map(without_overlaps)) {
        let (served, _, found) = observed(&load, None);
        let mean_ns = served.total_ns.iter().sum::<Time>() as f64 / load.len() as f64;
        let reported = found.report.all.total.time_total_ns.mean().unwrap();
        prop_assert!((reported - mean_ns).abs() < 1.0, "{reported} for {mean_ns}");
        let all = &found.report.all.total;
        prop_assert_eq!(all.time_total_ns.count(), load.len() as u64);
        prop_assert_eq!(all.time_in_device_ns.mean(), Some(SERVICE_NS as f64));
        prop_assert_eq!(found.report.devices[0].times_unknown, 0);
    }

    /// The host's analysis of the model's events comes to the model's own counts; of requests alike it tells no times.
    #[test]
    fn the_report_is_what_the_queue_did(load in arrivals()) {
        let (_, counts, found) = observed(&load, None);
        let all = &found.report.all.total;
        prop_assert_eq!(all.bios_queued, counts.bios);
        prop_assert_eq!((all.back_merges, all.front_merges), (counts.merges_back, counts.merges_front));
        prop_assert_eq!(all.request_merges, counts.merges_of_requests);
        prop_assert_eq!((all.requests_issued, all.requests_completed), (counts.issued, counts.completed));
        let device = &found.report.devices[0];
        prop_assert_eq!(all.time_in_device_ns.count() + device.times_unknown, counts.completed);
        prop_assert!(device.conservation.holds());
        prop_assert_eq!((device.conservation.in_flight, device.events_unmatched), (0, 0));
    }
}
