//! Traces whose truth is known: every reported time is the true one, and all that the events determine is reported.

use base::rng::{Stream, stream};
use proptest::prelude::*;
use trace::event::{Device, Marks, Op, Step, TraceEvent};
use trace::request::{Change, Io, RequestTracker};

/// What really happened to a request.
#[derive(Clone, Copy, Debug)]
struct Truth {
    sector: u64,
    sectors: u32,
    op: Op,
    queued_ns: u64,
    inserted_ns: u64,
    issued_ns: u64,
    completed_ns: u64,
}

/// How a trace is planted.
#[derive(Clone, Copy, Debug)]
struct Plan {
    seed: u64,
    requests: usize,
    depth: usize,
    /// Sectors are chosen from this many places: few make requests meet others at the same sector.
    places: u64,
    /// How many of a thousand events are lost at a time.
    losses: u64,
}

const LATENCY_NS: u64 = 100_000;

/// Events in the order of time, and what really happened, in the order of completion.
fn planted(plan: &Plan) -> (Vec<TraceEvent>, Vec<Truth>) {
    let mut rng = stream(plan.seed, 0);
    let mut events = Vec::new();
    let mut truths = Vec::new();
    // When each of `depth` submitters is free again.
    let mut free_ns = vec![1_000u64; plan.depth];
    for number in 0..plan.requests {
        let submitter = number % plan.depth;
        let pid = 100 + submitter as u32;
        let mut now_ns = free_ns[submitter] + 1 + rng.below(LATENCY_NS);
        let queued_ns = now_ns;
        let op = [Op::Read, Op::Write, Op::Flush][usize::min(rng.below(16) as usize / 7, 2)];
        let sectors = if op == Op::Flush { 0 } else { 8 << rng.below(3) as u32 };
        let sector = if op == Op::Flush { 0 } else { (1 + rng.below(plan.places)) * 4096 };
        let event = |at_ns: u64, step: Step| TraceEvent {
            sector,
            sectors,
            op,
            pid,
            cpu: submitter as u16 % 4,
            device: Device::new(8, 0),
            marks: Marks::SYNC,
            ..TraceEvent::new(at_ns, step)
        };
        // A bio that was too large: its rest is a request of its own, reported after the first part.
        let split = op != Op::Flush && rng.below(12) == 0;
        let merge = !split && op != Op::Flush && rng.below(4) == 0;
        let front = merge && rng.below(3) == 0;
        let mut step = |now_ns: &mut u64, longest_ns: u64| {
            *now_ns += 1 + rng.below(longest_ns);
            *now_ns
        };
        let mut whole = sectors;
        if split {
            events.push(TraceEvent { sectors: 2 * sectors, ..event(queued_ns, Step::Queue) });
            let cut = event(step(&mut now_ns, 100), Step::Split);
            events.push(TraceEvent { sectors: 0, argument: sector + u64::from(sectors), ..cut });
        } else {
            events.push(event(queued_ns, Step::Queue));
        }
        events.push(event(step(&mut now_ns, 100), Step::GetRequest));
        if merge {
            let (joining, joins_at) = match front {
                true => (Step::FrontMerge, sector - u64::from(sectors)),
                false => (Step::BackMerge, sector + u64::from(sectors)),
            };
            let joins = |at_ns: u64, step: Step| TraceEvent { sector: joins_at, ..event(at_ns, step) };
            events.push(joins(step(&mut now_ns, 100), Step::Queue));
            events.push(joins(step(&mut now_ns, 100), joining));
            whole = 2 * sectors;
        }
        let begins = sector - if front { u64::from(sectors) } else { 0 };
        let request = |at_ns: u64, step: Step| TraceEvent { sector: begins, sectors: whole, ..event(at_ns, step) };
        let inserted_ns = step(&mut now_ns, 1_000);
        events.push(request(inserted_ns, Step::Insert));
        let issued_ns = step(&mut now_ns, 10_000);
        events.push(request(issued_ns, Step::Issue));
        if now_ns.is_multiple_of(10) {
            events.push(request(step(&mut now_ns, 5_000), Step::Requeue));
            events.push(request(step(&mut now_ns, 5_000), Step::Issue));
        }
        let completed_ns = step(&mut now_ns, LATENCY_NS);
        events.push(request(completed_ns, Step::Complete));
        truths.push(Truth { sector: begins, sectors: whole, op, queued_ns, inserted_ns, issued_ns, completed_ns });
        if split {
            let rest =
                |at_ns: u64, step: Step| TraceEvent { sector: sector + u64::from(sectors), ..event(at_ns, step) };
            let inserted_ns = step(&mut now_ns, 1_000);
            events.push(rest(inserted_ns, Step::Insert));
            let issued_ns = step(&mut now_ns, 10_000);
            events.push(rest(issued_ns, Step::Issue));
            let completed_ns = step(&mut now_ns, LATENCY_NS);
            events.push(rest(completed_ns, Step::Complete));
            let sector = sector + u64::from(sectors);
            truths.push(Truth { sector, sectors, op, queued_ns, inserted_ns, issued_ns, completed_ns });
        }
        free_ns[submitter] = now_ns;
    }
    events.sort_by_key(|event| event.at_ns);
    let events = with_losses(events, plan, &mut rng);
    truths.sort_by_key(|truth| truth.completed_ns);
    (events, truths)
}

/// Runs of a CPU's events are missing, and the trace reports it, as a reader of its buffers does.
fn with_losses(events: Vec<TraceEvent>, plan: &Plan, rng: &mut Stream) -> Vec<TraceEvent> {
    let mut left = Vec::new();
    let mut last_ns = [0; 4];
    let mut losing: Option<(u16, u64, u64, u64)> = None;
    for event in events {
        if let Some((cpu, since_ns, count, wanted)) = losing
            && cpu == event.cpu
        {
            if count < wanted {
                losing = Some((cpu, since_ns, count + 1, wanted));
                continue;
            }
            left.push(TraceEvent::lost(since_ns, event.at_ns, count, cpu));
            losing = None;
        } else if losing.is_none() && rng.below(1000) < plan.losses {
            losing = Some((event.cpu, last_ns[usize::from(event.cpu)], 1, 1 + rng.below(20)));
            continue;
        }
        last_ns[usize::from(event.cpu)] = event.at_ns;
        left.push(event);
    }
    if let Some((cpu, since_ns, count, _)) = losing {
        left.push(TraceEvent::lost(since_ns, u64::MAX / 2, count, cpu));
    }
    left.sort_by_key(|event| event.at_ns);
    left
}

fn followed(events: &[TraceEvent]) -> (Vec<Io>, RequestTracker) {
    let mut follow = RequestTracker::default();
    let mut ios = Vec::new();
    for event in events {
        follow.add(event, |_, change| {
            if let Change::Ended { io, .. } = change {
                ios.push(*io);
            }
        });
    }
    (ios, follow)
}

/// How many of the reported times are right, and how many are wrong; panics at the first wrong one.
fn right(ios: &[Io], truths: &[Truth]) -> usize {
    let mut right_ios = 0;
    for io in ios {
        let completed_ns = io.completed_ns.expect("it ended");
        let is = |truth: &&Truth| {
            (truth.sector, truth.sectors, truth.op) == (io.sector, io.sectors, io.op)
                && truth.completed_ns == completed_ns
        };
        // Several may end at the same place in the same nanosecond: one of them is meant.
        let at = truths.partition_point(|truth| truth.completed_ns < completed_ns);
        let same: Vec<&Truth> =
            truths[at..].iter().take_while(|truth| truth.completed_ns == completed_ns).filter(is).collect();
        let times = [io.queued_ns, io.inserted_ns, io.issued_ns];
        if times.iter().all(Option::is_none) {
            continue;
        }
        right_ios += 1;
        let agrees = |truth: &&Truth| {
            let true_times = [truth.queued_ns, truth.inserted_ns, truth.issued_ns];
            times.iter().zip(true_times).all(|(time, is)| time.is_none_or(|time| time == is))
        };
        assert!(same.iter().any(agrees), "{io:?}\nreally {same:?}");
    }
    right_ios
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]

    #[test]
    fn no_time_is_wrong(
        seed: u64,
        depth in prop::sample::select(vec![1usize, 2, 7, 32, 128, 1024]),
        places in prop::sample::select(vec![4u64, 50, 1 << 30]),
        losses in prop::sample::select(vec![0u64, 1, 10]),
    ) {
        let plan = Plan { seed, requests: 800, depth, places, losses };
        let (events, truths) = planted(&plan);
        let (ios, _) = followed(&events);
        let right_ios = right(&ios, &truths);
        // Nothing is alike and nothing lost: all is determined.
        if places == 1 << 30 && losses == 0 {
            let flushes = truths.iter().filter(|truth| truth.op == Op::Flush).count();
            prop_assert!(right_ios + flushes >= truths.len(), "{right_ios} of {}", truths.len());
        }
    }
}

/// A merge that could be of several requests, and bios of others where the request grew.
#[test]
fn a_request_of_which_too_little_is_known_takes_no_bio_of_others() {
    let plan = Plan { seed: 18_202_948_620_061_069_638, requests: 800, depth: 128, places: 4, losses: 0 };
    let (events, truths) = planted(&plan);
    right(&followed(&events).0, &truths);
}

#[test]
fn depth_of_one_is_known_whatever_meets_at_a_sector() {
    let plan = Plan { seed: 1, requests: 1000, depth: 1, places: 2, losses: 0 };
    let (events, truths) = planted(&plan);
    let (ios, follow) = followed(&events);
    assert_eq!(ios.len(), truths.len());
    assert_eq!(right(&ios, &truths), truths.len());
    assert_eq!((follow.unknown.unmatched, follow.unknown.alike, follow.len()), (0, 0, 0));
}

#[test]
fn alike_and_at_the_same_time_are_unknown_not_guessed() {
    let event = |at_ns: u64, step: Step, pid: u32| TraceEvent {
        sector: 64,
        sectors: 8,
        op: Op::Read,
        pid,
        device: Device::new(8, 0),
        ..TraceEvent::new(at_ns, step)
    };
    let events = [
        event(1, Step::Queue, 1),
        event(2, Step::Queue, 2),
        event(3, Step::Issue, 1),
        event(4, Step::Issue, 2),
        event(5, Step::Complete, 0),
        event(9, Step::Complete, 0),
    ];
    let (ios, follow) = followed(&events);
    assert_eq!(ios.len(), 2);
    assert!(ios.iter().all(|io| io.stages() == [None; 4]), "{ios:?}");
    assert_eq!(follow.unknown.alike, 2);
}
