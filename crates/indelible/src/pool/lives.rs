//! Lives that objects are tied to: this process's, and its threads'.

use super::{Inner, Pool};
use crate::error::{Cause, Result};
use indelible_store::store::{Life, Store};
use indelible_store::table::Key;
use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::thread::{self, ThreadId};

#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Holder {
    Process,
    Thread(ThreadId),
}

/// A life begins with the first tie to it; the process's ends with the pool's last handle.
#[derive(Default)]
pub(super) struct Lives(Mutex<HashMap<Holder, Life>>);

impl Lives {
    fn all(&self) -> MutexGuard<'_, HashMap<Holder, Life>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn keep(&self, store: &Arc<Store>, holder: Holder, name: &str, key: Key<'_>) -> Result<(), Cause> {
        let mut lives = self.all();
        if let Some(life) = lives.get(&holder) {
            return Ok(life.keep(name, key)?);
        }
        let process = std::process::id();
        let life = store.begin_life(&match holder {
            Holder::Process => format!("process {process}"),
            Holder::Thread(_) => format!("thread {} of process {process}", rustix::thread::gettid()),
        })?;
        life.keep(name, key)?;
        lives.insert(holder, life);
        Ok(())
    }

    fn end(&self, holder: Holder) {
        let life = self.all().remove(&holder);
        drop(life);
    }
}

struct Ends {
    thread: ThreadId,
    pools: RefCell<Vec<Weak<Inner>>>,
}

thread_local! {
    static ENDS: Ends = Ends { thread: thread::current().id(), pools: RefCell::default() };
}

impl Ends {
    fn add(&self, pool: &Arc<Inner>) {
        let (mut pools, new) = (self.pools.borrow_mut(), Arc::downgrade(pool));
        pools.retain(|pool| pool.strong_count() > 0);
        if !pools.iter().any(|pool| pool.ptr_eq(&new)) {
            pools.push(new);
        }
    }
}

impl Drop for Ends {
    fn drop(&mut self) {
        for pool in self.pools.borrow().iter().filter_map(Weak::upgrade) {
            pool.lives.end(Holder::Thread(self.thread));
        }
    }
}

impl Pool {
    /// [Ties](Pool::tie) an object to this process until the process ends, or drops its last handle
    /// of the pool.
    ///
    /// ```
    /// use indelible::Pool;
    ///
    /// # fn main() -> indelible::Result<()> {
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let path = dir.path().join("example.pmo");
    /// let pool = Pool::format(&path, 16 << 20)?;
    /// pool.create("part", 4096)?;
    /// pool.tie_to_process("part", b"")?;
    /// assert_eq!(pool.ties("part")?[0].name, format!("process {}", std::process::id()));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// `NotFound`. `WrongKey`: `key` is not the write key of the object. `TooManyTies`. `NoRoom`.
    pub fn tie_to_process(&self, name: &str, key: &[u8]) -> Result<()> {
        let inner = &self.inner;
        let tied =
            inner.alive().and_then(|()| inner.lives.keep(&inner.store, Holder::Process, name, Key(key)));
        self.about("tie", name, tied)
    }

    /// As [`tie_to_process`](Pool::tie_to_process), to the calling thread.
    ///
    /// # Errors
    /// As for [`tie_to_process`](Pool::tie_to_process). `Unsupported`: the thread is ending.
    pub fn tie_to_thread(&self, name: &str, key: &[u8]) -> Result<()> {
        let inner = &self.inner;
        let holder = Holder::Thread(thread::current().id());
        let tied = inner.alive().and_then(|()| {
            ENDS.try_with(|ends| ends.add(inner))
                .map_err(|_| Cause::Unsupported("the thread is about to end".into()))?;
            inner.lives.keep(&inner.store, holder, name, Key(key))
        });
        self.about("tie", name, tied)
    }
}
