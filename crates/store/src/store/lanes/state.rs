//! States of a lane and their actions. `WriterLane` adds locks and waits; the models run it in
//! every order of threads.
//!
//! | state | a thread may take the turn | the thread with the turn may | a batch may be appended at once | checkpoint |
//! |---|---|---|---|---|
//! | open | yes: writing | | yes, if it fits | if nothing is being applied |
//! | writing | no, it waits | write, or give the turn back: open | no, it waits | by the thread with the turn, if nothing is being applied |
//! | poisoned | no, it is refused | give the turn back | no, it is refused | no, it is refused |
//!
//! Written or appended batches are being applied until `applied`, in every state. A failed write,
//! application or checkpoint poisons for good: the next attach recovers. A write under way during
//! another failure counts if it succeeds.
//!
//! Only this module makes the rights: [`Turn`], to write with the lock released, and [`Durable`], a
//! batch to apply.

use crate::error::{Result, StoreError};
use crate::lane::LaneLog;
use crate::sync::{AtomicBool, Ordering};
use std::sync::Arc;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Phase {
    Open,
    /// One thread writes batches; the lane's lock is free.
    Writing,
    /// Nothing is appended or voided any more.
    Poisoned {
        /// An earlier write has not ended.
        writing: bool,
    },
}

/// The only right to write with the lock free.
#[must_use]
pub(in crate::store) struct Turn(());

/// A batch to apply.
#[must_use]
#[derive(Debug)]
pub(in crate::store) struct Durable(());

pub(in crate::store) enum Asked {
    Granted(Turn),
    Taken,
    Refused,
}

pub(in crate::store) enum Room {
    Fits,
    Taken,
    Full,
    TooLarge,
    Refused,
}

pub(in crate::store) struct LaneState {
    log: LaneLog,
    phase: Phase,
    /// Batches being applied, which keep the generation.
    applying: usize,
    /// `phase` for lockless readers, never reset.
    poisoned: Arc<AtomicBool>,
}

impl LaneState {
    pub(in crate::store) fn new(log: LaneLog, poisoned: Arc<AtomicBool>) -> Self {
        LaneState { log, phase: Phase::Open, applying: 0, poisoned }
    }

    pub(in crate::store) fn log(&self) -> LaneLog {
        self.log
    }

    pub(in crate::store) fn poison(&mut self) {
        let writing = self.is_writing();
        self.phase = Phase::Poisoned { writing };
        self.poisoned.store(true, Ordering::Release);
    }

    fn is_writing(&self) -> bool {
        matches!(self.phase, Phase::Writing | Phase::Poisoned { writing: true })
    }

    pub(in crate::store) fn ask(&mut self) -> Asked {
        match self.phase {
            Phase::Open => {
                self.phase = Phase::Writing;
                Asked::Granted(Turn(()))
            }
            Phase::Writing | Phase::Poisoned { writing: true } => Asked::Taken,
            Phase::Poisoned { writing: false } => Asked::Refused,
        }
    }

    pub(in crate::store) fn give_back(&mut self, _turn: Turn) {
        self.phase = match self.phase {
            Phase::Poisoned { .. } => Phase::Poisoned { writing: false },
            Phase::Open | Phase::Writing => Phase::Open,
        };
    }

    /// The lane ends at `log` durably.
    pub(in crate::store) fn written(&mut self, turn: Turn, log: LaneLog, batches: usize) -> Vec<Durable> {
        self.give_back(turn);
        self.log = log;
        self.applying += batches;
        std::iter::repeat_with(|| Durable(())).take(batches).collect()
    }

    pub(in crate::store) fn not_written(&mut self, turn: Turn) {
        self.give_back(turn);
        self.poison();
    }

    /// `turn`: the caller's.
    pub(in crate::store) fn room(&self, turn: Option<&Turn>, bytes: u64) -> Room {
        match self.phase {
            Phase::Poisoned { .. } => Room::Refused,
            Phase::Writing if turn.is_none() => Room::Taken,
            Phase::Open | Phase::Writing if self.log.fits(bytes) => Room::Fits,
            Phase::Open | Phase::Writing if bytes > self.log.capacity() => Room::TooLarge,
            Phase::Open | Phase::Writing => Room::Full,
        }
    }

    /// The batch fits, and the lock is held throughout.
    pub(in crate::store) fn append<T>(
        &mut self,
        write: impl FnOnce(&mut LaneLog) -> Result<T>,
    ) -> Result<(T, Durable)> {
        match write(&mut self.log) {
            Ok(done) => {
                self.applying += 1;
                Ok((done, Durable(())))
            }
            Err(error) => {
                self.poison();
                Err(error)
            }
        }
    }

    pub(in crate::store) fn applied(&mut self, _batch: Durable, succeeded: bool) {
        self.applying -= 1;
        if !succeeded {
            self.poison();
        }
    }

    pub(in crate::store) fn is_idle(&self, turn: Option<&Turn>) -> bool {
        self.applying == 0 && (turn.is_some() || !self.is_writing())
    }

    /// `void` makes applied lines durable and begins a generation. `false`: not idle.
    pub(in crate::store) fn checkpoint(
        &mut self,
        turn: Option<&Turn>,
        void: impl FnOnce(&mut LaneLog) -> Result<()>,
    ) -> Result<bool> {
        if !self.is_idle(turn) {
            return Ok(false);
        }
        if let Phase::Poisoned { .. } = self.phase {
            return Err(StoreError::Poisoned);
        }
        void(&mut self.log).inspect_err(|_| self.poison())?;
        Ok(true)
    }

    /// Moves a just checkpointed lane; its next generation is durable there.
    pub(in crate::store) fn relocate(
        &mut self,
        relocate: impl FnOnce(LaneLog) -> Result<LaneLog>,
    ) -> Result<LaneLog> {
        self.log = relocate(self.log)?;
        Ok(self.log)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn open() -> LaneState {
        LaneState::new(LaneLog::at_start(0, 1 << 16, 1), Arc::default())
    }

    fn turn(lane: &mut LaneState) -> Turn {
        match lane.ask() {
            Asked::Granted(turn) => turn,
            Asked::Taken | Asked::Refused => panic!("the lane is open"),
        }
    }

    fn void(log: &mut LaneLog) -> Result<()> {
        log.generation += 1;
        Ok(())
    }

    #[test]
    fn one_thread_writes_at_a_time_and_others_wait() {
        let mut lane = open();
        let turn = turn(&mut lane);
        assert!(matches!(lane.ask(), Asked::Taken));
        assert!(matches!((lane.room(None, 64), lane.room(Some(&turn), 64)), (Room::Taken, Room::Fits)));
        assert!(!lane.checkpoint(None, void).unwrap() && lane.log().generation == 1);
        assert!(lane.checkpoint(Some(&turn), void).unwrap() && lane.log().generation == 2);
        lane.give_back(turn);
        assert!(matches!(lane.room(None, 64), Room::Fits));
    }

    #[test]
    fn the_generation_stays_while_a_batch_is_being_applied() {
        let mut lane = open();
        let turn = turn(&mut lane);
        let log = lane.log();
        let mut batches = lane.written(turn, log, 2);
        for left in [1, 0] {
            assert!(!lane.checkpoint(None, void).unwrap() && !lane.is_idle(None));
            lane.applied(batches.pop().unwrap(), true);
            assert_eq!(batches.len(), left);
        }
        assert!(lane.checkpoint(None, void).unwrap());
        let ((), batch) = lane.append(|_| Ok(())).unwrap();
        assert!(!lane.checkpoint(None, void).unwrap());
        lane.applied(batch, true);
        assert!(lane.is_idle(None));
    }

    #[test]
    fn nothing_leads_back_from_a_failure() {
        let failures: [fn(&mut LaneState); 5] = [
            LaneState::poison,
            |lane| {
                let turn = turn(lane);
                lane.not_written(turn);
            },
            |lane| assert!(lane.append(|_| Err::<(), _>(StoreError::NoSpace)).is_err()),
            |lane| {
                let ((), batch) = lane.append(|_| Ok(())).unwrap();
                lane.applied(batch, false);
            },
            |lane| assert!(lane.checkpoint(None, |_| Err(StoreError::NoSpace)).is_err()),
        ];
        for (number, fail) in failures.into_iter().enumerate() {
            let mut lane = open();
            fail(&mut lane);
            assert!(lane.poisoned.load(Ordering::Acquire), "failure {number}");
            assert!(matches!(lane.ask(), Asked::Refused), "failure {number}");
            assert!(matches!(lane.room(None, 64), Room::Refused), "failure {number}");
            let voided = lane.checkpoint(None, void);
            assert!(matches!(voided, Err(StoreError::Poisoned)) && lane.log().generation == 1);
        }
    }

    #[test]
    fn a_write_that_was_under_way_ends_as_it_ends() {
        let mut lane = open();
        let turn = turn(&mut lane);
        lane.poison();
        assert!(matches!(lane.ask(), Asked::Taken) && !lane.is_idle(None));
        let mut log = lane.log();
        log.tail += 64;
        let batches = lane.written(turn, log, 1);
        assert_eq!(lane.log(), log);
        batches.into_iter().for_each(|batch| lane.applied(batch, true));
        assert!(matches!(lane.ask(), Asked::Refused) && lane.is_idle(None));
    }
}
