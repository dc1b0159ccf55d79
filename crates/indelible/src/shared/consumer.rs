use super::layout::{QueueKind, Role};
use super::queue::Queue;
use super::slots::{Front, NO_MESSAGE, Seen};
use super::value::value_of;
use super::word::error;
use crate::error::{Cause, Error, Result, SharedError};
use crate::plain::Plain;
use crate::sys::sync::Ordering;
use indelible_store::Mutant;
use std::hint::spin_loop;
use std::time::Duration;

const SPINS: usize = 200;

/// Takes messages out of a [`Queue`]: [`receive`](Self::receive) takes one; [`look`](Self::look)
/// reads several, and [`release`](Self::release) takes them, so that the caller can act on messages
/// before they are gone.
pub struct Consumer {
    queue: Queue,
    head: u64,
    next: u64,
    tail: Seen,
    buffer: Vec<u8>,
    /// Completed requests are no damage.
    completes: bool,
}

impl Queue {
    /// The queue's only consumer, until its drop or its process's death.
    ///
    /// # Errors
    /// `Held`: there is one. `Damaged`, `Gone`, `Forked`.
    pub fn consumer(&self) -> Result<Consumer> {
        let made = self.memory.check().and_then(|()| Consumer::new(self));
        made.map_err(|cause| error(&self.memory, "take messages out of", cause))
    }
}

impl Consumer {
    fn new(queue: &Queue) -> Result<Consumer, Cause> {
        queue.take_part(Role::Consumer, "consumer")?;
        let head = queue.slots().head.load(Ordering::Acquire);
        let (queue, tail, buffer) = (queue.clone(), Seen::default(), Vec::new());
        let mut consumer = Consumer { queue, head, next: head, tail, buffer, completes: false };
        consumer.go_on()?;
        Ok(consumer)
    }

    fn go_on(&mut self) -> Result<(), Cause> {
        if self.queue.layout.kind == QueueKind::OneProducer {
            return self.queue.memory.check();
        }
        let slots = self.queue.slots();
        let freed = (0..slots.states.len() as u64)
            .take_while(|ahead| slots.front(self.head.wrapping_add(*ahead)) == Front::Passed)
            .count();
        self.queue.memory.check()?;
        self.head = self.head.wrapping_add(freed as u64);
        self.next = self.head;
        slots.head.store(self.head, Ordering::Release);
        Queue::ring(self.queue.taken());
        Ok(())
    }

    /// Takes the next message into `message`, waiting up to `timeout` (`None`: for ever). Returns
    /// whether there was one.
    ///
    /// # Errors
    /// `Damaged`: the queue was scribbled over. `Gone`: the object's memory was truncated.
    /// `Forked`.
    pub fn receive(&mut self, message: &mut Vec<u8>, timeout: Option<Duration>) -> Result<bool> {
        let found = self.look(message, timeout)?.is_some();
        if found {
            self.release()?;
        }
        Ok(found)
    }

    /// As [`receive`](Self::receive), as a value. A message of another size is taken out all the
    /// same.
    ///
    /// # Errors
    /// As for [`receive`](Self::receive); `BadSize`: another size.
    pub fn receive_value<T: Plain>(&mut self, timeout: Option<Duration>) -> Result<Option<T>> {
        let mut buffer = std::mem::take(&mut self.buffer);
        let received = self.receive(&mut buffer, timeout);
        let value = match received? {
            false => Ok(None),
            true => value_of(&buffer).map(Some).ok_or_else(|| {
                self.error(SharedError::OtherType { len: buffer.len(), needed: size_of::<T>() }.into())
            }),
        };
        self.buffer = buffer;
        value
    }

    /// Copies the next unread message, waiting up to `timeout` (`None`: for ever); returns its
    /// number. It stays in the queue until [released](Self::release), so that at most the queue's
    /// capacity can be read ahead.
    ///
    /// # Errors
    /// As for [`receive`](Self::receive).
    pub fn look(&mut self, message: &mut Vec<u8>, timeout: Option<Duration>) -> Result<Option<u64>> {
        let Consumer { queue, head, next, tail, completes, .. } = self;
        let found =
            queue.until(queue.filled(), timeout, || look(queue, (*head, next, tail), *completes, message));
        found.map_err(|cause| self.error(cause))
    }

    /// Restarts at the first unreleased message.
    pub fn rewind(&mut self) {
        self.next = self.head;
    }

    /// Takes out all read messages, which their producers learn
    /// ([`Producer::wait_taken`](super::Producer::wait_taken)).
    ///
    /// # Errors
    /// As for [`receive`](Self::receive).
    pub fn release(&mut self) -> Result<()> {
        let slots = self.queue.slots();
        if self.queue.layout.kind == QueueKind::ManyProducers {
            (self.head..self.next).for_each(|number| slots.free(number));
        }
        slots.head.store(self.next, Ordering::Release);
        self.head = self.next;
        Queue::ring(self.queue.taken());
        self.queue.memory.check().map_err(|cause| self.error(cause))
    }

    pub(super) fn skip_completed(&mut self) {
        self.completes = true;
    }

    pub(super) fn head(&self) -> u64 {
        self.head
    }

    pub(super) fn has_read(&self, number: u64) -> bool {
        (self.head..self.next).contains(&number)
    }

    /// Takes out the first requests, as far as they are completed.
    pub(super) fn release_completed(&mut self) -> Result<(), Cause> {
        let slots = self.queue.slots();
        // A slot behind the tail has the mark of its last lap.
        let tail = slots.tail.load(Ordering::Acquire);
        let ahead = tail.wrapping_sub(self.head).min(slots.states.len() as u64);
        let first = (0..ahead).find(|ahead| !slots.is_completed(self.head.wrapping_add(*ahead)));
        let completed = first.unwrap_or(ahead);
        if completed > 0 {
            self.head = self.head.wrapping_add(completed);
            self.next = self.next.max(self.head);
            slots.head.store(self.head, Ordering::Release);
            Queue::ring(self.queue.taken());
        }
        self.queue.memory.check()
    }

    /// The queue.
    #[must_use]
    pub fn queue(&self) -> &Queue {
        &self.queue
    }

    fn error(&self, cause: Cause) -> Error {
        error(&self.queue.memory, "take a message out of", cause)
    }
}

fn look(
    queue: &Queue,
    (head, next, tail): (u64, &mut u64, &mut Seen),
    completes: bool,
    message: &mut Vec<u8>,
) -> Result<Option<u64>, Cause> {
    let slots = queue.slots();
    while next.wrapping_sub(head) < slots.states.len() as u64 {
        let number = *next;
        let front = match queue.layout.kind {
            QueueKind::ManyProducers => written(queue, number)?,
            QueueKind::OneProducer => slots.next(number, tail),
        };
        let len = match front {
            Front::Ready(len) => len,
            Front::Empty | Front::Writing(..) => return queue.memory.check().map(|()| None),
            Front::Passed if completes => {
                *next = number.wrapping_add(1);
                continue;
            }
            Front::Passed | Front::Damaged => {
                queue.memory.check()?;
                return Err(queue.damaged("the word of a slot, or of the tail, cannot be"));
            }
        };
        if len == NO_MESSAGE && queue.layout.kind == QueueKind::ManyProducers {
            *next = number.wrapping_add(1);
            continue;
        }
        if len as usize > queue.layout.most {
            queue.memory.check()?;
            return Err(queue.damaged("a message is longer than there is room for"));
        }
        message.resize(len as usize, 0);
        queue.memory.load(queue.layout.message(slots.index(number)), message);
        queue.memory.check()?;
        *next = number.wrapping_add(1);
        return Ok(Some(number));
    }
    Ok(None)
}

fn written(queue: &Queue, number: u64) -> Result<Front, Cause> {
    let slots = queue.slots();
    for _ in 0..SPINS {
        match slots.front(number) {
            Front::Writing(..) => spin_loop(),
            found => return Ok(found),
        }
    }
    if let found @ Front::Writing(owner, word) = slots.front(number) {
        let lives = queue.memory.is_claimed(u64::from(owner))?;
        if lives || Mutant::DeadProducerKept.is_on() {
            return Ok(found);
        }
        // The producer may have published, then died, just before the check.
        if slots.skip(number, word) {
            queue.memory.words()[queue.layout.skipped()].fetch_add(1, Ordering::Relaxed);
        }
    }
    Ok(slots.front(number))
}

impl Drop for Consumer {
    fn drop(&mut self) {
        self.queue.give_up_part(Role::Consumer);
    }
}

impl std::fmt::Debug for Consumer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Consumer").field("queue", &self.queue).field("head", &self.head).finish()
    }
}
