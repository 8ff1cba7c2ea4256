//! Names for the stacks of a recording.

use super::Reason;
use super::perf::Stacks;
use super::symbols::Symbols;

pub struct Functions {
    /// By the stack's number; innermost first.
    stacks: Vec<Vec<u64>>,
    symbols: Result<Symbols, Reason>,
}

impl Functions {
    pub fn of(stacks: Stacks) -> Functions {
        Functions { stacks: stacks.into_addresses(), symbols: Symbols::of_this_kernel() }
    }

    /// The functions of a stack, innermost first; addresses if their names are hidden. A task that ran its own code and
    /// none of the kernel's is in `[user]`.
    pub fn names(&self, stack: u32) -> Vec<String> {
        let addresses = self.stacks.get(stack as usize).map_or(&[][..], Vec::as_slice);
        if addresses.is_empty() {
            return vec!["[user]".to_owned()];
        }
        let named = |(depth, &address): (usize, &u64)| {
            // A call at a function's very end returns to what is the next function's begin.
            let within = address - u64::from(depth > 0);
            let symbols = self.symbols.as_ref().ok();
            let name = symbols.and_then(|symbols| symbols.function(within));
            name.map_or_else(|| format!("{address:#x}"), str::to_owned)
        };
        addresses.iter().enumerate().map(named).collect()
    }

    pub fn notes(&self) -> Vec<String> {
        let reason = self.symbols.as_ref().err();
        reason.map(|reason| format!("functions have no names: {reason}")).into_iter().collect()
    }
}
