//! The objects of a strand, as they are in a pool: held against the model, and worked on.

use super::program::{Action, Source, Strand};
use super::ring::{self, Numbers, Ring};
use super::wire::Spec;
use indelible::{CreateOptions, ErrorKind, Object, Pool, psync_all};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// How long another process may be in the way.
const PATIENCE: Duration = Duration::from_secs(30);

/// Why something did not go on.
#[derive(Debug)]
pub(crate) enum Trouble {
    /// The library said so.
    Error(indelible::Error),
    /// The promise is broken.
    Wrong(String),
    /// This process got no thread.
    Threads(std::io::Error),
}

impl From<indelible::Error> for Trouble {
    fn from(error: indelible::Error) -> Self {
        Trouble::Error(error)
    }
}

/// Again while somebody else holds what is needed.
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

/// Finds out after which of the possible steps the strand's objects are, which must be all of them after
/// the same.
pub(crate) fn settle(pool: &Pool, source: Source, spec: &Spec) -> Result<Strand, Trouble> {
    let mut strand = Strand::at(source, spec.strand, spec.done);
    let before = match differs(pool, &strand)? {
        None => return Ok(strand),
        Some(why) => why,
    };
    if !spec.begun {
        return Err(Trouble::Wrong(format!("strand {} after step {}: {before}", spec.strand, spec.done)));
    }
    let action = strand.next();
    strand.take(&action);
    match differs(pool, &strand)? {
        None => Ok(strand),
        Some(after) => Err(Trouble::Wrong(format!(
            "strand {} is neither before step {} ({}): {before}; nor after it: {after}",
            spec.strand,
            strand.step,
            action.word()
        ))),
    }
}

/// How the strand's objects in the pool differ from the model.
pub(crate) fn differs(pool: &Pool, strand: &Strand) -> Result<Option<String>, Trouble> {
    let prefix = strand.prefix();
    let mut there = Vec::new();
    for stat in pool.list() {
        let stat = stat?;
        if stat.name.starts_with(&prefix) {
            there.push((stat.name, stat.size));
        }
    }
    there.sort();
    let model = strand.objects.iter().map(|(name, bytes)| (name.clone(), bytes.len() as u64));
    let model: Vec<_> = model.collect();
    if there != model {
        return Ok(Some(format!("objects {there:?} instead of {model:?}")));
    }
    for (name, bytes) in &strand.objects {
        let object = patient(|| pool.attach_read(name))?;
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

/// Reads a ring that must hold at least what was promised.
pub(crate) fn read_ring(pool: &Pool, strand: u32, promised: u64) -> Result<u64, Trouble> {
    let object = patient(|| pool.attach_read(&ring::name(strand)))?;
    let numbers = object.root::<Numbers>()?.to_vec();
    object.detach()?;
    let last = ring::last(&numbers).map_err(|why| Trouble::Wrong(format!("ring {strand}: {why}")))?;
    if last < promised {
        return Err(Trouble::Wrong(format!("ring {strand} ends at {last}, {promised} was promised")));
    }
    Ok(last)
}

/// A strand at work.
pub(crate) struct Worker {
    pool: Pool,
    pub(crate) strand: Strand,
    attached: BTreeMap<String, Object>,
    ring: Option<Object>,
    /// Next number for the ring.
    pub(crate) next: u64,
    /// Whether to start no threads: in a process that is short of memory, one that begins would panic in
    /// the standard library.
    pub(crate) alone: bool,
}

impl Worker {
    pub(crate) fn new(pool: &Pool, strand: Strand, last: u64) -> Self {
        Worker {
            pool: pool.clone(),
            strand,
            attached: BTreeMap::new(),
            ring: None,
            next: last + 1,
            alone: false,
        }
    }

    /// Attaches what the step needs, and stores.
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
                self.ring = Some(patient(|| self.pool.attach(&ring::name(self.strand.number)))?);
            }
            Action::Destroy { name } | Action::Resize { name, .. } | Action::Reattach { name } => {
                if let Some(object) = self.attached.remove(name) {
                    object.detach()?;
                }
            }
            Action::Create { .. } | Action::Cut => {}
        }
        Ok(())
    }

    /// The operation itself.
    pub(crate) fn perform(&mut self, action: &Action) -> Result<(), Trouble> {
        match action {
            Action::Create { name, size, sparse } => {
                let how = CreateOptions::new(*size).sparse(*sparse);
                patient(|| self.pool.create_with(name, &how))
            }
            Action::Destroy { name } => patient(|| self.pool.destroy(name)),
            Action::Resize { name, size } => patient(|| self.pool.resize(name, *size, b"")),
            Action::Grow { name, size } => Ok(self.attach(name)?.grow(*size)?),
            Action::Checkpoint { name } => Ok(self.attach(name)?.checkpoint()?),
            Action::Reattach { name } => {
                let expected = self.strand.objects[name].clone();
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

    /// Psyncs the ring while a thread stores to it.
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
            // Killed by want of memory, a thread may end before it begins.
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

    /// Detaches everything.
    #[cfg(target_arch = "x86_64")]
    pub(crate) fn end(self) -> Result<(), Trouble> {
        for object in self.attached.into_values().chain(self.ring) {
            object.detach()?;
        }
        Ok(())
    }

    fn attach(&mut self, name: &str) -> Result<&mut Object, Trouble> {
        if !self.attached.contains_key(name) {
            let object = patient(|| self.pool.attach(name))?;
            self.attached.insert(name.to_owned(), object);
        }
        Ok(self.attached.get_mut(name).expect("it was attached just now"))
    }
}
