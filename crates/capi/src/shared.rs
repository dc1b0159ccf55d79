//! Objects that processes share: words to wait for, and queues.

use crate::args::{array, borrow, bytes, room_for_bytes, text};
use crate::guard::{Failure, Result, guarded, status};
use crate::handles::{pmo_pool, pool};
use indelible::raw::shared;
use indelible::{Consumer, Producer, Queue, QueueKind};
use std::collections::BTreeMap;
use std::ffi::{c_char, c_int, c_void};
use std::ptr::{null_mut, without_provenance_mut};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

const TIMED_OUT: i64 = -2;

/// `struct pmo_word`.
#[repr(C)]
#[allow(missing_docs)]
pub struct WordOf {
    pub word: *const u32,
    pub expected: u32,
    pub reserved: u32,
}

/// `struct pmo_queue_options`.
#[repr(C)]
#[allow(missing_docs)]
pub struct QueueOf {
    pub slots: u64,
    pub most: u64,
    pub one_producer: u32,
    pub reserved: u32,
}

/// Empty: a handle is a number, so that closed ones are noticed.
#[allow(non_camel_case_types)]
pub struct pmo_queue(());

/// A queue. Each side has a lock: one thread may send while another waits.
struct Sides {
    queue: Queue,
    producer: Mutex<Option<Producer>>,
    consumer: Mutex<Option<Consumer>>,
}

struct Queues {
    open: BTreeMap<usize, Arc<Sides>>,
    last: usize,
}

static QUEUES: Mutex<Queues> = Mutex::new(Queues { open: BTreeMap::new(), last: 0 });

fn queues() -> MutexGuard<'static, Queues> {
    QUEUES.lock().unwrap_or_else(PoisonError::into_inner)
}

fn sides(queue: *mut pmo_queue) -> Result<Arc<Sides>> {
    let found = queues().open.get(&queue.addr()).cloned();
    found.ok_or_else(|| Failure::argument("the queue is NULL, or not open"))
}

fn timeout(nanoseconds: i64) -> Option<Duration> {
    u64::try_from(nanoseconds).ok().map(Duration::from_nanos)
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn pmo_attach_shared(
    handle: *mut pmo_pool,
    name: *const c_char,
    key: *const c_void,
    key_len: usize,
) -> *mut c_void {
    guarded(null_mut(), || {
        // SAFETY: the caller's promise.
        let (name, key) = unsafe { (text(name, "name")?, bytes(key, key_len, "key")?) };
        Ok(shared::attach(&pool(handle)?, name, key)?.as_ptr().cast())
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn pmo_wait_word(word: *const u32, expected: u32, nanoseconds: i64) -> c_int {
    guarded(-1, || Ok(c_int::from(shared::wait_any(&[(word, expected)], timeout(nanoseconds))?.is_some())))
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn pmo_wait_any(words: *const WordOf, count: usize, nanoseconds: i64) -> i64 {
    guarded(-1, || {
        // SAFETY: the caller's promise.
        let words = unsafe { array(words, count, "words") }?;
        let words: Vec<_> = words.iter().map(|word| (word.word, word.expected)).collect();
        let changed = shared::wait_any(&words, timeout(nanoseconds))?;
        Ok(changed.map_or(TIMED_OUT, |changed| changed as i64))
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn pmo_wake(word: *const u32, most: u32) -> i64 {
    guarded(-1, || Ok(shared::wake(word, most)? as i64))
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn pmo_queue_open(at: *mut c_void, options: *const QueueOf) -> *mut pmo_queue {
    guarded(null_mut(), || {
        // SAFETY: the caller's promise.
        let options = unsafe { borrow(options, "struct of options") }?;
        let kind = match (options.one_producer, options.reserved) {
            (0, 0) => QueueKind::ManyProducers,
            (1, 0) => QueueKind::OneProducer,
            _ => return Err(Failure::argument("one_producer is 0 or 1, and reserved is 0")),
        };
        let number = |number: u64| usize::try_from(number).unwrap_or(usize::MAX);
        let (slots, most) = (number(options.slots), number(options.most));
        let how = indelible::QueueOptions { kind, slots, most };
        let queue = shared::queue(at.cast::<u8>(), &how)?;
        let sides = Sides { queue, producer: Mutex::default(), consumer: Mutex::default() };
        let mut queues = queues();
        queues.last += 1;
        let handle = queues.last;
        queues.open.insert(handle, Arc::new(sides));
        Ok(without_provenance_mut(handle))
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn pmo_queue_close(queue: *mut pmo_queue) -> c_int {
    status(|| {
        let closed = queues().open.remove(&queue.addr());
        closed.map(drop).ok_or_else(|| Failure::argument("the queue is NULL, or not open"))
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn pmo_send(
    queue: *mut pmo_queue,
    message: *const c_void,
    len: usize,
    nanoseconds: i64,
) -> c_int {
    guarded(-1, || {
        // SAFETY: the caller's promise.
        let message = unsafe { bytes(message, len, "message") }?;
        let sides = sides(queue)?;
        let mut producer = sides.producer.lock().unwrap_or_else(PoisonError::into_inner);
        let producer = match &mut *producer {
            Some(producer) => producer,
            none => none.insert(sides.queue.producer()?),
        };
        Ok(c_int::from(producer.send(message, timeout(nanoseconds))?.is_some()))
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn pmo_receive(
    queue: *mut pmo_queue,
    into: *mut c_void,
    len: usize,
    nanoseconds: i64,
) -> i64 {
    guarded(-1, || {
        let sides = sides(queue)?;
        if len < sides.queue.options().most {
            return Err(Failure::argument("there is no room for the longest message of the queue"));
        }
        // SAFETY: the caller's promise.
        let into = unsafe { room_for_bytes(into, len, "message") }?;
        let mut consumer = sides.consumer.lock().unwrap_or_else(PoisonError::into_inner);
        let consumer = match &mut *consumer {
            Some(consumer) => consumer,
            none => none.insert(sides.queue.consumer()?),
        };
        let mut message = Vec::new();
        if !consumer.receive(&mut message, timeout(nanoseconds))? {
            return Ok(TIMED_OUT);
        }
        into[..message.len()].copy_from_slice(&message);
        Ok(message.len() as i64)
    })
}
