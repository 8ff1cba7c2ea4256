//! The limits that a specification states and its check keeps.

/// The most entries of an io_uring submission queue, and half of it: a polled queue has two per slot.
pub const OPERATIONS_IN_FLIGHT_MAX: u64 = 16_384;
/// The most that one read or write moves (`MAX_RW_COUNT` of linux/fs.h), in bytes.
pub const TRANSFER_BYTES_MAX: u32 = 0x7fff_f000;
/// The most intervals in a window that has to be steady: a month of minutes.
pub const STEADY_INTERVALS_MAX: u64 = 43_200;
/// The shortest interval whose rate is looked at.
pub const STEADY_INTERVAL_NS_MIN: u64 = 10_000_000;
