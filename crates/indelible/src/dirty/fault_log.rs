//! The process's log of page faults, shared by its objects: it names pages that were stored to, and
//! proves that no name is missing.
//!
//! A store to a protected page is a logged fault. Faults counted by the kernel, minus records, is
//! the number of unlogged faults. It only grows: by stores of system calls, threads without events,
//! lost records. While it stands still, the log names every page stored to.
//!
//! Other processes' stores (`process_vm_writev`, debuggers) count as their faults, not this
//! process's: users of the log scan now and then (`wp_async/named.rs`).
//!
//! Invariants:
//! 1. `records` counts the records consumed from the rings. Each was given to every route that
//!    contains its address, or that route is `lost`.
//! 2. A reading is of one moment: no record arrived between two looks at all heads, and the faults
//!    were counted between these.
//! 3. `epoch` changes whenever logging is switched on or off.

#[cfg(test)]
use super::broken::Broken;
use crate::sys::fault_ring::Rings;
use crate::sys::fork;
use crate::sys::per_process::PerProcess;
use crate::sys::{PAGE, faults};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Attempts to read the sums while no record arrives.
const READINGS: usize = 16;
/// Readings to wait for the expected sums: other threads' faults may be counted and not yet logged.
const EXPECTED: usize = 4;
/// Names kept for one object between its psyncs.
const KEPT: usize = if cfg!(test) { 1 << 10 } else { 1 << 16 };
const FAULT_NS: u64 = 300;
/// Nanoseconds that the log may lose before it pauses, and the first pause.
const LOSS_NS: u64 = 50_000_000;
const REST: Duration = Duration::from_secs(1);

#[derive(Debug)]
pub(super) struct FaultLog(Mutex<State>);

#[derive(Debug)]
struct State {
    rings: Rings,
    records: u64,
    routes: Vec<Route>,
    next: u64,
    epoch: u64,
    worth: Worth,
}

/// The log's cost, in faults outside of objects, against the scans it saved.
#[derive(Debug, Default)]
struct Worth {
    cost: u64,
    spared: u64,
    /// How often it did not pay; end of the pause.
    losses: u32,
    rests: Option<Instant>,
}

#[derive(Debug)]
struct Route {
    id: u64,
    start: usize,
    end: usize,
    names: Vec<u64>,
    lost: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Reading {
    epoch: u64,
    /// Faults without a record since the process started.
    pub(super) unlogged: u64,
}

impl Reading {
    /// Whether `later`, read after a scan, confirms `self`: no fault was counted and not yet logged
    /// when the scan began.
    pub(super) fn stands(self, later: Reading) -> bool {
        self.epoch == later.epoch && self.unlogged <= later.unlogged
    }
}

impl FaultLog {
    pub(super) fn get() -> Option<&'static FaultLog> {
        static LOG: PerProcess<Option<FaultLog>> = PerProcess::new();
        LOG.get_or(|_| Rings::open().ok().map(FaultLog::new)).as_ref()
    }

    fn new(rings: Rings) -> FaultLog {
        FaultLog(Mutex::new(State {
            rings,
            records: 0,
            routes: Vec::new(),
            next: 0,
            epoch: 0,
            worth: Worth::default(),
        }))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn drain(&mut self) {
        let State { rings, routes, .. } = self;
        let mut inside = 0;
        let taken = rings.drain(|addr| {
            for route in routes.iter_mut().filter(|route| (route.start..route.end).contains(&addr)) {
                inside += 1;
                #[cfg(test)]
                if Broken::RecordDropped.is_on() && (addr / PAGE).is_multiple_of(5) {
                    continue;
                }
                if route.names.len() < KEPT {
                    route.names.push(((addr - route.start) / PAGE) as u64);
                } else {
                    route.lost = true;
                }
            }
        });
        self.records += taken;
        self.worth.cost += taken.saturating_sub(inside) * FAULT_NS;
    }

    fn read(&mut self) -> Option<Reading> {
        for _ in 0..READINGS {
            self.drain();
            let faults = faults::count().ok()?;
            if self.rings.is_drained() {
                #[cfg(test)]
                let faults = if Broken::CountMisread.is_on() { self.records } else { faults };
                return Some(Reading { epoch: self.epoch, unlogged: faults.wrapping_sub(self.records) });
            }
        }
        None
    }

    fn is_on(&mut self) -> bool {
        match self.worth.rests {
            Some(until) if Instant::now() < until => return false,
            Some(_) => self.switch(true),
            None if self.worth.cost > self.worth.spared + LOSS_NS => {
                self.switch(false);
                return false;
            }
            None => {}
        }
        true
    }

    fn switch(&mut self, on: bool) {
        let (losses, rest) = (self.worth.losses, REST * (1 << self.worth.losses.min(6)));
        self.enable(on);
        let rests = (!on).then(|| Instant::now() + rest);
        self.worth = Worth { losses: losses + u32::from(!on), rests, ..Worth::default() };
    }

    fn enable(&mut self, on: bool) {
        self.epoch += 1;
        // After a failure faults are logged needlessly, or missing, and then the sums differ.
        let _ = self.rings.enable(on);
    }
}

/// An object's membership in the log. Inert in a forked child.
#[derive(Debug)]
pub(super) struct Follower {
    log: &'static FaultLog,
    id: u64,
    generation: u32,
}

impl Follower {
    pub(super) fn join(base: usize, len: usize) -> Option<Follower> {
        #[cfg(test)]
        if Broken::EventsRefused.is_on() {
            return None;
        }
        let log = FaultLog::get()?;
        let mut state = log.state();
        if state.routes.is_empty() && state.worth.rests.is_none() {
            state.switch(true);
        }
        let id = state.next;
        state.next += 1;
        state.routes.push(Route { id, start: base, end: base + len, names: Vec::new(), lost: false });
        drop(state);
        Some(Follower { log, id, generation: fork::generation() })
    }

    /// Reads the sums, repeatedly if they differ from `expected`. Appends the pages named since the
    /// last reading, unsorted, with repetitions. `None`: no reading, or lost names.
    pub(super) fn read(&self, expected: Option<Reading>, names: &mut Vec<u64>) -> Option<Reading> {
        if fork::is_stale(self.generation) {
            return None;
        }
        let mut state = self.log.state();
        if !state.is_on() {
            return None;
        }
        let mut reading = state.read()?;
        for _ in 1..EXPECTED {
            if expected.is_none_or(|expected| expected == reading) {
                break;
            }
            reading = state.read()?;
        }
        let route = state.routes.iter_mut().find(|route| route.id == self.id)?;
        names.append(&mut route.names);
        (!std::mem::take(&mut route.lost)).then_some(reading)
    }

    pub(super) fn spared(&self, scan: Duration) {
        let nanos = u64::try_from(scan.as_nanos()).unwrap_or(u64::MAX);
        let worth = &mut self.log.state().worth;
        worth.spared = worth.spared.saturating_add(nanos);
    }
}

impl Drop for Follower {
    fn drop(&mut self) {
        if !fork::is_stale(self.generation) {
            let mut state = self.log.state();
            state.routes.retain(|route| route.id != self.id);
            if state.routes.is_empty() && state.worth.rests.is_none() {
                state.enable(false);
            }
        }
    }
}
