//! What is wrong with something that was asked for, and where.

/// The key by its dotted path, and why its value can't be.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{key}: {what}")]
pub struct SpecError {
    /// Dotted path from the top of what was given, as in `drives.0.queue.nomerges`; empty: all of it.
    pub key: String,
    /// What was expected, and found; a phrase without a full stop.
    pub what: String,
}

impl SpecError {
    /// An error at a dotted path.
    pub fn of(key: &str, what: impl Into<String>) -> SpecError {
        SpecError { key: key.to_owned(), what: what.into() }
    }

    /// The same of a part: its key behind the part's.
    pub fn within(self, part: &str) -> SpecError {
        SpecError { key: format!("{part}.{}", self.key), what: self.what }
    }
}

/// Bytes per second, least and most, that something could move: 1 MB/s to 1 TB/s.
pub const RATE: (u64, u64) = (1_000_000, 1_000_000_000_000);

/// The value of a key lies in its range, ends included. The field's `schemars(range)` has the same range for the
/// schema, and tests/test_machine_keys.py tries each of those.
pub fn within(key: &str, value: u64, least: u64, most: u64) -> Result<(), SpecError> {
    if (least..=most).contains(&value) {
        return Ok(());
    }
    let what = format!("expected {least} to {most}, found {value}");
    Err(SpecError::of(key, what))
}

/// The value of a key is a share of something.
pub fn share(key: &str, value: f64) -> Result<(), SpecError> {
    if (0.0..=1.0).contains(&value) {
        return Ok(());
    }
    Err(SpecError::of(key, format!("expected 0 to 1, found {value}")))
}

/// For the schema: a required key that a machine file may leave out, because another key replaces it.
pub fn optional(key: &'static str) -> impl Fn(&mut schemars::Schema) {
    move |schema| {
        if let Some(required) = schema.get_mut("required").and_then(|keys| keys.as_array_mut()) {
            required.retain(|name| name != key);
        }
    }
}
