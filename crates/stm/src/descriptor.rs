//! A thread's transaction: reads, changes, and the snapshot in which all reads are valid.

use super::actions::Actions;
use super::contention::Contention;
use super::error::{BeginError, Conflict};
use super::gate::{ForkedChild, KnownSeats, Seat};
use super::memory::Memory;
use super::mutant::Mutant;
use super::sink::Sink;
use super::stm::Stm;
use super::stripes::State;
use super::sync::{SPINS, spin_loop, thread_local};
use super::write_set::WriteSet;
use std::cell::Cell;
use std::sync::Arc;

thread_local! {
    /// Whether this thread is in a transaction of any memory without `BESIDE_OTHERS`.
    // loom's macro knows no constants.
    #[allow(clippy::missing_const_for_thread_local)]
    static IN_TRANSACTION: Cell<bool> = Cell::new(false);
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    Idle,
    Running,
    /// It met another one and owns nothing.
    Doomed,
    /// It has its sequence number, which it must tell the sink.
    Sequenced(u64),
    /// Committed; its changes go to memory.
    Storing(u64),
}

pub(crate) struct Descriptor<M: Memory, S: Sink> {
    pub(crate) stm: Arc<Stm<M, S>>,
    pub(crate) seat: Arc<Seat>,
    pub(crate) number: u32,
    /// Stripes below this are free and in the snapshot; a doomed or ended transaction has none.
    limit: State,
    pub(crate) snapshot: u64,
    pub(crate) reads: Vec<(u32, State)>,
    pub(crate) writes: WriteSet,
    pub(crate) phase: Phase,
    pub(crate) alone: bool,
    pub(crate) lost: Option<usize>,
    pub(crate) actions: Actions,
    pub(crate) contention: Contention,
    pub(crate) own: S::Own,
    pub(crate) known: KnownSeats,
}

impl<M: Memory, S: Sink> Descriptor<M, S> {
    pub(crate) fn new(stm: Arc<Stm<M, S>>) -> Self {
        let (seat, number) = stm.gate.seat();
        Descriptor {
            stm,
            seat,
            number,
            limit: State::free(0),
            snapshot: 0,
            reads: Vec::new(),
            writes: WriteSet::default(),
            phase: Phase::Idle,
            alone: false,
            lost: None,
            actions: Actions::default(),
            contention: Contention::new(u64::from(number) + 1),
            own: S::Own::default(),
            known: KnownSeats::default(),
        }
    }

    pub(crate) fn begin(&mut self) -> Result<(), BeginError> {
        if self.phase != Phase::Idle || (!M::BESIDE_OTHERS && IN_TRANSACTION.with(Cell::get)) {
            return Err(BeginError::Nested);
        }
        self.alone = self.contention.wants_alone();
        let entered = match self.alone {
            true => self.stm.gate.close(),
            false => self.stm.gate.enter(&self.seat, self.stm.clock.now()),
        };
        entered.map_err(|ForkedChild| BeginError::Forked)?;
        if !M::BESIDE_OTHERS {
            IN_TRANSACTION.with(|inside| inside.set(true));
        }
        // Actions of a transaction whose sink panicked.
        self.actions.forget();
        self.take_snapshot(self.stm.clock.now());
        self.lost = None;
        self.phase = Phase::Running;
        Ok(())
    }

    #[inline]
    fn take_snapshot(&mut self, now: u64) {
        self.snapshot = now;
        self.limit = State::free(now + 1);
    }

    #[inline]
    pub(crate) fn leave(&mut self) {
        self.phase = Phase::Idle;
        self.limit = State::free(0);
        self.reads.clear();
        self.writes.lines.clear();
        if self.alone {
            self.alone = false;
            self.stm.gate.open();
        } else {
            self.seat.leave();
        }
        if M::BESIDE_OTHERS {
            return;
        }
        // An ending thread begins nothing.
        let _ = IN_TRANSACTION.try_with(|inside| inside.set(false));
    }

    #[inline]
    pub(crate) fn covers(&self, state: State) -> bool {
        state < self.limit
    }

    /// If all reads are still valid.
    #[cold]
    pub(crate) fn extend(&mut self) -> Result<(), Conflict> {
        if self.phase != Phase::Running {
            return Err(Conflict);
        }
        let now = self.stm.clock.now();
        if !self.is_valid() && !self.stm.broken.is(Mutant::DoomedGoesOn) {
            return Err(self.doom());
        }
        self.take_snapshot(now);
        if !self.alone {
            self.seat.advance(now);
        }
        Ok(())
    }

    pub(crate) fn is_valid(&self) -> bool {
        self.reads.iter().all(|&(stripe, seen)| {
            let state = self.stm.stripes.look(stripe as usize);
            state == seen || state.is_owner(self.number) && self.writes.before(state.line()) == Some(seen)
        })
    }

    #[cold]
    pub(crate) fn wait_for(&mut self, stripe: usize) -> Result<(), Conflict> {
        for _ in 0..SPINS {
            if !self.stm.stripes.look(stripe).is_owned() {
                return Ok(());
            }
            spin_loop();
        }
        Err(self.doom())
    }

    #[cold]
    pub(crate) fn doom(&mut self) -> Conflict {
        self.give_back();
        self.limit = State::free(0);
        self.phase = Phase::Doomed;
        Conflict
    }

    /// A thread may have read undone values between two looks at a stripe. To be noticed by the
    /// second look, the stripes get a new number.
    fn give_back(&mut self) {
        let mut undone = false;
        for nth in 0..self.writes.lines.len() {
            if self.writes.lines[nth].in_place {
                self.undo_in_place(nth, 0, &[0; 8]);
                undone = true;
            }
        }
        if undone && !self.stm.broken.is(Mutant::UndoneUnnoticed) {
            self.release(self.stm.clock.tick());
        } else {
            for line in &self.writes.lines {
                if let Some(before) = line.before {
                    self.stm.stripes.release(line.stripe, before);
                }
            }
        }
        self.writes.lines.clear();
    }

    pub(crate) fn abort(&mut self) {
        let phase = self.phase;
        match phase {
            Phase::Idle => return,
            Phase::Storing(sequence) => {
                self.release(sequence);
                return self.leave();
            }
            Phase::Running | Phase::Doomed | Phase::Sequenced(_) => {}
        }
        // A panicking sink or action leaves nothing owned.
        self.give_back();
        self.leave();
        if let Phase::Sequenced(sequence) = phase {
            self.stm.sink.skipped(&mut self.own, sequence);
        }
        self.actions.aborted();
    }

    #[inline]
    pub(crate) fn release(&self, sequence: u64) {
        for line in &self.writes.lines {
            if line.before.is_some() {
                self.stm.stripes.release(line.stripe, State::free(sequence));
            }
        }
    }
}

impl<M: Memory, S: Sink> Drop for Descriptor<M, S> {
    fn drop(&mut self) {
        self.abort();
        self.stm.gate.vacate(self.number);
    }
}
