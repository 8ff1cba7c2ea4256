use proptest::prelude::*;

use super::*;
use crate::time::{MICROSECOND, MILLISECOND, SECOND};

const GHZ: u64 = 1_000_000_000;

/// One cycle is a nanosecond, and nothing costs anything but work.
fn plain(topology: Topology) -> SmpSpec {
    SmpSpec {
        topology,
        clock_hz: GHZ,
        transfer_cycles: [0; DISTANCES],
        computing_stall_per_mille: 0,
        interrupts: InterruptSpec { send_cycles: 0, latency_ns: 0, latency_other_node_ns: 0, receive_cycles: 0 },
        scheduling: SchedulingSpec {
            time_slice_ns: 10 * MILLISECOND,
            preempt_after_ns: 10 * MILLISECOND,
            wake_cycles: 0,
            switch_cycles: 0,
            task_lines: 0,
            run_queue_lines: 0,
            migrates_within: Distance::Machine,
        },
        idle_states: Vec::new(),
    }
}

/// Everything costs something.
fn costly(topology: Topology) -> SmpSpec {
    let mut spec = plain(topology);
    spec.clock_hz = 1_600_000_001;
    spec.transfer_cycles = [20, 100, 240, 700];
    spec.interrupts =
        InterruptSpec { send_cycles: 700, latency_ns: 1_500, latency_other_node_ns: 3_000, receive_cycles: 1_500 };
    spec.scheduling.wake_cycles = 900;
    spec.scheduling.switch_cycles = 2_000;
    spec.scheduling.task_lines = 3;
    spec.scheduling.run_queue_lines = 2;
    spec.idle_states = vec![IdleState { after_ns: 0, exit_ns: 100 }, IdleState { after_ns: 50_000, exit_ns: 40_000 }];
    spec
}

fn processors(spec: &SmpSpec) -> Processors<u32> {
    Processors::new(spec).expect("possible processors")
}

fn any_task(rank: Rank, last_cpu: u16) -> TaskSpec {
    TaskSpec { rank, allowed: None, last_cpu, sleeps_for_io: false }
}

fn run(smp: &mut Processors<u32>, until: Time) -> Vec<Done<u32>> {
    let mut done = Vec::new();
    while let Some(at) = smp.next_event().filter(|&at| at <= until) {
        smp.advance(at, &mut done);
    }
    smp.advance(until, &mut done);
    done
}

fn ends(done: &[Done<u32>]) -> Vec<(u32, Time)> {
    done.iter().map(|done| (done.tag, done.at)).collect()
}

#[test]
fn hard_interrupts_softirqs_and_tasks_interrupt_each_other_in_this_order() {
    let mut smp = processors(&plain(Topology::flat(1)));
    let task = smp.add_task(TaskSpec::pinned(1, 0));
    smp.wake(0, task, None, Work::of(1_000).tagged(1));
    run(&mut smp, 100);
    smp.softirq(100, 0, Work::of(200).tagged(2));
    run(&mut smp, 150);
    smp.interrupt(150, 0, Work::of(50).tagged(3));
    let done = run(&mut smp, SECOND);
    assert_eq!(ends(&done), [(3, 200), (2, 350), (1, 1_250)]);
    let usage = smp.usage(0);
    assert_eq!(usage.ns(Context::System), 1_000);
    assert_eq!(usage.ns(Context::SoftInterrupt), 200);
    assert_eq!(usage.ns(Context::HardInterrupt), 50);
    assert_eq!(usage.sampled_ns(Context::SoftInterrupt), 250);
    assert_eq!(usage.ns(Context::IoWait), SECOND - 1_250);
}

#[test]
fn tasks_take_turns_by_time_slices() {
    let mut smp = processors(&plain(Topology::flat(1)));
    for tag in 0..3 {
        let task = smp.add_task(any_task(Rank::Normal, 0));
        smp.wake(0, task, None, Work::of(15_000_000).tagged(tag));
    }
    let done = run(&mut smp, SECOND);
    let expected = [(0, 35), (1, 40), (2, 45)].map(|(tag, ms)| (tag, ms * MILLISECOND));
    assert_eq!(ends(&done), expected);
}

#[test]
fn a_better_rank_preempts_and_the_preempted_goes_on_elsewhere() {
    let mut smp = processors(&plain(Topology::flat(2)));
    let batch = [0, 1].map(|cpu| smp.add_task(any_task(Rank::Batch, cpu)));
    smp.wake(0, batch[0], None, Work::of(1_000).tagged(0));
    smp.wake(0, batch[1], None, Work::of(300).tagged(1));
    run(&mut smp, 100);
    let urgent = smp.add_task(TaskSpec { rank: Rank::RealTime, ..TaskSpec::pinned(2, 0) });
    smp.wake(100, urgent, None, Work::of(500).tagged(2));
    let done = run(&mut smp, SECOND);
    assert_eq!(ends(&done), [(1, 300), (2, 600), (0, 1_200)]);
    assert_eq!(done[2].cpu, 1);
}

#[test]
fn a_wake_up_on_another_cpu_costs_messages_lines_and_the_way_out_of_idleness() {
    let spec = costly(Topology::flat(2));
    let mut smp = processors(&spec);
    let task = smp.add_task(TaskSpec::pinned(2, 1));
    smp.interrupt(0, 0, Work::of(0).tagged(9));
    let mut done = Vec::new();
    while done.is_empty() {
        let at = smp.next_event().expect("the interrupt");
        smp.advance(at, &mut done);
    }
    let woken_at = done[0].at;
    smp.wake(woken_at, task, Some(0), Work::of(1_600).tagged(1));
    let done = run(&mut smp, SECOND);
    // Waking and sending; the way; the exit; the interrupt; the run queue's and the task's lines, switching, working.
    let cycles = (900 + 700) + 1_500 + (2 + 3) * 100 + 2_000 + 1_600;
    let expected = woken_at + 1_500 + 100 + cycles * 10 / 16;
    assert!(done[0].at.abs_diff(expected) < 5, "{} {expected}", done[0].at);
    assert_eq!(smp.stalls(1).transfers, 500);
}

#[test]
fn what_follows_is_charged_to_what_has_finished() {
    let mut smp = processors(&plain(Topology::flat(1)));
    smp.softirq(0, 0, Work::of(100).tagged(1));
    smp.softirq(0, 0, Work::of(100).tagged(2));
    let done = {
        let mut done = Vec::new();
        while done.is_empty() {
            let at = smp.next_event().expect("work");
            smp.advance(at, &mut done);
        }
        done
    };
    smp.charge(done[0].at, 0, Work::of(30));
    smp.charge(done[0].at, 0, Work::of(12));
    assert_eq!(ends(&run(&mut smp, SECOND)), [(2, 242)]);
    assert_eq!(smp.usage(0).ns(Context::SoftInterrupt), 242);
}

#[test]
fn an_interrupt_waits_while_a_lock_is_held() {
    let mut smp = processors(&plain(Topology::flat(1)));
    let lock = smp.add_object(Kind::Queue, 1);
    smp.softirq(0, 0, Work::of(500).holding(lock, 300).tagged(1));
    run(&mut smp, 10);
    smp.interrupt(10, 0, Work::of(50).tagged(2));
    assert_eq!(ends(&run(&mut smp, SECOND)), [(2, 350), (1, 550)]);
}

#[test]
fn a_cpu_spins_while_another_holds_the_lock() {
    let mut smp = processors(&plain(Topology::flat(2)));
    let lock = smp.add_object(Kind::Queue, 1);
    smp.softirq(0, 0, Work::of(500).holding(lock, 300).tagged(1));
    smp.softirq(0, 1, Work::of(500).holding(lock, 300).tagged(2));
    let done = run(&mut smp, SECOND);
    assert_eq!(ends(&done), [(1, 500), (2, 800)]);
    assert_eq!(smp.stalls(0).spinning + smp.stalls(1).spinning, 300);
    assert_eq!(smp.sharing(Kind::Queue).waited, 1);
}

#[test]
fn deeper_idle_states_take_longer_to_leave() {
    let mut smp = processors(&costly(Topology::flat(1)));
    smp.interrupt(10_000, 0, Work::of(0).tagged(1));
    assert_eq!(ends(&run(&mut smp, 20_000)), [(1, 10_100)]);
    smp.interrupt(90_000, 0, Work::of(0).tagged(2));
    assert_eq!(ends(&run(&mut smp, SECOND)), [(2, 130_000)]);
    assert_eq!(smp.usage(0).ns(Context::Idle), SECOND);
}

#[test]
fn the_last_cpu_stays_online() {
    let mut smp = processors(&plain(Topology::flat(2)));
    assert!(smp.take_offline(0, 1));
    assert!(!smp.take_offline(0, 0));
    assert!(smp.take_offline(0, 1));
}

#[test]
fn tasks_whose_only_cpu_was_offline_go_back_to_it() {
    let mut smp = processors(&plain(Topology::flat(2)));
    let allowed = Some(CpuSet::of(2, [0]));
    let [first, second] =
        [0, 1].map(|_| smp.add_task(TaskSpec { allowed: allowed.clone(), ..any_task(Rank::Normal, 0) }));
    smp.take_offline(0, 0);
    smp.wake(0, first, None, Work::of(1_000).tagged(1));
    smp.wake(0, second, None, Work::of(1_000).tagged(2));
    run(&mut smp, 100);
    smp.bring_online(100, 0);
    assert_eq!(ends(&run(&mut smp, SECOND)), [(1, 1_000), (2, 1_100)]);
}

#[test]
fn impossible_processors_name_the_key() {
    let mut spec = plain(Topology::flat(2));
    spec.topology.numa_nodes = 600;
    let error = Processors::<u32>::new(&spec).expect_err("too many");
    assert_eq!(error.to_string(), "topology: expected 1 to 1024, found 1200");
}

#[derive(Clone, Debug)]
enum Step {
    Interrupt(u16),
    Soft(u16),
    Locked(u16),
    Wake(usize, Option<u16>),
    Ipi(u16, u16),
    Charge(u16),
    Offline(u16),
    Online(u16),
}

const CPUS: u16 = 8;
const TASKS: usize = 12;

fn steps() -> impl Strategy<Value = Vec<(Time, u32, Step)>> {
    let cpu = 0..CPUS;
    let step = prop_oneof![
        4 => cpu.clone().prop_map(Step::Interrupt),
        4 => cpu.clone().prop_map(Step::Soft),
        4 => cpu.clone().prop_map(Step::Locked),
        12 => (0..TASKS, prop::option::of(cpu.clone())).prop_map(|(task, by)| Step::Wake(task, by)),
        2 => (cpu.clone(), cpu.clone()).prop_map(|(from, to)| Step::Ipi(from, to)),
        2 => cpu.clone().prop_map(Step::Charge),
        1 => cpu.clone().prop_map(Step::Offline),
        1 => cpu.prop_map(Step::Online),
    ];
    prop::collection::vec((0u64..30_000, 0u32..50_000, step), 1..150)
}

fn topology() -> Topology {
    Topology { numa_nodes: 2, sockets_per_node: 1, cores_per_socket: 2, threads_per_core: 2 }
}

/// Runs what is due until then; a CPU that finishes something is charged for a lock now and then. The invariants hold after
/// every event.
fn run_checked(
    smp: &mut Processors<u32>,
    until: Time,
    lock: ObjectId,
    done: &mut Vec<Done<u32>>,
) -> Result<(), TestCaseError> {
    let mut batch = Vec::new();
    while let Some(at) = smp.next_event().filter(|&at| at <= until) {
        nobody_waits_beside_an_idle_cpu(smp)?;
        smp.advance(at, &mut batch);
        for finished in batch.drain(..) {
            if finished.tag % 3 == 0 {
                smp.charge(at, finished.cpu, Work::of(200).holding(lock, 150));
            }
            done.push(finished);
        }
    }
    smp.advance(until, &mut batch);
    for cpu in 0..smp.cpus() {
        prop_assert_eq!(smp.usage(cpu).total_ns(), until);
    }
    Ok(())
}

/// The first in line of a CPU that no task has does not wait for another, but for the CPU's interrupts or waking up.
fn nobody_waits_beside_an_idle_cpu(smp: &Processors<u32>) -> Result<(), TestCaseError> {
    for cpu in &smp.cpus {
        let on_its_way = usize::from(cpu.task.is_none());
        for task in cpu.ready.iter().skip(on_its_way) {
            let allowed = &smp.tasks[task as usize].allowed;
            prop_assert!(
                !smp.idle.meets(allowed),
                "task {} waits although {:?} is idle",
                task,
                smp.idle.iter().collect::<Vec<_>>()
            );
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// Time is conserved on every CPU, all work is done once whatever goes offline, and the invariants above hold.
    #[test]
    fn nothing_is_lost(steps in steps()) {
        let mut smp = processors(&costly(topology()));
        let lock = smp.add_object(Kind::Queue, 1);
        let shared = smp.add_object(Kind::Request, 4);
        let tasks: Vec<TaskNumber> = (0..TASKS as u16)
            .map(|task| {
                let rank = [Rank::RealTime, Rank::Normal, Rank::Batch][usize::from(task % 3)];
                let allowed = match task % 4 {
                    0 => Some(CpuSet::of(CPUS, [task % CPUS])),
                    1 => Some(CpuSet::of(CPUS, 0..4)),
                    _ => None,
                };
                smp.add_task(TaskSpec { rank, allowed, last_cpu: task % CPUS, sleeps_for_io: task % 2 == 0 })
            })
            .collect();
        let (mut now, mut done, mut expected) = (0, Vec::new(), Vec::new());
        for (tag, (delay, cycles, step)) in (0..).zip(steps) {
            now += delay;
            run_checked(&mut smp, now, lock, &mut done)?;
            let work = Work::of(cycles).touching(shared).tagged(tag);
            let mut counted = true;
            match step {
                Step::Interrupt(cpu) => smp.interrupt(now, cpu, work),
                Step::Soft(cpu) => smp.softirq(now, cpu, work),
                Step::Locked(cpu) => smp.softirq(now, cpu, work.holding(lock, cycles / 2)),
                Step::Wake(task, by) => smp.wake(now, tasks[task], by, work),
                Step::Ipi(from, to) => smp.ipi(now, from, to, 0, work),
                Step::Charge(cpu) => {
                    smp.charge(now, cpu, work);
                    counted = false;
                }
                Step::Offline(cpu) => {
                    smp.take_offline(now, cpu);
                    counted = false;
                }
                Step::Online(cpu) => {
                    smp.bring_online(now, cpu);
                    counted = false;
                }
            }
            if counted {
                expected.push(tag);
            }
        }
        run_checked(&mut smp, now + SECOND, lock, &mut done)?;
        let mut tags: Vec<u32> = done.iter().map(|done| done.tag).collect();
        tags.sort_unstable();
        prop_assert_eq!(tags, expected);
        prop_assert!(smp.next_event().is_none_or(|at| at <= now + SECOND));
    }

    /// Tasks that never sleep, on one CPU: none is ahead of another by more than a slice and a piece of work.
    #[test]
    fn time_slices_are_fair(count in 2usize..8, pieces in prop::collection::vec(100_000u32..3_000_000, 8)) {
        let spec = plain(Topology::flat(1));
        let mut smp = processors(&spec);
        let tasks: Vec<TaskNumber> = (0..count).map(|_| smp.add_task(any_task(Rank::Normal, 0))).collect();
        let mut ran = vec![0u64; count];
        for (tag, &task) in (0..).zip(&tasks) {
            smp.wake(0, task, None, Work::of(pieces[tag as usize]).tagged(tag));
        }
        let mut done = Vec::new();
        while let Some(at) = smp.next_event().filter(|&at| at < SECOND) {
            smp.advance(at, &mut done);
            for finished in done.drain(..) {
                let number = finished.tag as usize;
                ran[number] += u64::from(pieces[number]);
                smp.wake(at, tasks[number], None, Work::of(pieces[number]).tagged(finished.tag));
            }
        }
        let (least, most) = (ran.iter().min(), ran.iter().max());
        let tolerance = spec.scheduling.time_slice_ns + 2 * 3 * MILLISECOND;
        prop_assert!(most.unwrap() - least.unwrap() <= tolerance, "{:?}", ran);
    }

    /// Works that hold one lock on many CPUs: the times for which they hold it do not overlap, so they take at least
    /// their sum.
    #[test]
    fn a_lock_is_held_by_one(works in prop::collection::vec((0u16..CPUS, 0u64..MICROSECOND, 1u32..5_000), 1..60)) {
        let mut smp = processors(&plain(topology()));
        let lock = smp.add_object(Kind::Queue, 1);
        let mut now = 0;
        let mut done = Vec::new();
        for &(cpu, delay, held) in &works {
            now += delay;
            while let Some(at) = smp.next_event().filter(|&at| at <= now) {
                smp.advance(at, &mut done);
            }
            smp.softirq(now, cpu, Work::of(held).holding(lock, held).tagged(held));
        }
        done.extend(run(&mut smp, SECOND));
        let mut held_from = 0;
        for finished in &done {
            let began = finished.at - u64::from(finished.tag);
            prop_assert!(began >= held_from, "held from {} and until {}", began, held_from);
            held_from = finished.at;
        }
        prop_assert_eq!(done.len(), works.len());
    }
}
