//! The text of /proc/stat (fs/proc/stat.c): time by state of each CPU, interrupts and context switches since boot.

pub use trace::sample::cpu::{Stat, Ticks, between, busy};

/// States that a kernel does not have are 0; lines that are not understood are left out.
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
                    ticks.iter_mut().for_each(|state| *state = number(words.next()));
                    stat.cpus.insert(cpu, ticks);
                }
            }
            None => {}
        }
    }
    stat
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
        assert_eq!(parse("cpu0 1 2 3 4 5 6 7").cpus[&0], [1, 2, 3, 4, 5, 6, 7, 0, 0, 0]);
    }

    proptest! {
        #[test]
        fn any_text_is_read(text in "(cpu[0-9]{0,11}|intr|ctxt|\\PC)?( ?[0-9-]{0,22}){0,14}\n?") {
            prop_assert!(parse(&text).cpus.len() <= 1);
        }
    }
}
