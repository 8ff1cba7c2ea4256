//! What holds for every client and every load.

use kernels::rpcrdma::TransportVariant;
use proptest::prelude::*;

use super::call::{Call, DATA_BYTES_MAX};
use super::closed_system::{ClosedSystem, Load};
use super::direct::{DirectIo, Request};
use super::mount::{CompletedCall, Mount};
use super::operation::Operation;
use super::spec::{IommuMode, NfsSpec};
use super::task::Stage;
use super::tests::machine;
use events::component::{Component, hold_contract};
use events::time::Time;

/// Few slots and credits, so that they run out; wake-ups and acknowledgements of any length, so that either half of a call
/// may be the last.
fn clients() -> impl Strategy<Value = NfsSpec> {
    let kernel = prop::sample::select(vec![TransportVariant::Before, TransportVariant::After]);
    let modes = vec![IommuMode::None, IommuMode::Lazy, IommuMode::Strict];
    let transport = (2..24u16, 1..24u16, 1024..6000u32, 64..4000u32, any::<bool>());
    let times = (0..200_000u64, 0..100_000u64, 0..50_000u64, 0..20_000u64);
    (kernel, prop::sample::select(modes), transport, times, 1..4u16, 0.0..1.0).prop_map(
        |(kernel, mode, transport, times, threads, spread)| {
            let mut spec = machine();
            let (slots, credits, inline_bytes, send_buffer_bytes, data_placement) = transport;
            spec.transport.kernel = kernel;
            spec.transport.slots = Some(slots);
            spec.transport.credits = Some(credits.min(slots));
            spec.transport.inline_bytes = Some(inline_bytes);
            spec.transport.send_buffer_bytes = Some(send_buffer_bytes);
            spec.transport.data_placement = Some(data_placement);
            spec.iommu.mode = mode;
            let (ack_ns, wakeup_ns, service_ns, unmap_ns) = times;
            spec.costs.send_ack_ns = ack_ns;
            spec.costs.completion_wakeup_ns = wakeup_ns;
            spec.server.service_ns.write = service_ns;
            spec.iommu.unmap_ns = unmap_ns;
            spec.server.threads = threads;
            spec.costs.work_spread = spread;
            spec
        },
    )
}

fn calls() -> impl Strategy<Value = Vec<(Time, Call)>> {
    let one = (0..30_000u64, any::<bool>(), 0..20_000u32);
    prop::collection::vec(one, 1..80).prop_map(|calls| {
        let mut at = 0;
        let numbered = (0..).zip(calls);
        numbered
            .map(|(tag, (gap_ns, reads, data_bytes))| {
                at += gap_ns;
                let operation = if reads { Operation::Read } else { Operation::Write };
                let call = Call { tag, operation, data_bytes };
                (at, call)
            })
            .collect()
    })
}

/// At every moment.
fn hold(mount: &Mount, now: Time) {
    mount.check(now).expect("the invariants hold");
    for task in mount.tasks.iter() {
        match task.stage {
            Stage::SendWait => {
                assert!(task.halves.reply_handled && !task.halves.send_unmapped);
            }
            Stage::Finish => assert!(task.halves.are_both(), "complete with both halves only"),
            _ => assert!(!task.halves.reply_handled),
        }
    }
    let mut slots: Vec<u16> = mount.tasks.iter().filter_map(|task| task.slot).collect();
    slots.sort_unstable();
    let taken = slots.len();
    slots.dedup();
    assert_eq!(slots.len(), taken, "a slot belongs to one call");
    assert_eq!(mount.slots.used(), taken);
    assert!(mount.credits.used() <= mount.rules.credits);
    let waiting = mount.tasks.iter().filter(|task| task.stage == Stage::Transmit);
    assert!(waiting.count() >= mount.transmitter.served(), "who holds the write lock is being marshalled");
    assert!(mount.transmitter.served() <= 1 && mount.iommu.holders() <= 1, "a lock is held by one");
}

/// Threads' requests, some so large that they are several calls.
fn requests() -> impl Strategy<Value = Vec<(Time, Request)>> {
    let one = (0..300_000u64, any::<bool>(), 1..3 * DATA_BYTES_MAX, 0..6u32);
    prop::collection::vec(one, 1..60).prop_map(|requests| {
        let mut at = 0;
        let numbered = (0..).zip(requests);
        numbered
            .map(|(tag, (gap_ns, reads, bytes, thread))| {
                at += gap_ns;
                let operation = if reads { Operation::Read } else { Operation::Write };
                (at, Request { tag, thread, operation, bytes })
            })
            .collect()
    })
}

proptest! {
    #[test]
    fn every_call_completes_once_and_nothing_is_given_out_twice(
        spec in clients(), calls in calls(), seed in any::<u64>(),
    ) {
        let mut mount = Mount::new(&spec, seed).unwrap();
        let mut completed: Vec<CompletedCall> = Vec::new();
        let mut waiting = calls.iter().peekable();
        loop {
            let call_at = waiting.peek().map(|(at, _)| *at);
            let Some(now) = call_at.into_iter().chain(mount.next_event()).min() else {
                break;
            };
            if call_at == Some(now) {
                mount.submit(now, waiting.next().unwrap().1);
            }
            mount.advance(now, &mut completed);
            hold(&mount, now);
        }
        prop_assert_eq!(mount.in_flight(), 0);
        prop_assert_eq!(mount.slots.used(), 0);
        prop_assert_eq!(mount.credits.used(), 0);
        let mut tags: Vec<u64> = completed.iter().map(|done| done.call.tag).collect();
        tags.sort_unstable();
        prop_assert_eq!(tags, (0..calls.len() as u64).collect::<Vec<_>>());
        let counters = mount.counters();
        prop_assert_eq!(counters.sends, calls.len() as u64);
        prop_assert_eq!(counters.replies, counters.sends);
        for operation in [Operation::Read, Operation::Write] {
            let counters = counters.of(operation);
            prop_assert!(counters.queue_ns + counters.rtt_ns <= counters.execute_ns);
        }
    }

    #[test]
    fn every_direct_io_is_done_once_with_as_many_calls_as_it_takes(
        spec in clients(), requests in requests(), seed in any::<u64>(),
    ) {
        let mut io = DirectIo::new(&spec, seed).unwrap();
        let mut done: Vec<u32> = Vec::new();
        let mut waiting = requests.iter().peekable();
        loop {
            let start_at = waiting.peek().map(|(at, _)| *at);
            let Some(now) = start_at.into_iter().chain(io.next_event()).min() else {
                break;
            };
            if start_at == Some(now) {
                io.start(now, waiting.next().unwrap().1);
            }
            io.advance(now);
            io.take_effects(&mut done);
            hold_contract(&mut io, now).expect("the contract holds");
            hold(io.mount(), now);
        }
        prop_assert_eq!(io.in_flight(), 0);
        done.sort_unstable();
        prop_assert_eq!(done, (0..requests.len() as u32).collect::<Vec<_>>());
        let counters = io.mount().counters();
        for operation in [Operation::Read, Operation::Write] {
            let own = requests.iter().filter(|(_, request)| request.operation == operation);
            let (mut calls, mut bytes) = (0, 0);
            for (_, request) in own {
                calls += u64::from(request.bytes.div_ceil(DATA_BYTES_MAX));
                bytes += u64::from(request.bytes);
            }
            prop_assert_eq!(counters.of(operation).calls, calls);
            prop_assert_eq!(counters.of(operation).data_bytes, bytes);
        }
    }

    #[test]
    fn one_seed_has_one_result(spec in clients(), seed in any::<u64>()) {
        let run = || {
            let mut closed = ClosedSystem::new(&spec, seed).unwrap();
            closed.run(&Load {
                operation: Operation::Write,
                threads: 5,
                record_bytes: 1024,
                records_per_thread: 20,
            });
            closed.check().expect("the invariants hold");
            (closed.now(), *closed.mount().counters(), closed.cpu())
        };
        prop_assert_eq!(run(), run());
    }
}
