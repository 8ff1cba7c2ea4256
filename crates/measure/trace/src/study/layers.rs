//! The time in a layer, such as device mapper or md, apart from the time in the devices below it.
//!
//! A bio that a layer sends on is reported with the device and the sector that it had before (`block_bio_remap`). From
//! there until that bio ends, the bio above is below the layer; the rest of its time is the layer's own. What the layer
//! reads and writes for itself, such as metadata, comes from no bio above: waiting for it is the layer's own time.
//!
//! Only determined times count. A bio has none if what was sent on could be that of two bios above, if none above has
//! its sectors and operation (RAID 5 reads what a parity needs), or if some of it has not ended when the bio ends.

use std::collections::BTreeMap;

use super::figures::LayerFigures;
use super::group::Quantiles;
use super::values::Values;
use crate::event::{Device, Op, TraceEvent};
use crate::request::{Io, RequestTracker};

/// What was found of one device.
#[derive(Clone, Debug, Default)]
struct LayerTimes {
    own: Values,
    below: Values,
    lower: Vec<Device>,
    unknown: u64,
}

/// Follows what layers send on.
#[derive(Clone, Debug, Default)]
pub(super) struct Layers {
    above: BTreeMap<Bio, Above>,
    /// What has not ended, by its device and first sector.
    sent: BTreeMap<(Device, u64), Vec<Sent>>,
    /// When each device last sent on what no bio of its own explains.
    strays: BTreeMap<Device, u64>,
    found: BTreeMap<Device, LayerTimes>,
}

/// Names a bio of a layer: its device and first sector, and when it was first seen.
type Bio = (Device, u64, u64);

/// A bio of a layer, some of which was sent on.
#[derive(Clone, Debug, Default)]
struct Above {
    /// How many pieces have not ended.
    open: u32,
    /// When each that ended was sent on, and when it ended.
    spans: Vec<(u64, u64)>,
    doubtful: bool,
}

#[derive(Clone, Debug)]
struct Sent {
    of: Bio,
    sectors: u64,
    op: Op,
    at_ns: u64,
}

impl Layers {
    /// A bio was sent on.
    #[cold]
    pub(super) fn sent(&mut self, event: &TraceEvent, follow: &RequestTracker) {
        let Some(from) = event.sent_from().filter(|_| event.sectors > 0) else {
            return;
        };
        let sectors = u64::from(event.sectors);
        if let Some(io) = follow.bio_with(from, event.argument, sectors, event.op) {
            let of = name(&io);
            self.above.entry(of).or_default().open += 1;
            let times = self.found.entry(from).or_default();
            if !times.lower.contains(&event.device) {
                times.lower.push(event.device);
            }
            let sent = Sent { of, sectors, op: event.op, at_ns: event.at_ns };
            let place = (event.device, event.sector);
            self.sent.entry(place).or_default().push(sent);
        } else if !self.moved(from, event) {
            self.strays.insert(from, event.at_ns);
        }
    }

    /// A layer lies on a partition, and what it sent there now gets the sectors of the disk. Kernels from 5.12 on report
    /// the disk's number at once.
    fn moved(&mut self, partition: Device, event: &TraceEvent) -> bool {
        for device in [partition, event.device] {
            let is_it = |sent: &Sent| sent.sectors == u64::from(event.sectors) && sent.op == event.op;
            let Some(there) = self.sent.get_mut(&(device, event.argument)) else {
                continue;
            };
            let Some(at) = there.iter().position(is_it) else {
                continue;
            };
            if there.iter().filter(|sent| is_it(sent)).count() > 1 {
                continue;
            }
            let sent = there.remove(at);
            let place = (event.device, event.sector);
            self.sent.entry(place).or_default().push(sent);
            return true;
        }
        false
    }

    /// A bio or a request ended.
    #[inline]
    pub(super) fn ended(&mut self, io: &Io) {
        if self.above.is_empty() {
            return self.sent.clear();
        }
        self.below_ended(io);
        if let Some(above) = self.above.remove(&name(io)) {
            self.above_ended(io, above);
        }
    }

    fn below_ended(&mut self, io: &Io) {
        let end = io.sector.saturating_add(u64::from(io.sectors));
        let places: Vec<_> =
            self.sent.range((io.device, io.sector)..(io.device, end)).map(|(place, _)| *place).collect();
        let determined = io.queued_ns.or(io.inserted_ns).or(io.issued_ns).is_some();
        for place in places {
            let Some(there) = self.sent.get_mut(&place) else {
                continue;
            };
            let ended: Vec<_> = there.extract_if(.., |sent| sent.op == io.op).collect();
            if there.is_empty() {
                self.sent.remove(&place);
            }
            let alone = ended.len() == 1 && determined;
            for sent in ended {
                let Some(above) = self.above.get_mut(&sent.of) else {
                    continue;
                };
                above.open = above.open.saturating_sub(1);
                match io.completed_ns {
                    // A piece of it is still on its way if it is longer.
                    Some(ended_ns) if alone && place.1 + sent.sectors <= end => {
                        above.spans.push((sent.at_ns, ended_ns));
                    }
                    _ => above.doubtful = true,
                }
            }
        }
    }

    fn above_ended(&mut self, io: &Io, mut above: Above) {
        let times = self.found.entry(io.device).or_default();
        let stray_ns = self.strays.get(&io.device);
        let whole = match (io.queued_ns, io.completed_ns) {
            (Some(queued_ns), Some(completed_ns))
                if above.open == 0
                    && !above.doubtful
                    && !io.split
                    && stray_ns.is_none_or(|&stray_ns| stray_ns < queued_ns) =>
            {
                completed_ns.saturating_sub(queued_ns)
            }
            _ => return times.unknown += 1,
        };
        let below = covered(&mut above.spans).min(whole);
        times.below.record(below);
        times.own.record(whole - below);
    }

    /// Of a device, if it sent bios on.
    pub(super) fn figures(&mut self, device: Device, name: impl Fn(Device) -> String) -> Option<LayerFigures> {
        let times = self.found.remove(&device)?;
        let quantiles = |values: &Values| values.histogram().and_then(|it| Quantiles::of(&it));
        Some(LayerFigures {
            lower: times.lower.iter().map(|&device| name(device)).collect(),
            own_ns: quantiles(&times.own),
            below_ns: quantiles(&times.below),
            unknown: times.unknown,
        })
    }

    /// Another recording begins.
    pub(super) fn restart(&mut self) {
        self.above.clear();
        self.sent.clear();
    }
}

fn name(io: &Io) -> Bio {
    (io.device, io.sector, io.seen_ns)
}

/// The length of all spans together, each moment counted once.
fn covered(spans: &mut [(u64, u64)]) -> u64 {
    spans.sort_unstable();
    let mut until = 0;
    let mut sum = 0;
    for &mut (from, to) in spans {
        sum += to.saturating_sub(from.max(until));
        until = until.max(to);
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::Step;

    const TOP: Device = Device(253 << 20);
    const DISK: Device = Device(8 << 20);
    const OTHER: Device = Device(8 << 20 | 16);

    fn event(at_ns: u64, step: Step, device: Device, sector: u64) -> TraceEvent {
        TraceEvent { sector, sectors: 8, device, op: Op::Read, ..TraceEvent::new(at_ns, step) }
    }

    fn remap(at_ns: u64, to: Device, sector: u64, old_sector: u64) -> TraceEvent {
        TraceEvent { argument: old_sector, detail: TOP.0, ..event(at_ns, Step::Remap, to, sector) }
    }

    /// What is known of the top device: the layer's own time, and that below, of each bio; and how many have none.
    fn found(events: &[TraceEvent]) -> (Option<(u64, u64)>, u64) {
        let (mut layers, mut follow) = (Layers::default(), RequestTracker::default());
        for event in events {
            if event.step == Step::Remap {
                layers.sent(event, &follow);
            }
            let mut ended = None;
            follow.add(event, |_, change| {
                if let crate::request::Change::Ended { io, .. } = change {
                    ended = Some(*io);
                }
            });
            if let Some(io) = ended {
                layers.ended(&io);
            }
        }
        let times = layers.found.remove(&TOP).unwrap_or_default();
        let max = |values: &Values| values.histogram().and_then(|values| values.max_ns());
        (max(&times.own).zip(max(&times.below)), times.unknown)
    }

    fn of_disk(from_ns: u64, to_ns: u64, device: Device, sector: u64) -> [TraceEvent; 3] {
        [
            event(from_ns, Step::Queue, device, sector),
            event(from_ns + 1, Step::Issue, device, sector),
            event(to_ns, Step::Complete, device, sector),
        ]
    }

    fn in_order(mut events: Vec<TraceEvent>) -> Vec<TraceEvent> {
        events.sort_by_key(|event| event.at_ns);
        events
    }

    #[test]
    fn what_a_layer_keeps_is_its_own_time() {
        let mut events = vec![
            event(100, Step::Queue, TOP, 0),
            remap(10_100, DISK, 2048, 0),
            event(10_500, Step::BioComplete, TOP, 0),
        ];
        events.extend(of_disk(10_110, 10_400, DISK, 2048));
        assert_eq!(found(&in_order(events)), (Some((10_100, 300)), 0));
    }

    #[test]
    fn copies_on_two_devices_count_once_while_both_are_under_way() {
        let mut events = vec![
            event(0, Step::Queue, TOP, 0),
            remap(10, DISK, 0, 0),
            remap(20, OTHER, 0, 0),
            event(200, Step::BioComplete, TOP, 0),
        ];
        events.extend(of_disk(11, 100, DISK, 0));
        events.extend(of_disk(21, 180, OTHER, 0));
        assert_eq!(found(&in_order(events)), (Some((30, 170)), 0));
    }

    #[test]
    fn a_layer_on_a_partition_is_followed_to_the_disk() {
        let mut events = vec![
            event(0, Step::Queue, TOP, 0),
            remap(10, DISK, 16, 0),
            TraceEvent { detail: (DISK.0) | 1, ..remap(11, DISK, 2064, 16) },
            event(200, Step::BioComplete, TOP, 0),
        ];
        events.extend(of_disk(12, 110, DISK, 2064));
        assert_eq!(found(&in_order(events)), (Some((100, 100)), 0));
    }

    #[test]
    fn what_no_bio_explains_leaves_the_time_open() {
        let mut events = vec![
            event(0, Step::Queue, TOP, 0),
            remap(10, OTHER, 512, 512),
            remap(20, DISK, 0, 0),
            event(200, Step::BioComplete, TOP, 0),
        ];
        events.extend(of_disk(21, 100, DISK, 0));
        assert_eq!(found(&in_order(events)), (None, 1));
    }

    #[test]
    fn a_bio_that_ends_before_what_it_sent_on_has_no_times() {
        let events = vec![
            event(0, Step::Queue, TOP, 0),
            remap(10, DISK, 0, 0),
            event(11, Step::Queue, DISK, 0),
            event(20, Step::BioComplete, TOP, 0),
        ];
        assert_eq!(found(&events), (None, 1));
    }
}
