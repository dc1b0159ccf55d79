//! The memories of a kernel: arrays of words, changed in transactions, or by one thread without.

use indelible::{Error, Pool, Tx, TxCell, TxObject};
use indelible_stm::{Abort, Conflict, Direct, Stm, Thread, Transaction, TxWord, Volatile};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

pub const WORDS: usize = 1 << 20;
pub const LINE: u64 = 8;

#[derive(Debug)]
pub enum Stop {
    Conflict(Conflict),
    Object(Error),
    Wrong(Box<str>),
    Cancelled,
}

pub type Outcome<T> = Result<T, Stop>;

impl Stop {
    pub fn is_consequence(&self) -> bool {
        matches!(self, Stop::Cancelled)
    }
}

impl From<Conflict> for Stop {
    fn from(conflict: Conflict) -> Self {
        Stop::Conflict(conflict)
    }
}

impl From<Error> for Stop {
    fn from(error: Error) -> Self {
        Stop::Object(error)
    }
}

impl std::fmt::Display for Stop {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Stop::Conflict(conflict) => conflict.fmt(f),
            Stop::Object(error) => error.fmt(f),
            Stop::Wrong(what) => f.write_str(what),
            Stop::Cancelled => f.write_str("another thread cannot go on"),
        }
    }
}

impl std::error::Error for Stop {}

pub fn ensure(holds: bool, what: impl FnOnce() -> String) -> Outcome<()> {
    if holds { Ok(()) } else { Err(Stop::Wrong(what().into())) }
}

pub trait Words {
    fn get(&mut self, at: u64) -> Outcome<u64>;

    fn set(&mut self, at: u64, value: u64) -> Outcome<()>;

    fn add(&mut self, at: u64, more: u64) -> Outcome<u64> {
        let value = self.get(at)?.wrapping_add(more);
        self.set(at, value)?;
        Ok(value)
    }
}

pub trait Access<B> {
    fn get(&mut self, base: B, at: u64) -> Outcome<u64>;

    fn set(&mut self, base: B, at: u64, value: u64) -> Outcome<()>;
}

pub struct On<'a, T, B> {
    tx: &'a mut T,
    base: B,
}

impl<T: Access<B>, B: Copy> Words for On<'_, T, B> {
    #[inline]
    fn get(&mut self, at: u64) -> Outcome<u64> {
        self.tx.get(self.base, at)
    }

    #[inline]
    fn set(&mut self, at: u64, value: u64) -> Outcome<()> {
        self.tx.set(self.base, at, value)
    }
}

pub trait Worker {
    type Base: Copy;
    type Tx<'t>: Access<Self::Base>;

    fn atomically<R>(
        &mut self,
        body: impl FnMut(&mut On<'_, Self::Tx<'_>, Self::Base>) -> Outcome<R>,
    ) -> Outcome<R>;

    fn read(&mut self, range: std::ops::Range<u64>) -> Outcome<Vec<u64>> {
        const PART: usize = 2048;
        let mut all = Vec::with_capacity((range.end - range.start) as usize);
        for from in range.clone().step_by(PART) {
            let part = from..range.end.min(from + PART as u64);
            all.extend(
                self.atomically(|tx| part.clone().map(|at| tx.get(at)).collect::<Outcome<Vec<u64>>>())?,
            );
        }
        Ok(all)
    }

    fn write(&mut self, from: u64, values: &[u64]) -> Outcome<()> {
        for (part, at) in values.chunks(1024).zip((from..).step_by(1024)) {
            self.atomically(|tx| part.iter().zip(at..).try_for_each(|(value, at)| tx.set(at, *value)))?;
        }
        Ok(())
    }
}

pub trait Memory: Sync {
    type Worker<'m>: Worker
    where
        Self: 'm;

    fn worker(&self) -> Self::Worker<'_>;
}

#[cold]
fn beyond(at: u64) -> Stop {
    Stop::Wrong(format!("there is no word {at}").into())
}

/// NoTx: words without transactions, for one thread.
pub struct Plain(Vec<AtomicU64>);

pub struct PlainWorker<'m>(&'m [AtomicU64]);

pub struct NoTx;

impl Plain {
    pub fn new() -> Self {
        Plain((0..WORDS).map(|_| AtomicU64::new(0)).collect())
    }
}

impl Access<&[AtomicU64]> for NoTx {
    #[inline]
    fn get(&mut self, base: &[AtomicU64], at: u64) -> Outcome<u64> {
        // Compiles to a plain load, without a race.
        base.get(at as usize).map(|word| word.load(Ordering::Relaxed)).ok_or_else(|| beyond(at))
    }

    #[inline]
    fn set(&mut self, base: &[AtomicU64], at: u64, value: u64) -> Outcome<()> {
        base.get(at as usize).map(|word| word.store(value, Ordering::Relaxed)).ok_or_else(|| beyond(at))
    }
}

impl<'m> Worker for PlainWorker<'m> {
    type Base = &'m [AtomicU64];
    type Tx<'t> = NoTx;

    fn atomically<R>(
        &mut self,
        mut body: impl FnMut(&mut On<'_, Self::Tx<'_>, Self::Base>) -> Outcome<R>,
    ) -> Outcome<R> {
        body(&mut On { tx: &mut NoTx, base: self.0 })
    }
}

impl Memory for Plain {
    type Worker<'m> = PlainWorker<'m>;

    fn worker(&self) -> PlainWorker<'_> {
        PlainWorker(&self.0)
    }
}

#[repr(align(64))]
pub struct Line([TxWord; LINE as usize]);

pub struct Transient {
    stm: Arc<Stm>,
    lines: Vec<Line>,
}

pub struct TransientWorker<'m> {
    thread: Thread,
    lines: &'m [Line],
}

impl Transient {
    pub fn new() -> Self {
        let line = |_| Line(std::array::from_fn(|_| TxWord::new(0)));
        Transient { stm: Stm::new(Direct, Volatile), lines: (0..WORDS / LINE as usize).map(line).collect() }
    }
}

#[inline]
fn word(lines: &[Line], at: u64) -> Outcome<&TxWord> {
    lines.get((at / LINE) as usize).map(|line| &line.0[(at % LINE) as usize]).ok_or_else(|| beyond(at))
}

impl<'m> Access<&'m [Line]> for Transaction<'_, 'm, Direct, Volatile> {
    #[inline]
    fn get(&mut self, base: &'m [Line], at: u64) -> Outcome<u64> {
        Ok(Transaction::get(self, word(base, at)?)?)
    }

    #[inline]
    fn set(&mut self, base: &'m [Line], at: u64, value: u64) -> Outcome<()> {
        Ok(Transaction::set(self, word(base, at)?, value)?)
    }
}

impl<'m> Worker for TransientWorker<'m> {
    type Base = &'m [Line];
    type Tx<'t> = Transaction<'t, 'm, Direct, Volatile>;

    fn atomically<R>(
        &mut self,
        mut body: impl FnMut(&mut On<'_, Self::Tx<'_>, Self::Base>) -> Outcome<R>,
    ) -> Outcome<R> {
        let base = self.lines;
        let done = self.thread.atomically(|tx| {
            body(&mut On { tx, base }).map_err(|stop| match stop {
                Stop::Conflict(conflict) => Abort::Conflict(conflict),
                other => Abort::Cancel(other),
            })
        });
        match done {
            Ok((value, _)) => Ok(value),
            Err(indelible_stm::Error::Cancelled(stop)) => Err(stop),
            Err(_) => Err(Stop::Wrong("a volatile transaction did not begin or commit".into())),
        }
    }
}

impl Memory for Transient {
    type Worker<'m> = TransientWorker<'m>;

    fn worker(&self) -> TransientWorker<'_> {
        TransientWorker { thread: self.stm.thread(), lines: &self.lines }
    }
}

type Cells = [TxCell<u64>; WORDS];

pub struct Reliable(TxObject<Cells>);

pub struct ReliableWorker<'m>(&'m TxObject<Cells>);

impl Reliable {
    pub const SIZE: u64 = size_of::<Cells>() as u64;

    pub fn attach(pool: &Pool, name: &str) -> Outcome<Self> {
        let memory = Reliable(pool.attach_transactional(name)?);
        let mut worker = memory.worker();
        worker.atomically(|tx| (0..WORDS as u64).step_by(512).try_for_each(|at| tx.get(at).map(drop)))?;
        Ok(memory)
    }

    pub fn detach(self) -> Outcome<()> {
        Ok(self.0.detach()?)
    }
}

impl Access<&Cells> for Tx<'_> {
    #[inline]
    fn get(&mut self, base: &Cells, at: u64) -> Outcome<u64> {
        let cell = base.get(at as usize).ok_or_else(|| beyond(at))?;
        Ok(self.read(cell)?)
    }

    #[inline]
    fn set(&mut self, base: &Cells, at: u64, value: u64) -> Outcome<()> {
        let cell = base.get(at as usize).ok_or_else(|| beyond(at))?;
        Ok(self.write(cell, value)?)
    }
}

impl<'m> Worker for ReliableWorker<'m> {
    type Base = &'m Cells;
    type Tx<'t> = Tx<'t>;

    fn atomically<R>(
        &mut self,
        mut body: impl FnMut(&mut On<'_, Self::Tx<'_>, Self::Base>) -> Outcome<R>,
    ) -> Outcome<R> {
        let base = self.0.root();
        self.0.transaction(|tx| body(&mut On { tx, base }))
    }
}

impl Memory for Reliable {
    type Worker<'m> = ReliableWorker<'m>;

    fn worker(&self) -> ReliableWorker<'_> {
        ReliableWorker(&self.0)
    }
}
