//! A disk in memory that records every request and can fail.
//!
//! One thread serves requests in order. A program's line is on the tape before its later writes. A
//! flush covers all writes served before it.

use super::pages::Pages;
use super::tape::{Event, Loss, SECTOR, write_some};
use crate::workloads::wire::Said;
use fastrand::Rng;
use std::sync::{Condvar, Mutex, MutexGuard};
use std::time::Duration;

pub(crate) struct Disk {
    pub(crate) size: u64,
    state: Mutex<State>,
    said: Condvar,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Failure {
    Io,
    NoSpace,
}

/// One in so many requests fails; 0: none.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Rates {
    pub(crate) read: u32,
    pub(crate) write: u32,
    pub(crate) flush: u32,
}

struct State {
    base: Pages,
    over: Pages,
    tape: Vec<Event>,
    reads: u64,
    faults: Option<Faults>,
}

struct Faults {
    rates: Rates,
    rng: Rng,
    whole: fn(u64) -> bool,
    /// Dropped writes: every write and flush fails from then on.
    dead: bool,
    unflushed: usize,
}

impl Disk {
    pub(crate) fn new(size: u64) -> Disk {
        let state = State {
            base: Pages::default(),
            over: Pages::default(),
            tape: Vec::new(),
            reads: 0,
            faults: None,
        };
        Disk { size, state: Mutex::new(state), said: Condvar::new() }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    pub(crate) fn read(&self, at: u64, out: &mut [u8]) -> Result<(), Failure> {
        let mut state = self.state();
        state.reads += 1;
        if let Some(faults) = &mut state.faults
            && faults.fails(faults.rates.read)
        {
            let (failure, line) = faults.failure("reads");
            state.tape.push(line);
            return Err(failure);
        }
        state.over.read(&state.base, at, out);
        Ok(())
    }

    pub(crate) fn write(&self, at: u64, data: &[u8]) -> Result<(), Failure> {
        let mut state = self.state();
        if let Some(faults) = &mut state.faults
            && (faults.dead || faults.fails(faults.rates.write))
        {
            let arrived = faults.rng.usize(..=data.len() / SECTOR) * SECTOR;
            let (failure, line) = faults.failure("writes");
            state.tape.push(line);
            state.write(at, &data[..arrived]);
            return Err(failure);
        }
        state.write(at, data);
        Ok(())
    }

    pub(crate) fn flush(&self) -> Result<(), Failure> {
        let mut state = self.state();
        let State { base, over, tape, faults, .. } = &mut *state;
        let Some(faults) = faults else {
            tape.push(Event::Flush);
            return Ok(());
        };
        if faults.dead || faults.fails(faults.rates.flush) {
            let (failure, line) = faults.failure("flushes");
            // A later successful flush would vouch for these writes, too. So a disk that drops
            // writes never succeeds again.
            if !faults.dead && faults.rng.u8(..3) == 0 {
                faults.dead = true;
                faults.lose(base, over, tape);
            }
            tape.push(line);
            return Err(failure);
        }
        base.fold(std::mem::take(over));
        faults.unflushed = tape.len();
        Ok(())
    }

    pub(crate) fn hear(&self, said: Said) {
        self.state().tape.push(Event::Said(said));
        self.said.notify_all();
    }

    pub(crate) fn position(&self) -> usize {
        self.state().tape.len()
    }

    pub(crate) fn listen(&self, from: usize) -> (Vec<Said>, usize) {
        let mut state = self.state();
        let news = |state: &State| -> Vec<Said> {
            let said = state.tape[from.min(state.tape.len())..].iter();
            said.filter_map(|event| if let Event::Said(said) = event { Some(said.clone()) } else { None })
                .collect()
        };
        let mut said = news(&state);
        if said.is_empty() {
            state = match self.said.wait_timeout(state, Duration::from_millis(2)) {
                Ok((state, _)) => state,
                Err(poisoned) => poisoned.into_inner().0,
            };
            said = news(&state);
        }
        (said, state.tape.len())
    }

    pub(crate) fn settle(&self) -> Vec<Event> {
        let mut state = self.state();
        let over = std::mem::take(&mut state.over);
        state.base.fold(over);
        std::mem::take(&mut state.tape)
    }

    pub(crate) fn cut(&self) -> Vec<Event> {
        std::mem::take(&mut self.state().tape)
    }

    pub(crate) fn show(&self, over: Pages) {
        let mut state = self.state();
        (state.over, state.tape, state.reads) = (over, Vec::new(), 0);
    }

    /// Works on the base, which must not be in use.
    pub(crate) fn with_base<R>(&self, work: impl FnOnce(&mut Pages) -> R) -> R {
        work(&mut self.state().base)
    }

    pub(crate) fn reads(&self) -> u64 {
        self.state().reads
    }

    /// Fails from now on. Until [`Disk::mend`] the base is the last flushed state.
    pub(crate) fn fail(&self, rates: Rates, whole: fn(u64) -> bool, seed: u64) {
        self.settle();
        let rng = Rng::with_seed(seed);
        self.state().faults = Some(Faults { rates, rng, whole, dead: false, unflushed: 0 });
    }

    /// Stops failing. `false`: writes were dropped, and only a power cut mends the disk.
    pub(crate) fn pause(&self) -> bool {
        let mut state = self.state();
        let Some(faults) = state.faults.as_mut().filter(|faults| !faults.dead) else { return false };
        faults.rates = Rates::default();
        true
    }

    pub(crate) fn mend(&self, power: bool) {
        let mut state = self.state();
        let State { base, over, tape, faults, .. } = &mut *state;
        let Some(mut faults) = faults.take() else { return };
        if power {
            faults.lose(base, over, tape);
        }
        base.fold(std::mem::take(over));
    }

    pub(crate) fn save(&self, over: &Pages, path: &std::path::Path) -> std::io::Result<()> {
        use std::os::unix::fs::FileExt;
        let state = self.state();
        let file = std::fs::File::create(path)?;
        file.set_len(self.size)?;
        let mut page = vec![0; Pages::page_size() as usize];
        let mut numbers = state.base.numbers();
        numbers.extend(over.numbers());
        for number in numbers {
            over.read(&state.base, number * Pages::page_size(), &mut page);
            file.write_all_at(&page, number * Pages::page_size())?;
        }
        Ok(())
    }
}

impl State {
    fn write(&mut self, at: u64, data: &[u8]) {
        self.over.write(&self.base, at, data);
        self.tape.push(Event::Write { at, data: data.into() });
    }
}

impl Faults {
    fn fails(&mut self, one_in: u32) -> bool {
        one_in > 0 && self.rng.u32(..one_in) == 0
    }

    /// Only a write may report a full thin disk: xfs takes an allocation group for full after such
    /// an error of a metadata read.
    fn failure(&mut self, what: &str) -> (Failure, Event) {
        let full = what == "writes" && self.rng.u8(..4) == 0;
        let (failure, word) = if full { (Failure::NoSpace, "ENOSPC") } else { (Failure::Io, "EIO") };
        (failure, Event::Said(Said::Count { what: format!("{what} failed, {word}"), count: 1 }))
    }

    fn lose(&mut self, base: &mut Pages, over: &mut Pages, tape: &[Event]) {
        let mut left = Pages::default();
        let loss = Loss::any(&mut self.rng);
        write_some(&mut left, base, &tape[self.unflushed..], loss, self.whole, &mut self.rng);
        *over = Pages::default();
        base.fold(left);
        self.unflushed = tape.len();
    }
}
