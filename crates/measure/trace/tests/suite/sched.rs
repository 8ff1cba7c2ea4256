//! Stalls, their parts and their places, of switches made by hand; `recordings.rs` has real ones.

use proptest::prelude::*;
use trace::page::LostEvents;
use trace::sched::{Analysis, Comm, SchedEvent, SchedKind, State, SwitchReport};

fn switch(at_ns: u64, cpu: u32, previous: u32, state: State, next: u32) -> SchedEvent {
    let previous_comm = Comm::new(format!("task{previous}").as_bytes());
    SchedEvent { at_ns, cpu, kind: SchedKind::Switch { previous, previous_comm, state, next } }
}

fn waking(at_ns: u64, pid: u32) -> SchedEvent {
    SchedEvent { at_ns, cpu: 1, kind: SchedKind::Waking { pid } }
}

fn wakeup(at_ns: u64, pid: u32) -> SchedEvent {
    SchedEvent { at_ns, cpu: 0, kind: SchedKind::Wakeup { pid } }
}

fn frames(stack_id: u32) -> Vec<String> {
    let frames: &[&str] = match stack_id {
        1 => &["__schedule", "schedule", "schedule_timeout", "wait_for_completion", "xfs_alloc_vextent", "xfs_bmapi"],
        2 => &["schedule", "xfs_alloc_vextent", "xfs_ialloc"],
        _ => &["__schedule", "schedule", "worker_thread", "kthread"],
    };
    frames.iter().map(|&frame| frame.to_owned()).collect()
}

fn analysed(events: &[SchedEvent]) -> SwitchReport {
    let mut analysis = Analysis::new(0, 1000);
    events.iter().for_each(|event| analysis.add(event));
    analysis.finish(10_000, frames)
}

#[test]
fn a_stall_is_sleep_and_then_the_wait_for_a_cpu() {
    let report = analysed(&[
        switch(1000, 0, 5, State::DiskSleep, 0),
        waking(3000, 5),
        wakeup(3200, 5),
        switch(3500, 0, 0, State::Preempted, 5),
    ]);
    assert_eq!(report.stall_ns.mean(), Some(2500.0));
    assert_eq!(report.wakeup_latency_ns.mean(), Some(500.0));
    assert_eq!(report.run_queue_delay_ns.mean(), Some(300.0));
    let task = report.tasks.iter().find(|task| task.pid == Some(5)).expect("the task");
    assert_eq!((task.comm.as_str(), task.switches, task.by_state["disk_sleep"]), ("task5", 1, 1));
    assert_eq!((task.sleeping.sum_ns, task.run_queue_delay.sum_ns, task.stall.max_ns), (2200, 300, Some(2500)));
    assert_eq!((report.switches, report.by_state["cpu_idle"]), (2, 1));
}

#[test]
fn a_preempted_task_only_waits_for_a_cpu() {
    let report = analysed(&[switch(1000, 0, 5, State::Preempted, 6), switch(1400, 0, 6, State::Sleep, 5)]);
    assert_eq!(report.run_queue_delay_ns.mean(), Some(400.0));
    assert_eq!(report.wakeup_latency_ns.count(), 0);
    assert_eq!(report.tasks[0].sleeping.count, 0);
}

#[test]
fn stacks_belong_to_the_switch_beside_them_and_stand_for_all_switches_by_their_weight() {
    let mut analysis = Analysis::new(0, 1000);
    // Right after its switch, and right before it.
    analysis.add(&switch(1000, 0, 5, State::DiskSleep, 6));
    analysis.add_stack(1100, 0, 5, 10, 1);
    analysis.add_stack(1900, 0, 6, 10, 2);
    analysis.add(&switch(2000, 0, 6, State::Sleep, 5));
    analysis.add(&switch(5000, 0, 5, State::Exited, 6));
    // Of a task whose switch was not recorded.
    analysis.add_stack(6000, 1, 7, 10, 3);
    let report = analysis.finish(10_000, frames);
    assert_eq!((report.stacks.taken, report.stacks.unmatched), (3, 1));
    let [site] = &report.sites[..] else { panic!("one site: {:?}", report.sites) };
    assert_eq!((site.site.as_str(), site.samples, site.switches), ("xfs_alloc_vextent", 2, 3));
    assert_eq!((site.stall.count, site.stall.sum_ns), (3, 3 * 2000));
    assert_eq!(site.stall.mean_ns, Some(2000.0));
    assert_eq!(site.stall.max_ns, Some(3000));
}

#[test]
fn a_loss_ends_no_stall() {
    let mut analysis = Analysis::new(0, 1000);
    analysis.add(&switch(1000, 0, 5, State::Sleep, 6));
    analysis.lost(LostEvents::Events(40));
    analysis.add(&switch(9000, 0, 6, State::Sleep, 5));
    let report = analysis.finish(10_000, frames);
    assert_eq!((report.events_lost, report.stall_ns.count()), (40, 0));
}

#[test]
fn tasks_beyond_the_table_are_together_and_none_is_missing() {
    let events: Vec<SchedEvent> = (1..9000).map(|pid| switch(u64::from(pid), 0, pid, State::Sleep, pid + 1)).collect();
    let report = analysed(&events);
    let switches: u64 = report.tasks.iter().map(|task| task.switches).sum();
    assert_eq!(switches, report.switches);
    let others = &report.tasks[report.tasks.len() - 1];
    assert_eq!((others.comm.as_str(), others.pid), ("others", None));
}

#[test]
fn the_rate_of_switches_is_by_cpu_and_interval() {
    let report = analysed(&[
        switch(10, 0, 1, State::Sleep, 0),
        switch(1010, 2, 2, State::Sleep, 0),
        switch(1020, 2, 0, State::Preempted, 2),
    ]);
    assert_eq!(report.series["cpu0"].at_ns, [0, 1000]);
    assert_eq!(report.series["cpu0"].columns.context_switches_per_s, [1e6, 0.0]);
    assert_eq!(report.series["cpu2"].columns.context_switches_per_s, [0.0, 2e6]);
}

#[test]
fn states_are_those_of_kernels_since_4_14() {
    for (bits, state) in [
        (0, State::Preempted),
        (0x100, State::Preempted),
        (1, State::Sleep),
        (2, State::DiskSleep),
        (0x80, State::Idle),
        (4, State::Stopped),
        (8, State::Stopped),
        (0x40, State::Stopped),
        (0x10, State::Exited),
        (0x20, State::Exited),
    ] {
        assert_eq!(State::of_prev_state(bits), state, "{bits:#x}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn every_switch_is_in_the_tables_once(
        noise in prop::collection::vec((0..5u8, 0..6u32, 0..6u32, 0..3u32, 0..300_000u64), 0..300)
    ) {
        let mut analysis = Analysis::new(0, 1000);
        let (mut now_ns, mut switches, mut stacks) = (0, 0u64, 0u64);
        for (kind, pid, other, cpu, wait_ns) in noise {
            now_ns += wait_ns;
            match kind {
                0 => analysis.add(&waking(now_ns, pid)),
                1 => analysis.add(&wakeup(now_ns, pid)),
                2 => {
                    stacks += 1;
                    analysis.add_stack(now_ns, cpu, pid, 3, pid);
                }
                _ => {
                    switches += 1;
                    let state = [State::Sleep, State::Preempted, State::Exited][other as usize % 3];
                    analysis.add(&switch(now_ns, cpu, pid, state, other));
                }
            }
        }
        let report = analysis.finish(now_ns, frames);
        prop_assert_eq!(report.switches, switches);
        prop_assert_eq!(report.by_state.values().sum::<u64>(), switches);
        prop_assert_eq!(report.tasks.iter().map(|task| task.switches).sum::<u64>(), switches);
        let matched: u64 = report.sites.iter().map(|site| site.samples).sum();
        prop_assert_eq!((report.stacks.taken, matched + report.stacks.unmatched), (stacks, stacks));
        let stalls: u64 = report.tasks.iter().map(|task| task.stall.count).sum();
        prop_assert!(stalls <= switches);
    }
}
