//! Names with numbers, as /proc/meminfo, /proc/vmstat and /proc/PID/io have them; and pressure stall information.

/// `Dirty: 80 kB` and `pgpgin 80` alike; a line without a number is left out.
pub fn pairs(text: &str) -> impl Iterator<Item = (&str, u64)> {
    text.lines().filter_map(|line| {
        let mut words = line.split_ascii_whitespace();
        let name = words.next()?;
        let number = words.next()?.parse().ok()?;
        Some((name.strip_suffix(':').unwrap_or(name), number))
    })
}

/// Time stalled since boot: `some` task, or all of them (`full`), in microseconds (Documentation/accounting/psi.rst).
pub fn pressure_us(text: &str) -> impl Iterator<Item = (&str, u64)> {
    text.lines().filter_map(|line| {
        let mut words = line.split_ascii_whitespace();
        let kind = words.next()?;
        let total = words.find_map(|word| word.strip_prefix("total="))?;
        Some((kind, total.parse().ok()?))
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn both_styles_are_read() {
        let text = "MemTotal:  24684092 kB\nActive(anon): 260 kB\npgpgin 7\n\nodd\nnr_x -1\n";
        let found: Vec<_> = pairs(text).collect();
        assert_eq!(found, [("MemTotal", 24684092), ("Active(anon)", 260), ("pgpgin", 7)]);
    }

    #[test]
    fn pressure_is_read_by_name() {
        let text = "some avg10=57.66 avg60=32.27 avg300=9.72 total=1542119449\n\
            full avg10=40.29 avg60=27.37 avg300=8.47 total=406590588\n";
        let found: Vec<_> = pressure_us(text).collect();
        assert_eq!(found, [("some", 1542119449), ("full", 406590588)]);
    }

    proptest! {
        #[test]
        fn any_text_is_read(text in "(\\PC{0,9}[: ]{0,3}(total=)?[0-9]{0,22}\n?){0,9}") {
            prop_assert!(pairs(&text).count() <= text.lines().count());
            prop_assert!(pressure_us(&text).count() <= text.lines().count());
        }
    }
}
