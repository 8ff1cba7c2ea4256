//! Files and directories by what they are, for names that lead elsewhere when somebody replaces what they name.

use serde::Deserialize;

/// What was found under a path when it was checked; whatever else is found there later is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Identity {
    /// The device number that holds it, `st_dev` of stat(2).
    pub device: u64,
    /// Its number there, `st_ino` of stat(2).
    pub inode: u64,
}

/// A directory that was checked. What lies below it is opened from it, and no symbolic link is followed on the way.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Directory {
    /// The absolute path by which it is opened.
    pub path: String,
    /// What the path has to lead to; anything else is refused.
    pub identity: Identity,
}
