//! What a probe is to those who start and stop it.

use serde_json::Value;

/// Why a probe has nothing to report: what is lacking, and the command that grants it.
pub type Reason = String;

/// A running probe. Dropping it ends it too, and leaves nothing behind.
pub trait RunningProbe: Send {
    /// What was seen from start to now, in the shape that docs/reference/probes.md describes.
    fn stop(self: Box<Self>) -> Result<Value, Reason>;
}

/// Yields its probe running, or the reason why it can't.
pub type ProbeStart = Result<Box<dyn RunningProbe>, Reason>;
