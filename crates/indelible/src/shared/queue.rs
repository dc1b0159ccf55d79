//! Queues of messages in shared objects (S2.21).

use super::layout::{Layout, QueueOptions, Role};
use super::memory::Memory;
use super::object::SharedObject;
use super::slots::{Bell, Slots};
use crate::error::{Cause, QueueMisfit, Result, SharedError};
use crate::sys::futex;
use crate::sys::sync::{AtomicU32, Ordering};
use std::hint::spin_loop;
use std::sync::Arc;
use std::time::{Duration, Instant};

const PATIENCE: Duration = Duration::from_secs(10);
/// Waiting threads recheck, in case their waker died.
const LOOK: Duration = Duration::from_millis(50);
/// Each twice as long: sleeping costs more than the other side's work.
const PAUSES: u32 = 7;

/// A queue in a shared object: bounded messages from one or many producers, of any processes, to
/// one consumer in order. Both sides may die at any instruction.
///
/// ```
/// # let dir = tempfile::tempdir().unwrap();
/// # let pool = indelible::Pool::format(dir.path().join("p"), 16 << 20)?;
/// use indelible::{Class, CreateOptions, QueueOptions};
///
/// let how = QueueOptions::default();
/// pool.create_with("jobs", &CreateOptions::new(how.bytes()? as u64).class(Class::Shared))?;
/// let jobs = pool.attach_shared("jobs")?.queue(0, &how)?; // in each process
/// let mut producer = jobs.producer()?;
/// producer.send(b"compress", None)?;
///
/// let mut consumer = jobs.consumer()?; // in one of them
/// let mut message = Vec::new();
/// assert!(consumer.receive(&mut message, None)?);
/// assert_eq!(message, b"compress");
/// # Ok::<(), indelible::Error>(())
/// ```
#[derive(Clone)]
pub struct Queue {
    pub(super) memory: Arc<Memory>,
    pub(super) layout: Layout,
}

impl SharedObject {
    /// The queue at `offset`, a multiple of 64; made if absent.
    ///
    /// # Errors
    /// `BadSize`: it does not fit there. `RootType`: a queue with other options, or other content.
    /// `Gone`: the object's memory was truncated. `Held`: another process is stuck making it.
    pub fn queue(&self, offset: usize, options: &QueueOptions) -> Result<Queue> {
        self.about("open a queue in", || {
            let layout = Layout::new(offset, options, self.len()).or_else(|error| {
                let no_room = matches!(error, SharedError::NoQueue { why: QueueMisfit::Room { .. }, .. });
                if no_room && offset <= self.len().saturating_sub(64) {
                    let found = said(&self.memory, offset)?;
                    if found[0] != 0 {
                        Layout::compare(offset, options, found)?;
                    }
                }
                Err(Cause::from(error))
            })?;
            let queue = Queue { memory: self.memory.clone(), layout };
            queue.make()?;
            Ok(queue)
        })
    }
}

fn said(memory: &Memory, offset: usize) -> Result<[u64; 4], Cause> {
    let words = &memory.words()[offset / 8..][..4];
    // The first word is stored last, so loaded first.
    let found = [0, 1, 2, 3].map(|word| words[word].load(Ordering::Acquire));
    memory.check()?;
    Ok(found)
}

impl Queue {
    fn make(&self) -> Result<(), Cause> {
        let (begin, claim) = (Instant::now(), self.layout.claim(Role::Maker));
        while !self.is_made()? {
            if self.memory.claim(claim)? {
                let made = self.make_claimed();
                self.memory.give_up(claim);
                return made;
            }
            if begin.elapsed() > PATIENCE {
                return Err(SharedError::Taken { offset: self.layout.offset, role: "maker" }.into());
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        Ok(())
    }

    fn is_made(&self) -> Result<bool, Cause> {
        let found = said(&self.memory, self.layout.offset)?;
        if found[0] == 0 {
            return Ok(false);
        }
        Ok(Layout::compare(self.layout.offset, &self.options(), found).map(|()| true)?)
    }

    fn make_claimed(&self) -> Result<(), Cause> {
        if self.is_made()? {
            return Ok(());
        }
        let (words, layout) = (self.memory.words(), &self.layout);
        let states = layout.states()..layout.states() + layout.slots;
        let control =
            [layout.tail(), layout.head(), layout.skipped(), layout.filled() / 8, layout.taken() / 8];
        states.chain(control).for_each(|at| words[at].store(0, Ordering::Relaxed));
        words[layout.id()].store(self.memory.pool.store.memory_number()?, Ordering::Relaxed);
        for (at, value) in layout.says() {
            words[at].store(value, Ordering::Release);
        }
        self.memory.check()
    }

    /// A random number of this queue alone, which gives meaning to its messages' numbers.
    #[must_use]
    pub fn id(&self) -> u64 {
        self.memory.words()[self.layout.id()].load(Ordering::Relaxed)
    }

    /// Its options.
    #[must_use]
    pub fn options(&self) -> QueueOptions {
        let Layout { kind, slots, most, .. } = self.layout;
        QueueOptions { kind, slots, most }
    }

    /// Messages skipped because their producers died, so far.
    #[must_use]
    pub fn skipped(&self) -> u64 {
        self.memory.words()[self.layout.skipped()].load(Ordering::Relaxed)
    }

    #[inline]
    pub(super) fn slots(&self) -> Slots<'_> {
        let (words, layout) = (self.memory.words(), &self.layout);
        Slots {
            states: &words[layout.states()..layout.states() + layout.slots],
            tail: &words[layout.tail()],
            head: &words[layout.head()],
        }
    }

    pub(super) fn filled(&self) -> &AtomicU32 {
        self.word(self.layout.filled())
    }

    pub(super) fn taken(&self) -> &AtomicU32 {
        self.word(self.layout.taken())
    }

    fn word(&self, offset: usize) -> &AtomicU32 {
        self.memory.half(offset).unwrap_or_else(|| self.memory.ends())
    }

    pub(super) fn damaged(&self, why: &'static str) -> Cause {
        SharedError::Damaged { offset: self.layout.offset, why }.into()
    }

    pub(super) fn take_part(&self, role: Role, name: &'static str) -> Result<(), Cause> {
        match self.memory.claim(self.layout.claim(role))? {
            true => Ok(()),
            false => Err(SharedError::Taken { offset: self.layout.offset, role: name }.into()),
        }
    }

    pub(super) fn give_up_part(&self, role: Role) {
        if self.memory.check().is_ok() {
            self.memory.give_up(self.layout.claim(role));
        }
    }

    /// `None`: timeout.
    pub(super) fn until<T>(
        &self,
        bell: &AtomicU32,
        timeout: Option<Duration>,
        mut attempt: impl FnMut() -> Result<Option<T>, Cause>,
    ) -> Result<Option<T>, Cause> {
        if let Some(done) = attempt()? {
            return Ok(Some(done));
        }
        if timeout == Some(Duration::ZERO) {
            return Ok(None);
        }
        let begin = Instant::now();
        for doubled in 0..PAUSES {
            (0..1 << doubled).for_each(|_| spin_loop());
            if let Some(done) = attempt()? {
                return Ok(Some(done));
            }
        }
        loop {
            let left = timeout.map_or(LOOK, |timeout| timeout.saturating_sub(begin.elapsed()));
            if left.is_zero() {
                return Ok(None);
            }
            Bell(bell).arm();
            if let Some(done) = attempt()? {
                return Ok(Some(done));
            }
            if let Err(error) = futex::wait(bell, Bell::ARMED, Some(left.min(LOOK))) {
                self.memory.check_whole()?;
                return Err(SharedError::Wait(error).into());
            }
        }
    }

    pub(super) fn ring(bell: &AtomicU32) {
        if Bell(bell).ring() && !indelible_store::Mutant::WakeLost.is_on() {
            // The next call notices a lost page.
            let _ = futex::wake(bell, u32::MAX);
        }
    }
}

impl std::fmt::Debug for Queue {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Queue").field(&self.layout).finish()
    }
}
