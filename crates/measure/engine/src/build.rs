//! How the engine was compiled.

/// How this library was compiled: `release`, `checked` (optimised, with assertions and overflow checks: what a checkout
/// builds), or `debug`, whose numbers mean nothing.
pub const BUILD_PROFILE: &str = env!("IOLAB_BUILD_PROFILE");
