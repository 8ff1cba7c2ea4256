//! mq-deadline with priority classes, from 5.14 on. Before that it is variant C of `deadline`.
//!
//! Source: `block/mq-deadline.c` of 5.14 and 6.17 (docs/model/sources/deadline.md#mq-deadline). From 6.5 on a batch
//! continues at the first request behind the last one's place, whenever that request has come (`latest_pos`); from 6.10
//! on writes may have all tags unless `async_depth` sets another limit (`dd_depth_updated`). The versions of both
//! changes are inferred.

use serde::Deserialize;

use crate::scheduler::Scheduler;
use crate::scheduler::read_preference::ReadPreference;
use crate::scheduler::request_fifo::{FifoId, RequestFifos};
use crate::{Bio, Direction, IoClass, Priority, PriorityPolicy, Request, RequestId, Requests, Sector, TagCounts};
use events::time::{MILLISECOND, SECOND, Time};

/// The attributes of mq-deadline in sysfs; times in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, schemars::JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct MqDeadlineTunables {
    /// A read that has waited this long begins the next batch of reads of its class.
    #[serde(rename = "read_expire")]
    pub read_expire_ns: Time,
    /// The same of writes.
    #[serde(rename = "write_expire")]
    pub write_expire_ns: Time,
    /// Batches of reads that writes let pass.
    pub writes_starved: u32,
    /// Requests in a batch.
    pub fifo_batch: u32,
    /// Look for requests that begin where a bio ends.
    pub front_merges: bool,
    /// Requests that are not sync reads get no tag while this many are in use; None: three quarters of all tags, from
    /// 6.10 on all.
    pub async_depth: Option<u32>,
    /// A request that is older than this is served although a higher class has something to do.
    #[serde(rename = "prio_aging_expire")]
    pub prio_aging_expire_ns: Time,
}

impl Default for MqDeadlineTunables {
    fn default() -> MqDeadlineTunables {
        MqDeadlineTunables {
            read_expire_ns: 500 * MILLISECOND,
            write_expire_ns: 5 * SECOND,
            writes_starved: 2,
            fifo_batch: 16,
            front_merges: true,
            async_depth: None,
            prio_aging_expire_ns: 10 * SECOND,
        }
    }
}

/// The state of one queue's mq-deadline.
#[derive(Clone, Debug)]
pub struct MqDeadline {
    tunables: MqDeadlineTunables,
    tick_ns: Time,
    /// Of each direction, in whole ticks.
    expire_ns: [Time; 2],
    /// A FIFO for each class and direction.
    fifos: RequestFifos,
    /// For each FIFO: the sorted successor of what was dispatched from it last.
    next: [Option<RequestId>; LINES],
    /// Instead of that, its position; None: it does not use a position.
    position: Option<[Sector; LINES]>,
    /// Writes leave tags to reads.
    reserves: bool,
    /// By group, the root first; groups beyond change nothing.
    policies: Vec<PriorityPolicy>,
    /// Requests of each class, queued or at the device.
    outstanding: [u32; CLASSES.len()],
    // These three are common to all classes, as in the kernel.
    last_direction: Direction,
    batching: u32,
    read_preference: ReadPreference,
}

const CLASSES: [IoClass; 3] = [IoClass::RealTime, IoClass::BestEffort, IoClass::Idle];
const LINES: usize = 2 * CLASSES.len();

impl MqDeadline {
    /// An empty scheduler.
    pub fn new(tunables: MqDeadlineTunables) -> MqDeadline {
        MqDeadline {
            expire_ns: [tunables.read_expire_ns, tunables.write_expire_ns],
            tunables,
            tick_ns: 1,
            fifos: RequestFifos::default(),
            next: [None; LINES],
            position: None,
            reserves: true,
            policies: Vec::new(),
            outstanding: [0; CLASSES.len()],
            last_direction: Direction::Write,
            batching: 0,
            read_preference: ReadPreference::default(),
        }
    }

    /// A batch continues by the position of the last request: from 6.5 on.
    pub fn with_position(mut self) -> MqDeadline {
        self.position = Some([0; LINES]);
        self
    }

    /// By the clock of a kernel with so many ticks a second.
    pub fn with_hz(mut self, hz: u32) -> MqDeadline {
        self.tick_ns = SECOND / u64::from(hz);
        self.expire_ns = self.expire_ns.map(|time_ns| time_ns.next_multiple_of(self.tick_ns));
        self
    }

    /// Writes may have all tags: from 6.10 on.
    pub fn without_reserve(mut self) -> MqDeadline {
        self.reserves = false;
        self
    }

    /// By control group, the root first.
    pub fn with_policies(mut self, policies: &[PriorityPolicy]) -> MqDeadline {
        self.policies = policies.to_vec();
        self
    }

    /// Of I/O of that group, whose task has that priority (`bio_set_ioprio`).
    fn priority(&self, group: u16, own: Priority) -> Priority {
        let policy = self.policies.get(usize::from(group)).copied();
        policy.unwrap_or_default().of(own)
    }

    fn class_of(&self, request: &Request) -> IoClass {
        self.priority(request.group, request.priority).class
    }

    /// How many requests that are not sync reads may have a tag, of so many.
    fn async_depth(&self, tags: u32) -> u32 {
        let default = if self.reserves { 3 * tags / 4 } else { tags };
        self.tunables.async_depth.unwrap_or(default).max(1)
    }

    /// A request that has waited so long that it is served regardless of its class (`dd_dispatch_prio_aged_requests`).
    fn dispatch_aged(&mut self, now: Time, requests: &Requests) -> Option<RequestId> {
        let classes_busy = self.outstanding.iter().filter(|&&count| count > 0).count();
        if classes_busy < 2 {
            return None;
        }
        // Both times are ticks: who has come with that tick is old enough.
        let aging = self.tunables.prio_aging_expire_ns.div_ceil(self.tick_ns);
        let last = (now / self.tick_ns).checked_sub(aging)?;
        let started_by = (last + 1) * self.tick_ns - 1;
        [IoClass::BestEffort, IoClass::Idle]
            .into_iter()
            .find_map(|class| self.dispatch_class(now, requests, class, started_by))
    }

    /// The next of a class, if it arrived by then (`__dd_dispatch_request`).
    fn dispatch_class(
        &mut self,
        now: Time,
        requests: &Requests,
        class: IoClass,
        arrived_by: Time,
    ) -> Option<RequestId> {
        let next = self.next_of(fifo_of(class, self.last_direction));
        let id = match next.filter(|_| self.batching < self.tunables.fifo_batch) {
            Some(next) => next,
            None => {
                let direction = self.choose_direction(class)?;
                self.last_direction = direction;
                self.batching = 0;
                self.first_of_batch(fifo_of(class, direction), now)?
            }
        };
        if self.arrived_at(&requests[id], id) > arrived_by {
            return None;
        }
        self.batching += 1;
        let fifo = self.fifos.fifo_of(id);
        match &mut self.position {
            Some(position) => position[fifo] = requests[id].start,
            None => self.next[fifo] = self.fifos.after(requests, id),
        }
        self.fifos.remove(requests, id);
        Some(id)
    }

    fn choose_direction(&mut self, class: IoClass) -> Option<Direction> {
        let waits = |direction| !self.fifos.is_empty(fifo_of(class, direction));
        let (reads, writes) = (waits(Direction::Read), waits(Direction::Write));
        self.read_preference.next(reads, writes, self.tunables.writes_starved)
    }

    /// Where a batch begins (`deadline_check_fifo`, `deadline_fifo_request`): at the oldest request if it has expired
    /// or nothing follows the last one, else there.
    fn first_of_batch(&self, fifo: FifoId, now: Time) -> Option<RequestId> {
        let expired = self.fifos.due(fifo, now);
        expired.or(self.next_of(fifo)).or(self.fifos.oldest(fifo))
    }

    /// What follows in sector order (`deadline_next_request`, from 6.5 on `deadline_from_pos`).
    fn next_of(&self, fifo: FifoId) -> Option<RequestId> {
        match &self.position {
            Some(position) => self.fifos.at_or_after(fifo, position[fifo]),
            None => self.next[fifo],
        }
    }

    /// `started_after`.
    fn arrived_at(&self, request: &Request, id: RequestId) -> Time {
        self.fifos.deadline(id) - self.expire_ns[request.direction as usize]
    }
}

fn fifo_of(class: IoClass, direction: Direction) -> FifoId {
    2 * class as usize + direction as usize
}

impl Scheduler for MqDeadline {
    fn fifos(&mut self) -> Option<&mut RequestFifos> {
        Some(&mut self.fifos)
    }

    /// `dd_request_merge`.
    fn fifo_before(&self, bio: &Bio) -> Option<FifoId> {
        let class = self.priority(bio.group, bio.priority).class;
        let fifo = fifo_of(class, bio.direction);
        self.tunables.front_merges.then_some(fifo)
    }

    fn may_merge(&self, requests: &Requests, request: RequestId, bio: &Bio) -> bool {
        let request = &requests[request];
        self.priority(request.group, request.priority) == self.priority(bio.group, bio.priority)
    }

    /// `dd_merged_requests`.
    fn merged_requests(&mut self, _: Time, requests: &Requests, survivor: RequestId, merged: RequestId) {
        self.outstanding[self.class_of(&requests[merged]) as usize] -= 1;
        let next = &mut self.next[self.fifos.fifo_of(merged)];
        if *next == Some(merged) {
            *next = self.fifos.after(requests, merged);
        }
        self.fifos.merged_requests(requests, survivor, merged);
    }

    /// All but sync reads leave a part of the tags to these (`dd_limit_depth`).
    /// The first version takes a number of all tags for one of each word, as which it limits nobody unless it is small;
    /// from 6.10 on it is scaled (`dd_to_word_depth`) as long as limits are of words.
    fn tags_allowed(&self, bio: &Bio, tags: TagCounts) -> u32 {
        if bio.sync && bio.direction == Direction::Read {
            return tags.most();
        }
        let limit = self.async_depth(tags.told);
        if self.reserves {
            return limit;
        }
        let scaled = u64::from(limit) * u64::from(tags.most());
        u32::try_from(scaled.div_ceil(u64::from(tags.all))).unwrap_or(u32::MAX)
    }

    /// From 6.10 on it shows 1, whatever the limit is (`dd_depth_updated`).
    fn fewest_tags(&self, tags: TagCounts) -> u32 {
        match self.reserves {
            true => self.async_depth(tags.told),
            false => 1,
        }
    }

    /// `dd_insert_request`.
    fn add(&mut self, now: Time, requests: &Requests, id: RequestId) {
        let request = &requests[id];
        let class = self.class_of(request);
        let tick = now / self.tick_ns * self.tick_ns;
        let deadline = tick + self.expire_ns[request.direction as usize];
        self.outstanding[class as usize] += 1;
        let fifo = fifo_of(class, request.direction);
        self.fifos.add(requests, id, fifo, deadline);
    }

    /// `dd_dispatch_request`.
    fn dispatch(&mut self, now: Time, requests: &Requests) -> Option<RequestId> {
        if let Some(aged) = self.dispatch_aged(now, requests) {
            return Some(aged);
        }
        let class = CLASSES.into_iter().find(|&class| self.outstanding[class as usize] > 0)?;
        self.dispatch_class(now, requests, class, now)
    }

    /// `dd_finish_request`.
    fn completed(&mut self, _: Time, requests: &Requests, request: RequestId) {
        self.outstanding[self.class_of(&requests[request]) as usize] -= 1;
    }

    fn runs_queue(&self) -> bool {
        true
    }

    fn queued(&self) -> usize {
        self.fifos.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::invariants;
    use crate::invariants::bench::{Bench, bio};
    use Direction::{Read, Write};
    use kernels::hardware_queue::TagLimit;
    use proptest::prelude::*;

    fn bench() -> Bench<MqDeadline> {
        Bench::new(MqDeadline::new(MqDeadlineTunables::default()))
    }

    fn of_class(class: IoClass, now: Time, start: Sector) -> Bio {
        Bio { priority: Priority { class, level: 4 }, ..bio(now, Read, start) }
    }

    #[test]
    fn a_lower_class_waits_while_a_higher_one_has_anything_queued_or_at_the_device() {
        let mut bench = bench();
        bench.add_bio(0, &of_class(IoClass::Idle, 0, 100));
        bench.add_bio(0, &of_class(IoClass::RealTime, 0, 900));
        let real_time = bench.scheduler.dispatch(0, &bench.requests).unwrap();
        assert_eq!(bench.requests[real_time].start, 900);
        assert!(bench.dispatched(1, 1).is_empty(), "900 is at the device");
        bench.scheduler.completed(2, &bench.requests, real_time);
        assert_eq!(bench.dispatched(2, 1), [100]);
    }

    /// The classes of tasks are alike; what counts is what becomes of them in their groups.
    #[test]
    fn a_groups_policy_decides_the_class() {
        use PriorityPolicy::{Idle, NoChange, PromoteToRt, RestrictToBe};
        let policies = [NoChange, Idle, PromoteToRt, RestrictToBe];
        let mut bench = bench();
        bench.scheduler = bench.scheduler.with_policies(&policies);
        for (group, start) in [(1, 100), (0, 500), (2, 900)] {
            let class = IoClass::BestEffort;
            let bio = Bio { group, ..of_class(class, 0, start) };
            bench.add_bio(0, &bio);
        }
        let real_time = bench.scheduler.dispatch(1, &bench.requests).unwrap();
        assert_eq!(bench.requests[real_time].start, 900);
        assert!(bench.dispatched(1, 1).is_empty(), "900 is at the device");
        bench.scheduler.completed(2, &bench.requests, real_time);
        assert_eq!(bench.dispatched(2, 1), [500]);
        let urgent = Priority { class: IoClass::RealTime, level: 2 };
        assert_eq!(RestrictToBe.of(urgent), Priority { class: IoClass::BestEffort, level: 0 });
        assert_eq!(Idle.of(urgent), Priority { class: IoClass::Idle, level: 0 });
        assert_eq!(PromoteToRt.of(urgent), urgent);
        assert_eq!(PromoteToRt.of(Priority::default()), Priority { class: IoClass::RealTime, level: 4 });
        assert_eq!(RestrictToBe.of(Priority::default()), Priority::default());
    }

    #[test]
    fn a_request_older_than_10_s_passes_the_higher_classes() {
        let mut bench = bench();
        bench.add_bio(0, &of_class(IoClass::Idle, 0, 100));
        bench.add_bio(0, &of_class(IoClass::RealTime, 0, 900));
        bench.add_bio(0, &of_class(IoClass::RealTime, 0, 1900));
        assert_eq!(bench.dispatched(10 * SECOND - 1, 1), [900]);
        assert_eq!(bench.dispatched(10 * SECOND, 1), [100]);
    }

    #[test]
    fn a_request_has_expired_when_its_deadline_comes_not_after() {
        for (now, expected) in [(500 * MILLISECOND - 1, 200), (500 * MILLISECOND, 50)] {
            let tunables = MqDeadlineTunables { fifo_batch: 1, ..MqDeadlineTunables::default() };
            let mut bench = Bench::new(MqDeadline::new(tunables));
            bench.add(0, Read, &[100, 50, 200]);
            assert_eq!(bench.dispatched(0, 1), [100]);
            assert_eq!(bench.dispatched(now, 1), [expected]);
        }
    }

    #[test]
    fn deadlines_are_ticks() {
        for (now, expected) in [(499, 200), (500, 50)] {
            let tunables = MqDeadlineTunables { fifo_batch: 1, ..MqDeadlineTunables::default() };
            let mut bench = Bench::new(MqDeadline::new(tunables).with_hz(250));
            bench.add(3 * MILLISECOND, Read, &[100, 50, 200]);
            assert_eq!(bench.dispatched(3 * MILLISECOND, 1), [100]);
            assert_eq!(bench.dispatched(now * MILLISECOND, 1), [expected]);
        }
    }

    /// `dd_init_sched`; from 6.5 on the first batch looks behind sector 0.
    #[test]
    fn the_first_batch_goes_on_with_writes() {
        for (by_position, expected) in [(false, [500, 900]), (true, [-700, 500])] {
            let mut scheduler = MqDeadline::new(MqDeadlineTunables::default());
            if by_position {
                scheduler = scheduler.with_position();
            }
            let mut bench = Bench::new(scheduler);
            bench.add(0, Read, &[500, 900]);
            bench.add(0, Write, &[700]);
            assert_eq!(bench.dispatched(0, 2), expected);
        }
    }

    #[test]
    fn each_direction_goes_on_where_it_stopped() {
        let tunables = MqDeadlineTunables { fifo_batch: 1, writes_starved: 0, ..MqDeadlineTunables::default() };
        let mut bench = Bench::new(MqDeadline::new(tunables));
        bench.add(0, Write, &[1000, 500, 2000]);
        assert_eq!(bench.dispatched(0, 1), [-1000]);
        bench.add(0, Read, &[5000]);
        bench.scheduler.tunables.writes_starved = 2;
        assert_eq!(bench.dispatched(0, 1), [5000]);
        assert_eq!(bench.dispatched(0, 1), [-2000], "not the oldest, -500");
    }

    fn tags() -> TagCounts {
        TagCounts::of(256, TagLimit::OfWord)
    }

    #[test]
    fn the_first_limit_of_async_requests_is_taken_for_one_of_each_word() {
        let scheduler = MqDeadline::new(MqDeadlineTunables::default());
        let sync = Bio { sync: true, ..bio(0, Write, 0) };
        assert_eq!(scheduler.tags_allowed(&bio(0, Read, 0), tags()), 64);
        assert_eq!(scheduler.tags_allowed(&bio(0, Write, 0), tags()), 192);
        assert_eq!(scheduler.tags_allowed(&sync, tags()), 192);
        assert_eq!(scheduler.fewest_tags(tags()), 192);
    }

    #[test]
    fn from_6_10_on_the_limit_is_scaled_and_there_is_none_by_default() {
        let of = |async_depth| {
            let tunables = MqDeadlineTunables { async_depth, ..MqDeadlineTunables::default() };
            MqDeadline::new(tunables).without_reserve()
        };
        assert_eq!(of(None).tags_allowed(&bio(0, Write, 0), tags()), 64);
        assert_eq!(of(Some(8)).tags_allowed(&bio(0, Write, 0), tags()), 2);
        let of_all = TagCounts::of(256, TagLimit::OfAll);
        assert_eq!(of(Some(8)).tags_allowed(&bio(0, Write, 0), of_all), 8);
        let all = of(Some(u32::MAX)).tags_allowed(&bio(0, Write, 0), tags());
        assert!(all >= tags().word, "{all}");
        assert_eq!(of(None).fewest_tags(tags()), 1, "those that wait are woken one by one");
    }

    #[test]
    fn from_6_5_on_a_batch_goes_on_with_what_has_come_behind_it_since() {
        for (by_position, expected) in [(false, 50), (true, 300)] {
            let mut scheduler = MqDeadline::new(MqDeadlineTunables::default());
            if by_position {
                scheduler = scheduler.with_position();
            }
            let mut bench = Bench::new(scheduler);
            bench.add(0, Read, &[200]);
            assert_eq!(bench.dispatched(0, 1), [200]);
            bench.add(0, Read, &[50, 300]);
            assert_eq!(bench.dispatched(0, 1), [expected]);
        }
    }

    #[test]
    fn requests_of_two_priorities_do_not_merge() {
        let mut bench = bench();
        bench.add_bio(0, &of_class(IoClass::BestEffort, 0, 100));
        let (id, _) = bench.requests.iter().next().unwrap();
        let next = of_class(IoClass::Idle, 0, 108);
        assert!(!bench.scheduler.may_merge(&bench.requests, id, &next));
    }

    proptest! {
        #[test]
        fn nothing_is_lost_or_done_twice(load in invariants::arrivals(4), depth in 1u32..8, by_position: bool) {
            let mut scheduler = MqDeadline::new(MqDeadlineTunables::default());
            if by_position {
                scheduler = scheduler.with_position();
            }
            invariants::completes_each_once(&invariants::serve(Box::new(scheduler), &load, depth, MILLISECOND));
        }

        /// The class that is served first is tried: its deadline, and what was ahead of it.
        #[test]
        fn a_real_time_read_waits_no_longer_than_its_deadline_and_what_is_ahead_of_it(load in invariants::arrivals(4)) {
            let tunables = MqDeadlineTunables { read_expire_ns: 20 * MILLISECOND, ..MqDeadlineTunables::default() };
            let served = invariants::serve(Box::new(MqDeadline::new(tunables)), &load, 1, MILLISECOND);
            for served in served {
                let arrival = load[served.bio];
                if arrival.direction == Read && invariants::priority_of(arrival.task).class == IoClass::RealTime {
                    let ahead = served.bio as u64 + 2 * 16 + 1;
                    let waited = served.completed_at - served.submitted_at;
                    prop_assert!(waited <= (20 + ahead) * MILLISECOND, "{}", waited);
                }
            }
        }

        /// However busy the higher classes are.
        #[test]
        fn a_request_of_the_idle_class_waits_no_longer_than_aging_and_what_is_ahead_of_it(load in invariants::arrivals(4)) {
            let tunables = MqDeadlineTunables {
                prio_aging_expire_ns: 30 * MILLISECOND,
                read_expire_ns: 20 * MILLISECOND,
                write_expire_ns: 20 * MILLISECOND,
                ..MqDeadlineTunables::default()
            };
            let served = invariants::serve(Box::new(MqDeadline::new(tunables)), &load, 1, MILLISECOND);
            for served in served {
                let ahead = served.bio as u64 + 3 * 16 + 1;
                let waited = served.completed_at - served.submitted_at;
                prop_assert!(waited <= (30 + 20 + ahead) * MILLISECOND, "{}", waited);
            }
        }
    }
}
