use super::descriptor::{Descriptor, Phase};
use super::error::{Abort, BeginError, CommitError, Error};
use super::gate::ForkedChild;
use super::memory::{Direct, Memory};
use super::sink::{Receipt, Sink, Volatile};
use super::stm::Stm;
use super::transaction::Transaction;
use std::sync::Arc;

/// A thread's part in an [`Stm`]. Dropping it aborts a running transaction.
///
/// A thread has at most one transaction at a time, of all memories. It must not wait for other
/// threads' transactions: one of them may be waiting to be alone.
pub struct Thread<M: Memory = Direct, S: Sink = Volatile> {
    descriptor: Descriptor<M, S>,
    nested: usize,
}

impl<M: Memory, S: Sink> Stm<M, S> {
    /// Registers the calling thread. Keep the result for all transactions.
    pub fn thread(self: &Arc<Self>) -> Thread<M, S> {
        Thread { descriptor: Descriptor::new(self.clone()), nested: 0 }
    }
}

struct Running<'t, M: Memory, S: Sink>(&'t mut Descriptor<M, S>);

impl<M: Memory, S: Sink> Drop for Running<'_, M, S> {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl<M: Memory, S: Sink> Thread<M, S> {
    /// Runs `body` as a transaction: all or nothing takes effect at once. After conflicts it runs
    /// again, at last alone; so `body` must be repeatable. Its error, and a panic, undo it.
    ///
    /// # Errors
    ///
    /// [`Error`]: it did not take place, except for [`Error::Unacknowledged`].
    pub fn atomically<'env, R, E>(
        &mut self,
        mut body: impl FnMut(&mut Transaction<'_, 'env, M, S>) -> Result<R, Abort<E>>,
    ) -> Result<(R, Receipt), Error<E, S::Error>> {
        loop {
            self.descriptor.begin()?;
            let running = Running(&mut self.descriptor);
            let result = body(&mut Transaction::new(&mut *running.0));
            let (doomed, lost) = (running.0.phase == Phase::Doomed, running.0.lost);
            let failure = match result {
                Ok(value) => match running.0.commit() {
                    Ok(receipt) => return Ok((value, receipt)),
                    Err(failure) => failure,
                },
                Err(Abort::Cancel(error)) if !doomed => {
                    drop(running);
                    self.descriptor.contention.settle();
                    return Err(Error::Cancelled(error));
                }
                // The closure's error says nothing about its data.
                Err(Abort::Cancel(_) | Abort::Conflict(_)) => CommitError::Conflict(super::error::Conflict),
            };
            drop(running);
            if let Some(lost) = lost {
                return Err(self.failed(Error::Lost(lost)));
            }
            match failure {
                CommitError::Conflict(_) => self.descriptor.contention.back_off(),
                CommitError::Refused(error) => return Err(self.failed(Error::Refused(error))),
                CommitError::Unacknowledged(error) => return Err(Error::Unacknowledged(error)),
                CommitError::Forked => return Err(self.failed(Error::Forked)),
            }
        }
    }

    fn failed<E>(&mut self, error: E) -> E {
        self.descriptor.contention.settle();
        error
    }

    /// Begins a transaction for callers that restart themselves: C and compiled code. Within a
    /// transaction of this thread it is a part of that.
    ///
    /// # Errors
    ///
    /// [`BeginError`].
    pub fn begin(&mut self) -> Result<(), BeginError> {
        if self.descriptor.phase != Phase::Idle {
            self.nested += 1;
            return Ok(());
        }
        self.descriptor.begin()
    }

    /// As [`Thread::begin`] outside of a transaction, for one that meets no other and never runs
    /// again.
    ///
    /// # Errors
    ///
    /// [`BeginError`].
    pub fn begin_alone(&mut self) -> Result<(), BeginError> {
        self.descriptor.contention.ask_alone();
        let begun = self.descriptor.begin();
        self.descriptor.contention.settle();
        begun
    }

    /// As [`Stm::quiesce`], without a lock unless there are new threads.
    pub fn quiesce(&mut self, sequence: u64) {
        self.descriptor.stm.gate.quiesce_known(sequence, &mut self.descriptor.known);
    }

    /// The running transaction.
    ///
    /// No lifetime ensures that its memory outlives it: its unsafe functions promise that; safe
    /// Rust words are static.
    pub fn running(&mut self) -> Option<Transaction<'_, 'static, M, S>> {
        (self.descriptor.phase != Phase::Idle).then(|| Transaction::new(&mut self.descriptor))
    }

    /// Ends what [`Thread::begin`] began. `None`: it was nested in another, which goes on.
    ///
    /// # Errors
    ///
    /// [`CommitError`]: the transaction is aborted, except for [`CommitError::Unacknowledged`].
    /// After a conflict, this has backed off for the next try.
    ///
    /// # Panics
    ///
    /// No transaction runs.
    pub fn commit(&mut self) -> Result<Option<Receipt>, CommitError<S::Error>> {
        assert!(self.descriptor.phase != Phase::Idle, "there is no transaction to commit; begin one");
        if self.nested > 0 {
            self.nested -= 1;
            return Ok(None);
        }
        let running = Running(&mut self.descriptor);
        let error = match running.0.commit() {
            Ok(receipt) => return Ok(Some(receipt)),
            Err(error) => error,
        };
        drop(running);
        match &error {
            CommitError::Conflict(_) => self.descriptor.contention.back_off(),
            _ => self.descriptor.contention.settle(),
        }
        Err(error)
    }

    /// Ends the transaction, and all that contain it, without effect. After a conflict `again`
    /// backs off first. Does nothing if none runs.
    pub fn abort(&mut self, again: bool) {
        self.nested = 0;
        let running = self.descriptor.phase != Phase::Idle;
        self.descriptor.abort();
        match again {
            true if running => self.descriptor.contention.back_off(),
            _ => self.descriptor.contention.settle(),
        }
    }

    /// Waits until no transaction runs, and lets none begin until the result is dropped.
    ///
    /// # Errors
    ///
    /// [`BeginError`].
    pub fn alone(&mut self) -> Result<Alone<'_, M, S>, BeginError> {
        self.descriptor.contention.ask_alone();
        let begun = self.descriptor.begin();
        self.descriptor.contention.settle();
        begun.map(|()| Alone { running: Running(&mut self.descriptor) })
    }

    /// The sink's state of this thread.
    pub fn own(&mut self) -> &mut S::Own {
        &mut self.descriptor.own
    }

    /// The sink, and its state of this thread.
    pub fn sink_and_own(&mut self) -> (&S, &mut S::Own) {
        (self.descriptor.stm.sink(), &mut self.descriptor.own)
    }

    /// Lets no thread be [`alone`](Thread::alone) until [`leave`](Thread::leave), while the caller
    /// changes memory as part of another memory's transaction and runs none here.
    ///
    /// # Errors
    ///
    /// [`BeginError::Forked`].
    #[inline]
    pub fn enter(&mut self) -> Result<(), BeginError> {
        debug_assert!(self.descriptor.phase == Phase::Idle);
        let (stm, seat) = (&self.descriptor.stm, &self.descriptor.seat);
        stm.gate.enter(seat, stm.clock.now()).map_err(|ForkedChild| BeginError::Forked)
    }

    /// Ends what [`enter`](Thread::enter) began.
    #[inline]
    pub fn leave(&mut self) {
        self.descriptor.seat.leave();
    }
}

/// Exclusive access: no transaction runs.
pub struct Alone<'t, M: Memory, S: Sink> {
    running: Running<'t, M, S>,
}

impl<M: Memory, S: Sink> Alone<'_, M, S> {
    /// Takes a sequence number. Everything before is stored, and other threads' work comes after;
    /// the caller may change memory, and itself tells the sink.
    pub fn sequence(&mut self) -> u64 {
        self.running.0.stm.number_alone()
    }

    /// The sink's state of this thread.
    pub fn own(&mut self) -> &mut S::Own {
        &mut self.running.0.own
    }
}
