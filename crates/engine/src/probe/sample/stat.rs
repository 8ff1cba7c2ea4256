//! The text of /proc/stat (fs/proc/stat.c): time by state of each CPU, interrupts and context switches since boot.

use std::collections::BTreeMap;

/// Where a CPU's time goes, as mpstat divides it. The kernel counts guests' time under user and nice too; here it is
/// taken out of them, so that the states add up.
pub const STATES: [&str; 10] = [
    "user",
    "nice",
    "system",
    "idle",
    "iowait",
    "irq",
    "softirq",
    "steal",
    "guest",
    "guest_nice",
];

/// In the order of [`STATES`], in ticks.
pub type Ticks = [u64; STATES.len()];

const USER: usize = 0;
const NICE: usize = 1;
const IDLE: usize = 3;
const IOWAIT: usize = 4;
const STEAL: usize = 7;
const GUEST: usize = 8;
const GUEST_NICE: usize = 9;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stat {
    /// By number; those offline are not shown.
    pub cpus: BTreeMap<u32, Ticks>,
    pub interrupts: u64,
    pub context_switches: u64,
}

/// States that a kernel does not know are 0; lines that are not understood are left out.
pub fn parse(text: &str) -> Stat {
    let mut stat = Stat::default();
    for line in text.lines() {
        let mut words = line.split_ascii_whitespace();
        match words.next() {
            Some("intr") => stat.interrupts = number(words.next()),
            Some("ctxt") => stat.context_switches = number(words.next()),
            Some(name) => {
                if let Some(Ok(cpu)) = name.strip_prefix("cpu").map(str::parse) {
                    let mut ticks = Ticks::default();
                    ticks
                        .iter_mut()
                        .for_each(|state| *state = number(words.next()));
                    stat.cpus.insert(cpu, ticks);
                }
            }
            None => {}
        }
    }
    stat
}

/// What passed between two readings of a CPU. Counters of idle time are known to go back now and then (proc(5)), and
/// when a CPU comes online again: that counts as nothing.
pub fn between(before: &Ticks, after: &Ticks) -> Ticks {
    let mut passed: Ticks = std::array::from_fn(|state| after[state].saturating_sub(before[state]));
    passed[USER] = passed[USER].saturating_sub(passed[GUEST]);
    passed[NICE] = passed[NICE].saturating_sub(passed[GUEST_NICE]);
    passed
}

/// Of what passed, when the CPU worked: neither idle nor taken away by the hypervisor.
pub fn busy(passed: &Ticks) -> u64 {
    let working = |&(state, _): &(usize, &u64)| ![IDLE, IOWAIT, STEAL].contains(&state);
    let states = passed.iter().enumerate().filter(working);
    states.fold(0, |sum, (_, &ticks)| sum.saturating_add(ticks))
}

fn number(word: Option<&str>) -> u64 {
    word.and_then(|word| word.parse().ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const TEXT: &str = "cpu  30 1 20 400 5 0 6 7 8 0\n\
        cpu0 10 1 10 200 5 0 3 4 8 0\n\
        cpu3 20 0 10 200 0 0 3 3 0 0\n\
        intr 5100 0 9 12\n\
        ctxt 900\n\
        btime 1795292448\n";

    #[test]
    fn reads_cpus_interrupts_and_switches() {
        let stat = parse(TEXT);
        assert_eq!(stat.cpus.keys().copied().collect::<Vec<_>>(), [0, 3]);
        assert_eq!(stat.cpus[&0], [10, 1, 10, 200, 5, 0, 3, 4, 8, 0]);
        assert_eq!((stat.interrupts, stat.context_switches), (5100, 900));
    }

    #[test]
    fn a_kernel_without_guests_has_none() {
        assert_eq!(
            parse("cpu0 1 2 3 4 5 6 7").cpus[&0],
            [1, 2, 3, 4, 5, 6, 7, 0, 0, 0]
        );
    }

    #[test]
    fn a_guests_time_is_not_counted_twice() {
        let passed = between(&[0; 10], &[30, 9, 5, 40, 1, 0, 0, 2, 20, 4]);
        assert_eq!(passed, [10, 5, 5, 40, 1, 0, 0, 2, 20, 4]);
        assert_eq!(busy(&passed), 10 + 5 + 5 + 20 + 4);
    }

    #[test]
    fn counters_that_go_back_count_as_nothing() {
        let passed = between(
            &[5, 0, 0, 900, 7, 0, 0, 0, 0, 0],
            &[6, 0, 0, 10, 6, 0, 0, 0, 0, 0],
        );
        assert_eq!(passed, [1, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    }

    proptest! {
        #[test]
        fn any_text_is_read(text in "(cpu[0-9]{0,11}|intr|ctxt|\\PC)?( ?[0-9-]{0,22}){0,14}\n?") {
            let stat = parse(&text);
            for ticks in stat.cpus.values() {
                let small = ticks.map(|state| state >> 8);
                prop_assert!(busy(&between(&[0; 10], &small)) <= small.iter().sum());
            }
        }
    }
}
