//! Tunables by the kernel's names, in the kernel's units.

use std::collections::BTreeMap;

use crate::scheduler::spec::error::BadScheduler;
use crate::scheduler::{
    anticipatory, bfq, cfq, cfq_by_service, cfq_lists, cfq_round_robin, deadline, deadline_a, deadline_timed, kyber,
    linus, mq_deadline,
};
use events::time::{MICROSECOND, MILLISECOND, Time};
use kernels::schedulers::SchedulerVariant;

/// Reads tunables from what is given. Whoever makes a scheduler's tunables asks for each that the scheduler has; these
/// become the known ones, and what is left at the end is a mistake.
pub(super) struct TunableReader<'a> {
    variant: SchedulerVariant,
    left: BTreeMap<&'a str, &'a str>,
    known: Vec<&'static str>,
    /// The unit of each tunable that is a time, in nanoseconds.
    units_ns: BTreeMap<&'static str, Time>,
    error: Option<BadScheduler>,
}

/// The kernel keeps tunables as ints.
const INT_MAX: u64 = i32::MAX as u64;
/// So that a time and its sums stay far from overflowing.
const TIME_MAX: Time = 1_000_000_000_000_000_000;

impl<'a> TunableReader<'a> {
    pub(super) fn new(variant: SchedulerVariant, given: &'a BTreeMap<String, String>) -> TunableReader<'a> {
        let left = given
            .iter()
            .filter(|(name, _)| *name != "name" && *name != "version")
            .map(|(name, value)| (name.as_str(), value.as_str()))
            .collect();
        TunableReader { variant, left, known: Vec::new(), units_ns: BTreeMap::new(), error: None }
    }

    /// What one unit of each time that was asked for is, in nanoseconds.
    pub(super) fn units_ns(self) -> BTreeMap<&'static str, Time> {
        self.units_ns
    }

    /// The first mistake: a value, or a name that nobody has asked for.
    pub(super) fn finish(mut self) -> Result<(), BadScheduler> {
        if let Some(error) = self.error {
            return Err(error);
        }
        match self.left.pop_first() {
            None => Ok(()),
            Some((tunable, _)) => Err(BadScheduler::Tunable {
                scheduler: scheduler(self.variant),
                tunable: tunable.to_owned(),
                known: self.known,
            }),
        }
    }

    fn milliseconds(&mut self, name: &'static str, into: &mut Time, least: u64) {
        self.time(name, into, MILLISECOND, least, INT_MAX);
    }

    /// A time in units of `unit_ns`, from `least` to `most` of them.
    fn time(&mut self, name: &'static str, into: &mut Time, unit_ns: Time, least: u64, most: u64) {
        self.units_ns.insert(name, unit_ns);
        if let Some(number) = self.number_in(name, least, most) {
            *into = number * unit_ns;
        }
    }

    fn number<T: TryFrom<u64>>(&mut self, name: &'static str, into: &mut T, least: u64) {
        if let Some(number) = self.number_in(name, least, INT_MAX)
            && let Ok(number) = T::try_from(number)
        {
            *into = number;
        }
    }

    fn flag(&mut self, name: &'static str, into: &mut bool) {
        if let Some(number) = self.number_in(name, 0, 1) {
            *into = number == 1;
        }
    }

    fn number_in(&mut self, name: &'static str, least: u64, most: u64) -> Option<u64> {
        self.known.push(name);
        let value = self.left.remove(name)?;
        let number = value.parse().ok();
        let number = number.filter(|number| (least..=most).contains(number));
        if number.is_none() {
            self.refuse(name, value, format!("a whole number from {least} to {most}"));
        }
        number
    }

    fn refuse(&mut self, tunable: &str, value: &str, expected: String) {
        self.error.get_or_insert_with(|| BadScheduler::Value {
            scheduler: scheduler(self.variant),
            tunable: tunable.to_owned(),
            value: value.to_owned(),
            expected,
        });
    }
}

fn scheduler(variant: SchedulerVariant) -> String {
    format!("{} ({})", variant.name, variant.version)
}

pub(super) fn linus(reader: &mut TunableReader) -> linus::LinusTunables {
    let mut tunables = linus::LinusTunables::default();
    reader.number("read_latency", &mut tunables.read_latency, 0);
    reader.number("write_latency", &mut tunables.write_latency, 0);
    tunables
}

pub(super) fn deadline_a(reader: &mut TunableReader) -> deadline_a::DeadlineATunables {
    let mut tunables = deadline_a::DeadlineATunables::default();
    reader.milliseconds("read_expire", &mut tunables.read_expire_ns, 0);
    reader.number("fifo_batch", &mut tunables.fifo_batch, 0);
    reader.number("seek_cost", &mut tunables.seek_cost, 0);
    reader.number("writes_starved", &mut tunables.writes_starved, 0);
    tunables
}

pub(super) fn deadline(reader: &mut TunableReader) -> deadline::DeadlineTunables {
    let mut tunables = deadline::DeadlineTunables::default();
    reader.milliseconds("read_expire", &mut tunables.read_expire_ns, 0);
    reader.milliseconds("write_expire", &mut tunables.write_expire_ns, 0);
    reader.number("writes_starved", &mut tunables.writes_starved, 0);
    reader.number("fifo_batch", &mut tunables.fifo_batch, 0);
    reader.flag("front_merges", &mut tunables.front_merges);
    tunables
}

pub(super) fn deadline_timed(reader: &mut TunableReader) -> deadline_timed::DeadlineTimedTunables {
    let mut tunables = deadline_timed::DeadlineTimedTunables::default();
    reader.milliseconds("read_expire", &mut tunables.read_expire_ns, 0);
    reader.milliseconds("write_expire", &mut tunables.write_expire_ns, 0);
    reader.milliseconds("batch_expire", &mut tunables.batch_expire_ns, 0);
    tunables
}

pub(super) fn mq_deadline(reader: &mut TunableReader) -> mq_deadline::MqDeadlineTunables {
    let mut tunables = mq_deadline::MqDeadlineTunables::default();
    reader.milliseconds("read_expire", &mut tunables.read_expire_ns, 0);
    reader.milliseconds("write_expire", &mut tunables.write_expire_ns, 0);
    reader.number("writes_starved", &mut tunables.writes_starved, 0);
    reader.number("fifo_batch", &mut tunables.fifo_batch, 0);
    reader.flag("front_merges", &mut tunables.front_merges);
    let depth = reader.number_in("async_depth", 1, INT_MAX);
    tunables.async_depth = depth.map(|depth| depth as u32);
    reader.milliseconds("prio_aging_expire", &mut tunables.prio_aging_expire_ns, 0);
    tunables
}

pub(super) fn anticipatory(
    reader: &mut TunableReader,
    version: anticipatory::Version,
    hz: u32,
) -> anticipatory::AnticipatoryTunables {
    let mut tunables = anticipatory::AnticipatoryTunables::of(version, hz);
    reader.milliseconds("read_expire", &mut tunables.read_expire_ns, 0);
    reader.milliseconds("write_expire", &mut tunables.write_expire_ns, 0);
    if version == anticipatory::Version::Draft {
        reader.milliseconds("batch_expire", &mut tunables.read_batch_expire_ns, 0);
        tunables.write_batch_expire_ns = tunables.read_batch_expire_ns;
    } else {
        reader.milliseconds("read_batch_expire", &mut tunables.read_batch_expire_ns, 0);
        reader.milliseconds("write_batch_expire", &mut tunables.write_batch_expire_ns, 0);
    }
    reader.milliseconds("antic_expire", &mut tunables.antic_expire_ns, 0);
    tunables
}

pub(super) fn cfq(reader: &mut TunableReader, version: cfq::Version) -> cfq::CfqTunables {
    let mut tunables = cfq_of_all(reader, cfq::CfqTunables::default());
    if version.has_group_idle() {
        reader.milliseconds("group_idle", &mut tunables.group_idle_ns, 0);
    }
    reader.flag("low_latency", &mut tunables.low_latency);
    reader.flag("group_isolation", &mut tunables.group_isolation);
    tunables
}

pub(super) fn cfq_round_robin(reader: &mut TunableReader) -> cfq_round_robin::CfqRoundRobinTunables {
    let mut tunables = cfq_round_robin::CfqRoundRobinTunables::default();
    reader.number("quantum", &mut tunables.quantum, 1);
    reader.number("queued", &mut tunables.queued, 1);
    tunables
}

pub(super) fn cfq_by_service(reader: &mut TunableReader) -> cfq_by_service::CfqByServiceTunables {
    let mut tunables = cfq_by_service::CfqByServiceTunables::default();
    reader.number("quantum", &mut tunables.quantum, 1);
    reader.number("queued", &mut tunables.queued, 1);
    reader.milliseconds("fifo_expire_sync", &mut tunables.fifo_expire_sync_ns, 1);
    reader.milliseconds("fifo_expire_async", &mut tunables.fifo_expire_async_ns, 1);
    reader.milliseconds("fifo_batch_expire", &mut tunables.fifo_batch_expire_ns, 0);
    reader.flag("find_best_crq", &mut tunables.find_best);
    reader.number("back_seek_max", &mut tunables.back_seek_max_kib, 0);
    reader.number("back_seek_penalty", &mut tunables.back_seek_penalty, 1);
    tunables
}

pub(super) fn cfq_lists(reader: &mut TunableReader, version: cfq_lists::Version) -> cfq_lists::CfqListsTunables {
    let mut tunables = cfq_lists::CfqListsTunables::of(version);
    tunables.common = cfq_of_all(reader, tunables.common);
    if version == cfq_lists::Version::Linux2_6_15 {
        reader.number("max_depth", &mut tunables.max_depth, 1);
    }
    tunables
}

/// Before groups: a quantum of 4 (`cfq_quantum` of 2.6.29).
pub(super) fn cfq_slices(reader: &mut TunableReader) -> cfq::CfqTunables {
    let tunables = cfq::CfqTunables { quantum: 4, ..cfq::CfqTunables::default() };
    cfq_of_all(reader, tunables)
}

fn cfq_of_all(reader: &mut TunableReader, mut tunables: cfq::CfqTunables) -> cfq::CfqTunables {
    reader.number("quantum", &mut tunables.quantum, 1);
    reader.milliseconds("fifo_expire_sync", &mut tunables.fifo_expire_sync_ns, 1);
    reader.milliseconds("fifo_expire_async", &mut tunables.fifo_expire_async_ns, 1);
    reader.number("back_seek_max", &mut tunables.back_seek_max_kib, 0);
    reader.number("back_seek_penalty", &mut tunables.back_seek_penalty, 1);
    reader.milliseconds("slice_sync", &mut tunables.slice_sync_ns, 1);
    reader.milliseconds("slice_async", &mut tunables.slice_async_ns, 1);
    reader.number("slice_async_rq", &mut tunables.slice_async_rq, 1);
    reader.milliseconds("slice_idle", &mut tunables.slice_idle_ns, 0);
    tunables
}

pub(super) fn bfq(reader: &mut TunableReader) -> bfq::BfqTunables {
    let mut tunables = bfq::BfqTunables::default();
    reader.milliseconds("slice_idle", &mut tunables.slice_idle_ns, 0);
    reader.time("slice_idle_us", &mut tunables.slice_idle_ns, MICROSECOND, 0, INT_MAX);
    reader.milliseconds("fifo_expire_sync", &mut tunables.fifo_expire_sync_ns, 0);
    reader.milliseconds("fifo_expire_async", &mut tunables.fifo_expire_async_ns, 0);
    reader.number("back_seek_max", &mut tunables.back_seek_max_kib, 0);
    reader.number("back_seek_penalty", &mut tunables.back_seek_penalty, 1);
    reader.milliseconds("timeout_sync", &mut tunables.timeout_ns, 1);
    reader.number("max_budget", &mut tunables.max_budget, 0);
    reader.flag("strict_guarantees", &mut tunables.strict_guarantees);
    reader.flag("low_latency", &mut tunables.low_latency);
    tunables
}

pub(super) fn kyber(reader: &mut TunableReader) -> kyber::KyberTunables {
    let mut tunables = kyber::KyberTunables::default();
    reader.time("read_lat_nsec", &mut tunables.read_lat_nsec, 1, 0, TIME_MAX);
    reader.time("write_lat_nsec", &mut tunables.write_lat_nsec, 1, 0, TIME_MAX);
    tunables
}
