//! The shared state: heap, database, and progress of durability.

use crate::data::{Database, ROOT};
use indelible::collections::{HeapRef, PMutex};
use indelible::{Heap, Result};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::SeqCst};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

/// Keys removed at a time, as requests wait for them.
const PURGE: usize = 512;

pub(crate) struct Service<'h> {
    heap: &'h Heap,
    place: HeapRef<'h>,
    database: &'h PMutex<'h, Database<'h>>,
    /// Accesses that may have changed the database, counted under its lock.
    changed: AtomicU64,
    durable: AtomicU64,
    pub(crate) figures: Figures,
    pub(crate) most_clients: usize,
}

/// The locked database.
pub(crate) struct Access<'a, 'h> {
    pub(crate) database: &'a mut Database<'h>,
    pub(crate) heap: HeapRef<'h>,
    /// Milliseconds since 1970.
    pub(crate) now: u64,
    pub(crate) service: &'a Service<'h>,
}

pub(crate) struct Figures {
    pub(crate) started: Instant,
    pub(crate) clients: AtomicUsize,
    pub(crate) connections: AtomicU64,
    pub(crate) requests: AtomicU64,
    pub(crate) expired: AtomicU64,
}

impl<'h> Service<'h> {
    pub(crate) fn new(heap: &'h Heap, most_clients: usize) -> Result<Service<'h>> {
        let figures = Figures {
            started: Instant::now(),
            clients: AtomicUsize::new(0),
            connections: AtomicU64::new(0),
            requests: AtomicU64::new(0),
            expired: AtomicU64::new(0),
        };
        Ok(Service {
            heap,
            place: heap.heap_ref()?,
            database: heap.root_ref(ROOT)?,
            changed: AtomicU64::new(0),
            durable: AtomicU64::new(0),
            figures,
            most_clients,
        })
    }

    /// Runs `work` with the database locked: a durable write has all its changes or none. A turn
    /// of an event loop locks once.
    pub(crate) fn with<R>(&self, work: impl FnOnce(&mut Access<'_, 'h>) -> R) -> R {
        let mut database = self.database.lock();
        work(&mut Access { database: &mut database, heap: self.place, now: now(), service: self })
    }

    /// Makes everything durable that any thread has seen. All replies leave after this, also those
    /// of reads.
    ///
    /// # Errors
    /// The durable write failed: the replies must not leave.
    pub(crate) fn settle(&self) -> Result<()> {
        let seen = self.changed.load(SeqCst);
        if seen > self.durable.load(SeqCst) {
            self.heap.commit().wait()?;
            self.durable.fetch_max(seen, SeqCst);
        }
        Ok(())
    }

    /// Bytes of the heap, free ones included: counting the others takes a walk.
    pub(crate) fn size(&self) -> usize {
        self.heap.size()
    }
}

impl Access<'_, '_> {
    /// Counts a change before the unlock: a thread that sees the change sees the count.
    pub(crate) fn changes(&self) {
        self.service.changed.fetch_add(1, SeqCst);
    }

    /// Removes some expired keys; returns the milliseconds until more expire. It needs no durable
    /// write.
    pub(crate) fn purge(&mut self) -> Option<u64> {
        let (database, now) = (&mut *self.database, self.now);
        let mut next = database.next_end();
        if next.is_some_and(|next| next <= now) {
            let removed = database.values.purge(now, PURGE) + database.cache.purge(now, PURGE);
            self.service.figures.expired.fetch_add(removed as u64, SeqCst);
            next = database.next_end();
        }
        next.map(|next| next.saturating_sub(now))
    }
}

fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}
