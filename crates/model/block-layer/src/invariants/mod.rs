//! What every scheduler has to keep, whatever comes in whichever order: the harness of their property tests.

pub mod bench;
pub mod tapped_queue;

use crate::scheduler::Scheduler;
use crate::{Bio, Direction, IoClass, Priority, RequestId, RequestQueue, SubmitOutcome};
use events::time::{MILLISECOND, Time};
use kernels::queue::{Merges, PlugRules, PoolRules, QueueRules};

/// The longest time between two bios of a random load.
pub const AFTER_NS_MAX: Time = 20 * MILLISECOND;

/// One bio of a random load.
#[derive(Clone, Copy, Debug)]
pub struct Arrival {
    /// After the one before it.
    pub after_ns: Time,
    /// Read or written.
    pub direction: Direction,
    /// A task waits for it.
    pub sync: bool,
    /// In units of 8 sectors.
    pub block: u64,
    /// The number of blocks of 8 sectors each.
    pub blocks: u32,
    /// Who submits it.
    pub task: u32,
}

/// Random loads of this many tasks.
#[cfg(test)]
pub fn arrivals(tasks: u32) -> impl proptest::strategy::Strategy<Value = Vec<Arrival>> {
    use proptest::prelude::*;
    let drawn = (0..AFTER_NS_MAX, any::<bool>(), any::<bool>(), 0..200u64, 1..5u32, 0..tasks);
    prop::collection::vec(drawn.prop_map(Arrival::of), 1..120)
}

impl Arrival {
    /// The arrivals that were drawn; two of three come at once.
    pub fn of((after_ns, read, sync, block, blocks, task): (Time, bool, bool, u64, u32, u32)) -> Arrival {
        Arrival {
            after_ns: if after_ns % 3 == 0 { after_ns } else { 0 },
            direction: if read { Direction::Read } else { Direction::Write },
            sync: read || sync,
            block,
            blocks,
            task,
        }
    }
}

/// A queue with enough requests for any of these loads, without plugs.
pub fn rules() -> QueueRules {
    QueueRules {
        request_sectors_max: 64,
        request_segments_max: 128,
        merges: Merges::All,
        pool: PoolRules { requests: 1000, ..PoolRules::LINUX_2_6_35 },
        pool_by_sync: true,
        plug: PlugRules::NONE,
    }
}

/// What one bio was offered and when it completed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ServedBio {
    /// Its place in the load.
    pub bio: usize,
    /// When it got a request.
    pub submitted_at: Time,
    /// When that completed.
    pub completed_at: Time,
}

/// Runs the load on a device that serves `depth` requests at once, each in `service_ns`. Panics if something is lost or
/// done twice, and if the queue does not come to rest.
pub fn serve(scheduler: Box<dyn Scheduler>, load: &[Arrival], depth: u32, service_ns: Time) -> Vec<ServedBio> {
    serve_through(RequestQueue::new(rules(), scheduler), load, depth, service_ns)
}

/// The same behind any queue that never lets a task wait for a request.
pub fn serve_through(mut queue: RequestQueue, load: &[Arrival], depth: u32, service_ns: Time) -> Vec<ServedBio> {
    let (mut now, mut next, mut due) = (0, 0, load.first().map_or(0, |first| first.after_ns));
    // In order of completion: all take the same time.
    let mut at_device: Vec<(Time, RequestId)> = Vec::new();
    let mut served = Vec::new();
    let mut bios = Vec::new();
    for _ in 0..1_000_000 {
        while at_device.len() < depth as usize
            && let Some(id) = queue.dispatch(now)
        {
            at_device.push((now + service_ns, id));
        }
        let arrives = (next < load.len()).then_some(due);
        let completes = at_device.first().map(|&(at, _)| at);
        let Some(then) = [arrives, completes, queue.next_wakeup()].into_iter().flatten().min() else {
            queue.check("queue", now).expect("conservation and Little's law");
            assert_eq!((served.len(), queue.outstanding()), (load.len(), 0));
            return served;
        };
        now = then.max(now);
        if queue.next_wakeup().is_some_and(|at| at <= now) {
            queue.wake(now);
        } else if completes.is_some_and(|at| at <= now) {
            let (_, id) = at_device.remove(0);
            queue.completed(now, id, &mut bios);
            served.extend(bios.drain(..).map(|bio| ServedBio {
                bio: bio.tag as usize,
                submitted_at: bio.submitted_at,
                completed_at: now,
            }));
        } else {
            assert_ne!(queue.submit(now, bio_of(&load[next], next, now)), SubmitOutcome::MustWait);
            next += 1;
            due = now + load.get(next).map_or(0, |arrival| arrival.after_ns);
        }
    }
    panic!("the queue does not come to rest: {} of {} bios completed", served.len(), load.len());
}

fn bio_of(arrival: &Arrival, number: usize, now: Time) -> Bio {
    Bio {
        direction: arrival.direction,
        sync: arrival.sync,
        metadata: false,
        read_ahead: false,
        no_idle: false,
        writeback: false,
        behind_flush: false,
        force_unit_access: false,
        qos: Default::default(),
        allocated: None,
        workers: 0,
        polled: false,
        write_stream: 0,
        start: arrival.block * 8,
        sectors: arrival.blocks * 8,
        segments: arrival.blocks as u16,
        task: arrival.task,
        group: (arrival.task % 3) as u16,
        priority: priority_of(arrival.task),
        cpu: (arrival.task % 2) as u16,
        submitted_at: now,
        tag: number as u32,
        next: None,
    }
}

/// Tasks 0 and 1 are ordinary ones, 2 is of the real-time class, 3 of the idle class.
pub fn priority_of(task: u32) -> Priority {
    match task {
        2 => Priority { class: IoClass::RealTime, level: 4 },
        3 => Priority { class: IoClass::Idle, level: 7 },
        _ => Priority::default(),
    }
}

/// Every bio completes exactly once.
pub fn completes_each_once(served: &[ServedBio]) {
    let mut numbers: Vec<usize> = served.iter().map(|served| served.bio).collect();
    numbers.sort_unstable();
    assert_eq!(numbers, (0..served.len()).collect::<Vec<_>>());
}
