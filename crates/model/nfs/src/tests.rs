//! A test per rule of the client, each on a client whose times do not vary.

use super::call::{Call, Placement};
use super::closed_system::{ClosedSystem, Load};
use super::cpu::Context;
use super::direct::{DirectIo, Request};
use super::mount::{CompletedCall, Mount};
use super::mountstats::MountPoint;
use super::operation::Operation;
use super::spec::{IommuMode, IommuSpec, NfsSpec, PerOperation, TransportSpec};
use super::task::Stage;
use events::Component;
use events::time::{MILLISECOND, Time};
use kernels::rpcrdma::{TransportRules, TransportVariant};

const MACHINE: &str = include_str!("../../../../machines/mounts/nfs-rdma.toml");

pub(super) fn machine() -> NfsSpec {
    toml::from_str(MACHINE).expect("a client")
}

/// Round numbers that do not vary.
fn plain(kernel: TransportVariant) -> NfsSpec {
    let mut spec = machine();
    spec.transport = TransportSpec { kernel, ..spec.transport };
    spec.costs.rpciod_wakeup_ns = 1_000;
    spec.costs.encode_ns = both(2_000);
    spec.costs.transmit_ns = 3_000;
    spec.costs.copy_bytes_per_s = 1_000_000_000;
    spec.costs.completion_wakeup_ns = 5_000;
    spec.costs.lookup_ns = 600;
    spec.costs.reply_ns = 400;
    spec.costs.send_ack_ns = 100;
    spec.costs.send_done_ns = 700;
    spec.costs.decode_ns = both(800);
    spec.costs.wakeup_spread = 0.0;
    spec.costs.work_spread = 0.0;
    spec.server.network_ns = 2_000;
    spec.server.link_bytes_per_s = 1_000_000_000_000;
    spec.server.service_ns = both(10_000);
    spec.server.spread = 0.0;
    spec.iommu = IommuSpec {
        mode: IommuMode::Strict,
        caching: false,
        direct_ns: 10,
        map_ns: 200,
        unmap_ns: 300,
        page_ns: 50,
        invalidate_ns: 1_500,
        refill_ns: 0,
        free_ns: 0,
    };
    spec
}

fn both(ns: Time) -> PerOperation<Time> {
    PerOperation { read: ns, write: ns }
}

fn call(tag: u64, operation: Operation, data_bytes: u32) -> Call {
    Call { tag, operation, data_bytes }
}

fn write(data_bytes: u32) -> Call {
    call(0, Operation::Write, data_bytes)
}

pub(super) fn run_to_end(mount: &mut Mount) -> Vec<CompletedCall> {
    let mut completed = Vec::new();
    while let Some(at) = mount.next_event() {
        mount.advance(at, &mut completed);
    }
    completed
}

#[test]
fn the_file_is_a_possible_client() {
    assert_eq!(machine().check(), Ok(()));
    assert!(toml::from_str::<NfsSpec>(&format!("{MACHINE}\nspindles = 1")).is_err());
}

#[test]
fn an_impossible_value_is_told_with_its_key() {
    let impossible = |change: fn(&mut NfsSpec)| {
        let mut spec = machine();
        change(&mut spec);
        Mount::new(&spec, 1).expect_err("impossible").to_string()
    };
    assert_eq!(
        impossible(|spec| spec.transport.credits = Some(129)),
        "transport.credits: expected 1 to 128, found 129"
    );
    assert_eq!(impossible(|spec| spec.server.threads = 0), "server.threads: expected 1 to 4096, found 0");
    assert_eq!(impossible(|spec| spec.costs.work_spread = f64::NAN), "costs.work_spread: expected 0 to 1, found NaN");
    assert_eq!(
        impossible(|spec| spec.costs.copy_bytes_per_s = 0),
        "costs.copy_bytes_per_s: expected 1000000 to 1000000000000, found 0"
    );
}

#[test]
fn messages_have_the_published_sizes() {
    assert_eq!(write(1024).body_bytes(), 1172);
    assert_eq!(write(1024).reply_bytes(), 136);
    let read = call(0, Operation::Read, 1024);
    assert_eq!((read.body_bytes(), read.reply_bytes()), (140, 1152));
}

#[test]
fn a_message_is_pulled_up_if_it_is_shorter_than_the_send_buffer() {
    let rules = TransportVariant::After.rules();
    let placed = |data_bytes| write(data_bytes).placement(&rules, rules.send_buffer_bytes);
    assert_eq!(placed(1024), Placement::PulledUp { copied_bytes: 1024 });
    // 148 + 1896 = 2044 is the longest: the next multiple of four is the buffer's size.
    assert_eq!(placed(1896), Placement::PulledUp { copied_bytes: 1896 });
    assert_eq!(placed(1900), Placement::Mapped { fragments: 1 });
    // The pad is counted as copied, and is mapped by itself.
    assert_eq!(placed(1021), Placement::PulledUp { copied_bytes: 1024 });
    assert_eq!(placed(1901), Placement::Mapped { fragments: 2 });
    // With the former size, 1 KiB would not be pulled up.
    let small = write(1024).placement(&rules, 1024);
    assert_eq!(small, Placement::Mapped { fragments: 1 });
}

#[test]
fn the_kernel_before_never_pulls_up() {
    let rules = TransportVariant::Before.rules();
    let placed = write(256).placement(&rules, rules.send_buffer_bytes);
    assert_eq!(placed, Placement::Mapped { fragments: 1 });
}

#[test]
fn what_is_too_long_for_inline_goes_as_a_chunk() {
    let rules = TransportVariant::After.rules();
    let placed = |data_bytes, rules| write(data_bytes).placement(rules, 2048);
    // 4096 less a full call header of 436.
    assert_eq!(placed(3512, &rules), Placement::Mapped { fragments: 1 });
    assert_eq!(placed(3516, &rules), Placement::DataChunk { pages: 1 });
    let private = TransportRules { data_placement: false, ..rules };
    assert_eq!(placed(8192, &private), Placement::MessageChunk { pages: 3 });
    // Three elements beside the pages.
    let few = TransportRules { send_fragments_max: 3, ..rules };
    assert_eq!(placed(1024, &few), Placement::DataChunk { pages: 1 });
}

#[test]
fn a_pulled_up_write_takes_its_steps_one_after_the_other() {
    let mut mount = Mount::new(&plain(TransportVariant::After), 1).unwrap();
    mount.submit(0, write(1000));
    let done = run_to_end(&mut mount);
    // Wake-up, encode, copy and transmit; network, service, wake-up, lookup; reply, wake-up, decode.
    let (queue, rtt, rest) = (1_000 + 2_000 + 1_000 + 3_000, 2_000 + 10_000 + 5_000 + 600, 2_200);
    let write = mount.counters().of(Operation::Write);
    // Carrying a kilobyte takes a nanosecond.
    assert_eq!((write.queue_ns, write.rtt_ns), (queue, rtt + 1));
    assert_eq!(write.execute_ns, queue + rtt + 1 + rest);
    assert_eq!(done[0].at, write.execute_ns);
    assert_eq!(mount.counters().pulled_up_bytes, 1000);
    assert_eq!(mount.counters().signalled_sends, 0);
}

#[test]
fn a_mapped_write_is_not_complete_before_its_send_is_unmapped() {
    let mut spec = plain(TransportVariant::Before);
    spec.costs.send_ack_ns = 40_000;
    let mut mount = Mount::new(&spec, 1).unwrap();
    mount.submit(0, write(1000));
    run_to_end(&mut mount);
    let counters = mount.counters();
    assert_eq!(counters.signalled_sends, 1);
    assert_eq!(counters.replies_waited_for_send, 1);
    let write = counters.of(Operation::Write);
    assert_eq!(write.queue_ns, 1_000 + 2_000 + 200 + 3_000);
    // Acknowledged, woken, invalidated, unmapped and handled, then woken and decoded.
    let rest = 40_000 + 5_000 + 1_500 + 300 + 700 + 1_800;
    assert_eq!(write.execute_ns, write.queue_ns + rest);
    assert_eq!(write.rtt_ns, 2_000 + 10_000 + 5_000 + 600 + 1);
}

#[test]
fn every_17th_pulled_up_send_is_signalled() {
    let mut mount = Mount::new(&plain(TransportVariant::After), 1).unwrap();
    for tag in 0..170 {
        mount.submit(0, call(tag, Operation::Write, 1000));
    }
    assert_eq!(run_to_end(&mut mount).len(), 170);
    assert_eq!(mount.counters().signalled_sends, 10);
}

#[test]
fn one_call_goes_before_the_first_reply_and_as_many_as_granted_after_it() {
    let mut spec = plain(TransportVariant::After);
    spec.transport.credits = Some(3);
    spec.server.threads = 64;
    spec.server.service_ns = both(MILLISECOND);
    let mut mount = Mount::new(&spec, 1).unwrap();
    for tag in 0..5 {
        mount.submit(0, call(tag, Operation::Read, 1000));
    }
    let mut completed = Vec::new();
    mount.advance(MILLISECOND / 2, &mut completed);
    assert_eq!(mount.tasks.inside(Stage::RoundTrip), 1);
    assert_eq!(mount.tasks.inside(Stage::Transmit), 4);
    mount.advance(MILLISECOND * 3 / 2, &mut completed);
    assert_eq!(completed.len(), 1);
    assert_eq!(mount.tasks.inside(Stage::RoundTrip), 3);
    assert!(mount.counters().no_credit > 0);
}

#[test]
fn who_finds_no_slot_waits_in_the_backlog() {
    let mut spec = plain(TransportVariant::After);
    spec.transport.slots = Some(2);
    spec.transport.credits = Some(2);
    let mut mount = Mount::new(&spec, 1).unwrap();
    for tag in 0..5 {
        mount.submit(tag, call(tag, Operation::Read, 1000));
    }
    mount.advance(1_500, &mut Vec::new());
    assert_eq!(mount.tasks.inside(Stage::Backlog), 3);
    let order: Vec<u64> = run_to_end(&mut mount).iter().map(|done| done.call.tag).collect();
    assert_eq!(order, [0, 1, 2, 3, 4]);
    assert!(mount.counters().backlog_sum > 0);
}

#[test]
fn a_full_ring_stops_the_sender() {
    let mut spec = plain(TransportVariant::Before);
    spec.transport.slots = Some(2);
    spec.transport.credits = Some(2);
    spec.costs.send_ack_ns = MILLISECOND;
    let mut mount = Mount::new(&spec, 1).unwrap();
    // Reads map nothing and are not signalled before the batch of 2 / 8 = 0 is over: each is.
    for tag in 0..8 {
        mount.submit(0, call(tag, Operation::Read, 1000));
    }
    assert_eq!(run_to_end(&mut mount).len(), 8);
    assert!(mount.counters().empty_ring > 0);
}

#[test]
fn a_send_buffer_grows_for_a_larger_head() {
    let mut spec = plain(TransportVariant::After);
    spec.transport.send_buffer_bytes = Some(100);
    let mut mount = Mount::new(&spec, 1).unwrap();
    for _ in 0..3 {
        let now = mount.events.now();
        mount.submit(now, write(1000));
        run_to_end(&mut mount);
    }
    // The slot that came back last is taken again.
    assert_eq!(mount.counters().grown_bytes, 148);
}

#[test]
fn lazy_unmapping_flushes_after_256_addresses_or_10_ms() {
    let timer_ns = |writes: u64| {
        let mut spec = plain(TransportVariant::Before);
        spec.iommu.mode = IommuMode::Lazy;
        let mut mount = Mount::new(&spec, 1).unwrap();
        for tag in 0..writes {
            mount.submit(0, call(tag, Operation::Write, 1000));
        }
        run_to_end(&mut mount);
        mount.check(mount.events.now()).unwrap();
        (mount.cpu().of(Context::Timer), mount.events.now())
    };
    let (flushed_ns, ended_at) = timer_ns(1);
    assert_eq!(flushed_ns, 1_500, "one invalidation, in time");
    assert!(ended_at > 10 * MILLISECOND);
    assert_eq!(timer_ns(256).0, 0, "the queue was full first");
}

#[test]
fn without_an_iommu_mapping_is_nearly_free() {
    let mut spec = plain(TransportVariant::Before);
    spec.iommu.mode = IommuMode::None;
    let mut mount = Mount::new(&spec, 1).unwrap();
    mount.submit(0, write(1000));
    run_to_end(&mut mount);
    assert_eq!(mount.cpu().of(Context::Send), 10 + 700);
    assert_eq!(mount.counters().of(Operation::Write).queue_ns, 6_010);
}

#[test]
fn large_records_go_by_chunks_and_are_counted() {
    let mut mount = Mount::new(&plain(TransportVariant::After), 1).unwrap();
    mount.submit(0, write(65_536));
    mount.submit(0, call(1, Operation::Read, 65_536));
    run_to_end(&mut mount);
    let counters = mount.counters();
    assert_eq!((counters.read_chunks, counters.write_chunks), (1, 1));
    assert_eq!(counters.rdma_request_bytes, 65_536);
    assert_eq!(counters.rdma_reply_bytes, 65_536);
    assert_eq!((counters.pulled_up_bytes, counters.fixup_bytes), (0, 0));
    assert_eq!(counters.regions, 16);
}

#[test]
fn cpu_time_is_on_the_account_of_who_works() {
    let mut closed = ClosedSystem::new(&plain(TransportVariant::After), 1).unwrap();
    closed.run(&Load { operation: Operation::Read, threads: 1, record_bytes: 1000, records_per_thread: 10 });
    let cpu = closed.cpu();
    let process = closed.mount().spec.process;
    // Encode, transmit, decode, and ending the direct I/O.
    let rpciod_ns = 10 * (2_000 + 3_000 + 800);
    assert!(cpu.of(Context::Rpciod) >= rpciod_ns);
    assert_eq!(cpu.of(Context::Receive), 10 * (600 + 400 + 1_000));
    assert_eq!(cpu.of(Context::Send), 0);
    assert!(cpu.of(Context::Process) > 10 * process.cpu_ns.read / 4);
}

#[test]
fn a_write_waits_for_one_more_work_item_than_a_read() {
    let mut spec = plain(TransportVariant::After);
    spec.process.spread = 0.0;
    spec.process.wait_ns = both(0);
    spec.process.completion_ns = 700;
    let took_ns = |operation| {
        let mut io = DirectIo::new(&spec, 1).unwrap();
        let (tag, thread, bytes) = (7, 0, 1024);
        let request = Request { tag, thread, operation, bytes };
        io.start(0, request);
        let mut done = Vec::new();
        let mut now = 0;
        while done.is_empty() {
            now = io.next_event().expect("it is under way");
            io.advance(now);
            io.take_effects(&mut done);
        }
        assert_eq!(done, [tag]);
        now - io.mount().counters().of(operation).execute_ns
    };
    assert_eq!(took_ns(Operation::Read), 700);
    assert_eq!(took_ns(Operation::Write), 700 + 1_000);
}

#[test]
fn mountstats_are_in_the_kernels_format() {
    let mut closed = ClosedSystem::new(&machine(), 1).unwrap();
    for operation in [Operation::Write, Operation::Read] {
        closed.run(&Load { operation, threads: 12, record_bytes: 1024, records_per_thread: 1000 });
    }
    let mounted = MountPoint { device: "server:/export", mount_point: "/mnt" };
    let text = closed.mount().mountstats(closed.now(), &mounted);
    let golden = include_str!("../../../../tests/golden/mountstats/nfs-rdma.txt");
    assert_eq!(text, golden);
}
