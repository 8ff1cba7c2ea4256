use proptest::prelude::*;

use super::*;
use crate::QueueMap;
use events::smp::Context;
use events::smp::{Distance, InterruptSpec, SchedulingSpec, SmpSpec, Topology};
use events::time::{MILLISECOND, SECOND};

const CPUS: u16 = 8;

fn smp_spec() -> SmpSpec {
    SmpSpec {
        topology: Topology { numa_nodes: 2, sockets_per_node: 2, cores_per_socket: 2, threads_per_core: 1 },
        clock_hz: 1_600_000_000,
        transfer_cycles: [20, 100, 240, 700],
        computing_stall_per_mille: 400,
        interrupts: InterruptSpec {
            send_cycles: 700,
            latency_ns: 1_500,
            latency_other_node_ns: 3_000,
            receive_cycles: 1_500,
        },
        scheduling: SchedulingSpec {
            time_slice_ns: 100 * MILLISECOND,
            preempt_after_ns: MILLISECOND,
            wake_cycles: 900,
            switch_cycles: 2_000,
            task_lines: 3,
            run_queue_lines: 2,
            migrates_within: Distance::Machine,
        },
        idle_states: Vec::new(),
    }
}

fn spec(variant: CompletionVariant) -> CompletionSpec {
    CompletionSpec {
        variant,
        interrupt_cycles: 4_000,
        interrupt_stalled_cycles: 2_000,
        softirq_cycles: 300,
        complete_cycles: 3_000,
        enter_cycles: 2_000,
        hand_over_cycles: 200,
        splice_cycles: 200,
        local_cycles: 0,
        call_ns: 0,
        shares_cache: Distance::Socket,
        request_lines: 4,
        bio_lines: 2,
        control_block_lines: 6,
        list_lines: 2,
    }
}

const VARIANTS: [CompletionVariant; 7] = [
    CompletionVariant::Softirq,
    CompletionVariant::RemoteSoftirq,
    CompletionVariant::Thread,
    CompletionVariant::Grouped,
    CompletionVariant::CacheAware,
    CompletionVariant::MultiQueueDirect,
    CompletionVariant::MultiQueue,
];

struct Bench {
    smp: Processors<CompletionStep>,
    completions: Completions,
}

impl Bench {
    fn new(variant: CompletionVariant, affinity: Affinity) -> Bench {
        Bench::with_queues(variant, affinity, QueueMap::SINGLE)
    }

    fn with_queues(variant: CompletionVariant, affinity: Affinity, map: QueueMap) -> Bench {
        let mut smp = Processors::new(&smp_spec()).expect("possible");
        let mut completions = Completions::new(spec(variant), &mut smp);
        completions.add_queue(affinity, map).expect("supported");
        Bench { smp, completions }
    }

    fn run(&mut self, until: Time) -> Vec<Outcome> {
        let (mut done, mut outcomes) = (Vec::new(), Vec::new());
        while let Some(at) = self.smp.next_event().filter(|&at| at <= until) {
            self.smp.advance(at, &mut done);
            for step in done.drain(..) {
                outcomes.extend(self.completions.handle(&mut self.smp, step));
            }
        }
        self.smp.advance(until, &mut done);
        outcomes
    }

    /// Where a request is completed that is submitted on one CPU and interrupts another.
    fn completed_on(&mut self, submitter: u16, interrupted: u16) -> (u16, Context) {
        let before: Vec<_> = (0..CPUS).map(|cpu| self.smp.usage(cpu)).collect();
        let request = self.completions.begin(&mut self.smp, 0, submitter, 7);
        self.completions.interrupt(&mut self.smp, 0, interrupted, request);
        let outcomes = self.run(SECOND);
        let [Outcome::Completed { token: 7, cpu, .. }] = outcomes[..] else {
            panic!("{outcomes:?}");
        };
        let used = self.smp.usage(cpu);
        let before = before[usize::from(cpu)];
        let context = [Context::KernelThread, Context::SoftInterrupt, Context::HardInterrupt]
            .into_iter()
            .find(|&context| used.ns(context) > before.ns(context));
        (cpu, context.expect("it did something"))
    }
}

fn near() -> Affinity {
    Affinity { requests: RequestAffinity::Near, ..Affinity::default() }
}

#[test]
fn each_form_completes_where_its_kernel_does() {
    use Context::{HardInterrupt as Hard, KernelThread as Thread, SoftInterrupt as Soft};
    let exact = Affinity { requests: RequestAffinity::Exact, ..Affinity::default() };
    let to_five = Affinity { completion: Some(5), ..Affinity::default() };
    let off = Affinity::default();
    // Sockets: 0 1, 2 3, 4 5, 6 7.
    for (variant, affinity, submitter, interrupted, expected) in [
        (CompletionVariant::Softirq, off, 3, 0, (0, Soft)),
        (CompletionVariant::RemoteSoftirq, off, 3, 0, (0, Soft)),
        (CompletionVariant::RemoteSoftirq, near(), 3, 0, (3, Soft)),
        (CompletionVariant::RemoteSoftirq, to_five, 3, 0, (5, Soft)),
        (CompletionVariant::Thread, off, 3, 0, (0, Soft)),
        (CompletionVariant::Thread, near(), 3, 0, (3, Thread)),
        (CompletionVariant::Thread, to_five, 3, 5, (5, Soft)),
        (CompletionVariant::Grouped, near(), 3, 0, (2, Soft)),
        (CompletionVariant::Grouped, near(), 0, 1, (1, Soft)),
        (CompletionVariant::CacheAware, near(), 3, 0, (3, Soft)),
        (CompletionVariant::CacheAware, near(), 1, 0, (0, Soft)),
        (CompletionVariant::CacheAware, exact, 1, 0, (1, Soft)),
        (CompletionVariant::MultiQueueDirect, near(), 1, 0, (0, Hard)),
        (CompletionVariant::MultiQueueDirect, near(), 3, 0, (3, Hard)),
        (CompletionVariant::MultiQueue, near(), 1, 0, (0, Soft)),
        (CompletionVariant::MultiQueue, near(), 3, 0, (3, Soft)),
    ] {
        let found = Bench::new(variant, affinity).completed_on(submitter, interrupted);
        assert_eq!(found, expected, "{variant:?} {affinity:?} {submitter} {interrupted}");
    }
}

#[test]
fn of_several_hardware_queues_requests_are_completed_in_the_interrupt() {
    let map = QueueMap::modulo(CPUS, CPUS);
    let mut bench = Bench::with_queues(CompletionVariant::MultiQueue, near(), map);
    assert_eq!(bench.completed_on(1, 0), (0, Context::HardInterrupt));
}

#[test]
fn a_target_that_is_offline_means_here() {
    for variant in VARIANTS.into_iter().filter(|&variant| variant != CompletionVariant::Softirq) {
        let mut bench = Bench::new(variant, near());
        bench.smp.take_offline(0, 2);
        bench.smp.take_offline(0, 3);
        assert_eq!(bench.completed_on(3, 0).0, 0, "{variant:?}");
    }
}

#[test]
fn a_burst_wakes_the_thread_once() {
    let mut bench = Bench::new(CompletionVariant::Thread, near());
    for token in 0..20 {
        let request = bench.completions.begin(&mut bench.smp, 0, 6, token);
        let cpu = (token % 4) as u16;
        bench.completions.interrupt(&mut bench.smp, 0, cpu, request);
    }
    assert_eq!(bench.run(SECOND).len(), 20);
    let list = bench.smp.sharing(Kind::CompletionList);
    assert!(list.waited > 0, "{list:?}");
    assert!(list.locked < 40, "hand-overs and a few splices: {list:?}");
}

#[test]
fn counters_say_whose_cpu_it_was() {
    let affinity = Affinity { queue: Some(2), completion: Some(4), ..Affinity::default() };
    let mut bench = Bench::new(CompletionVariant::Thread, affinity);
    assert!(!bench.completions.enter(&mut bench.smp, 0, 0, 1, 11));
    assert!(bench.completions.enter(&mut bench.smp, 0, 0, 2, 12));
    assert_eq!(bench.run(1_000_000), [Outcome::Entered { token: 11, cpu: 2 }]);
    for (number, cpu) in [(0, 4), (1, 5)] {
        let request = bench.completions.begin(&mut bench.smp, 0, 1, number);
        bench.completions.interrupt(&mut bench.smp, 1_000_000, cpu, request);
    }
    bench.run(SECOND);
    let expected = Counters { queued_local: 1, queued_remote: 1, completed_local: 1, completed_remote: 1 };
    assert_eq!(bench.completions.counters(0), expected);
}

#[test]
fn settings_that_a_kernel_does_not_have_are_refused() {
    let error = near().check(CompletionVariant::Softirq).expect_err("2.6.24 has none");
    assert_eq!(error.to_string(), "queue.rq_affinity: completions of the variant softirq have no rq_affinity");
    assert!(near().check(CompletionVariant::Grouped).is_ok());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    /// Every request is completed once, whatever CPUs go offline and come back meanwhile.
    #[test]
    fn no_completion_is_lost(
        variant in 0usize..6,
        wants in any::<bool>(),
        steps in prop::collection::vec((0u64..20_000, 0u16..CPUS, 0u16..CPUS, 0u8..10), 1..120),
    ) {
        let variant = VARIANTS[variant];
        let affinity = if wants && variant != CompletionVariant::Softirq { near() } else { Affinity::default() };
        let mut bench = Bench::new(variant, affinity);
        let (mut now, mut began, mut completed) = (0, 0, 0);
        for (delay, one, other, what) in steps {
            now += delay;
            completed += bench.run(now).len();
            match what {
                0 => {
                    bench.smp.take_offline(now, one);
                }
                1 => bench.smp.bring_online(now, one),
                _ => {
                    let request = bench.completions.begin(&mut bench.smp, 0, one, began);
                    began += 1;
                    bench.completions.interrupt(&mut bench.smp, now, other, request);
                }
            }
        }
        completed += bench.run(now + SECOND).len();
        prop_assert_eq!(completed, began as usize);
        prop_assert_eq!(bench.completions.in_flight(), 0);
        let counters = bench.completions.counters(0);
        prop_assert_eq!(counters.completed_local + counters.completed_remote, u64::from(began));
    }
}
