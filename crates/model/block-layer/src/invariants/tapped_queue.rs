//! A tapped queue under a random load: what the tests of events, and of what is made of them, look at.

use std::collections::{BTreeMap, VecDeque};

use crate::invariants::Arrival;
use crate::invariants::bench::bio;
use crate::{Bio, QueueEvent, RequestId, RequestQueue, SubmitOutcome, TaskId};
use events::time::Time;

/// What came of a load.
pub struct LoadOutcome {
    /// All events, in the order in which they happened.
    pub events: Vec<QueueEvent>,
    /// The time of each bio from its first submission to its completion, in the order of completion.
    pub total_ns: Vec<Time>,
    /// When nothing was left to do.
    pub ended: Time,
}

/// Serves the load, `depth` requests at once, each in `service_ns`. A task that found no request submits nothing until it
/// is woken. Tasks 0, 1, ... are on CPUs 0, 1, 0, 1, ...
pub fn serve_tapped(queue: &mut RequestQueue, load: &[Arrival], depth: usize, service_ns: Time) -> LoadOutcome {
    queue.tap(0);
    let mut bench = Bench { queue, came: vec![None; load.len()], waiting: BTreeMap::new() };
    let mut served = LoadOutcome { events: Vec::new(), total_ns: Vec::new(), ended: 0 };
    let mut at_device: VecDeque<(Time, RequestId)> = VecDeque::new();
    let (mut now, mut next, mut due) = (0, 0, load.first().map_or(0, |first| first.after_ns));
    loop {
        while at_device.len() < depth
            && let Some(id) = bench.queue.dispatch(now)
        {
            at_device.push_back((now + service_ns, id));
        }
        bench.queue.take_events(&mut served.events);
        let arrives = (next < load.len()).then_some(due);
        let completes = at_device.front().map(|&(at, _)| at);
        let wakes = bench.queue.next_wakeup();
        let times = [arrives, completes, wakes].into_iter().flatten();
        let Some(then) = times.min() else {
            if bench.queue.outstanding() == 0 {
                served.ended = now;
                return served;
            }
            // Nobody else lets a plugged queue go.
            bench.queue.unplug();
            continue;
        };
        now = then.max(now);
        if wakes.is_some_and(|at| at <= now) {
            bench.queue.wake(now);
        } else if completes.is_some_and(|at| at <= now) {
            let (_, id) = at_device.pop_front().expect("one is there");
            bench.complete(now, id, &mut served.total_ns);
        } else {
            bench.arrive(now, next as u32, &load[next]);
            next += 1;
            due = now + load.get(next).map_or(0, |arrival| arrival.after_ns);
        }
    }
}

struct Bench<'a> {
    queue: &'a mut RequestQueue,
    /// By bio, whose tag is its number: when it was submitted first.
    came: Vec<Option<Time>>,
    /// Tasks that found no request, and what they would have submitted since.
    waiting: BTreeMap<TaskId, VecDeque<Bio>>,
}

impl Bench<'_> {
    fn arrive(&mut self, now: Time, number: u32, arrival: &Arrival) {
        let bio = Bio {
            sync: arrival.sync,
            sectors: arrival.blocks * 8,
            task: arrival.task,
            cpu: arrival.task as u16 % 2,
            tag: number,
            ..bio(now, arrival.direction, arrival.block * 8)
        };
        match self.waiting.get_mut(&arrival.task) {
            Some(line) => line.push_back(bio),
            None => self.submit_all(now, VecDeque::from([bio])),
        }
    }

    fn submit_all(&mut self, now: Time, mut line: VecDeque<Bio>) {
        while let Some(mut bio) = line.pop_front() {
            bio.submitted_at = now;
            self.came[bio.tag as usize].get_or_insert(now);
            if self.queue.submit(now, bio.clone()) == SubmitOutcome::MustWait {
                let task = bio.task;
                line.push_front(bio);
                self.waiting.insert(task, line);
                return;
            }
        }
    }

    fn complete(&mut self, now: Time, id: RequestId, total_ns: &mut Vec<Time>) {
        let mut done = Vec::new();
        self.queue.completed(now, id, &mut done);
        let came = |bio: &Bio| self.came[bio.tag as usize].expect("it was submitted");
        total_ns.extend(done.iter().map(|bio| now - came(bio)));
        let mut woken = Vec::new();
        self.queue.take_woken(&mut woken);
        for task in woken {
            if let Some(line) = self.waiting.remove(&task) {
                self.submit_all(now, line);
            }
        }
    }
}
