//! Which function of the kernel an address belongs to: /proc/kallsyms.

use std::path::Path;

use super::Reason;

/// The kernel's symbols, in the order of their addresses.
#[derive(Clone, Debug)]
pub struct Symbols {
    /// First addresses in ascending order, with where the name stands in `names`.
    starts: Vec<(u64, u32)>,
    /// One after the other, each ended by a newline.
    names: String,
}

impl Symbols {
    pub(super) fn of_this_kernel() -> Result<Symbols, Reason> {
        let path = Path::new("/proc/kallsyms");
        let text = std::fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))?;
        Symbols::parse(&text).ok_or_else(|| {
            format!("{} shows no addresses: run as root, or sysctl kernel.kptr_restrict=0", path.display())
        })
    }

    /// None when every address is hidden.
    pub fn parse(text: &str) -> Option<Symbols> {
        let mut starts = Vec::new();
        let mut names = String::new();
        for line in text.lines() {
            let Some((address, name)) = function(line) else {
                continue;
            };
            starts.push((address, names.len() as u32));
            names.push_str(name);
            names.push('\n');
        }
        // The first of several names for one address stays the first.
        starts.sort_by_key(|&(address, _)| address);
        starts.last().is_some_and(|&(address, _)| address != 0).then_some(Symbols { starts, names })
    }

    /// The function that `address` is in; None below the first one.
    pub fn function(&self, address: u64) -> Option<&str> {
        let after = self.starts.partition_point(|&(start, _)| start <= address);
        let &(start, _) = self.starts.get(after.checked_sub(1)?)?;
        let first = self.starts.partition_point(|&(other, _)| other < start);
        let name = self.names.get(self.starts[first].1 as usize..)?;
        name.split('\n').next()
    }
}

/// `ffffffff81000000 T name [module]`, if it is code.
fn function(line: &str) -> Option<(u64, &str)> {
    let mut parts = line.split_ascii_whitespace();
    let address = u64::from_str_radix(parts.next()?, 16).ok()?;
    let kind = parts.next()?;
    let name = parts.next()?;
    matches!(kind, "t" | "T" | "w" | "W").then_some((address, name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_belongs_to_the_function_that_begins_before_it() {
        let text = "ff00 T first\nff00 T alias\nff80 D data\nff90 t second\nffa0 T third [xfs]\n";
        let symbols = Symbols::parse(text).unwrap();
        let at = |address| symbols.function(address);
        assert_eq!(at(0xfeff), None);
        assert_eq!(at(0xff00), Some("first"));
        assert_eq!(at(0xff8f), Some("first"));
        assert_eq!(at(0xff90), Some("second"));
        assert_eq!(at(u64::MAX), Some("third"));
    }

    #[test]
    fn hidden_addresses_are_no_symbols() {
        assert!(Symbols::parse("0000 T first\n0000 T second\n").is_none());
        assert!(Symbols::parse("").is_none());
    }
}
