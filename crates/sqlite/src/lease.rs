//! The lease of a database's writer: a word that another process changes to ask for the object.
//!
//! The object's kernel lock alone excludes writers; the word tells its holder that a process waits.

use crate::failure::Result;
use indelible::{Class, CreateOptions, ErrorKind, Pool, SharedObject, wait_any};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// Offset of the word that counts closed databases.
const LEFT: usize = 64;
/// Longest wait for a process that makes the memory, or gives it back.
const PATIENCE: Duration = Duration::from_millis(100);

fn name(object: &str) -> String {
    format!("{object}.lease")
}

#[derive(Clone)]
pub(crate) struct Lease(SharedObject);

impl Lease {
    /// Attaches the word of a database's object; a missing one, or an earlier boot's, is made anew.
    pub(crate) fn of(pool: &Pool, object: &str) -> Result<Lease> {
        let begin = Instant::now();
        loop {
            match Lease::attach(pool, &name(object)) {
                // Another process makes its memory, or gives it back.
                Err(failure) if failure.is_busy() && begin.elapsed() < PATIENCE => {
                    std::thread::sleep(Duration::from_micros(500));
                }
                done => return done,
            }
        }
    }

    /// Gives its memory back, unless a process has it.
    pub(crate) fn forget(pool: &Pool, object: &str) {
        let _ = pool.forget_shared(&name(object), b"");
    }

    fn attach(pool: &Pool, name: &str) -> Result<Lease> {
        let missing = [ErrorKind::NotFound, ErrorKind::VolatileGone];
        match pool.attach_shared(name) {
            Err(error) if missing.contains(&error.kind()) => {}
            attached => return Ok(Lease(attached?)),
        }
        match pool.create_with(name, &CreateOptions::new(4096).class(Class::Shared)) {
            Err(error) if error.kind() != ErrorKind::Exists => return Err(error.into()),
            _ => {}
        }
        Ok(Lease(pool.attach_shared(name)?))
    }

    pub(crate) fn ask(&self) -> Result<()> {
        let word = self.0.word(0)?;
        word.fetch_add(1, Ordering::AcqRel);
        word.wake(u32::MAX)?;
        Ok(())
    }

    pub(crate) fn leave(&self) -> Result<()> {
        let word = self.0.word(LEFT)?;
        word.fetch_add(1, Ordering::AcqRel);
        word.wake(u32::MAX)?;
        Ok(())
    }

    pub(crate) fn left(&self) -> Result<u32> {
        Ok(self.0.word(LEFT)?.load(Ordering::Acquire))
    }

    pub(crate) fn asked(&self) -> Result<u32> {
        Ok(self.0.word(0)?.load(Ordering::Acquire))
    }

    /// Waits until it was asked for, or a database was closed, more often than `seen` and `left`;
    /// or the time is over.
    pub(crate) fn wait(&self, seen: u32, left: u32, timeout: Duration) -> Result<()> {
        wait_any(&[(self.0.word(0)?, seen), (self.0.word(LEFT)?, left)], Some(timeout))?;
        Ok(())
    }
}
