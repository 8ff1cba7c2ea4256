//! Which CPUs are there, and which came and went meanwhile.

use std::collections::BTreeSet;

/// CPUs that are online now, as the kernel lists them.
pub fn online() -> Vec<u32> {
    parse_list(&std::fs::read_to_string(ONLINE).unwrap_or_default())
}

/// Watches CPUs come and go.
#[derive(Clone, Debug, Default)]
pub(super) struct Presence {
    list: String,
    went: BTreeSet<u32>,
    came: BTreeSet<u32>,
}

impl Presence {
    /// The CPUs that are online at the start.
    pub fn now() -> Presence {
        Presence { list: std::fs::read_to_string(ONLINE).unwrap_or_default(), ..Presence::default() }
    }

    /// Reads the list again and notes which CPUs came and went.
    pub fn look(&mut self) {
        if let Ok(list) = std::fs::read_to_string(ONLINE) {
            self.seen(list);
        }
    }

    /// Notes for the reader of the figures.
    pub fn notes(&self) -> Vec<String> {
        let note = |cpu: &u32, how: &str| format!("CPU {cpu} went {how} meanwhile");
        let went = self.went.iter().map(|cpu| note(cpu, "offline"));
        went.chain(self.came.iter().map(|cpu| note(cpu, "online"))).collect()
    }

    fn seen(&mut self, list: String) {
        if list == self.list {
            return;
        }
        let (before, after) = (parse_list(&self.list), parse_list(&list));
        self.went.extend(before.iter().filter(|cpu| !after.contains(cpu)));
        self.came.extend(after.iter().filter(|cpu| !before.contains(cpu)));
        self.list = list;
    }
}

const ONLINE: &str = "/sys/devices/system/cpu/online";

/// Beyond the largest that a kernel can be built for (NR_CPUS, arch/x86/Kconfig).
pub const CPUS_MAX: u32 = 8192;

/// `0-3,8` as the kernel writes it.
pub fn parse_list(text: &str) -> Vec<u32> {
    let ranges = text.trim().split(',').filter_map(|range| {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        Some(first.parse().ok()?..=last.parse::<u32>().ok()?.min(CPUS_MAX))
    });
    ranges.flatten().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_the_kernels() {
        assert_eq!(parse_list("0-2,5,8-9\n"), [0, 1, 2, 5, 8, 9]);
        assert_eq!(parse_list("0\n"), [0]);
        assert!(parse_list("").is_empty());
    }

    #[test]
    fn who_came_and_who_went_is_noted_once() {
        let mut presence = Presence { list: "0-3\n".into(), ..Presence::default() };
        for list in ["0-3\n", "0,2-3\n", "0-3\n", "0,2-3\n"] {
            presence.seen(list.into());
        }
        assert_eq!(presence.notes(), ["CPU 1 went offline meanwhile", "CPU 1 went online meanwhile"]);
    }
}
