//! What a scheduler costs in wall time: `cargo run --release -p iolab-block-layer --example scheduler_cost`.

#![allow(clippy::disallowed_types)] // The model must not look at a clock; its measurement has to.

use std::collections::BTreeMap;
use std::time::Instant;

use block_layer::scheduler::spec::{SchedulerSpec, Surroundings};
use block_layer::{Bio, Direction, Priority, QueueMap, RequestQueue, SubmitOutcome};
use kernels::hardware_queue::TagWakeRule;
use kernels::queue::{Merges, PlugRules, PoolRules, QueueRules};

const REQUESTS: u32 = 1_000_000;
const SERVICE_NS: u64 = 10_000;

fn main() {
    let only = std::env::args().nth(1);
    for (name, kernel) in [
        ("noop", "2.6.35"),
        ("deadline", "2.6.35"),
        ("anticipatory", "2.6.32"),
        ("cfq", "2.6.35"),
        ("none", "6.x"),
        ("mq-deadline", "6.x"),
        ("kyber", "6.x"),
        ("bfq", "6.x"),
    ] {
        if only.as_ref().is_some_and(|only| only != name) {
            continue;
        }
        for (order, tasks) in [
            (Order::Random, 32),
            (Order::Random, 1000),
            (Order::Sequential, 32),
        ] {
            let began = Instant::now();
            reads(name, kernel, order, tasks);
            let rate = f64::from(REQUESTS) / began.elapsed().as_secs_f64() / 1e6;
            println!(
                "{name}, {order:?}, {tasks} tasks with a read each: {rate:.2} M requests/s of wall time"
            );
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Order {
    /// On a device without seeks.
    Random,
    /// On a disk, each task its own stream.
    Sequential,
}

/// Through the queue to a device that serves one request after the other and holds 32.
fn reads(name: &str, kernel: &str, order: Order, tasks: u32) {
    let given = BTreeMap::from([("name".to_owned(), name.to_owned())]);
    let spec = SchedulerSpec::new(&given, kernel, 1000).expect("a scheduler of that kernel");
    let scheduler = spec.build(&Surroundings {
        rotational: order == Order::Sequential,
        queue_map: &QueueMap::SINGLE,
        request_sectors_max: 1024,
        pool_requests: 128,
        group_weights: &[1000],
    });
    let rules = QueueRules {
        request_sectors_max: 1024,
        request_segments_max: 128,
        merges: Merges::All,
        pool: PoolRules::tags(tasks, TagWakeRule::Batch),
        pool_by_sync: true,
        plug: PlugRules::NONE,
    };
    let mut queue = RequestQueue::new(rules, scheduler);
    let mut stream = base::rng::stream(1, 0);
    let mut places = vec![0; tasks as usize];
    let mut submit = |queue: &mut RequestQueue, task: u32, now: u64| {
        let place = &mut places[task as usize];
        *place += 8;
        let start = match order {
            Order::Random => stream.below(100_000_000) * 8,
            Order::Sequential => u64::from(task) * 20_000_000 + *place,
        };
        let bio = Bio {
            direction: Direction::Read,
            sync: true,
            metadata: false,
            read_ahead: false,
            no_idle: false,
            writeback: false,
            behind_flush: false,
            allocated: None,
            workers: 0,
            polled: false,
            start,
            sectors: 8,
            segments: 1,
            task,
            group: 0,
            priority: Priority::default(),
            cpu: (task % 8) as u16,
            submitted_at: now,
            tag: 0,
            next: None,
        };
        assert_ne!(queue.submit(now, bio), SubmitOutcome::MustWait);
    };
    for task in 0..tasks {
        submit(&mut queue, task, 0);
    }
    let (mut now, mut done, mut bios) = (0, 0, Vec::new());
    let mut at_device = std::collections::VecDeque::new();
    while done < REQUESTS {
        while at_device.len() < 32
            && let Some(id) = queue.dispatch(now)
        {
            at_device.push_back(id);
        }
        if queue.next_wakeup().is_some_and(|at| at <= now) {
            queue.wake(now);
        } else if let Some(id) = at_device.pop_front() {
            now += SERVICE_NS;
            queue.completed(now, id, &mut bios);
            for bio in bios.drain(..) {
                done += 1;
                submit(&mut queue, bio.task, now);
            }
        } else {
            now = queue.next_wakeup().expect("something waits for a time");
        }
    }
}
