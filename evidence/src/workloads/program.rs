//! Program of a workload: a function of seed, workload and step, so that its objects after any step can be worked
//! out without having seen them.
//!
//! A workload is one thread of a victim, with objects of its own. A step is one operation on the pool and the
//! stores before it; killed in a step, the workload is as before it or as after it, in all of its objects. Its
//! successor begins with the step that follows.

use std::collections::BTreeMap;

/// Largest object that grows step by step, in bytes.
const LARGE: u64 = 96 << 10;
/// Enough pages that a first load is written to the primary at once.
const LOAD: u64 = 300 * 4096;

/// Parameters from which the steps of all workloads of a pool follow.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Source {
    pub(crate) seed: u64,
    /// Whether objects may be sparse: not on a full memory file system, where touching such a one is
    /// answered by SIGBUS (SAFETY.md).
    pub(crate) sparse: bool,
}

/// A workload's objects after `step` steps.
#[derive(Clone)]
pub(crate) struct Workload {
    source: Source,
    pub(crate) number: u32,
    pub(crate) step: u64,
    /// Contents by name; a content's length is the object's size.
    pub(crate) objects: BTreeMap<String, Vec<u8>>,
}

/// Bytes stored somewhere.
#[derive(Debug, Clone)]
pub(crate) struct Store {
    pub(crate) name: String,
    pub(crate) at: usize,
    pub(crate) bytes: Vec<u8>,
}

/// One step.
#[derive(Debug, Clone)]
pub(crate) enum Action {
    Create {
        name: String,
        size: u64,
        sparse: bool,
    },
    Destroy {
        name: String,
    },
    /// While attached.
    Grow {
        name: String,
        size: u64,
    },
    /// While detached.
    Resize {
        name: String,
        size: u64,
    },
    Reattach {
        name: String,
    },
    Checkpoint {
        name: String,
    },
    /// Stores, then one psync of all these objects.
    Psync {
        names: Vec<String>,
        stores: Vec<Store>,
    },
    /// A consistent cut of the workload's [ring](super::ring), which is not among the objects here.
    Cut,
}

impl Action {
    /// A word for counting.
    pub(crate) fn word(&self) -> &'static str {
        match self {
            Action::Create { .. } => "create",
            Action::Destroy { .. } => "destroy",
            Action::Grow { .. } => "grow",
            Action::Resize { .. } => "resize",
            Action::Reattach { .. } => "attach",
            Action::Checkpoint { .. } => "checkpoint",
            Action::Psync { names, .. } if names.len() > 1 => "psync of several",
            Action::Psync { .. } => "psync",
            Action::Cut => "cut",
        }
    }
}

impl Workload {
    pub(crate) fn new(source: Source, number: u32) -> Self {
        Workload { source, number, step: 0, objects: BTreeMap::new() }
    }

    /// The workload after `step` steps.
    pub(crate) fn at(source: Source, number: u32, step: u64) -> Self {
        let mut workload = Workload::new(source, number);
        while workload.step < step {
            let action = workload.next();
            workload.take(&action);
        }
        workload
    }

    /// Prefix of the names of all its objects.
    pub(crate) fn prefix(&self) -> String {
        format!("workload{}-", self.number)
    }

    /// The next step.
    pub(crate) fn next(&self) -> Action {
        let mut rng = mixed(self.source.seed, u64::from(self.number), self.step + 1);
        let count = self.objects.len();
        let sparse = rng.u8(0..4) == 0 && self.source.sparse;
        let fresh = format!("{}{}", self.prefix(), self.step + 1);
        if count < 2 {
            return Action::Create { name: fresh, size: rng.u64(1..=LARGE / 4), sparse };
        }
        let name = self.any(&mut rng).to_owned();
        let size = self.objects[&name].len() as u64;
        match rng.u32(0..100) {
            0..5 if count < 4 => Action::Create { name: fresh, size: rng.u64(1..=LARGE / 2), sparse },
            5 if count < 4 => Action::Create { name: fresh, size: LOAD, sparse },
            6..10 if count > 2 => Action::Destroy { name },
            10..16 if size < LARGE => Action::Grow { name, size: size + rng.u64(1..=LARGE / 4) },
            16..20 if size <= LARGE => Action::Resize { name, size: rng.u64(1..=LARGE) },
            20..25 => Action::Reattach { name },
            25..28 => Action::Checkpoint { name },
            28..38 => Action::Cut,
            _ => self.psync(&mut rng),
        }
    }

    fn any(&self, rng: &mut fastrand::Rng) -> &str {
        self.objects.keys().nth(rng.usize(..self.objects.len())).map_or("", String::as_str)
    }

    fn psync(&self, rng: &mut fastrand::Rng) -> Action {
        let mut names: Vec<String> = self.objects.keys().cloned().collect();
        rng.shuffle(&mut names);
        names.truncate(match rng.u8(0..10) {
            0..6 => 1,
            6..8 => 2,
            _ => names.len(),
        });
        let mut stores = Vec::new();
        for name in &names {
            let size = self.objects[name].len();
            // An object that was made for a load gets it first.
            let load = size as u64 == LOAD && self.objects[name].iter().all(|byte| *byte == 0);
            for _ in 0..rng.usize(1..4) {
                let len = match rng.u8(0..16) {
                    _ if load => size,
                    0..8 => rng.usize(1..=8),
                    8..13 => rng.usize(1..=300),
                    13..15 => rng.usize(1..=3 * 4096),
                    _ => size.min(LARGE as usize),
                }
                .min(size);
                let at = rng.usize(0..=size - len);
                let mut bytes = vec![0; len];
                rng.fill(&mut bytes);
                stores.push(Store { name: name.clone(), at, bytes });
            }
        }
        Action::Psync { names, stores }
    }

    /// Moves on by the next step.
    pub(crate) fn take(&mut self, action: &Action) {
        match action {
            Action::Create { name, size, .. } => {
                self.objects.insert(name.clone(), vec![0; *size as usize]);
            }
            Action::Destroy { name } => {
                self.objects.remove(name);
            }
            Action::Grow { name, size } | Action::Resize { name, size } => {
                if let Some(bytes) = self.objects.get_mut(name) {
                    bytes.resize(*size as usize, 0);
                }
            }
            Action::Psync { stores, .. } => {
                for store in stores {
                    if let Some(bytes) = self.objects.get_mut(&store.name) {
                        bytes[store.at..store.at + store.bytes.len()].copy_from_slice(&store.bytes);
                    }
                }
            }
            Action::Reattach { .. } | Action::Checkpoint { .. } | Action::Cut => {}
        }
        self.step += 1;
    }
}

/// A generator for one decision of a seed.
pub(crate) fn mixed(seed: u64, stream: u64, step: u64) -> fastrand::Rng {
    let stream = stream.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    fastrand::Rng::with_seed(seed ^ stream ^ step.wrapping_mul(0xd1b5_4a32_d192_ed03))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(seed: u64) -> Source {
        Source { seed, sparse: true }
    }

    #[test]
    fn a_strand_is_a_function_of_seed_and_step() {
        let (once, again) = (Workload::at(source(7), 1, 300), Workload::at(source(7), 1, 300));
        assert_eq!(once.objects, again.objects);
        assert_ne!(once.objects, Workload::at(source(8), 1, 300).objects);
        assert_ne!(once.objects, Workload::at(source(7), 2, 300).objects);
    }

    #[test]
    fn a_strand_does_everything() {
        let mut workload = Workload::new(source(1), 0);
        let mut words = std::collections::BTreeSet::new();
        for _ in 0..600 {
            let action = workload.next();
            words.insert(action.word());
            workload.take(&action);
        }
        assert_eq!(words.len(), 9, "{words:?}");
    }
}
