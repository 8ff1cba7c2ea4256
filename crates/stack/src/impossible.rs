//! What is wrong with something that was asked for, and where.

/// The key by its dotted path, and why its value can't be.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{key}: {what}")]
pub struct Impossible {
    pub key: String,
    pub what: String,
}

impl Impossible {
    pub fn of(key: &str, what: impl Into<String>) -> Impossible {
        Impossible {
            key: key.to_owned(),
            what: what.into(),
        }
    }

    /// The same of a part: its key behind the part's.
    pub fn within(self, part: &str) -> Impossible {
        Impossible {
            key: format!("{part}.{}", self.key),
            what: self.what,
        }
    }
}

/// The value of a key lies in its range, ends included.
pub(crate) fn within(key: &str, value: u64, least: u64, most: u64) -> Result<(), Impossible> {
    if (least..=most).contains(&value) {
        return Ok(());
    }
    let what = format!("expected {least} to {most}, found {value}");
    Err(Impossible::of(key, what))
}

/// The value of a key is a share of something.
pub(crate) fn share(key: &str, value: f64) -> Result<(), Impossible> {
    if (0.0..=1.0).contains(&value) {
        return Ok(());
    }
    Err(Impossible::of(
        key,
        format!("expected 0 to 1, found {value}"),
    ))
}
