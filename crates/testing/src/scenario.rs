//! Programs on a pool, step by step, and the judges of images of power cuts.

use crate::pool::{
    Snapshot, agree, check_tiling, objects, process, psync, recover_all, snapshot, snapshot_with,
};
use crate::sealed;
use crate::sim::{CrashImage, Limits, SMALL, SimConfig, SimMedium, TearUnit};
use crate::{CrashFailure, CrashReport, for_each_crash};
use indelible_store::error::{Result, StoreError};
use indelible_store::store::{FormatOptions, Severity, Store, Window};
use indelible_store::table::{CreateOptions, Key};
use std::borrow::Borrow;
use std::sync::Arc;

/// The media of every crash test: tear units, with and without group commit, with [small](SMALL)
/// transfers.
#[must_use]
pub fn media() -> Vec<SimConfig> {
    let units = [TearUnit::Word, TearUnit::Line, TearUnit::Sector];
    let both = |tear_unit| {
        [false, true].map(|disk| SimConfig { tear_unit, disk, transfers: SMALL, ..SimConfig::default() })
    };
    units.into_iter().flat_map(both).collect()
}

#[must_use]
pub fn formatted(len: u64, config: SimConfig) -> SimMedium {
    let medium = SimMedium::new(len, config);
    let how = FormatOptions {
        zeroed: true,
        window: Some(Window { start: 0x5900_0000_0000, len: 1 << 40 }),
        ..FormatOptions::default()
    };
    Store::format(Arc::new(medium.handle()), process(1), &how).expect("an empty medium can be formatted");
    medium.settle();
    medium
}

/// A process at work on a pool. Each step records the state and a mark.
pub struct Scenario {
    medium: SimMedium,
    pub store: Arc<Store>,
    pub states: Vec<Snapshot>,
}

impl Scenario {
    pub fn begin(medium: &SimMedium, pid: u32) -> Result<Scenario> {
        let store = Store::open(Arc::new(medium.handle()), process(pid))?;
        let states = vec![snapshot(&store)?];
        Ok(Scenario { medium: medium.handle(), store, states })
    }

    pub fn step<R>(&mut self, step: impl FnOnce(&Arc<Store>) -> Result<R>) -> Result<R> {
        let out = step(&self.store)?;
        self.promise(snapshot(&self.store)?);
        Ok(out)
    }

    pub fn quiet<R>(&mut self, step: impl FnOnce(&Arc<Store>) -> Result<R>) -> Result<R> {
        let out = step(&self.store)?;
        self.promise(self.last());
        Ok(out)
    }

    pub fn step_to<R>(&mut self, state: Snapshot, step: impl FnOnce(&Arc<Store>) -> Result<R>) -> Result<R> {
        let out = step(&self.store)?;
        self.promise(state);
        Ok(out)
    }

    #[must_use]
    pub fn last(&self) -> Snapshot {
        self.states.last().cloned().unwrap_or_default()
    }

    fn promise(&mut self, state: Snapshot) {
        self.states.push(state);
        self.medium.mark(self.states.len() as u64 - 1);
    }
}

/// Cuts the power everywhere during `program`. Every image holds the state of the last completed
/// step or of the one in flight, its space adds up, and it is usable.
pub fn crash_everywhere(
    medium: &SimMedium,
    limits: &Limits,
    program: impl FnOnce(&mut Scenario) -> Result<()>,
) -> std::result::Result<CrashReport, CrashFailure> {
    let states = std::cell::RefCell::new(Vec::new());
    let record = |medium: &SimMedium| {
        let mut scenario = Scenario::begin(medium, 2).unwrap_or_else(|error| panic!("open: {error}"));
        if let Err(error) = program(&mut scenario) {
            panic!("the program fails without a crash: {error}");
        }
        states.replace(scenario.states);
    };
    for_each_crash(medium, record, |image| judge(image, &states.borrow()).map(drop), limits)
}

#[must_use]
pub fn allowed<'s>(image: &CrashImage, states: &'s [Snapshot]) -> &'s [Snapshot] {
    let done = image.last_mark().unwrap_or(0) as usize;
    &states[done..(done + 2).min(states.len())]
}

pub fn judge(image: &CrashImage, states: &[Snapshot]) -> Result<Snapshot, String> {
    judge_medium(&image.medium(), allowed(image, states))
}

/// As [`judge_medium`] without checks before and uses afterwards: a function of the bytes that it
/// reads.
pub fn judge_state(medium: &SimMedium, allowed: &[impl Borrow<Snapshot>]) -> Result<Snapshot, String> {
    judge_by(medium, |found| among(found, allowed))
}

/// As [`judge_state`]; `accept` returns the faults of the state found.
pub fn judge_by(
    medium: &SimMedium,
    accept: impl FnOnce(&Snapshot) -> Result<(), String>,
) -> Result<Snapshot, String> {
    judge_objects(medium, |_| true, accept)
}

/// As [`judge_by`]; the state found has bytes of `wanted` objects alone.
pub fn judge_objects(
    medium: &SimMedium,
    wanted: impl Fn(&str) -> bool,
    accept: impl FnOnce(&Snapshot) -> Result<(), String>,
) -> Result<Snapshot, String> {
    let (store, found) = recovered(medium, wanted, accept)?;
    drop(store);
    sound(medium, Severity::Warning).map_err(|error| format!("after recovery: {error}"))?;
    Ok(found)
}

fn among(found: &Snapshot, allowed: &[impl Borrow<Snapshot>]) -> Result<(), String> {
    if allowed.iter().any(|state| agree(state.borrow(), found)) {
        return Ok(());
    }
    Err(difference(found, allowed))
}

fn recovered(
    medium: &SimMedium,
    wanted: impl Fn(&str) -> bool,
    accept: impl FnOnce(&Snapshot) -> Result<(), String>,
) -> Result<(Arc<Store>, Snapshot), String> {
    let text = |what: &'static str| move |error: StoreError| format!("{what}: {error}");
    let store = Store::open(Arc::new(medium.handle()), process(9)).map_err(text("open"))?;
    recover_all(&store).map_err(text("recover"))?;
    let found = snapshot_with(&store, wanted).map_err(text("read"))?;
    accept(&found)?;
    check_tiling(&store)?;
    Ok((store, found))
}

/// Recovers the pool on `medium` and returns its faults.
pub fn judge_medium(medium: &SimMedium, allowed: &[impl Borrow<Snapshot>]) -> Result<Snapshot, String> {
    let text = |what: &'static str| move |error: StoreError| format!("{what}: {error}");
    sound(medium, Severity::Error).map_err(|error| format!("before recovery: {error}"))?;
    let (store, found) = recovered(medium, |_| true, |found| among(found, allowed))?;
    usable(&store).map_err(text("use afterwards"))?;
    let after = snapshot(&store).map_err(text("read again"))?;
    if after != found {
        return Err(format!("after use: {}", difference(&after, std::slice::from_ref(&found))));
    }
    check_tiling(&store).map_err(|error| format!("after use: {error}"))?;
    drop(store);
    sound(medium, Severity::Warning).map_err(|error| format!("after use: {error}"))?;
    Ok(found)
}

fn sound(medium: &SimMedium, severity: Severity) -> Result<(), String> {
    let report =
        Store::check(Arc::new(medium.handle()), &mut |_, _| {}).map_err(|error| format!("check: {error}"))?;
    match report.findings.iter().find(|finding| finding.severity >= severity) {
        Some(finding) => Err(format!("check: {finding:?}")),
        None => Ok(()),
    }
}

fn usable(store: &Arc<Store>) -> Result<()> {
    let probe = "\u{2055}probe";
    match store.create(probe, &CreateOptions { size: 5000, ..CreateOptions::default() }) {
        // A pool may be full; `check_tiling` finds lost space.
        Err(StoreError::NoRoom { .. }) => {}
        created => {
            created?;
            use_new(store, probe)?;
            store.destroy(probe, Key::default())?;
        }
    }
    for object in objects(store)? {
        let Ok(mut writer) = sealed::writer(store, &object.entry.name()) else { continue };
        let mut first = [0];
        match writer.sealed_pages() {
            Some(pages) => first[0] = sealed::bytes(&pages)?[0],
            None => store.read_object(&object, 0, &mut first)?,
        }
        psync(&mut writer, &[(0, &[!first[0]])])?;
        psync(&mut writer, &[(0, &first)])?;
        writer.detach()?;
    }
    Ok(())
}

fn use_new(store: &Arc<Store>, name: &str) -> Result<()> {
    let mut writer = match store.attach_writer(name, Key::default()) {
        Err(StoreError::NoRoom { .. }) => return Ok(()),
        attached => attached?,
    };
    let object = *writer.object();
    assert!(crate::pool::contents(store, &object)?.iter().all(|byte| *byte == 0), "new objects are zero");
    psync(&mut writer, &[(0, b"before"), (4990, b"after")])?;
    writer.detach()
}

fn difference(found: &Snapshot, allowed: &[impl Borrow<Snapshot>]) -> String {
    let mut text = String::from("the pool is in no allowed state;");
    for (nth, state) in allowed.iter().map(Borrow::borrow).enumerate() {
        text += &format!(" against state {nth}:");
        for name in found.keys().chain(state.keys()).collect::<std::collections::BTreeSet<_>>() {
            match (found.get(name), state.get(name)) {
                (a, b) if a == b => {}
                (Some(_), None) => text += &format!(" {name:?} should not exist,"),
                (None, _) => text += &format!(" {name:?} is missing,"),
                (Some(a), Some(b)) if a.2.len() != b.2.len() => {
                    text += &format!(" {name:?} has {} bytes, not {},", a.2.len(), b.2.len());
                }
                (Some(a), Some(b)) => match a.2.iter().zip(&b.2).position(|(x, y)| x != y) {
                    Some(at) => text += &format!(" {name:?} differs at {at} ({} for {}),", a.2[at], b.2[at]),
                    None => text += &format!(" {name:?} has another ID or address,"),
                },
            }
        }
    }
    text
}
