//! The CPUs of a drive's keys: where it interrupts, and where its application, queueing and completion are.

use serde::Deserialize;

use crate::world::{DmaSpec, DriveCpus, Interrupts};
use block_layer::completion::Affinity;
use block_layer::scheduler::hooks::Hooks;
use block_layer::{HardwareRules, QueueMap};
use events::SpecError;
use events::smp::{Distance, Topology};
use events::spec_error::within;

/// The keys of a drive that only detailed CPUs have.
#[derive(Clone, Debug)]
pub(super) struct DriveCpuKeys {
    pub(super) interrupt_cpu: Option<u16>,
    pub(super) affinity: Option<AffinityKeys>,
    pub(super) dma: Option<DmaSpec>,
}

/// Left out: anywhere.
#[derive(Clone, Debug, Default, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct AffinityKeys {
    /// Where its tasks run.
    application: Option<Part>,
    /// Where its requests are queued.
    queue: Option<Part>,
    /// Where its requests complete.
    completion: Option<Part>,
}

#[derive(Clone, Copy, Debug, PartialEq, Deserialize, schemars::JsonSchema)]
#[serde(untagged, expecting = "expected a CPU's number, application, interrupt or other")]
#[schemars(rename = "AffinityPart")]
enum Part {
    Cpu(u16),
    Word(Word),
}

#[derive(Clone, Copy, Debug, PartialEq, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "AffinityWord")]
enum Word {
    Application,
    Interrupt,
    /// A CPU in a NUMA node, or in a machine of one node a CPU, that is none of the others'.
    Other,
}

impl DriveCpuKeys {
    /// The first key that is given.
    pub(super) fn given(&self) -> Option<&'static str> {
        let given = [
            ("interrupt_cpu", self.interrupt_cpu.is_some()),
            ("affinity", self.affinity.is_some()),
            ("dma", self.dma.is_some()),
        ];
        given.into_iter().find(|(_, is)| *is).map(|(key, _)| key)
    }

    /// The CPUs that they mean for the drive of that number; `rq_affinity` is not among them.
    pub(super) fn resolve(
        &self,
        number: usize,
        topology: &Topology,
        hardware: Option<&HardwareRules>,
        hooks: Hooks,
    ) -> Result<DriveCpus, SpecError> {
        let last = topology.cpus() - 1;
        if let Some(cpu) = self.interrupt_cpu {
            within("interrupt_cpu", u64::from(cpu), 0, last)?;
        }
        if let Some(dma) = &self.dma {
            dma.check().map_err(|error| error.within("dma"))?;
        }
        let in_turn = (number as u64 % topology.cpus()) as u16;
        let interrupts = match (self.interrupt_cpu, hardware) {
            (Some(cpu), _) => Interrupts::On(cpu),
            (None, Some(rules)) if rules.map.queues() > 1 => {
                let cpus = 0..topology.cpus() as u16;
                Interrupts::OfQueues(cpus.map(|cpu| rules.map.interrupts(cpu)).collect())
            }
            _ => Interrupts::On(in_turn),
        };
        let keys = self.affinity.clone().unwrap_or_default();
        let on = self.interrupt_cpu.unwrap_or(in_turn);
        let mut placement = Placement::new(topology, on);
        for (key, part) in keys.parts() {
            if let Some(Part::Cpu(cpu)) = part {
                within(&format!("affinity.{key}"), u64::from(cpu), 0, last)?;
                placement.taken.push(cpu);
            }
        }
        let [application, queue, completion] = keys.parts();
        let application = placement.cpu(application, None)?;
        let queue = placement.cpu(queue, application)?;
        let completion = placement.cpu(completion, application)?;
        Ok(DriveCpus {
            interrupts,
            affinity: Affinity { queue, completion, ..Affinity::default() },
            application,
            dma: self.dma,
            hooks,
            queue_map: hardware.map_or(QueueMap::SINGLE, |rules| rules.map.clone()),
        })
    }
}

impl AffinityKeys {
    fn parts(&self) -> [(&'static str, Option<Part>); 3] {
        [("application", self.application), ("queue", self.queue), ("completion", self.completion)]
    }
}

/// Of the matrix of placements: CPUs are found one after the other.
struct Placement<'a> {
    topology: &'a Topology,
    interrupt: u16,
    /// By what has been named.
    taken: Vec<u16>,
}

impl Placement<'_> {
    fn new(topology: &Topology, interrupt: u16) -> Placement<'_> {
        Placement { topology, interrupt, taken: vec![interrupt] }
    }

    fn cpu(
        &mut self,
        (key, part): (&'static str, Option<Part>),
        application: Option<u16>,
    ) -> Result<Option<u16>, SpecError> {
        let wrong = |what: &str| Err(SpecError::of(&format!("affinity.{key}"), what));
        let cpu = match part {
            None => return Ok(None),
            Some(Part::Cpu(cpu)) => cpu,
            Some(Part::Word(Word::Interrupt)) => self.interrupt,
            Some(Part::Word(Word::Application)) => match application {
                Some(cpu) => cpu,
                None => return wrong("the application is on no CPU in particular"),
            },
            Some(Part::Word(Word::Other)) => match self.other() {
                Some(cpu) => cpu,
                None => return wrong("no NUMA node is left that has none of the other CPUs"),
            },
        };
        self.taken.push(cpu);
        Ok(Some(cpu))
    }

    /// In the interrupt's place in the next NUMA node that has none of the CPUs that are taken; if there is one node only, the
    /// next CPU.
    fn other(&self) -> Option<u16> {
        let within = match self.topology.numa_nodes {
            1 => None,
            _ => Some(Distance::Node),
        };
        let is_free = |cpu: u16| {
            let together = |&taken: &u16| match self.topology.distance(cpu, taken) {
                None => true,
                distance => distance <= within,
            };
            !self.taken.iter().any(together)
        };
        let cpus = self.topology.cpus() as u16;
        let step = match self.topology.numa_nodes {
            1 => 1,
            nodes => cpus / nodes,
        };
        (1..cpus / step).map(|steps| (self.interrupt + steps * step) % cpus).find(|&cpu| is_free(cpu))
    }
}
