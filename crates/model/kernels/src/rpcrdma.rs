//! What NFS over RDMA goes by.
//!
//! Source: docs/model/sources/nfs-rdma.md.

use serde::Deserialize;

/// Kernels before and after small messages are pulled up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "Kernel")]
pub enum TransportVariant {
    /// 5.4: data are mapped always; send buffers have 1024 bytes.
    Before,
    /// 5.10: what is shorter than the send buffer is pulled up; send buffers have 2048 bytes.
    After,
}

impl TransportVariant {
    /// What the kernel's transport goes by when nothing is set.
    pub fn rules(self) -> TransportRules {
        TransportRules {
            slots: 128,
            credits: 64,
            inline_bytes: 4096,
            pull_up: self == TransportVariant::After,
            send_buffer_bytes: match self {
                TransportVariant::Before => 1024,
                TransportVariant::After => 2048,
            },
            send_fragments_max: 32,
            data_placement: true,
        }
    }
}

/// What a transport goes by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TransportRules {
    /// Requests at once (`RPCRDMA_DEF_SLOT_TABLE`).
    pub slots: u16,
    /// What the server grants with each reply; 1 before the first.
    pub credits: u16,
    /// The size of a message with its transport header, the smaller of both sides' (1024 if the peer does not state
    /// one).
    pub inline_bytes: u32,
    /// Copy a message that fits the send buffer behind its head instead of mapping its pages.
    pub pull_up: bool,
    /// The size of a slot at first.
    pub send_buffer_bytes: u32,
    /// Scatter/gather elements that the device takes.
    pub send_fragments_max: u16,
    /// Not with integrity or privacy (krb5i, krb5p): then large messages go whole as a chunk.
    pub data_placement: bool,
}
