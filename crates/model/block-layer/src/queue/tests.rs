use super::*;
use crate::invariants;
use crate::invariants::bench::bio;
use crate::scheduler::bfq::Bfq;
use crate::scheduler::cfq_round_robin::CfqRoundRobin;
use crate::scheduler::kyber::Kyber;
use crate::scheduler::mq_deadline::{MqDeadline, MqDeadlineTunables};
use crate::scheduler::none::NoScheduler;
use crate::scheduler::noop::Noop;
use crate::{IoClass, Priority, QueueMap, TagCounts};
use Direction::{Read, Write};
use kernels::hardware_queue::{Runs, TagLimit, TagWakeRule};
use kernels::queue::{PlugRules, PoolRules, QueueRules};
use proptest::prelude::*;

fn queue(scheduler: Box<dyn Scheduler>, tags: u32, hardware: HardwareRules) -> RequestQueue {
    let rules = QueueRules { pool: PoolRules::tags(tags, TagWakeRule::Batch, TagLimit::OfWord), ..invariants::rules() };
    RequestQueue::new(rules, scheduler).with_hardware(hardware)
}

fn two_queues(shared_tags: bool) -> HardwareRules {
    HardwareRules { map: QueueMap::modulo(4, 2), depth: 2, shared_tags, runs: KERNEL_6_1, ..HardwareRules::SINGLE }
}

const KERNEL_6_1: Runs =
    Runs { after_completions: false, again_after_ns: Some(3_000_000), by_thread: true, pulls_ahead: true };

fn submit_on(queue: &mut RequestQueue, cpu: u16, start: Sector) {
    let bio = Bio { cpu, ..bio(0, Read, start) };
    assert_ne!(queue.submit(0, bio), SubmitOutcome::MustWait);
}

fn dispatched(queue: &mut RequestQueue) -> Vec<Sector> {
    let ids = std::iter::from_fn(|| queue.dispatch(0)).collect::<Vec<_>>();
    ids.iter().map(|&id| queue.request(id).start).collect()
}

/// The device has the two tags' requests; the first of them.
fn with_two_that_found_no_tag() -> (RequestQueue, RequestId) {
    let mut queue = queue(Box::new(MqDeadline::new(Default::default())), 64, two_queues(false));
    for start in [100, 200, 300, 400] {
        submit_on(&mut queue, 0, start);
    }
    let first = queue.dispatch(0).unwrap();
    assert_eq!(dispatched(&mut queue), [200]);
    (queue, first)
}

#[test]
fn a_driver_that_leaves_its_request_in_the_queue_keeps_it_from_being_plugged() {
    for stays in [false, true] {
        let mut queue = RequestQueue::new(
            QueueRules { plug: PlugRules::EXPLICIT.with_head(stays), ..invariants::rules() },
            Box::new(Noop::default()),
        );
        submit_on(&mut queue, 0, 100);
        assert_eq!(queue.dispatch(0), None, "plugged");
        queue.unplug();
        let first = queue.dispatch(0).unwrap();
        submit_on(&mut queue, 0, 5000);
        assert_eq!(queue.dispatch(0).is_some(), stays);
        queue.completed(1, first, &mut Vec::new());
    }
}

#[test]
fn who_has_its_share_of_the_pool_waits_until_something_of_it_is_done() {
    let rules = QueueRules { pool: PoolRules::LINUX_2_6_35, ..invariants::rules() };
    let scheduler = CfqRoundRobin::new(Default::default(), 48);
    let mut queue = RequestQueue::new(rules, Box::new(scheduler));
    let of = |task, start| Bio { task, ..bio(0, Read, start) };
    assert_ne!(queue.submit(0, of(2, 0)), SubmitOutcome::MustWait);
    let mine = (1..).map(|n| of(1, n * 1000));
    let fits = mine.map(|bio| queue.submit(0, bio));
    // (48 - 8) / 2, and one more.
    assert_eq!(fits.take_while(|got| *got != SubmitOutcome::MustWait).count(), 21);
    assert_ne!(queue.submit(0, of(2, 900)), SubmitOutcome::MustWait);
    let first = queue.dispatch(0).unwrap();
    queue.completed(1, first, &mut Vec::new());
    let mut woken = Vec::new();
    queue.take_woken(&mut woken);
    assert_eq!(woken, [1]);
    assert_ne!(queue.submit(1, of(1, 99_000)), SubmitOutcome::MustWait);
}

#[test]
fn each_hardware_queue_has_its_own_tags_unless_they_are_shared() {
    for (shared, expected) in [(false, vec![100, 500, 700, 200]), (true, vec![100, 500])] {
        let mut queue = queue(Box::new(NoScheduler::default()), 64, two_queues(shared));
        for (cpu, start) in [(0, 100), (0, 200), (0, 300), (1, 500), (1, 600), (3, 700)] {
            submit_on(&mut queue, cpu, start);
        }
        assert_eq!(dispatched(&mut queue), expected, "shared: {shared}");
    }
}

#[test]
fn a_request_that_found_no_tag_goes_first_when_there_is_one() {
    let (mut queue, first) = with_two_that_found_no_tag();
    submit_on(&mut queue, 0, 50);
    queue.completed(1, first, &mut Vec::new());
    assert_eq!(dispatched(&mut queue), [300]);
}

/// Gives one request, and the next only after a completion, for which it has nothing run.
#[derive(Default)]
struct SingleRequestScheduler {
    kept: VecDeque<RequestId>,
    waits: bool,
}

impl Scheduler for SingleRequestScheduler {
    fn add(&mut self, _: Time, _: &Requests, request: RequestId) {
        self.kept.push_back(request);
    }

    fn dispatch(&mut self, _: Time, _: &Requests) -> Option<RequestId> {
        let next = self.kept.pop_front_if(|_| !self.waits)?;
        self.waits = true;
        Some(next)
    }

    fn completed(&mut self, _: Time, _: &Requests, _: RequestId) {
        self.waits = false;
    }

    fn runs_queue(&self) -> bool {
        true
    }

    fn queued(&self) -> usize {
        self.kept.len()
    }
}

/// The scheduler gives out one request at a time; of the two, the first is at the device.
fn with_one_of_two_at_the_device(runs: Runs) -> (RequestQueue, RequestId) {
    let hardware = HardwareRules { runs, ..HardwareRules::SINGLE };
    let mut queue = queue(Box::new(SingleRequestScheduler::default()), 64, hardware);
    submit_on(&mut queue, 0, 100);
    submit_on(&mut queue, 0, 200);
    let first = queue.dispatch(0).unwrap();
    assert!(dispatched(&mut queue).is_empty());
    (queue, first)
}

#[test]
fn a_completion_runs_a_queue_only_where_the_driver_does_so() {
    let asked_at = |runs| {
        let (mut queue, first) = with_one_of_two_at_the_device(runs);
        queue.completed(1_000_000, first, &mut Vec::new());
        let at_once = dispatched(&mut queue);
        let again_at = queue.next_wakeup();
        queue.wake(8_000_000);
        (at_once, again_at, dispatched(&mut queue))
    };
    let scsi_until_5_9 = HardwareRules::SINGLE.runs;
    let before_5_8 = Runs { again_after_ns: None, ..KERNEL_6_1 };
    assert_eq!(asked_at(scsi_until_5_9), (vec![200], None, vec![]));
    assert_eq!(asked_at(before_5_8), (vec![], None, vec![]));
    assert_eq!(asked_at(KERNEL_6_1), (vec![], Some(8_000_000), vec![200]));
}

/// After 3 ms, with the tick behind the next one; a bio that comes alone has the same thread run the queue at once.
#[test]
fn a_queue_runs_again_with_a_tick_unless_a_bio_has_its_thread_run_it_before() {
    let again_at = |runs, comes| {
        let (mut queue, _) = with_one_of_two_at_the_device(runs);
        if comes {
            queue.runs_for_single();
        }
        queue.next_wakeup()
    };
    let by_task = Runs { by_thread: false, ..KERNEL_6_1 };
    assert_eq!(again_at(KERNEL_6_1, false), Some(8_000_000));
    assert_eq!(again_at(KERNEL_6_1, true), None);
    assert_eq!(again_at(by_task, true), Some(8_000_000));
}

/// What is held back when the queue is run has the next completion run it, and so has the run that sends it.
#[test]
fn a_request_that_found_no_tag_has_two_completions_run_the_queue() {
    let mut queue = before_commands(1);
    queue.submit(0, bio(0, Read, 100));
    let first = queue.dispatch(0).unwrap();
    queue.submit(0, bio(1, Read, 900));
    queue.submit(0, idle(5000));
    assert!(dispatched(&mut queue).is_empty());
    queue.completed(1, first, &mut Vec::new());
    let held = queue.dispatch(1).unwrap();
    assert_eq!(queue.request(held).start, 900);
    assert!(dispatched(&mut queue).is_empty(), "a higher class is at the device");
    queue.completed(2, held, &mut Vec::new());
    let idle_one = queue.dispatch(2).unwrap();
    assert_eq!(queue.request(idle_one).start, 5000);
    queue.submit(3, idle(7000));
    assert!(queue.dispatch(3).is_none());
    queue.completed(4, idle_one, &mut Vec::new());
    assert_eq!(dispatched(&mut queue), [7000]);
}

/// A completion has the thread send what waits for its tag, unless a task runs the queue before.
#[test]
fn the_thread_that_a_completion_calls_sends_what_found_no_tag() {
    let mut queue = before_commands(1);
    queue.runs_by_thread();
    queue.submit(0, bio(0, Read, 100));
    let first = queue.dispatch(0).unwrap();
    queue.submit(0, bio(0, Read, 900));
    assert_eq!(queue.dispatch(0), None);
    assert!(!queue.has_called_thread());
    queue.hold_thread(1_000);
    queue.completed(1_000, first, &mut Vec::new());
    assert_eq!(queue.dispatch(1_000), None);
    assert_eq!(queue.release_thread(8_000, 2_900), Some(10_900));
    assert_eq!(queue.next_wakeup(), Some(10_900));
    queue.wake(10_900);
    let second = queue.dispatch(10_900).unwrap();
    assert_eq!(queue.request(second).start, 900);
    queue.submit(20_000, bio(20_000, Read, 1_700));
    assert_eq!(queue.dispatch(20_000), None);
    queue.completed(30_000, second, &mut Vec::new());
    assert_eq!(queue.dispatch(30_000), None);
    queue.submit(31_000, bio(31_000, Read, 2_500));
    let third = queue.dispatch(31_000).expect("before the thread");
    assert_eq!(queue.request(third).start, 1_700);
}

/// A run that finds too few tags makes the next ones take their requests one at a time, until two have sent theirs.
#[test]
fn a_queue_with_too_few_tags_takes_its_requests_one_at_a_time() {
    let mut queue = before_commands(2);
    for start in [100, 900, 1_700] {
        queue.submit(0, bio(0, Read, start));
    }
    let sent: Vec<RequestId> = std::iter::from_fn(|| queue.dispatch(0)).collect();
    assert_eq!(sent.len(), 2);
    assert!(!queue.is_single());
    for id in sent {
        queue.completed(1, id, &mut Vec::new());
    }
    let held = queue.dispatch(1).unwrap();
    assert!(queue.is_single(), "what was held back comes alone");
    let mut are_single = Vec::new();
    for now in 2..5 {
        queue.submit(now, bio(now, Read, 5_000 * now));
        let next = queue.dispatch(now).unwrap();
        are_single.push(queue.is_single());
        queue.completed(now, next, &mut Vec::new());
    }
    assert_eq!(are_single, [true, false, false]);
    queue.completed(5, held, &mut Vec::new());
}

/// A completion alone lets a lower class wait on: for a task that waits for a tag, or for the thread's next time.
#[test]
fn a_lower_class_is_not_asked_for_when_the_last_request_of_a_higher_one_is_done() {
    let runs: [fn(&mut RequestQueue); 2] = [RequestQueue::runs_for_waiter, |queue| queue.wake(8_000_000)];
    for run in runs {
        let mut queue = before_commands(8);
        queue.submit(0, bio(0, Read, 100));
        let first = queue.dispatch(0).unwrap();
        queue.submit(0, idle(5000));
        assert!(dispatched(&mut queue).is_empty());
        queue.completed(1_000_000, first, &mut Vec::new());
        assert!(dispatched(&mut queue).is_empty());
        run(&mut queue);
        assert_eq!(dispatched(&mut queue), [5000]);
    }
}

fn before_commands(depth: u32) -> RequestQueue {
    let scheduler = Box::new(MqDeadline::new(MqDeadlineTunables::default()));
    let hardware = HardwareRules { depth, runs: KERNEL_6_1, ..HardwareRules::SINGLE };
    queue(scheduler, 64, hardware)
}

fn idle(start: Sector) -> Bio {
    Bio { priority: Priority { class: IoClass::Idle, level: 0 }, ..bio(0, Read, start) }
}

#[test]
fn nr_requests_are_each_hardware_queues_own() {
    let submitted = |shared_tags| {
        let mut queue = queue(Box::new(NoScheduler::default()), 2, two_queues(shared_tags));
        let on = [0, 0, 0, 1, 1].into_iter().zip(1u64..);
        let bios = on.map(|(cpu, n)| Bio { cpu, ..bio(cpu.into(), Read, n * 100) });
        bios.map(|bio| queue.submit(0, bio) != SubmitOutcome::MustWait).collect::<Vec<_>>()
    };
    assert_eq!(submitted(false), [true, true, false, true, true]);
    assert_eq!(submitted(true), [true, true, false, false, false]);
}

#[test]
fn writers_leave_tags_to_readers() {
    let tunables = MqDeadlineTunables { async_depth: Some(4), ..Default::default() };
    let mut queue = queue(Box::new(MqDeadline::new(tunables).without_reserve()), 8, HardwareRules::SINGLE);
    let writes = (0..8u64).filter(|n| queue.submit(0, bio(0, Write, n * 100)) != SubmitOutcome::MustWait);
    assert_eq!(writes.count(), 4);
    assert_ne!(queue.submit(0, bio(0, Read, 5000)), SubmitOutcome::MustWait);
}

/// Gives a bio one tag of each word while it has something queued.
#[derive(Default)]
struct OneTagWhileQueued(VecDeque<RequestId>);

impl Scheduler for OneTagWhileQueued {
    fn tags_allowed(&self, _: &Bio, tags: TagCounts) -> u32 {
        if self.0.is_empty() { tags.most() } else { 1 }
    }

    fn limits_vary(&self) -> bool {
        true
    }

    fn add(&mut self, _: Time, _: &Requests, request: RequestId) {
        self.0.push_back(request);
    }

    fn dispatch(&mut self, _: Time, _: &Requests) -> Option<RequestId> {
        self.0.pop_front()
    }

    fn queued(&self) -> usize {
        self.0.len()
    }
}

#[test]
fn a_limit_holds_until_its_bio_has_a_tag() {
    let scheduler = Box::new(OneTagWhileQueued::default());
    let mut queue = queue(scheduler, 2, HardwareRules::SINGLE);
    submit_on(&mut queue, 0, 100);
    let limited = bio(1, Read, 5000);
    assert_eq!(queue.submit(0, limited.clone()), SubmitOutcome::MustWait, "only the first tag, which is taken");
    let first = queue.dispatch(0).unwrap();
    // A bio that came now would have the second tag, and one that comes gets it.
    let again = queue.submit_again(1, limited.clone());
    assert_eq!(again, SubmitOutcome::MustWait);
    submit_on(&mut queue, 0, 9000);
    queue.completed(2, first, &mut Vec::new());
    let again = queue.submit_again(2, limited);
    assert!(matches!(again, SubmitOutcome::Queued(_)), "{again:?}");
    assert!(queue.limits_of_waiting.is_empty());
}

#[test]
fn who_has_waited_looks_for_a_merge_again_where_the_kernel_goes_back_to_that() {
    for merges_after_waiting in [true, false] {
        let pool =
            PoolRules { requests: 2, merges_after_waiting, ..PoolRules::tags(2, TagWakeRule::Batch, TagLimit::OfWord) };
        let rules = QueueRules { pool, ..invariants::rules() };
        let mut queue = RequestQueue::new(rules, Box::new(Noop::default()));
        submit_on(&mut queue, 0, 100);
        submit_on(&mut queue, 0, 5000);
        let waits = bio(0, Read, 9000);
        assert_eq!(queue.submit(0, waits.clone()), SubmitOutcome::MustWait);
        let ids = [(); 2].map(|()| queue.dispatch(0).unwrap());
        ids.iter().for_each(|&id| queue.completed(0, id, &mut Vec::new()));
        // What it would have been merged with, had that been there before.
        submit_on(&mut queue, 0, 8992);
        let submitted = queue.submit_again(0, waits);
        let is_merged = matches!(submitted, SubmitOutcome::Merged(..));
        assert_eq!(is_merged, merges_after_waiting, "{submitted:?}");
    }
}

fn behind_flush(start: Sector) -> Bio {
    Bio { behind_flush: true, sync: true, ..bio(0, Write, start) }
}

#[test]
fn a_write_behind_a_flush_merges_with_nothing_and_goes_before_all_that_the_scheduler_has() {
    let schedulers: [Box<dyn Scheduler>; 3] = [
        Box::new(MqDeadline::new(Default::default())),
        Box::new(NoScheduler::default()),
        Box::new(Kyber::new(Default::default(), QueueMap::SINGLE)),
    ];
    for scheduler in schedulers {
        let mut queue = queue(scheduler, 64, HardwareRules::SINGLE);
        submit_on(&mut queue, 0, 100);
        assert_ne!(queue.submit(0, bio(0, Write, 492)), SubmitOutcome::MustWait);
        for start in [500, 900] {
            let submitted = queue.submit(0, behind_flush(start));
            assert!(matches!(submitted, SubmitOutcome::Queued(_)), "{submitted:?}");
        }
        assert_eq!(dispatched(&mut queue), [900, 500, 100, 492]);
    }
}

#[test]
fn a_write_behind_a_flush_that_found_no_tag_goes_before_those_that_found_none_before() {
    let (mut queue, first) = with_two_that_found_no_tag();
    queue.submit(0, behind_flush(900));
    assert!(dispatched(&mut queue).is_empty());
    queue.completed(1, first, &mut Vec::new());
    assert_eq!(dispatched(&mut queue), [900]);
}

proptest! {
    /// Whatever the scheduler has, the next request is the write behind the flush.
    #[test]
    fn a_write_behind_a_flush_waits_for_no_scheduler(load in invariants::arrivals(4), which in 0u8..3) {
        let scheduler: Box<dyn Scheduler> = match which {
            0 => Box::new(CfqRoundRobin::new(Default::default(), 48)),
            1 => Box::new(Noop::default()),
            _ => Box::new(MqDeadline::new(Default::default())),
        };
        let mut queue = RequestQueue::new(invariants::rules(), scheduler);
        let mut taken = 1;
        for arrival in &load {
            let submitted = queue.submit(0, bio(0, arrival.direction, arrival.block * 8));
            taken += usize::from(submitted != SubmitOutcome::MustWait);
        }
        prop_assert_ne!(queue.submit(0, behind_flush(10_000)), SubmitOutcome::MustWait);
        let mut ids = Vec::new();
        while let Some(id) = queue.dispatch(0) {
            ids.push(id);
        }
        prop_assert_eq!(queue.request(ids[0]).start, 10_000);
        let mut done = Vec::new();
        ids.iter().for_each(|&id| { queue.completed(1, id, &mut done); });
        let mut now = 1;
        loop {
            if let Some(id) = queue.dispatch(now) {
                queue.completed(now, id, &mut done);
            } else if let Some(at) = queue.next_wakeup() {
                now = now.max(at);
                queue.wake(now);
            } else {
                break;
            }
        }
        prop_assert_eq!(done.len(), taken);
        prop_assert!(queue.check("queue", now).is_ok());
    }

    #[test]
    fn hardware_queues_lose_nothing(
        load in invariants::arrivals(4),
        depth in 1u32..5,
        queues in 1u16..4,
        shared_tags: bool,
        which in 0u8..4,
    ) {
        let scheduler: Box<dyn Scheduler> = match which {
            0 => Box::new(NoScheduler::default()),
            1 => Box::new(Bfq::new(Default::default(), true, &[100])),
            2 => Box::new(Kyber::new(Default::default(), QueueMap::modulo(4, queues))),
            _ => Box::new(MqDeadline::new(Default::default())),
        };
        let hardware = HardwareRules {
            map: QueueMap::modulo(4, queues), depth, shared_tags, runs: KERNEL_6_1, ..HardwareRules::SINGLE
        };
        let queue = RequestQueue::new(invariants::rules(), scheduler).with_hardware(hardware);
        invariants::completes_each_once(&invariants::serve_through(queue, &load, 8, 1_000_000));
    }
}

/// Before a device of one command: with the tags of a scheduler.
fn one_command(tags: u32, pulls_ahead: bool) -> RequestQueue {
    let hardware = HardwareRules {
        map: QueueMap::SINGLE,
        depth: 1,
        shared_tags: true,
        runs: Runs { pulls_ahead, ..KERNEL_6_1 },
        ..HardwareRules::SINGLE
    };
    let scheduler = MqDeadline::new(MqDeadlineTunables::default());
    queue(Box::new(scheduler), tags, hardware)
}

fn plugged(queue: &mut RequestQueue, bio: Bio) -> Bio {
    match queue.allocate_for_plug(0, bio, false) {
        AllocateOutcome::Plugged(bio) => bio,
        other => panic!("no request of its own: {other:?}"),
    }
}

#[test]
fn one_more_request_than_the_device_takes_leaves_the_scheduler_and_merges_no_more() {
    for pulls in [false, true] {
        let mut queue = one_command(64, pulls);
        submit_on(&mut queue, 0, 100);
        submit_on(&mut queue, 0, 200);
        submit_on(&mut queue, 0, 300);
        assert_eq!(dispatched(&mut queue), [100]);
        let merges =
            |queue: &mut RequestQueue, start| matches!(queue.submit(0, bio(0, Read, start)), SubmitOutcome::Merged(..));
        assert_eq!(merges(&mut queue, 208), !pulls);
        assert!(merges(&mut queue, 308));
    }
}

#[test]
fn what_is_plugged_has_its_request_and_others_wait_for_it() {
    let mut queue = one_command(2, true);
    let of = |task, start| Bio { task, ..bio(0, Read, start) };
    let first = plugged(&mut queue, of(1, 100));
    let second = plugged(&mut queue, of(1, 200));
    let third = queue.allocate_for_plug(0, of(2, 300), false);
    assert!(matches!(third, AllocateOutcome::MustWait(_)));
    assert_eq!(queue.submit(0, of(3, 400)), SubmitOutcome::MustWait);
    for bio in [first, second] {
        assert!(matches!(queue.submit(0, bio), SubmitOutcome::Queued(_)));
    }
    let id = queue.dispatch(0).unwrap();
    queue.completed(1, id, &mut Vec::new());
    let mut woken = Vec::new();
    queue.take_woken(&mut woken);
    assert_eq!(woken, [2]);
}

#[test]
fn what_is_plugged_and_joins_a_queued_request_gives_its_own_back() {
    let mut queue = one_command(2, true);
    let late = plugged(&mut queue, bio(0, Read, 108));
    submit_on(&mut queue, 0, 100);
    let mut sleeps = |task| {
        let bio = Bio { task, ..bio(0, Read, 900) };
        queue.submit(0, bio) == SubmitOutcome::MustWait
    };
    assert!(sleeps(7));
    assert!(matches!(queue.submit(0, late), SubmitOutcome::Merged(..)));
    let mut woken = Vec::new();
    queue.take_woken(&mut woken);
    assert_eq!(woken, [7]);
    submit_on(&mut queue, 0, 900);
}

proptest! {
    /// Tasks plug some bios and sleep if there is no request; a device of one command serves them. Each bio completes
    /// once, and who sleeps is woken before as many requests are done as there are tasks and tags.
    #[test]
    fn nothing_plugged_is_lost_and_nobody_sleeps_for_long(
        tags in 1..5_u32,
        pulls: bool,
        calls in prop::collection::vec((0..4_u32, 1..6_u64, 0..64_u64), 1..60),
    ) {
        let mut queue = one_command(tags, pulls);
        let (mut done, mut sent, mut in_flight) = (Vec::new(), 0, VecDeque::new());
        let mut complete = |queue: &mut RequestQueue, in_flight: &mut VecDeque<RequestId>| {
            in_flight.extend(queue.dispatch(0));
            let id = in_flight.pop_front().expect("the device has something while somebody sleeps");
            queue.completed(0, id, &mut done);
        };
        for (task, bios, place) in calls {
            let mut plug = Vec::new();
            for number in 0..bios {
                let mut bio = Bio { task, ..bio(0, Read, 8 * (64 * u64::from(task) + place + 3 * number)) };
                sent += 1;
                let mut slept = 0;
                loop {
                    match queue.allocate_for_plug(0, bio, slept > 0) {
                        AllocateOutcome::Merged => break,
                        AllocateOutcome::Plugged(bio) => {
                            plug.push(bio);
                            break;
                        }
                        AllocateOutcome::MustWait(late) => bio = late,
                    }
                    for bio in plug.drain(..) {
                        prop_assert_ne!(queue.submit(0, bio), SubmitOutcome::MustWait);
                    }
                    let mut woken = Vec::new();
                    while !woken.contains(&task) {
                        complete(&mut queue, &mut in_flight);
                        queue.take_woken(&mut woken);
                        slept += 1;
                        prop_assert!(slept <= 4 + tags);
                    }
                }
            }
            for bio in plug {
                prop_assert_ne!(queue.submit(0, bio), SubmitOutcome::MustWait);
            }
        }
        while queue.outstanding() > 0 {
            complete(&mut queue, &mut in_flight);
        }
        prop_assert_eq!(done.len(), sent);
        prop_assert!(queue.pools.iter().all(|pool| pool.allocated() == 0));
    }
}

#[test]
fn a_lone_tag_that_is_free_wakes_one_task() {
    let hardware =
        HardwareRules { map: QueueMap::SINGLE, depth: 1, shared_tags: true, runs: KERNEL_6_1, ..HardwareRules::SINGLE };
    let mut queue = queue(Box::new(NoScheduler::default()), 1, hardware);
    let mut submit = |task| {
        let bio = Bio { task, ..bio(0, Read, 1000 * u64::from(task)) };
        queue.submit(0, bio) != SubmitOutcome::MustWait
    };
    assert_eq!([1, 2, 3].map(&mut submit), [true, false, false]);
    let first = queue.dispatch(0).unwrap();
    queue.completed(1, first, &mut Vec::new());
    let mut woken = Vec::new();
    queue.take_woken(&mut woken);
    assert_eq!(woken, [2]);
}
