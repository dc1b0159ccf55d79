//! Group commit: tickets taken during one durable write are made durable by the next.

use super::error::HeapError;
use super::rounds::Waiting;
use super::writer::Heap;
use crate::dirty::Unknown;
use crate::error::Result;
use crate::object::Bystanders;
use std::pin::Pin;
use std::task::{Context, Poll};

/// A pending commit: see [`Heap::commit`].
#[derive(Debug)]
#[must_use = "nothing is durable before the ticket was waited for"]
pub struct Ticket<'h> {
    heap: &'h Heap,
    round: u64,
    waiting: Waiting,
}

impl Heap {
    /// A ticket for all earlier stores to the heap that this thread knows of, durable once [waited
    /// for](Ticket::wait), or awaited. Tickets taken during one durable write share the next, a
    /// [consistent cut](Heap::psync_cut).
    ///
    /// ```
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let pool = indelible::Pool::format(dir.path().join("p"), 16 << 20)?;
    /// use indelible::collections::{PHashMap, PMutex, PString};
    ///
    /// type Words<'h> = PMutex<'h, PHashMap<'h, PString<'h>, u64>>;
    ///
    /// let mut heap = pool.heap("words", 1 << 20)?;
    /// heap.root_or_insert_with::<Words, _>("words", |heap| PMutex::new_in(PHashMap::new(), heap))?;
    /// let words = heap.root_ref::<Words>("words")?;
    /// std::thread::scope(|scope| {
    ///     for _ in 0..4 {
    ///         scope.spawn(|| {
    ///             *words.lock().entry("word").or_insert(0) += 1; // the lock is given back here
    ///             heap.commit().wait() // durable; at best, one write for all four
    ///         });
    ///     }
    /// });
    /// # assert_eq!(words.lock()["word"], 4);
    /// # Ok::<(), indelible::Error>(())
    /// ```
    pub fn commit(&self) -> Ticket<'_> {
        Ticket { heap: self, round: self.rounds.join(), waiting: Waiting::default() }
    }

    fn cut(&self, others: &mut dyn Bystanders) -> Result<()> {
        self.audited()?;
        let mut quiet = self.raw.quiet(self.object.patience()).map_err(|error| self.error("psync", error))?;
        self.object.psync_cut_gated(others, || quiet.open())
    }

    /// As [`psync_cut`](Heap::psync_cut), for a caller that knows about storing threads: see
    /// [`Object::psync_cut_beside`](crate::Object::psync_cut_beside). It shares no durable write.
    ///
    /// # Errors
    /// As for [`psync_cut`](Heap::psync_cut) and
    /// [`Object::psync_cut_beside`](crate::Object::psync_cut_beside).
    pub fn psync_cut_beside(&self, others: &mut dyn Bystanders) -> Result<()> {
        self.may_wait()?;
        self.cut(others)
    }

    /// A thread with a lock of the heap would wait for itself, a fork for its parent's threads.
    fn may_wait(&self) -> Result<()> {
        if self.raw.is_inside() {
            return Err(self.error("psync", HeapError::Inside));
        }
        self.object.check_alive("psync")
    }
}

impl Ticket<'_> {
    /// Returns when everything stored before the [`commit`](Heap::commit) is durable.
    ///
    /// # Errors
    /// As for [`Heap::psync_cut`]. Each ticket of a failed durable write has its error.
    pub fn wait(self) -> Result<()> {
        self.heap.may_wait()?;
        self.heap.rounds.wait(self.round, || self.heap.cut(&mut Unknown))
    }

    /// Whether everything stored before is known to be durable.
    #[must_use]
    pub fn is_durable(&self) -> bool {
        matches!(self.heap.rounds.outcome(self.round), Some(Ok(())))
    }
}

/// Without any runtime: the leading task makes the durable write within its `poll`, after letting
/// ready tasks run once, and wakes all others.
impl Future for Ticket<'_> {
    type Output = Result<()>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<()>> {
        let Ticket { heap, round, waiting } = &mut *self;
        if let Err(error) = heap.may_wait() {
            return Poll::Ready(Err(error));
        }
        heap.rounds.poll(*round, waiting, context, || heap.cut(&mut Unknown))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::collections::PMutex;
    use crate::pool::{Pool, PoolOptions, Tracking};

    type Number<'h> = PMutex<'h, u64>;

    fn durable(pool: &Pool) -> u64 {
        let heap = Heap::open(pool.attach("heap").unwrap()).unwrap();
        *heap.root_ref::<Number>("number").unwrap().lock()
    }

    #[test]
    fn threads_store_beside_the_durable_write() {
        for tracking in [Tracking::WpAsync, Tracking::Mprotect, Tracking::Explicit] {
            if !tracking.is_available() {
                indelible_testing::not_tested(format_args!("tickets with tracking by {tracking:?}"));
                continue;
            }
            let folder = tempfile::tempdir().unwrap();
            let pool =
                PoolOptions::new().tracking(tracking).format(folder.path().join("pool"), 16 << 20).unwrap();
            let mut heap = pool.heap("heap", 1 << 20).unwrap();
            heap.root_or_insert_with::<Number, _>("number", |place| PMutex::new_in(0, place)).unwrap();
            for again in [false, true] {
                let number = heap.root_ref::<Number>("number").unwrap();
                let first = *number.lock() + 1;
                *number.lock() = first;
                let mut quiet = heap.raw.quiet(heap.object.patience()).unwrap();
                let mut taken = None;
                heap.object
                    .psync_cut_gated(&mut Unknown, || {
                        quiet.open();
                        std::thread::scope(|scope| {
                            scope.spawn(|| {
                                *number.lock() = first + 1;
                                taken = heap.malloc(64).map(|block| block.addr()).ok();
                            });
                        });
                    })
                    .unwrap();
                drop(quiet);
                assert!(taken.is_some());
                if again {
                    heap.commit().wait().unwrap();
                }
                drop(heap);
                assert_eq!(durable(&pool), first + u64::from(again), "{tracking:?}");
                heap = Heap::open(pool.attach("heap").unwrap()).unwrap();
                assert_eq!(heap.check(), []);
            }
        }
    }
}
