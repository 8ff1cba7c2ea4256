//! The analysis against a simulated block layer that knows what happened, and against noise.

use proptest::prelude::*;
use trace::block::{Activity, Analysis, BlockReport, DeviceReport};
use trace::event::{Device, Op, Step, TraceEvent};
use trace::page::LostEvents;

/// The commands of a simulated block layer.
#[derive(Clone, Copy, Debug)]
enum Act {
    /// A bio of this many sectors at this place, of a read or a write, from this CPU, split in two perhaps.
    Queue {
        place: u64,
        sectors: u64,
        write: bool,
        cpu: u16,
        split: bool,
    },
    Insert(usize),
    Issue(usize, u16),
    Requeue(usize),
    Complete(usize, u16),
    /// Its first sector alone.
    CompletePart(usize, u16),
    /// The second request joins the first if they are neighbours.
    Join(usize, usize),
}

#[derive(Clone, Debug, Default)]
struct Truth {
    queued: u64,
    split: u64,
    merged: u64,
    completed: u64,
    in_flight: u64,
    local: u64,
    total_ns: Vec<u64>,
    device_ns: Vec<u64>,
}

#[derive(Clone, Debug)]
struct Request {
    sector: u64,
    sectors: u64,
    op: Op,
    bios: Vec<(u64, u16)>,
    issued_at_ns: Option<u64>,
    first_issued_ns: Option<u64>,
    inserted: bool,
}

/// The events of a block layer without two requests on the same sectors, and what really happened.
fn simulate(steps: &[Act]) -> (Vec<TraceEvent>, Truth) {
    let (mut events, mut truth) = (Vec::new(), Truth::default());
    let mut requests: Vec<Request> = Vec::new();
    let mut now_ns = 0;
    for &step in steps {
        now_ns += 7;
        let mut happened = |at_ns: u64, step: Step, sector: u64, sectors: u64, op, cpu: u16| {
            let event = event(at_ns, cpu, step, sector, sectors, op);
            events.push(TraceEvent { device: Device::new(8, 0), pid: u32::from(cpu) + 100, ..event });
        };
        let mut told = |request: &Request, step: Step, cpu: u16| {
            let Request { sector, sectors, op, .. } = *request;
            happened(now_ns, step, sector, sectors, op, cpu);
        };
        let waiting = |requests: &[Request], index: usize| {
            let waiting: Vec<usize> = (0..requests.len()).filter(|&i| requests[i].issued_at_ns.is_none()).collect();
            (!waiting.is_empty()).then(|| waiting[index % waiting.len()])
        };
        let issued = |requests: &[Request], index: usize| {
            let issued: Vec<usize> = (0..requests.len()).filter(|&i| requests[i].issued_at_ns.is_some()).collect();
            (!issued.is_empty()).then(|| issued[index % issued.len()])
        };
        match step {
            Act::Queue { place, sectors, write, cpu, split } => {
                let overlaps =
                    |request: &Request| place < request.sector + request.sectors && request.sector < place + sectors;
                if requests.iter().any(overlaps) {
                    continue;
                }
                let op = if write { Op::Write } else { Op::Read };
                truth.queued += 1;
                happened(now_ns, Step::Queue, place, sectors, op, cpu);
                let half = sectors / 2;
                let parts = if split && half > 0 {
                    truth.split += 1;
                    happened(now_ns + 1, Step::Split, place, half, op, cpu);
                    vec![(place, half), (place + half, sectors - half)]
                } else {
                    vec![(place, sectors)]
                };
                for (sector, sectors) in parts {
                    let mergeable = |request: &&mut Request| request.op == op && request.issued_at_ns.is_none();
                    let back = requests
                        .iter_mut()
                        .filter(mergeable)
                        .find(|request| request.sector + request.sectors == sector);
                    if let Some(request) = back {
                        happened(now_ns + 2, Step::BackMerge, sector, sectors, op, cpu);
                        request.sectors += sectors;
                        request.bios.push((now_ns, cpu));
                        truth.merged += 1;
                        continue;
                    }
                    let front =
                        requests.iter_mut().filter(mergeable).find(|request| sector + sectors == request.sector);
                    if let Some(request) = front {
                        happened(now_ns + 2, Step::FrontMerge, sector, sectors, op, cpu);
                        request.sector = sector;
                        request.sectors += sectors;
                        request.bios.push((now_ns, cpu));
                        truth.merged += 1;
                        continue;
                    }
                    happened(now_ns + 2, Step::GetRequest, sector, sectors, op, cpu);
                    requests.push(Request {
                        sector,
                        sectors,
                        op,
                        bios: vec![(now_ns, cpu)],
                        issued_at_ns: None,
                        first_issued_ns: None,
                        inserted: false,
                    });
                }
            }
            Act::Insert(index) => {
                if let Some(index) = waiting(&requests, index).filter(|&index| !requests[index].inserted) {
                    let request = &mut requests[index];
                    request.inserted = true;
                    told(request, Step::Insert, 0);
                }
            }
            Act::Issue(index, cpu) => {
                if let Some(index) = waiting(&requests, index) {
                    let request = &mut requests[index];
                    request.issued_at_ns = Some(now_ns);
                    request.first_issued_ns.get_or_insert(now_ns);
                    told(request, Step::Issue, cpu);
                }
            }
            Act::Requeue(index) => {
                if let Some(index) = issued(&requests, index) {
                    let request = &mut requests[index];
                    request.issued_at_ns = None;
                    told(request, Step::Requeue, 0);
                }
            }
            Act::Complete(index, cpu) => {
                if let Some(index) = issued(&requests, index) {
                    let request = requests.remove(index);
                    told(&request, Step::Complete, cpu);
                    truth.completed += 1;
                    truth.local += u64::from(request.bios[0].1 == cpu);
                    truth.total_ns.extend(request.bios.iter().map(|bio| now_ns - bio.0));
                    let since_ns = request.first_issued_ns.expect("issued");
                    truth.device_ns.push(now_ns - since_ns);
                }
            }
            Act::CompletePart(index, cpu) => {
                let Some(index) = issued(&requests, index).filter(|&index| requests[index].sectors > 1) else {
                    continue;
                };
                let request = &mut requests[index];
                happened(now_ns, Step::Complete, request.sector, 1, request.op, cpu);
                request.sector += 1;
                request.sectors -= 1;
            }
            Act::Join(first, second) => {
                let (Some(first), Some(second)) = (waiting(&requests, first), waiting(&requests, second)) else {
                    continue;
                };
                let (one, other) = (requests[first].clone(), requests[second].clone());
                if one.op == other.op && one.sector + one.sectors == other.sector {
                    told(&other, Step::RequestMerge, 0);
                    requests[first].sectors += other.sectors;
                    requests[first].bios.extend(other.bios);
                    requests.remove(second);
                    truth.merged += 1;
                }
            }
        }
    }
    truth.in_flight = requests.len() as u64;
    (events, truth)
}

fn steps() -> impl Strategy<Value = Vec<Act>> {
    let cpu = 0..3u16;
    let queue = (0..200u64, 1..9u64, any::<bool>(), cpu.clone(), any::<bool>())
        .prop_map(|(place, sectors, write, cpu, split)| Act::Queue { place, sectors, write, cpu, split });
    let step = prop_oneof![
        6 => queue,
        2 => any::<usize>().prop_map(Act::Insert),
        4 => (any::<usize>(), cpu.clone()).prop_map(|(index, cpu)| Act::Issue(index, cpu)),
        1 => any::<usize>().prop_map(Act::Requeue),
        4 => (any::<usize>(), cpu.clone()).prop_map(|(index, cpu)| Act::Complete(index, cpu)),
        1 => (any::<usize>(), cpu).prop_map(|(index, cpu)| Act::CompletePart(index, cpu)),
        2 => (any::<usize>(), any::<usize>()).prop_map(|(one, other)| Act::Join(one, other)),
    ];
    prop::collection::vec(step, 1..250)
}

fn analysed(events: &[TraceEvent]) -> BlockReport {
    let mut analysis = Analysis::new(0, 100);
    events.iter().for_each(|event| analysis.add(event));
    analysis.finish(events.last().map_or(0, |event| event.at_ns))
}

fn mean(values: &[u64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<u64>() as f64 / values.len() as f64)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn what_the_block_layer_did_is_what_the_report_says(steps in steps()) {
        let (events, truth) = simulate(&steps);
        let report = analysed(&events);
        let Some(device) = report.devices.first() else {
            prop_assert!(events.is_empty());
            return Ok(());
        };
        let total = &device.activities.total;
        let conserved = device.conservation;
        prop_assert!(conserved.holds());
        prop_assert_eq!((conserved.queued, conserved.split), (truth.queued, truth.split));
        prop_assert_eq!((conserved.merged, conserved.completed), (truth.merged, truth.completed));
        prop_assert_eq!((conserved.in_flight, conserved.unmatched, conserved.unqueued), (truth.in_flight, 0, 0));
        prop_assert_eq!(device.events_unmatched, 0);
        prop_assert_eq!(total.completions_local, truth.local);
        prop_assert_eq!(total.completions_remote, truth.completed - truth.local);
        prop_assert_eq!(total.time_total_ns.mean(), mean(&truth.total_ns));
        prop_assert_eq!(total.time_in_device_ns.mean(), mean(&truth.device_ns));
        prop_assert_eq!(total.time_in_device_ns.max(), truth.device_ns.iter().copied().max());
    }

    #[test]
    fn lost_events_leave_no_bio_unaccounted_for(
        steps in steps(),
        lost in prop::collection::vec(any::<prop::sample::Index>(), 0..40),
    ) {
        let (mut events, _) = simulate(&steps);
        let mut analysis = Analysis::new(0, 100);
        for index in lost {
            if events.len() > 1 {
                let removed = events.remove(index.index(events.len()));
                analysis.lost(removed.at_ns, LostEvents::Events(1));
            }
        }
        events.iter().for_each(|event| analysis.add(event));
        let last_ns = events.last().map_or(0, |event| event.at_ns);
        analysis.lost(last_ns + 1, LostEvents::Uncounted);
        // Long after the losses, what they left behind is given up.
        for wait in 1..=2 {
            let at_ns = last_ns + wait * 60_000_000_000;
            analysis.add(&event(at_ns, 0, Step::Queue, wait << 40, 8, Op::Read));
        }
        let report = analysis.finish(last_ns + 200_000_000_000);
        prop_assert!(report.devices.iter().all(|device| device.conservation.holds()));
        let left: u64 = report.devices.iter().map(|device| device.conservation.in_flight).sum();
        prop_assert_eq!(left, 2);
    }

    #[test]
    fn noise_leaves_no_bio_unaccounted_for(
        noise in prop::collection::vec((0..11u8, 0..20u64, 0..6u64, 0..5u8, 0..2u32, 0..3u64), 0..400)
    ) {
        let mut at_ns = 0;
        let events: Vec<TraceEvent> = noise.into_iter().map(|(kind, sector, sectors, op, device, wait)| {
            at_ns += wait;
            let kind = [Step::Queue, Step::Split, Step::BackMerge, Step::FrontMerge,
                Step::GetRequest, Step::RequestMerge, Step::Insert, Step::Issue, Step::Requeue, Step::Complete,
                Step::BioComplete][kind as usize];
            let op = [Op::Read, Op::Write, Op::Discard, Op::Flush, Op::Other][op as usize];
            TraceEvent { device: Device(device), ..event(at_ns, 0, kind, sector, sectors, op) }
        }).collect();
        let report = analysed(&events);
        for device in &report.devices {
            prop_assert!(device.conservation.holds(), "{:?}", device.conservation);
            let counted: u64 = device.events.values().sum();
            prop_assert_eq!(counted, events.iter().filter(|event| event.device.to_string() == device.device).count() as u64);
            prop_assert!(device.queue_depth_mean <= device.queue_depth_max as f64);
        }
    }
}

/// `sectors`: of a split, the length of the first part.
fn event(at_ns: u64, cpu: u16, step: Step, sector: u64, sectors: u64, op: Op) -> TraceEvent {
    let split = step == Step::Split;
    TraceEvent {
        cpu,
        device: Device::new(7, 0),
        sector,
        sectors: if split { 0 } else { sectors as u32 },
        argument: if split { sector + sectors } else { 0 },
        op,
        pid: 1,
        ..TraceEvent::new(at_ns, step)
    }
}

fn only(events: &[TraceEvent]) -> DeviceReport {
    let [device] = &analysed(events).devices[..] else { panic!("one device") };
    device.clone()
}

#[test]
fn times_are_those_of_each_stage() {
    let device = only(&[
        event(100, 0, Step::Queue, 0, 8, Op::Read),
        event(110, 0, Step::GetRequest, 0, 8, Op::Read),
        event(130, 0, Step::Insert, 0, 8, Op::Read),
        event(180, 1, Step::Issue, 0, 8, Op::Read),
        event(280, 1, Step::Requeue, 0, 8, Op::Read),
        event(290, 1, Step::Issue, 0, 8, Op::Read),
        event(690, 0, Step::Complete, 0, 8, Op::Read),
    ]);
    let read = &device.activities.read;
    assert_eq!(read.time_in_queue_ns.mean(), Some(30.0));
    assert_eq!(read.time_in_scheduler_ns.mean(), Some(50.0));
    assert_eq!(read.time_in_device_ns.mean(), Some(510.0));
    assert_eq!(read.time_total_ns.mean(), Some(590.0));
    assert_eq!((read.queue_local, read.queue_remote), (0, 1));
    assert_eq!((read.completions_local, read.completions_remote), (1, 0));
    assert_eq!((read.requests_issued, read.requeues), (1, 1));
    // With the driver from 180 to 280 and from 290 to 690, of 690.
    assert_eq!(device.queue_depth_mean, 500.0 / 690.0);
}

#[test]
fn a_flush_has_a_bio_a_command_of_the_block_layer_and_no_place() {
    let device = only(&[
        event(0, 0, Step::Queue, 0, 0, Op::Write),
        event(1, 0, Step::GetRequest, 0, 0, Op::Write),
        event(2, 0, Step::Issue, 0, 0, Op::Flush),
        event(9, 0, Step::Complete, u64::MAX, 0, Op::Flush),
        event(10, 0, Step::Complete, 0, 0, Op::Write),
    ]);
    let conserved = device.conservation;
    assert_eq!((conserved.queued, conserved.unqueued, conserved.completed), (1, 1, 2));
    assert_eq!(device.events_unmatched, 0);
    assert_eq!(device.activities.write, Activity::default());
    assert_eq!(device.activities.other.requests_completed, 2);
}

#[test]
fn a_write_that_is_flushed_after_completes_once() {
    let device = only(&[
        event(0, 0, Step::Queue, 64, 8, Op::Write),
        event(1, 0, Step::GetRequest, 64, 8, Op::Write),
        event(2, 0, Step::Issue, 64, 8, Op::Write),
        event(5, 0, Step::Complete, 64, 8, Op::Write),
        event(6, 0, Step::Issue, 0, 0, Op::Flush),
        event(8, 0, Step::Complete, u64::MAX, 0, Op::Flush),
        event(9, 0, Step::Complete, 72, 0, Op::Write),
    ]);
    assert_eq!(device.conservation.completed, 2);
    assert_eq!((device.writes_flushed, device.events_unmatched), (1, 0));
}

#[test]
fn seeks_count_from_the_end_of_the_request_before() {
    let issue = |at_ns, sector, op| event(at_ns, 0, Step::Issue, sector, 8, op);
    let device = only(&[issue(0, 0, Op::Read), issue(1, 8, Op::Write), issue(2, 100, Op::Read), issue(3, 8, Op::Read)]);
    let total = &device.activities.total;
    assert_eq!(total.seek_sectors.mean(), Some(f64::from(84 + 100) / 3.0));
    assert_eq!((total.requests_sequential, total.sequential_share()), (1, Some(1.0 / 3.0)));
    assert_eq!(device.activities.read.seek_sectors.mean(), Some(f64::from(92 + 100) / 2.0));
}

#[test]
fn merges_that_were_not_seen_are_found_when_their_request_is_issued() {
    let device = only(&[
        event(0, 0, Step::Queue, 0, 8, Op::Write),
        event(1, 0, Step::Queue, 8, 8, Op::Write),
        event(2, 0, Step::Issue, 0, 16, Op::Write),
        event(5, 0, Step::Complete, 0, 16, Op::Write),
    ]);
    let conserved = device.conservation;
    assert_eq!((conserved.queued, conserved.merged, conserved.completed), (2, 1, 1));
    assert_eq!(device.activities.write.time_total_ns.mean(), Some(4.5));
}

#[test]
fn the_rest_of_a_split_bio_is_queued_once_even_where_old_kernels_queue_it_again() {
    let device = only(&[
        event(0, 0, Step::Queue, 0, 16, Op::Read),
        event(1, 0, Step::Split, 0, 8, Op::Read),
        event(2, 0, Step::Queue, 8, 8, Op::Read),
        event(3, 0, Step::GetRequest, 0, 8, Op::Read),
        event(4, 0, Step::GetRequest, 8, 8, Op::Read),
    ]);
    let conserved = device.conservation;
    assert_eq!((conserved.queued, conserved.split, conserved.in_flight), (1, 1, 2));
}

#[test]
fn bios_of_a_partition_belong_to_its_disk() {
    let (partition, disk) = (Device::new(8, 1), Device::new(8, 0));
    let mut analysis = Analysis::new(0, 100);
    analysis.partition(partition, disk);
    analysis.add(&TraceEvent { device: partition, ..event(0, 0, Step::Queue, 64, 8, Op::Read) });
    analysis.add(&TraceEvent { device: disk, ..event(1, 0, Step::Issue, 64, 8, Op::Read) });
    let report = analysis.finish(2);
    assert_eq!(report.devices.len(), 1);
    assert_eq!(report.devices[0].conservation.unqueued, 0);
}

#[test]
fn a_device_without_requests_completes_bios() {
    let device = only(&[event(0, 0, Step::Queue, 0, 8, Op::Read), event(40, 1, Step::BioComplete, 0, 8, Op::Read)]);
    assert_eq!(device.conservation.completed, 1);
    assert_eq!(device.activities.read.time_total_ns.mean(), Some(40.0));
    assert_eq!(device.activities.read.completions_remote, 1);
}

#[test]
fn memory_is_what_is_in_flight() {
    let mut analysis = Analysis::new(0, 1000);
    for turn in 0..10_000u64 {
        for (step, kind) in [Step::Queue, Step::GetRequest, Step::Issue, Step::Complete].into_iter().enumerate() {
            analysis.add(&event(turn * 1000 + step as u64, 0, kind, turn * 8, 8, Op::Write));
        }
    }
    let report = analysis.finish(10_000_000);
    let points = report.series["7:0"].at_ns.len();
    assert!(points <= trace::intervals::INTERVALS_MAX);
    assert_eq!(report.devices[0].conservation.in_flight, 0);
}
