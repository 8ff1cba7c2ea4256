//! What could not be followed.

/// Why times are missing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Unknown {
    /// Events about what is not known: it began before the trace, or its beginning was lost.
    pub unmatched: u64,
    /// Requests that look like another in flight at the same time.
    pub alike: u64,
    /// Requests in flight when events were lost.
    pub lost: u64,
    /// Bios and requests without an end: in flight at the end, or their end was lost.
    pub unended: u64,
}
