//! Kernel stacks, each kept once, and samplers on all CPUs that yield them.

use std::collections::BTreeMap;
use std::os::fd::RawFd;

use super::event::{Kind, Rate};
use super::record::Record;
use super::ring::Ring;
use crate::probe::Reason;
use crate::probe::cpus;

/// One sampler per CPU that is online.
pub struct Samplers {
    rings: Vec<Ring>,
    stacks: Stacks,
    losses: Losses,
}

/// Numbers for stacks, in the order of their first appearance.
#[derive(Clone, Debug, Default)]
pub struct Stacks {
    numbers: BTreeMap<Vec<u64>, u32>,
    current: Vec<u64>,
}

/// One sample with its stack's number.
#[derive(Clone, Copy, Debug)]
pub struct StackSample {
    pub at_ns: u64,
    pub cpu: u32,
    pub tid: u32,
    pub stack: u32,
    /// How many events it stands for.
    pub weight: u64,
}

/// What is missing among the samples.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Losses {
    pub samples_lost: u64,
    /// How often the kernel held sampling back because it took too much time.
    pub throttled: u64,
    /// Contents of a ring that could not be understood.
    pub garbled: u64,
}

impl Samplers {
    pub fn start(kind: Kind, rate: Rate) -> Result<Samplers, Reason> {
        let rings = cpus::online().into_iter();
        let rings = rings.map(|cpu| Ring::open(kind, cpu, rate));
        let rings: Vec<Ring> = rings.collect::<Result<_, Reason>>()?;
        for ring in &rings {
            ring.start().map_err(|error| format!("perf event {}: {error}", kind.name()))?;
        }
        Ok(Samplers { rings, stacks: Stacks::default(), losses: Losses::default() })
    }

    pub fn descriptors(&self) -> Vec<RawFd> {
        self.rings.iter().map(Ring::descriptor).collect()
    }

    /// Hands over all samples that are there, those of each CPU in the order of time.
    pub fn drain(&mut self, mut each: impl FnMut(StackSample)) {
        let (stacks, losses) = (&mut self.stacks, &mut self.losses);
        for ring in &mut self.rings {
            let understood = ring.drain(|record| match record {
                Record::Sample(sample) => each(StackSample {
                    at_ns: sample.at_ns,
                    cpu: sample.cpu,
                    tid: sample.tid,
                    stack: stacks.number(sample.kernel_stack()),
                    weight: sample.period,
                }),
                Record::Lost(samples) => losses.samples_lost += samples,
                Record::Throttled => losses.throttled += 1,
                Record::Other => {}
            });
            losses.garbled += u64::from(!understood);
        }
    }

    pub fn into_parts(self) -> (Stacks, Losses) {
        (self.stacks, self.losses)
    }
}

impl Stacks {
    fn number(&mut self, addresses: impl Iterator<Item = u64>) -> u32 {
        self.current.clear();
        self.current.extend(addresses);
        if let Some(&number) = self.numbers.get(&self.current) {
            return number;
        }
        let number = self.numbers.len() as u32;
        self.numbers.insert(self.current.clone(), number);
        number
    }

    /// Addresses of each stack, innermost first, in the order of their numbers.
    pub fn into_addresses(self) -> Vec<Vec<u64>> {
        let mut by_number: Vec<(u32, Vec<u64>)> =
            self.numbers.into_iter().map(|(addresses, number)| (number, addresses)).collect();
        by_number.sort_unstable_by_key(|&(number, _)| number);
        by_number.into_iter().map(|(_, addresses)| addresses).collect()
    }
}

impl Losses {
    pub fn notes(&self) -> Vec<String> {
        let note = |count: u64, what: &str| (count > 0).then(|| format!("{count} {what}"));
        let notes = [
            note(self.samples_lost, "stack samples were lost: the ring was full"),
            note(self.throttled, "times the kernel held sampling back (sysctl kernel.perf_cpu_time_max_percent)"),
            note(self.garbled, "rings of stack samples could not be read"),
        ];
        notes.into_iter().flatten().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stack_keeps_its_number() {
        let mut stacks = Stacks::default();
        let numbers: Vec<u32> = [vec![9, 1], vec![2], vec![], vec![9, 1]]
            .into_iter()
            .map(|addresses| stacks.number(addresses.into_iter()))
            .collect();
        assert_eq!(numbers, [0, 1, 2, 0]);
        assert_eq!(stacks.into_addresses(), [vec![9, 1], vec![2], vec![]]);
    }
}
