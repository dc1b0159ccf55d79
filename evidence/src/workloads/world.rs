//! A workload's objects in a pool: compared with the model, and changed.

use super::program::{Action, Source, Workload};
use super::ring::{self, Numbers, Ring};
use super::wire::Spec;
use indelible::{CreateOptions, ErrorKind, Object, Pool, ReadObject, SealKey, psync_all};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

const PATIENCE: Duration = Duration::from_secs(30);

#[derive(Debug)]
pub(crate) enum Trouble {
    Error(indelible::Error),
    Wrong(String),
    Threads(std::io::Error),
}

impl From<indelible::Error> for Trouble {
    fn from(error: indelible::Error) -> Self {
        Trouble::Error(error)
    }
}

pub(crate) fn patient<T>(mut attempt: impl FnMut() -> indelible::Result<T>) -> Result<T, Trouble> {
    let begin = Instant::now();
    loop {
        match attempt() {
            Err(error) if matches!(error.kind(), ErrorKind::Held | ErrorKind::Busy) => {
                if begin.elapsed() > PATIENCE {
                    return Err(Trouble::Wrong(format!("in the way for {PATIENCE:?}: {error}")));
                }
                thread::yield_now();
            }
            done => return Ok(done?),
        }
    }
}

pub(crate) fn seal_key() -> indelible::Result<SealKey> {
    Ok(SealKey::file(vec![0x5a; 32])?.of_any_name())
}

pub(crate) fn attach(pool: &Pool, name: &str) -> indelible::Result<Object> {
    match pool.stat(name)?.sealed {
        true => pool.attach_sealed(name, b"", &seal_key()?),
        false => pool.attach(name),
    }
}

pub(crate) fn attach_read(pool: &Pool, name: &str) -> indelible::Result<ReadObject> {
    match pool.stat(name)?.sealed {
        true => pool.attach_read_sealed(name, b"", &seal_key()?),
        false => pool.attach_read(name),
    }
}

pub(crate) fn settle(pool: &Pool, source: Source, spec: &Spec) -> Result<Workload, Trouble> {
    let mut workload = Workload::at(source, spec.workload, spec.done);
    let before = match differs(pool, &workload)? {
        None => return Ok(workload),
        Some(why) => why,
    };
    if !spec.begun {
        return Err(Trouble::Wrong(format!("workload {} after step {}: {before}", spec.workload, spec.done)));
    }
    let action = workload.next();
    workload.take(&action);
    match differs(pool, &workload)? {
        None => Ok(workload),
        Some(after) => Err(Trouble::Wrong(format!(
            "workload {} is neither before step {} ({}): {before}; nor after it: {after}",
            spec.workload,
            workload.step,
            action.word()
        ))),
    }
}

pub(crate) fn differs(pool: &Pool, workload: &Workload) -> Result<Option<String>, Trouble> {
    let prefix = workload.prefix();
    let mut there = Vec::new();
    for stat in pool.list() {
        let stat = stat?;
        if stat.name.starts_with(&prefix) {
            // After an interrupted growth the entry of a sealed object has the new size until a
            // writer comes; the object has the old size or the new one.
            let size = match stat.sealed {
                true => patient(|| attach_read(pool, &stat.name))?.len() as u64,
                false => stat.size,
            };
            there.push((stat.name, size));
        }
    }
    there.sort();
    let model = workload.objects.iter().map(|(name, bytes)| (name.clone(), bytes.len() as u64));
    let model: Vec<_> = model.collect();
    if there != model {
        return Ok(Some(format!("objects {there:?} instead of {model:?}")));
    }
    for (name, bytes) in &workload.objects {
        let object = patient(|| attach_read(pool, name))?;
        if let Some(at) = mismatch(&object.as_slice()[..bytes.len()], bytes) {
            return Ok(Some(format!("{name} differs at byte {at} of {}", bytes.len())));
        }
        object.detach()?;
    }
    Ok(None)
}

fn mismatch(found: &[u8], expected: &[u8]) -> Option<usize> {
    if found == expected {
        return None;
    }
    found.iter().zip(expected).position(|(found, expected)| found != expected)
}

pub(crate) fn read_ring(pool: &Pool, workload: u32, promised: u64) -> Result<u64, Trouble> {
    let object = patient(|| pool.attach_read(&ring::name(workload)))?;
    let numbers = object.root::<Numbers>()?.to_vec();
    object.detach()?;
    let last = ring::last(&numbers).map_err(|why| Trouble::Wrong(format!("ring {workload}: {why}")))?;
    if last < promised {
        return Err(Trouble::Wrong(format!("ring {workload} ends at {last}, {promised} was promised")));
    }
    Ok(last)
}

pub(crate) struct Worker {
    pool: Pool,
    pub(crate) workload: Workload,
    attached: BTreeMap<String, Object>,
    ring: Option<Object>,
    pub(crate) next: u64,
    /// Start no threads: short of memory, a starting one would panic in the standard library.
    pub(crate) alone: bool,
}

impl Worker {
    pub(crate) fn new(pool: &Pool, workload: Workload, last: u64) -> Self {
        Worker {
            pool: pool.clone(),
            workload,
            attached: BTreeMap::new(),
            ring: None,
            next: last + 1,
            alone: false,
        }
    }

    pub(crate) fn prepare(&mut self, action: &Action) -> Result<(), Trouble> {
        match action {
            Action::Psync { names, stores } => {
                for name in names {
                    self.attach(name)?;
                }
                for store in stores {
                    let end = store.at + store.bytes.len();
                    self.attach(&store.name)?.range_mut(store.at..end).copy_from_slice(&store.bytes);
                }
            }
            Action::Grow { name, .. } | Action::Checkpoint { name } => {
                self.attach(name)?;
            }
            Action::Cut if self.ring.is_none() => {
                self.ring = Some(patient(|| self.pool.attach(&ring::name(self.workload.number)))?);
            }
            Action::Destroy { name }
            | Action::Resize { name, .. }
            | Action::Reattach { name }
            | Action::Back { name, .. } => {
                if let Some(object) = self.attached.remove(name) {
                    object.detach()?;
                }
            }
            Action::Create { .. } | Action::Keep { .. } | Action::Copy { .. } | Action::Cut => {}
        }
        Ok(())
    }

    pub(crate) fn perform(&mut self, action: &Action) -> Result<(), Trouble> {
        match action {
            Action::Create { name, size, sparse, sealed } => {
                let mut how = CreateOptions::new(*size).sparse(*sparse);
                if *sealed {
                    how = how.sealed(&seal_key()?, "evidence");
                }
                patient(|| self.pool.create_with(name, &how))
            }
            Action::Destroy { name } => patient(|| self.pool.destroy(name)),
            Action::Keep { name, snapshot } => patient(|| self.pool.snapshot(name, snapshot, b"")),
            Action::Copy { name, copy } => {
                patient(|| self.pool.create_from(name, copy, b"", &CreateOptions::new(0)))
            }
            Action::Back { name, snapshot } => patient(|| self.pool.rollback(name, snapshot, b"")),
            Action::Resize { name, size } => patient(|| match self.pool.stat(name)?.sealed {
                true => self.pool.resize_sealed(name, *size, b"", &seal_key()?),
                false => self.pool.resize(name, *size, b""),
            }),
            Action::Grow { name, size } => Ok(self.attach(name)?.grow(*size)?),
            Action::Checkpoint { name } => Ok(self.attach(name)?.checkpoint()?),
            Action::Reattach { name } => {
                let expected = self.workload.objects[name].clone();
                let object = self.attach(name)?;
                match mismatch(&object.as_slice()[..expected.len()], &expected) {
                    Some(at) => {
                        Err(Trouble::Wrong(format!("{name} differs at byte {at} when attached again")))
                    }
                    None => Ok(()),
                }
            }
            Action::Psync { names, .. } => {
                let mut objects: Vec<&mut Object> = Vec::new();
                for (name, object) in &mut self.attached {
                    if names.contains(name) {
                        objects.push(object);
                    }
                }
                match &mut objects[..] {
                    [one] => Ok(one.psync()?),
                    several => Ok(psync_all(several)?),
                }
            }
            Action::Cut => self.cut(),
        }
    }

    fn cut(&mut self) -> Result<(), Trouble> {
        let Some(object) = &mut self.ring else { return Ok(()) };
        let ring = object.share::<Ring>()?;
        let first = self.next;
        if self.alone {
            ring::put(&ring, first);
            self.next += 1;
            return Ok(ring.psync_cut()?);
        }
        let stop = AtomicBool::new(false);
        thread::scope(|scope| {
            let store = || {
                let mut number = first;
                while !stop.load(Ordering::Relaxed) {
                    ring::put(&ring, number);
                    number += 1;
                }
                number
            };
            let storing = thread::Builder::new().spawn_scoped(scope, store).map_err(Trouble::Threads)?;
            // Short of memory, a thread may end before it begins.
            while !ring::holds(&ring, first) && !storing.is_finished() {
                thread::yield_now();
            }
            let result = ring.psync_cut();
            stop.store(true, Ordering::Relaxed);
            let died = |_| Trouble::Threads(std::io::Error::other("the storing thread died"));
            self.next = storing.join().map_err(died)?;
            Ok(result?)
        })
    }

    #[cfg(target_arch = "x86_64")]
    pub(crate) fn end(self) -> Result<(), Trouble> {
        for object in self.attached.into_values().chain(self.ring) {
            object.detach()?;
        }
        Ok(())
    }

    fn attach(&mut self, name: &str) -> Result<&mut Object, Trouble> {
        if !self.attached.contains_key(name) {
            let first = self.workload.first(name);
            let same: Vec<String> =
                self.attached.keys().filter(|other| self.workload.first(other) == first).cloned().collect();
            for other in same {
                self.attached.remove(&other).map_or(Ok(()), Object::detach)?;
            }
            let object = patient(|| attach(&self.pool, name))?;
            self.attached.insert(name.to_owned(), object);
        }
        Ok(self.attached.get_mut(name).expect("it was attached just now"))
    }
}
