//! A kernel by its version: what follows from it is in the modules beside this one, one for each part of the machine.

use crate::version::{Version, mm_patch, version};

/// A kernel that machines can have.
#[derive(Clone, Debug)]
pub struct Kernel {
    name: String,
    pub(crate) version: Version,
    /// The number of its -mm patch.
    pub(crate) mm: Option<u32>,
}

impl Kernel {
    /// Such as 2.4.20, 2.5.59-mm2, 2.6.35-group-idle-v2, 6.1 or 6.x; None: that is no version of Linux.
    pub fn named(name: &str) -> Option<Kernel> {
        let version = version(name)?;
        let mm = mm_patch(name);
        (version >= [2, 4, 0]).then(|| Kernel { name: name.to_owned(), version, mm })
    }

    /// The version as it was given.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Clock ticks a second, as most were configured on x86.
    pub fn hz(&self) -> u32 {
        match self.version {
            [2, 4, _] => 100,
            [2, ..] => 1000,
            _ => 250,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_version_of_linux_is_not_one() {
        for name in ["", "linux", "2", "2.2.26", "-mm1"] {
            assert!(Kernel::named(name).is_none(), "{name}");
        }
    }
}
