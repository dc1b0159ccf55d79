//! A thread that takes part: it runs transactions, or is alone.

use super::descriptor::{Descriptor, Phase};
use super::error::{Abort, BeginError, CommitError, Error};
use super::gate::ForkedChild;
use super::memory::{Direct, Memory};
use super::sink::{Receipt, Sink, Volatile};
use super::stm::Stm;
use super::transaction::Transaction;
use std::sync::Arc;

/// The part that a thread takes in an [`Stm`]. Dropping it aborts a transaction that runs.
///
/// A thread has at most one transaction at a time, of all memories together. A transaction does not
/// wait for other threads' transactions: one of them may be waiting to be alone.
pub struct Thread<M: Memory = Direct, S: Sink = Volatile> {
    descriptor: Descriptor<M, S>,
    /// Transactions that began inside of the one that runs, and are parts of it.
    nested: usize,
}

impl<M: Memory, S: Sink> Stm<M, S> {
    /// Has the calling thread take part. A thread keeps the result for all its transactions: it has
    /// the buffers, and the sink's state of the thread.
    pub fn thread(self: &Arc<Self>) -> Thread<M, S> {
        Thread { descriptor: Descriptor::new(self.clone()), nested: 0 }
    }
}

/// Aborts a transaction that does not end otherwise: its closure panicked.
struct Running<'t, M: Memory, S: Sink>(&'t mut Descriptor<M, S>);

impl<M: Memory, S: Sink> Drop for Running<'_, M, S> {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl<M: Memory, S: Sink> Thread<M, S> {
    /// Runs `body` as a transaction: all of it takes effect at once, or nothing. If it meets
    /// others, it is run again, at last alone; so it does nothing that cannot be done again. An
    /// error that it returns, and a panic, undo it.
    ///
    /// # Errors
    ///
    /// [`Error`]: it did not take place, but for [`Error::Unacknowledged`].
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
                // After a conflict its own error says nothing of its data.
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

    /// Begins a transaction, for callers that restart by themselves: C, and code that a compiler
    /// made. Inside of one of this thread's it is a part of that, which ends with it.
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

    /// As [`Thread::begin`] outside of a transaction, but for one that meets no other, and so is
    /// never run again.
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

    /// As [`Stm::quiesce`], for a thread that quiesces after each commit: it takes no lock unless
    /// there are new threads. Not to be called in a transaction.
    pub fn quiesce(&mut self, sequence: u64) {
        self.descriptor.stm.gate.quiesce_known(sequence, &mut self.descriptor.known);
    }

    /// The transaction that runs.
    ///
    /// No lifetime sees to it that the memory that it stores to stays until it ends: that is the
    /// promise of its unsafe functions; of words of safe Rust it takes static ones.
    pub fn running(&mut self) -> Option<Transaction<'_, 'static, M, S>> {
        (self.descriptor.phase != Phase::Idle).then(|| Transaction::new(&mut self.descriptor))
    }

    /// Ends what [`Thread::begin`] began. `None`: it was inside of another, which goes on.
    ///
    /// # Errors
    ///
    /// [`CommitError`]: the transaction is aborted, but for [`CommitError::Unacknowledged`]. After
    /// a conflict, this has waited for as long as is good before the next try.
    ///
    /// # Panics
    ///
    /// If no transaction runs.
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

    /// Ends the transaction, and all that it is a part of, without effect. After a conflict the
    /// caller begins it again: `again` waits for a good time before that. Does nothing if none
    /// runs.
    pub fn abort(&mut self, again: bool) {
        self.nested = 0;
        let running = self.descriptor.phase != Phase::Idle;
        self.descriptor.abort();
        match again {
            true if running => self.descriptor.contention.back_off(),
            _ => self.descriptor.contention.settle(),
        }
    }

    /// Waits until no transaction runs, and lets none begin until the result is dropped: for work
    /// that cannot be undone, or cannot be told word by word.
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

    /// Lets no thread be [`alone`](Thread::alone) before [`leave`](Thread::leave): the caller
    /// changes memory as a part of a transaction of another memory, such as one that a compiler's
    /// blocks have. Waits for one that is. The thread runs no transaction here meanwhile.
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

/// The right to be alone: no transaction runs.
pub struct Alone<'t, M: Memory, S: Sink> {
    running: Running<'t, M, S>,
}

impl<M: Memory, S: Sink> Alone<'_, M, S> {
    /// Takes a sequence number. Everything before is stored, and all work of other threads comes
    /// after; so the caller may change memory as it likes, and tells the sink, or the threads that
    /// wait for this number, itself.
    pub fn sequence(&mut self) -> u64 {
        self.running.0.stm.number_alone()
    }

    /// The sink's state of this thread.
    pub fn own(&mut self) -> &mut S::Own {
        &mut self.running.0.own
    }
}
