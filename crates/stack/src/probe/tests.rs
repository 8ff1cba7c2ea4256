use proptest::prelude::*;

use super::bench::{Tapped, serve_tapped};
use super::block::{BlockOptions, BlockProbe, Observation};
use super::*;
use crate::block::{Counts, RequestQueue};
use crate::scheduler::laws;
use crate::scheduler::noop::Noop;
use crate::time::{MILLISECOND, Time};

const SERVICE_NS: Time = 2 * MILLISECOND;

fn observed(load: &[laws::Arrival], trace: Option<Form>) -> (Tapped, Counts, Observation) {
    let mut queue = RequestQueue::new(laws::rules(), Box::new(Noop::default()));
    let mut served = serve_tapped(&mut queue, load, 2, SERVICE_NS);
    let options = BlockOptions {
        interval_ns: 100 * MILLISECOND,
        trace,
    };
    let mut probe = BlockProbe::new(&options, 0, &[]);
    probe.events(&mut served.events);
    let (observation, _) = probe.finish(served.ended, &[]);
    (served, queue.counts(), observation)
}

#[test]
fn drives_are_called_as_scsi_disks_are() {
    let names: Vec<String> = [0, 25, 26, 701, 702]
        .map(line::device_name)
        .into_iter()
        .collect();
    assert_eq!(names, ["sda", "sdz", "sdaa", "sdzz", "sdaaa"]);
    assert_eq!(device(2).to_string(), "8:32");
}

proptest! {
    /// The host's analysis of the model's events comes to the model's own counts and times.
    #[test]
    fn the_report_is_what_the_queue_did(load in laws::arrivals(4)) {
        let (served, counts, found) = observed(&load, None);
        let all = &found.report.all.total;
        prop_assert_eq!(all.bios_queued, counts.bios);
        prop_assert_eq!((all.back_merges, all.front_merges), (counts.merges_back, counts.merges_front));
        prop_assert_eq!(all.request_merges, counts.merges_of_requests);
        prop_assert_eq!((all.requests_issued, all.requests_completed), (counts.issued, counts.completed));
        prop_assert_eq!(all.time_total_ns.count(), load.len() as u64);
        let mean_ns = served.total_ns.iter().sum::<Time>() as f64 / load.len() as f64;
        prop_assert!((all.time_total_ns.mean().unwrap() - mean_ns).abs() < 1.0);
        prop_assert_eq!(all.time_in_device_ns.mean(), Some(SERVICE_NS as f64));
        let device = &found.report.devices[0];
        prop_assert!(device.conservation.holds());
        prop_assert_eq!((device.conservation.in_flight, device.events_unmatched), (0, 0));
    }
}
