//! Completion affinity on the machines of the reports of February 2008, with devices that are nothing but delays:
//! `cargo run --release -p iolab-stack --example completion [four|sixteen|thirty-two|lock|cost]`.
//!
//! Published figures stand beside modelled ones. `fit` behind a row: a parameter was chosen to meet a figure of it.

#![allow(clippy::disallowed_types, clippy::disallowed_methods)] // The model must not look at a clock; its measurement has to.

use std::collections::VecDeque;
use std::time::Instant;

use stack::agenda::Agenda;
use stack::completion::{
    Affinity, CompletionSpec, Completions, Counters, Form, Outcome, RequestAffinity, RequestId,
    Step,
};
use stack::smp::{
    Context, Distance, Done, InterruptSpec, Kind, Processors, SchedulingSpec, SmpSpec, TaskNumber,
    TaskSpec, Topology, Work,
};
use stack::time::{MILLISECOND, SECOND, Time};

fn main() {
    let wanted: Vec<String> = std::env::args().skip(1).collect();
    let is_wanted = |name: &str| wanted.is_empty() || wanted.iter().any(|word| word == name);
    if is_wanted("four") {
        four_way();
    }
    if is_wanted("sixteen") {
        placements(&SIXTEEN);
    }
    if is_wanted("thirty-two") {
        placements(&THIRTY_TWO);
    }
    if is_wanted("lock") {
        lock();
    }
    if is_wanted("cost") {
        cost();
    }
}

/// Not in the reports; it fits "about 6 minutes" for the amount of I/O of the four-way test.
const CLOCK_HZ: u64 = 1_600_000_000;

fn smp(topology: Topology) -> SmpSpec {
    SmpSpec {
        topology,
        clock_hz: CLOCK_HZ,
        transfer_cycles: [30, 100, 240, 700],
        computing_stall_per_mille: 500,
        interrupts: InterruptSpec {
            send_cycles: 700,
            latency_ns: 1_500,
            latency_other_cell_ns: 2_500,
            receive_cycles: 1_500,
        },
        scheduling: SchedulingSpec {
            time_slice_ns: 100 * MILLISECOND,
            preempt_after_ns: 100 * MILLISECOND,
            wake_cycles: 900,
            switch_cycles: 1_600,
            task_lines: 3,
            run_queue_lines: 2,
            migrates_within: Distance::Machine,
        },
        idle_states: Vec::new(),
    }
}

fn completion(form: Form) -> CompletionSpec {
    let first_variant = form == Form::RemoteSoftirq;
    CompletionSpec {
        form,
        interrupt_cycles: 7_500,
        // Fitted: bubbles of 2.6.24.
        interrupt_stalled_cycles: 5_300,
        softirq_cycles: 300,
        // Fitted: what the interrupted CPU does in 2.6.24.
        complete_cycles: 4_050,
        enter_cycles: 2_000,
        hand_over_cycles: 200,
        splice_cycles: 200,
        // Fitted: throughput of the first variant with rq = 0.
        local_cycles: if first_variant { LOCAL_CYCLES } else { 0 },
        // Fitted: throughput of the first variant with rq = 1.
        call_ns: if first_variant { CALL_NS } else { 0 },
        shares_cache: Distance::Socket,
        request_lines: 4,
        bio_lines: 2,
        control_block_lines: 7,
        list_lines: 2,
    }
}

const LOCAL_CYCLES: u32 = 4_500;
const CALL_NS: Time = 8_900;

/// Applications that keep I/Os outstanding, a device for each.
struct Closed {
    smp: SmpSpec,
    completion: CompletionSpec,
    devices: Vec<Device>,
    depth: u32,
    /// Of one bio: its application's, in user mode and in the kernel.
    user_cycles: u32,
    submit_cycles: u32,
    /// Waiting bios that make one request.
    bios_per_request: usize,
    issue_for: Time,
}

#[derive(Clone, Copy)]
struct Device {
    interrupts: u16,
    application: u16,
    affinity: Affinity,
    /// One request after the other, so many ns a bio.
    service_ns: Time,
    /// Besides, for each request.
    latency_ns: Time,
    /// Requests that the device takes.
    slots: u32,
}

/// What a run came to.
struct Outcomes {
    lasted: Time,
    bios: u64,
    latency_ns: u128,
    counters: Vec<Counters>,
    smp: Processors<Tag>,
    requests: u64,
}

#[derive(Clone, Copy, Debug)]
enum Tag {
    Completion(Step),
    Submitted(u32),
}

impl From<Step> for Tag {
    fn from(step: Step) -> Tag {
        Tag::Completion(step)
    }
}

struct Running {
    spec: Device,
    queue: u32,
    task: TaskNumber,
    waiting: VecDeque<Time>,
    inside: u32,
    free_at: Time,
}

struct Run<'a> {
    load: &'a Closed,
    smp: Processors<Tag>,
    completions: Completions,
    devices: Vec<Running>,
    arrivals: Agenda<(u32, RequestId)>,
    /// By token: device, and when its bios were issued.
    flights: Vec<(u32, Vec<Time>)>,
    free: Vec<u32>,
    bios: u64,
    latency_ns: u128,
    requests: u64,
}

fn run(load: &Closed) -> Outcomes {
    let mut smp = Processors::new(&load.smp).expect("possible processors");
    let mut completions = Completions::new(load.completion, &mut smp);
    let cpus = smp.cpus();
    let devices = load
        .devices
        .iter()
        .map(|&spec| Running {
            spec,
            queue: completions.add_queue(spec.affinity).expect("supported"),
            task: smp.add_task(TaskSpec::pinned(cpus, spec.application)),
            waiting: VecDeque::new(),
            inside: 0,
            free_at: 0,
        })
        .collect();
    let mut run = Run {
        load,
        smp,
        completions,
        devices,
        arrivals: Agenda::new(),
        flights: Vec::new(),
        free: Vec::new(),
        bios: 0,
        latency_ns: 0,
        requests: 0,
    };
    for device in 0..run.devices.len() as u32 {
        for _ in 0..load.depth {
            run.issue(0, device, None);
        }
    }
    let (mut done, mut now) = (Vec::new(), 0);
    while let Some(at) = [run.smp.next_event(), run.arrivals.next_at()]
        .into_iter()
        .flatten()
        .min()
    {
        now = at;
        run.smp.advance(now, &mut done);
        for finished in done.drain(..) {
            run.finished(finished);
        }
        while run.arrivals.next_at() == Some(now) {
            let (_, (device, request)) = run.arrivals.take().expect("just seen");
            let device = &mut run.devices[device as usize];
            device.inside -= 1;
            let cpu = device.spec.interrupts;
            run.completions.interrupt(&mut run.smp, now, cpu, request);
        }
    }
    assert_eq!(run.completions.under_way(), 0, "nothing is lost");
    Outcomes {
        lasted: now,
        bios: run.bios,
        latency_ns: run.latency_ns,
        counters: run
            .devices
            .iter()
            .map(|device| run.completions.counters(device.queue))
            .collect(),
        smp: run.smp,
        requests: run.requests,
    }
}

impl Run<'_> {
    /// The application submits one.
    fn issue(&mut self, now: Time, device: u32, woken_by: Option<u16>) {
        let task = self.devices[device as usize].task;
        if self.load.user_cycles > 0 {
            let user = Work::of(self.load.user_cycles).in_user_mode();
            self.smp.wake(now, task, woken_by, user);
        }
        let submit = Work::of(self.load.submit_cycles).tagged(Tag::Submitted(device));
        self.smp.wake(now, task, woken_by, submit);
    }

    fn finished(&mut self, done: Done<Tag>) {
        let (now, cpu) = (done.at, done.cpu);
        match done.tag {
            Tag::Submitted(device) => {
                self.bios += 1;
                let queue = self.devices[device as usize].queue;
                if self
                    .completions
                    .enter(&mut self.smp, now, queue, cpu, device)
                {
                    self.entered(now, cpu, device);
                }
            }
            Tag::Completion(tag) => {
                let step = Done { at: now, cpu, tag };
                match self.completions.handle(&mut self.smp, step) {
                    Some(Outcome::Entered { token, cpu }) => self.entered(now, cpu, token),
                    Some(Outcome::Completed { token, cpu, .. }) => self.completed(now, cpu, token),
                    None => {}
                }
            }
        }
    }

    fn entered(&mut self, now: Time, cpu: u16, device: u32) {
        self.devices[device as usize].waiting.push_back(now);
        self.send(now, cpu, device);
    }

    fn completed(&mut self, now: Time, cpu: u16, token: u32) {
        let (device, issued) = std::mem::take(&mut self.flights[token as usize]);
        self.free.push(token);
        for at in issued {
            self.latency_ns += u128::from(now - at);
            if now < self.load.issue_for {
                self.issue(now, device, Some(cpu));
            }
        }
        self.send(now, cpu, device);
    }

    /// The device takes what it has room for.
    fn send(&mut self, now: Time, cpu: u16, number: u32) {
        let device = &mut self.devices[number as usize];
        while device.inside < device.spec.slots && !device.waiting.is_empty() {
            let bios = device.waiting.len().min(self.load.bios_per_request);
            let issued: Vec<Time> = device.waiting.drain(..bios).collect();
            device.inside += 1;
            device.free_at = device.free_at.max(now) + device.spec.service_ns * bios as Time;
            let done_at = device.free_at + device.spec.latency_ns;
            let flight = (number, issued);
            let token = match self.free.pop() {
                Some(token) => {
                    self.flights[token as usize] = flight;
                    token
                }
                None => {
                    self.flights.push(flight);
                    self.flights.len() as u32 - 1
                }
            };
            let request =
                self.completions
                    .begin(&mut self.smp, device.queue, device.spec.application, token);
            let mut touch = Work::of(0);
            for object in self.completions.objects(request) {
                touch = touch.touching(object);
            }
            self.smp.charge(now, cpu, touch);
            self.requests += 1;
            self.arrivals.put(done_at, (number, request));
        }
    }
}

fn near(on: bool) -> RequestAffinity {
    if on {
        RequestAffinity::Near
    } else {
        RequestAffinity::Interrupted
    }
}

/// 4 CPUs; CPUs 0 and 2 are interrupted, CPUs 1 and 3 have the applications; 4 KiB from controllers' caches, one at a time.
fn four_way() {
    println!("four-way, cached: published | modelled");
    println!(
        "{:<22} {:>15} {:>15} {:>15} {:>15} {:>15}  fit",
        "", "MB/s", "%sys+soft", "%iowait", "%idle", "bubbles %"
    );
    for (name, form, rq, published, fit) in [
        (
            "2.6.24",
            Form::Softirq,
            false,
            Some([106.90, 10.088, 43.949, 45.819, 9.8]),
            "all",
        ),
        (
            "first variant rq=0",
            Form::RemoteSoftirq,
            false,
            Some([103.09, 11.361, 43.507, 45.008, 9.9]),
            "MB/s",
        ),
        (
            "first variant rq=1",
            Form::RemoteSoftirq,
            true,
            Some([98.81, 6.030, 44.021, 49.794, 5.8]),
            "MB/s",
        ),
        (
            "kthread rq=0",
            Form::Thread,
            false,
            Some([106.85, 10.402, 43.744, 45.686, 10.8]),
            "",
        ),
        (
            "kthread rq=1",
            Form::Thread,
            true,
            Some([107.16, 8.160, 41.880, 49.804, 8.9]),
            "",
        ),
        ("2.6.28 rq=1", Form::Grouped, true, None, ""),
        ("3.1 rq=1", Form::CacheAware, true, None, ""),
        ("blk-mq rq=0", Form::MultiQueue, false, None, ""),
        ("blk-mq rq=1", Form::MultiQueue, true, None, ""),
    ] {
        let columns = four_way_columns(form, rq);
        let cells: Vec<String> = columns
            .iter()
            .enumerate()
            .map(|(number, modelled)| match published {
                Some(row) => format!("{:>7.2}|{modelled:>7.2}", row[number]),
                None => format!("{:>7}|{modelled:>7.2}", "-"),
            })
            .collect();
        println!("{name:<22} {}  {fit}", cells.join(" "));
    }
}

fn four_way_columns(form: Form, rq: bool) -> [f64; 5] {
    let topology = Topology {
        cells: 1,
        sockets_per_cell: 4,
        cores_per_socket: 1,
        threads_per_core: 1,
    };
    let device = |interrupts| Device {
        interrupts,
        application: interrupts + 1,
        affinity: Affinity {
            requests: near(rq),
            ..Affinity::default()
        },
        service_ns: 0,
        // Fitted: throughput of 2.6.24.
        latency_ns: 55_750,
        slots: 1,
    };
    let load = Closed {
        smp: smp(topology),
        completion: completion(form),
        devices: vec![device(0), device(2)],
        depth: 1,
        user_cycles: 345,
        // Fitted: what the application's CPU does in 2.6.24.
        submit_cycles: 10_200,
        bios_per_request: 1,
        issue_for: 5 * SECOND,
    };
    let out = run(&load);
    let (mut usage, mut stalled) = (stack::smp::Usage::default(), 0);
    for cpu in 0..4 {
        usage += out.smp.usage(cpu);
        stalled += out.smp.stalls(cpu).cycles();
    }
    let share = |contexts: &[Context]| {
        let sum: Time = contexts
            .iter()
            .map(|&context| usage.sampled_ns(context))
            .sum();
        100.0 * sum as f64 / usage.total_ns() as f64
    };
    let seconds = out.lasted as f64 / SECOND as f64;
    [
        out.bios as f64 * 4096.0 / 1e6 / seconds,
        share(&[
            Context::System,
            Context::SoftInterrupt,
            Context::KernelThread,
        ]),
        share(&[Context::IoWait]),
        share(&[Context::Idle]),
        100.0 * stalled as f64 / (4.0 * seconds * CLOCK_HZ as f64),
    ]
}

/// A machine of cells with disks, each with an application that keeps 128 reads of 256 KiB outstanding.
struct Placements {
    title: &'static str,
    cells: u16,
    disks: usize,
    forms: &'static [(&'static str, Form)],
    /// MB/s of all disks, application elsewhere or in the interrupted CPU's cell. Fitted: rows X X X and I X X.
    rate: [f64; 2],
    /// By application elsewhere or on the interrupted CPU: MB/s, latency, bios, requests.
    published: [[f64; 4]; 2],
}

const SIXTEEN: Placements = Placements {
    title: "16-way, 24 disks",
    cells: 4,
    disks: 24,
    forms: &[
        ("first variant", Form::RemoteSoftirq),
        ("kthread", Form::Thread),
    ],
    rate: [1856.5, 1575.5],
    published: [
        [1850.4, 0.413880, 55860.8, 27946.9],
        [1570.7, 0.487686, 47406.1, 23719.5],
    ],
};

const THIRTY_TWO: Placements = Placements {
    title: "32-way, 144 disks",
    cells: 8,
    disks: 144,
    forms: &[("kthread", Form::Thread)],
    rate: [3872.0, 3872.0],
    published: [
        [3859.9, 1.190067, 19484.7, 9758.8],
        [3857.0, 1.190987, 19471.9, 9752.5],
    ],
};

const CPUS_PER_CELL: u16 = 4;
const MIB: f64 = 1_048_576.0;

fn placements(machine: &Placements) {
    for &(name, form) in machine.forms {
        println!("{}, {name}: A Q C, published | modelled", machine.title);
        println!(
            "{:<8} {:>15} {:>17} {:>17} {:>17}  remote Q C  busiest CPU  wall s",
            "", "MB/s", "latency s", "bios", "requests"
        );
        for (row, application) in ["X", "I"].into_iter().enumerate() {
            for queue in ["X", "A", "I"] {
                for completed in ["X", "A", "I"] {
                    let began = Instant::now();
                    let out = run(&placed(machine, form, application, queue, completed));
                    print_row(
                        &format!("{application} {queue} {completed}"),
                        &machine.published[row],
                        machine,
                        &out,
                        began.elapsed().as_secs_f64(),
                    );
                }
            }
        }
        for (rq, label) in [(false, "rq=0"), (true, "rq=1")] {
            let out = run(&scattered(machine, form, rq));
            print_row(label, &[f64::NAN; 4], machine, &out, 0.0);
        }
    }
}

fn placed(
    machine: &Placements,
    form: Form,
    application: &str,
    queue: &str,
    completed: &str,
) -> Closed {
    let cpus = machine.cells * CPUS_PER_CELL;
    let cells_on = |cpu: u16, cells: u16| (cpu + cells * CPUS_PER_CELL) % cpus;
    closed(machine, form, |disk| {
        let interrupts = disk as u16 % cpus;
        let application = match application {
            "X" => cells_on(interrupts, 1),
            _ => interrupts,
        };
        let at = |place: &str, cells| match place {
            "X" => cells_on(interrupts, cells),
            "A" => application,
            _ => interrupts,
        };
        let affinity = Affinity {
            queue: Some(at(queue, 2)),
            completion: Some(at(completed, 3)),
            ..Affinity::default()
        };
        (interrupts, application, affinity)
    })
}

/// Applications wherever a scheduler may have left them.
fn scattered(machine: &Placements, form: Form, rq: bool) -> Closed {
    let cpus = machine.cells * CPUS_PER_CELL;
    let mut stream = workload::rng::stream(1, u64::from(rq));
    closed(machine, form, |disk| {
        let affinity = Affinity {
            requests: near(rq),
            ..Affinity::default()
        };
        let application = stream.below(u64::from(cpus)) as u16;
        (disk as u16 % cpus, application, affinity)
    })
}

fn closed(
    machine: &Placements,
    form: Form,
    mut place: impl FnMut(usize) -> (u16, u16, Affinity),
) -> Closed {
    let device = |disk| {
        let (interrupts, application, affinity) = place(disk);
        let same_cell = interrupts / CPUS_PER_CELL == application / CPUS_PER_CELL;
        let rate = machine.rate[usize::from(same_cell)] * MIB / machine.disks as f64;
        Device {
            interrupts,
            application,
            affinity,
            service_ns: (262_144.0 / rate * SECOND as f64) as Time,
            latency_ns: 0,
            // 32 in the device, and one that the driver has taken and cannot hand over.
            slots: 33,
        }
    };
    Closed {
        smp: smp(Topology {
            cells: machine.cells,
            sockets_per_cell: CPUS_PER_CELL,
            cores_per_socket: 1,
            threads_per_core: 1,
        }),
        completion: completion(form),
        devices: (0..machine.disks).map(device).collect(),
        depth: 128,
        user_cycles: 0,
        submit_cycles: 20_000,
        bios_per_request: 2,
        issue_for: 180 * SECOND,
    }
}

fn print_row(name: &str, published: &[f64; 4], machine: &Placements, out: &Outcomes, wall_s: f64) {
    let disks = machine.disks as f64;
    let seconds = out.lasted as f64 / SECOND as f64;
    let modelled = [
        out.bios as f64 * 0.25 / seconds,
        out.latency_ns as f64 / out.bios as f64 / SECOND as f64,
        out.bios as f64 / disks,
        out.requests as f64 / disks,
    ];
    let (mut queued, mut completed) = (0, 0);
    for counters in &out.counters {
        queued += counters.queued_remote;
        completed += counters.completed_remote;
    }
    let busiest = (0..out.smp.cpus())
        .map(|cpu| {
            let usage = out.smp.usage(cpu);
            let idle = usage.ns(Context::Idle) + usage.ns(Context::IoWait);
            100.0 - 100.0 * idle as f64 / usage.total_ns() as f64
        })
        .fold(0.0, f64::max);
    let cell = |number: usize, digits: usize| {
        if published[number].is_nan() {
            format!("{:>8}|{:>8.digits$}", "", modelled[number])
        } else {
            format!(
                "{:>8.digits$}|{:>8.digits$}",
                published[number], modelled[number]
            )
        }
    };
    println!(
        "{name:<8} {} {} {} {}  {:>7.1} {:>7.1} {busiest:>5.1} % {wall_s:>6.1}",
        cell(0, 1),
        cell(1, 4),
        cell(2, 1),
        cell(3, 1),
        queued as f64 / disks,
        completed as f64 / disks,
    );
}

/// All CPUs but the first are interrupted, and everything is completed on the first: does its list's lock bite?
fn lock() {
    println!(
        "completions of all CPUs by one thread: CPUs, completions/s, waits for the lock %, wait ns, lines' cycles each"
    );
    for cells in [1, 2, 4, 8, 16, 32] {
        let cpus = cells * CPUS_PER_CELL;
        let devices = (1..cpus)
            .map(|interrupts| Device {
                interrupts,
                application: interrupts,
                affinity: Affinity {
                    completion: Some(0),
                    ..Affinity::default()
                },
                service_ns: 0,
                latency_ns: 50_000,
                slots: 8,
            })
            .collect();
        let load = Closed {
            smp: smp(Topology {
                cells,
                sockets_per_cell: CPUS_PER_CELL,
                cores_per_socket: 1,
                threads_per_core: 1,
            }),
            completion: completion(Form::Thread),
            devices,
            depth: 8,
            user_cycles: 0,
            submit_cycles: 10_200,
            bios_per_request: 1,
            issue_for: SECOND / 4,
        };
        let out = run(&load);
        let list = out.smp.sharing(Kind::CompletionList);
        println!(
            "{cpus:>4} {:>9.0} {:>6.2} {:>7.0} {:>7.0}",
            out.requests as f64 * SECOND as f64 / out.lasted as f64,
            100.0 * list.waited as f64 / list.locked as f64,
            list.waited_ns as f64 / list.locked as f64,
            list.transfer_cycles as f64 / list.locked as f64,
        );
    }
}

/// Wall time of a completion with all that belongs to it, by CPUs and devices.
fn cost() {
    println!("CPUs = devices, form: wall ns an I/O, from its submission to its application");
    for cpus in [4u16, 16, 64, 256, 1024] {
        for (name, form, rq) in [
            ("softirq", Form::Softirq, false),
            ("kthread", Form::Thread, true),
            ("blk-mq", Form::MultiQueue, true),
        ] {
            let devices = (0..cpus)
                .map(|interrupts| Device {
                    interrupts,
                    application: (interrupts + CPUS_PER_CELL) % cpus,
                    affinity: Affinity {
                        requests: near(rq),
                        ..Affinity::default()
                    },
                    service_ns: 0,
                    latency_ns: 50_000,
                    slots: 4,
                })
                .collect();
            let load = Closed {
                smp: smp(Topology {
                    cells: cpus / CPUS_PER_CELL,
                    sockets_per_cell: CPUS_PER_CELL,
                    cores_per_socket: 1,
                    threads_per_core: 1,
                }),
                completion: completion(form),
                devices,
                depth: 4,
                user_cycles: 0,
                submit_cycles: 10_200,
                bios_per_request: 1,
                issue_for: 8 * SECOND / Time::from(cpus),
            };
            let began = Instant::now();
            let out = run(&load);
            let wall = began.elapsed().as_nanos() as f64;
            println!("{cpus:>5} {name:<8} {:>7.0} ns", wall / out.requests as f64);
        }
    }
}
