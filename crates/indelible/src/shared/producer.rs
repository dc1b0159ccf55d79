use super::layout::{QueueKind, Role};
use super::queue::Queue;
use super::slots::{Claim, NO_MESSAGE, Seen};
use super::value::bytes_of;
use super::word::error;
use crate::error::{Cause, Result, SharedError};
use crate::plain::Plain;
use crate::sys::sync::Ordering;
use std::time::Duration;

/// Puts messages into a [`Queue`].
pub struct Producer {
    queue: Queue,
    next: u64,
    head: Seen,
    scratch: Vec<u8>,
}

impl Queue {
    /// A producer; in a one-producer queue the only one until its drop or its process's death.
    ///
    /// # Errors
    /// `Held`: a one-producer queue has one. `Damaged`, `Gone`, `Forked`.
    pub fn producer(&self) -> Result<Producer> {
        let made = self.memory.check().and_then(|()| Producer::new(self));
        made.map_err(|cause| error(&self.memory, "put messages into", cause))
    }
}

impl Producer {
    fn new(queue: &Queue) -> Result<Producer, Cause> {
        if queue.layout.kind == QueueKind::OneProducer {
            queue.take_part(Role::Producer, "producer")?;
        }
        let next = queue.slots().tail.load(Ordering::Acquire);
        Ok(Producer { queue: queue.clone(), next, head: Seen::default(), scratch: Vec::new() })
    }

    /// Puts a message in, waiting up to `timeout` for room (`None`: for ever). Returns its number
    /// for [`wait_taken`](Self::wait_taken); `None`: the queue stayed full.
    ///
    /// # Errors
    /// `BadSize`: longer than the queue's messages. `Damaged`: the queue was scribbled over.
    /// `Gone`: the object's memory was truncated. `Forked`.
    pub fn send(&mut self, message: &[u8], timeout: Option<Duration>) -> Result<Option<u64>> {
        let sent = self.send_filled(message.len(), timeout, |_| Ok(message));
        sent.map_err(|cause| self.error(cause))
    }

    /// As [`send`](Self::send), assembled from parts after its slot is claimed.
    pub fn send_parts<'p>(
        &mut self,
        parts: impl IntoIterator<Item = &'p [u8]>,
        timeout: Option<Duration>,
    ) -> Result<Option<u64>> {
        let mut scratch = std::mem::take(&mut self.scratch);
        scratch.clear();
        let (whole, most) = (&mut scratch, self.queue.layout.most);
        let sent = self.send_filled(0, timeout, move |_| {
            for part in parts {
                whole.extend_from_slice(part);
                if whole.len() > most {
                    return Err(SharedError::TooLong { len: whole.len(), most }.into());
                }
            }
            Ok(&*whole)
        });
        let sent = sent.map_err(|cause| self.error(cause));
        self.scratch = scratch;
        sent
    }

    /// As [`send`](Self::send), of a value's bytes.
    pub fn send_value<T: Plain>(&mut self, value: &T, timeout: Option<Duration>) -> Result<Option<u64>> {
        self.send(bytes_of(value), timeout)
    }

    /// Waits up to `timeout` until this message and all before it were taken out; returns whether
    /// they were. A consumer makes messages durable before it [releases](super::Consumer::release)
    /// them.
    ///
    /// # Errors
    /// `Gone`, `Forked`.
    pub fn wait_taken(&self, number: u64, timeout: Option<Duration>) -> Result<bool> {
        let queue = &self.queue;
        let taken = || {
            let taken = queue.slots().head.load(Ordering::Acquire) > number;
            queue.memory.check()?;
            Ok(taken.then_some(()))
        };
        let taken = queue.until(queue.taken(), timeout, taken).map_err(|cause| self.error(cause))?;
        Ok(taken.is_some())
    }

    /// With one producer.
    pub(super) fn next_number(&self) -> u64 {
        self.next
    }

    /// The queue.
    #[must_use]
    pub fn queue(&self) -> &Queue {
        &self.queue
    }

    fn error(&self, cause: Cause) -> crate::error::Error {
        error(&self.queue.memory, "put a message into", cause)
    }

    fn send_filled<'m>(
        &mut self,
        len: usize,
        timeout: Option<Duration>,
        fill: impl FnOnce(u64) -> Result<&'m [u8], Cause>,
    ) -> Result<Option<u64>, Cause> {
        let most = self.queue.layout.most;
        if len > most {
            return Err(SharedError::TooLong { len, most }.into());
        }
        let Producer { queue, next, head, .. } = self;
        let Some(number) = queue.until(queue.taken(), timeout, || claim(queue, *next, head))? else {
            return Ok(None);
        };
        let mut claimed = Claimed { queue, number, len: NO_MESSAGE };
        let message = fill(number)?;
        queue.memory.store(queue.layout.message(queue.slots().index(number)), message);
        claimed.len = message.len() as u32;
        drop(claimed);
        self.queue.memory.check()?;
        self.next = number.wrapping_add(1);
        Ok(Some(number))
    }
}

#[inline]
fn claim(queue: &Queue, next: u64, head: &mut Seen) -> Result<Option<u64>, Cause> {
    let slots = queue.slots();
    let found = match queue.layout.kind {
        QueueKind::ManyProducers => match slots.claim(queue.memory.life()) {
            Claim::At(number) => Some(Some(number)),
            Claim::Full => Some(None),
            Claim::Damaged => None,
        },
        QueueKind::OneProducer => slots.has_room(next, head).map(|has_room| has_room.then_some(next)),
    };
    queue.memory.check()?;
    found.ok_or_else(|| queue.damaged("the word of a slot, or of the tail, cannot be"))
}

struct Claimed<'q> {
    queue: &'q Queue,
    number: u64,
    len: u32,
}

impl Drop for Claimed<'_> {
    fn drop(&mut self) {
        match self.queue.layout.kind {
            QueueKind::ManyProducers => self.queue.slots().publish(self.number, self.len),
            // An abandoned slot stays free.
            QueueKind::OneProducer if self.len == NO_MESSAGE => return,
            QueueKind::OneProducer => self.queue.slots().put(self.number, self.len),
        }
        Queue::ring(self.queue.filled());
    }
}

impl Drop for Producer {
    fn drop(&mut self) {
        if self.queue.layout.kind == QueueKind::OneProducer {
            self.queue.give_up_part(Role::Producer);
        }
    }
}

impl std::fmt::Debug for Producer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Producer").field("queue", &self.queue).finish()
    }
}
