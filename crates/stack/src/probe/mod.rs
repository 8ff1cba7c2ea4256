//! What probes see on the modelled machine, in the shapes that the host's have.

#[cfg(test)]
pub(crate) mod bench;
