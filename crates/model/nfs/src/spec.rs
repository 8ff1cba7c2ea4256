//! The client, its IOMMU and its server as a file describes them.

use kernels::rpcrdma::{TransportRules, TransportVariant};
use serde::Deserialize;

use super::operation::Operation;
use events::SpecError;
use events::spec_error::{RATE, share, within};
use events::time::{SECOND, Time};

/// The file's keys. Times are means; how they vary is given by the `spread` beside them, from 0, always the mean, to 1,
/// exponential.
#[derive(Clone, Debug, PartialEq, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NfsSpec {
    /// For people.
    #[serde(default)]
    pub title: String,
    /// Kernel and tunables of the RPC transport.
    pub transport: TransportSpec,
    /// Times of the client's steps.
    pub costs: CostSpec,
    /// The client's IOMMU.
    pub iommu: IommuSpec,
    /// Server and network.
    pub server: ServerSpec,
    /// The threads' own part of an I/O.
    pub process: ProcessSpec,
}

/// A kernel, and what is set otherwise than its own.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TransportSpec {
    /// Whose rules hold if nothing is set.
    pub kernel: TransportVariant,
    /// See `TransportRules::slots`; null: the kernel's.
    #[schemars(range(min = 2, max = SLOTS_MAX))]
    pub slots: Option<u16>,
    /// See `TransportRules::credits`; null: the kernel's.
    #[schemars(range(min = 1, max = SLOTS_MAX))]
    pub credits: Option<u16>,
    /// See `TransportRules::inline_bytes`; null: the kernel's.
    #[schemars(range(min = INLINE_BYTES.0, max = INLINE_BYTES.1))]
    pub inline_bytes: Option<u32>,
    /// See `TransportRules::pull_up`; null: the kernel's.
    pub pull_up: Option<bool>,
    /// See `TransportRules::send_buffer_bytes`; null: the kernel's.
    #[schemars(range(min = 64, max = INLINE_BYTES.1))]
    pub send_buffer_bytes: Option<u32>,
    /// See `TransportRules::send_fragments_max`; null: the kernel's.
    #[schemars(range(min = 3, max = 1024))]
    pub send_fragments_max: Option<u16>,
    /// See `TransportRules::data_placement`; null: the kernel's.
    pub data_placement: Option<bool>,
}

/// Mean times of the client's steps; the two spreads give how they vary.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CostSpec {
    /// From queueing work until a worker of rpciod or nfsiod runs it.
    #[schemars(range(max = TIME_MAX))]
    pub rpciod_wakeup_ns: Time,
    /// The time to encode a call's arguments.
    pub encode_ns: PerOperation<Time>,
    /// Under the write lock, without copy or map: header, head, posting.
    #[schemars(range(max = TIME_MAX))]
    pub transmit_ns: Time,
    /// Rate of copying data to or from a buffer.
    #[schemars(range(min = RATE.0, max = RATE.1))]
    pub copy_bytes_per_s: u64,
    /// The time to register memory for a chunk, without the map.
    #[schemars(range(max = TIME_MAX))]
    pub register_ns: Time,
    /// From a completion in the queue until its worker polls it.
    #[schemars(range(max = TIME_MAX))]
    pub completion_wakeup_ns: Time,
    /// The receive worker's, up to finding the request.
    #[schemars(range(max = TIME_MAX))]
    pub lookup_ns: Time,
    /// The receive worker's, after that.
    #[schemars(range(max = TIME_MAX))]
    pub reply_ns: Time,
    /// From posting until a Send is acknowledged.
    #[schemars(range(max = TIME_MAX))]
    pub send_ack_ns: Time,
    /// The send worker's, without unmapping.
    #[schemars(range(max = TIME_MAX))]
    pub send_done_ns: Time,
    /// The time to decode a reply's results.
    pub decode_ns: PerOperation<Time>,
    /// How the waits for workers vary, 0 to 1.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub wakeup_spread: f64,
    /// How the CPU times vary, 0 to 1.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub work_spread: f64,
}

/// How the client's DMA addresses are translated (`iommu=`, `intel_iommu=`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum IommuMode {
    /// No IOMMU: addresses are physical.
    None,
    /// Unmapped addresses are flushed later, many at once.
    Lazy,
    /// Each unmap invalidates the IOMMU's translation at once.
    Strict,
}

/// The client's IOMMU, and the CPU time of mapping and unmapping.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct IommuSpec {
    /// When translations are invalidated.
    pub mode: IommuMode,
    /// An emulated one: a new mapping has to be invalidated too.
    pub caching: bool,
    /// Without an IOMMU: of mapping, and again of unmapping.
    #[schemars(range(max = TIME_MAX))]
    pub direct_ns: Time,
    /// An address from the magazine, and a page table entry.
    #[schemars(range(max = TIME_MAX))]
    pub map_ns: Time,
    /// Finding the address, and clearing a page table entry.
    #[schemars(range(max = TIME_MAX))]
    pub unmap_ns: Time,
    /// Each further page table entry of one mapping.
    #[schemars(range(max = TIME_MAX))]
    pub page_ns: Time,
    /// Under the lock: the hardware drops its translations, and the CPU waits for it.
    #[schemars(range(max = TIME_MAX))]
    pub invalidate_ns: Time,
    /// Under the lock: an empty magazine for a full one.
    #[schemars(range(max = TIME_MAX))]
    pub refill_ns: Time,
    /// The time to put one flushed address back.
    #[schemars(range(max = TIME_MAX))]
    pub free_ns: Time,
}

/// The server: threads that serve calls, behind a link.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ServerSpec {
    /// nfsd threads: calls that are served at once.
    #[schemars(range(min = 1, max = 4096))]
    pub threads: u16,
    /// There and back, without data.
    #[schemars(range(max = TIME_MAX))]
    pub network_ns: Time,
    /// Rate of the link, of each direction.
    #[schemars(range(min = RATE.0, max = RATE.1))]
    pub link_bytes_per_s: u64,
    /// The service time of a thread.
    pub service_ns: PerOperation<Time>,
    /// How the service time varies, 0 to 1.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub spread: f64,
}

/// What a thread that calls does between two calls.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ProcessSpec {
    /// CPU time of its own.
    pub cpu_ns: PerOperation<Time>,
    /// Everything else outside the RPC layer.
    pub wait_ns: PerOperation<Time>,
    /// The work item that ends a direct I/O: one at a time for all threads.
    #[schemars(range(max = TIME_MAX))]
    pub completion_ns: Time,
    /// How the times vary, 0 to 1.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub spread: f64,
}

/// A value for READ and one for WRITE.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PerOperation<T> {
    /// The value for READ.
    #[schemars(range(max = TIME_MAX))]
    pub read: T,
    /// The value for WRITE.
    #[schemars(range(max = TIME_MAX))]
    pub write: T,
}

/// The kernel's largest slot table.
const SLOTS_MAX: u64 = 16_384;
/// `RPCRDMA_MIN_INLINE` and 16 times `RPCRDMA_MAX_INLINE`, so that what-ifs have room.
const INLINE_BYTES: (u64, u64) = (1024, 1 << 20);
/// A minute: sums of such times stay far from overflow.
const TIME_MAX: Time = 60 * SECOND;

impl NfsSpec {
    /// Refuses values outside their limits; the error names the key.
    pub fn check(&self) -> Result<(), SpecError> {
        check(&self.transport.rules())?;
        self.costs.check()?;
        self.iommu.check()?;
        self.server.check()?;
        self.process.check()
    }
}

impl TransportSpec {
    /// The kernel's rules with what is set instead.
    pub fn rules(&self) -> TransportRules {
        let own = self.kernel.rules();
        TransportRules {
            slots: self.slots.unwrap_or(own.slots),
            credits: self.credits.unwrap_or(own.credits),
            inline_bytes: self.inline_bytes.unwrap_or(own.inline_bytes),
            pull_up: self.pull_up.unwrap_or(own.pull_up),
            send_buffer_bytes: self.send_buffer_bytes.unwrap_or(own.send_buffer_bytes),
            send_fragments_max: self.send_fragments_max.unwrap_or(own.send_fragments_max),
            data_placement: self.data_placement.unwrap_or(own.data_placement),
        }
    }
}

/// Whether there can be such.
fn check(rules: &TransportRules) -> Result<(), SpecError> {
    within("transport.slots", u64::from(rules.slots), 2, SLOTS_MAX)?;
    let slots = u64::from(rules.slots);
    within("transport.credits", u64::from(rules.credits), 1, slots)?;
    let (least, most) = INLINE_BYTES;
    let inline_bytes = u64::from(rules.inline_bytes);
    within("transport.inline_bytes", inline_bytes, least, most)?;
    let buffer_bytes = u64::from(rules.send_buffer_bytes);
    within("transport.send_buffer_bytes", buffer_bytes, 64, most)?;
    let fragments = u64::from(rules.send_fragments_max);
    within("transport.send_fragments_max", fragments, 3, 1024)
}

impl CostSpec {
    fn check(&self) -> Result<(), SpecError> {
        times(&[
            ("costs.rpciod_wakeup_ns", self.rpciod_wakeup_ns),
            ("costs.encode_ns.read", self.encode_ns.read),
            ("costs.encode_ns.write", self.encode_ns.write),
            ("costs.transmit_ns", self.transmit_ns),
            ("costs.register_ns", self.register_ns),
            ("costs.completion_wakeup_ns", self.completion_wakeup_ns),
            ("costs.lookup_ns", self.lookup_ns),
            ("costs.reply_ns", self.reply_ns),
            ("costs.send_ack_ns", self.send_ack_ns),
            ("costs.send_done_ns", self.send_done_ns),
            ("costs.decode_ns.read", self.decode_ns.read),
            ("costs.decode_ns.write", self.decode_ns.write),
        ])?;
        rate("costs.copy_bytes_per_s", self.copy_bytes_per_s)?;
        share("costs.wakeup_spread", self.wakeup_spread)?;
        share("costs.work_spread", self.work_spread)
    }
}

impl IommuSpec {
    fn check(&self) -> Result<(), SpecError> {
        times(&[
            ("iommu.direct_ns", self.direct_ns),
            ("iommu.map_ns", self.map_ns),
            ("iommu.unmap_ns", self.unmap_ns),
            ("iommu.page_ns", self.page_ns),
            ("iommu.invalidate_ns", self.invalidate_ns),
            ("iommu.refill_ns", self.refill_ns),
            ("iommu.free_ns", self.free_ns),
        ])
    }
}

impl ServerSpec {
    fn check(&self) -> Result<(), SpecError> {
        within("server.threads", u64::from(self.threads), 1, 4096)?;
        times(&[
            ("server.network_ns", self.network_ns),
            ("server.service_ns.read", self.service_ns.read),
            ("server.service_ns.write", self.service_ns.write),
        ])?;
        rate("server.link_bytes_per_s", self.link_bytes_per_s)?;
        share("server.spread", self.spread)
    }
}

impl ProcessSpec {
    fn check(&self) -> Result<(), SpecError> {
        times(&[
            ("process.cpu_ns.read", self.cpu_ns.read),
            ("process.cpu_ns.write", self.cpu_ns.write),
            ("process.wait_ns.read", self.wait_ns.read),
            ("process.wait_ns.write", self.wait_ns.write),
            ("process.completion_ns", self.completion_ns),
        ])?;
        share("process.spread", self.spread)
    }
}

impl<T: Copy> PerOperation<T> {
    /// The value of one operation.
    #[inline]
    pub fn of(&self, operation: Operation) -> T {
        match operation {
            Operation::Read => self.read,
            Operation::Write => self.write,
        }
    }
}

fn times(keys: &[(&str, Time)]) -> Result<(), SpecError> {
    keys.iter().try_for_each(|&(key, value)| within(key, value, 0, TIME_MAX))
}

/// 1 MB/s to 1 TB/s.
fn rate(key: &str, bytes_per_s: u64) -> Result<(), SpecError> {
    within(key, bytes_per_s, RATE.0, RATE.1)
}
