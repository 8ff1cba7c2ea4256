//! Any text in place of a file of /proc or /sys is read; what is counted is no more than the text has room for.

use std::collections::BTreeMap;

use engine::probe::cpus::{CPUS_MAX, parse_list};
use engine::probe::sample::{pairs, stat, vm};
use engine::probe::spec::parse_device;
use engine::probe::symbols::Symbols;

pub fn check(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let lines = text.lines().count();

    let times = stat::parse(&text);
    assert!(times.cpus.len() <= lines);
    for ticks in times.cpus.values() {
        let passed = stat::between(&stat::Ticks::default(), ticks);
        assert_eq!(stat::between(ticks, ticks), stat::Ticks::default());
        assert!(passed.iter().all(|&state| state <= *ticks.iter().max().unwrap()));
        let idle = stat::busy(&stat::Ticks::default());
        assert!(idle == 0 && stat::busy(&passed) >= passed[2]);
    }

    assert!(pairs::pairs(&text).count() <= lines);
    assert!(pairs::pressure_us(&text).count() <= lines);
    let (mut levels, mut counters) = (BTreeMap::new(), BTreeMap::new());
    vm::levels(&text, &mut levels);
    vm::counters(&text, &mut counters);
    assert!(counters.values().all(|&count| count >= 0.0));

    let cpus = parse_list(&text);
    assert!(cpus.iter().all(|&cpu| cpu <= CPUS_MAX));

    for word in text.split_ascii_whitespace() {
        let _ = parse_device(word);
    }

    if let Some(symbols) = Symbols::parse(&text) {
        for address in [0, 1, 1 << 63, u64::MAX] {
            let name = symbols.function(address);
            assert!(name.is_none_or(|name| text.contains(name)));
        }
        assert!(symbols.function(u64::MAX).is_some());
    }
}
