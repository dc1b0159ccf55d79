//! A workload as a function of seed, workload and step: its objects after any step can be computed.
//!
//! A workload is one thread of a victim, with its own objects. A step is one operation and the
//! stores before it, done wholly or not at all under a kill; a successor continues.

use std::collections::{BTreeMap, BTreeSet};

const LARGE: u64 = 96 << 10;
const LOAD: u64 = 300 * 4096;

#[derive(Debug, Clone, Copy)]
pub(crate) struct Source {
    pub(crate) seed: u64,
    /// Whether objects may be sparse: on a full memory file system touching one raises SIGBUS
    /// (SAFETY.md).
    pub(crate) sparse: bool,
    pub(crate) keeps: bool,
    pub(crate) seals: bool,
}

#[derive(Clone)]
pub(crate) struct Workload {
    source: Source,
    pub(crate) number: u32,
    pub(crate) step: u64,
    pub(crate) objects: BTreeMap<String, Vec<u8>>,
    kept: BTreeMap<String, Kept>,
    sealed: BTreeSet<String>,
}

#[derive(Clone)]
struct Kept {
    first: String,
    snapshot: bool,
}

#[derive(Debug, Clone)]
pub(crate) struct Store {
    pub(crate) name: String,
    pub(crate) at: usize,
    pub(crate) bytes: Vec<u8>,
}

#[derive(Debug, Clone)]
pub(crate) enum Action {
    Create { name: String, size: u64, sparse: bool, sealed: bool },
    Destroy { name: String },
    Grow { name: String, size: u64 },
    Resize { name: String, size: u64 },
    Reattach { name: String },
    Checkpoint { name: String },
    Keep { name: String, snapshot: String },
    Copy { name: String, copy: String },
    Back { name: String, snapshot: String },
    Psync { names: Vec<String>, stores: Vec<Store> },
    Cut,
}

impl Action {
    pub(crate) fn word(&self) -> &'static str {
        match self {
            Action::Create { sealed: true, .. } => "create sealed",
            Action::Create { .. } => "create",
            Action::Destroy { .. } => "destroy",
            Action::Grow { .. } => "grow",
            Action::Resize { .. } => "resize",
            Action::Reattach { .. } => "attach",
            Action::Checkpoint { .. } => "checkpoint",
            Action::Keep { .. } => "snapshot",
            Action::Copy { .. } => "copy",
            Action::Back { .. } => "rollback",
            Action::Psync { names, .. } if names.len() > 1 => "psync of several",
            Action::Psync { .. } => "psync",
            Action::Cut => "cut",
        }
    }
}

impl Workload {
    pub(crate) fn new(source: Source, number: u32) -> Self {
        let (objects, kept, sealed) = Default::default();
        Workload { source, number, step: 0, objects, kept, sealed }
    }

    pub(crate) fn at(source: Source, number: u32, step: u64) -> Self {
        let mut workload = Workload::new(source, number);
        while workload.step < step {
            let action = workload.next();
            workload.take(&action);
        }
        workload
    }

    pub(crate) fn prefix(&self) -> String {
        format!("workload{}-", self.number)
    }

    pub(crate) fn next(&self) -> Action {
        let mut rng = mixed(self.source.seed, u64::from(self.number), self.step + 1);
        let count = self.writable().count();
        let sparse = rng.u8(0..4) == 0 && self.source.sparse;
        let fresh = format!("{}{}", self.prefix(), self.step + 1);
        let sealed = self.source.seals && rng.u8(0..4) > 0;
        if count < 2 {
            return Action::Create { name: fresh, size: rng.u64(1..=LARGE / 4), sparse, sealed };
        }
        let name = self.any(&mut rng).to_owned();
        let size = self.objects[&name].len() as u64;
        if self.source.keeps && rng.u8(0..8) == 0 {
            return self.keep(&mut rng, name, fresh);
        }
        match rng.u32(0..100) {
            0..5 if count < 4 => Action::Create { name: fresh, size: rng.u64(1..=LARGE / 2), sparse, sealed },
            5 if count < 4 => Action::Create { name: fresh, size: LOAD, sparse, sealed },
            6..10 if count > 2 && !self.lends(&name) => Action::Destroy { name },
            10..16 if size < LARGE => Action::Grow { name, size: size + rng.u64(1..=LARGE / 4) },
            16..20 if size <= LARGE => Action::Resize { name, size: rng.u64(1..=LARGE) },
            20..25 => Action::Reattach { name },
            25..28 => Action::Checkpoint { name },
            28..38 => Action::Cut,
            _ => self.psync(&mut rng),
        }
    }

    pub(crate) fn writable(&self) -> impl Iterator<Item = &String> {
        self.objects.keys().filter(|name| !self.kept.get(*name).is_some_and(|kept| kept.snapshot))
    }

    pub(crate) fn first<'a>(&'a self, name: &'a str) -> &'a str {
        self.kept.get(name).map_or(name, |kept| &kept.first)
    }

    fn lends(&self, name: &str) -> bool {
        self.kept.values().any(|kept| kept.first == name)
    }

    fn any(&self, rng: &mut fastrand::Rng) -> &str {
        rng.choice(self.writable().collect::<Vec<_>>()).map_or("", String::as_str)
    }

    fn keep(&self, rng: &mut fastrand::Rng, name: String, fresh: String) -> Action {
        let snapshots: Vec<&String> = self
            .objects
            .keys()
            .filter(|name| self.kept.get(*name).is_some_and(|kept| kept.snapshot))
            .collect();
        let of = |name: &str| snapshots.iter().find(|snapshot| self.first(snapshot) == self.first(name));
        match (rng.u8(0..8), rng.choice(&snapshots)) {
            (0..3, _) if snapshots.len() < 3 => Action::Keep { name, snapshot: fresh },
            (3, Some(snapshot)) if self.writable().count() < 5 => {
                Action::Copy { name: (*snapshot).clone(), copy: fresh }
            }
            (4, _) if self.writable().count() < 5 => Action::Copy { name, copy: fresh },
            (5, Some(snapshot)) => Action::Destroy { name: (*snapshot).clone() },
            _ => match of(&name) {
                Some(snapshot) => Action::Back { name, snapshot: (*snapshot).clone() },
                None => Action::Checkpoint { name },
            },
        }
    }

    fn psync(&self, rng: &mut fastrand::Rng) -> Action {
        let mut names: Vec<String> = self.writable().cloned().collect();
        rng.shuffle(&mut names);
        let mut attached = BTreeSet::new();
        names.retain(|name| attached.insert(self.first(name).to_owned()));
        names.truncate(match rng.u8(0..10) {
            0..6 => 1,
            6..8 => 2,
            _ => names.len(),
        });
        let mut stores = Vec::new();
        for name in &names {
            let size = self.objects[name].len();
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

    pub(crate) fn take(&mut self, action: &Action) {
        match action {
            Action::Create { name, size, sealed, .. } => {
                if *sealed {
                    self.sealed.insert(name.clone());
                }
                self.objects.insert(name.clone(), vec![0; *size as usize]);
            }
            Action::Destroy { name } => {
                self.objects.remove(name);
                self.kept.remove(name);
                self.sealed.remove(name);
            }
            Action::Keep { name, snapshot: kept } | Action::Copy { name, copy: kept } => {
                let snapshot = matches!(action, Action::Keep { .. });
                let first = self.first(name).to_owned();
                if self.sealed.contains(name) {
                    self.sealed.insert(kept.clone());
                }
                self.kept.insert(kept.clone(), Kept { first, snapshot });
                self.objects.insert(kept.clone(), self.objects[name].clone());
            }
            Action::Back { name, snapshot } => {
                self.objects.insert(name.clone(), self.objects[snapshot].clone());
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

pub(crate) fn mixed(seed: u64, stream: u64, step: u64) -> fastrand::Rng {
    let stream = stream.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    fastrand::Rng::with_seed(seed ^ stream ^ step.wrapping_mul(0xd1b5_4a32_d192_ed03))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(seed: u64) -> Source {
        Source { seed, sparse: true, keeps: false, seals: false }
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
        let mut workload = Workload::new(Source { keeps: true, ..source(1) }, 0);
        for _ in 0..600 {
            let action = workload.next();
            words.insert(action.word());
            workload.take(&action);
        }
        assert_eq!(words.len(), 12, "{words:?}");
        let mut workload = Workload::new(Source { keeps: true, seals: true, ..source(1) }, 0);
        let mut sealed = 0;
        for _ in 0..600 {
            let action = workload.next();
            words.insert(action.word());
            workload.take(&action);
            sealed += workload.sealed.len();
        }
        assert!(words.len() == 13 && sealed > 600, "{words:?}, {sealed}");
    }
}
