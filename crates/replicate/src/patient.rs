//! Calls to the store, repeated while its answers are unclear.

use crate::bucket::{Bucket, Trouble};
use crate::clock::Clock;
use crate::error::{ReplicateError, Result};
use std::time::Duration;

const FIRST: Duration = Duration::from_millis(100);
const LONGEST: Duration = Duration::from_secs(10);
/// Tries of a call, which take 3 s in all.
const TRIES: usize = 6;

/// A store with a clock.
#[derive(Clone, Copy)]
pub(crate) struct Patient<'a> {
    pub(crate) bucket: &'a dyn Bucket,
    pub(crate) clock: &'a dyn Clock,
}

/// Waits between tries: twice as long each time.
pub(crate) struct Waits(Duration);

impl Default for Waits {
    fn default() -> Self {
        Waits(FIRST)
    }
}

impl Waits {
    /// `false`: the process is to stop.
    pub(crate) fn wait(&mut self, clock: &dyn Clock) -> bool {
        let now = self.0;
        self.0 = (now * 2).min(LONGEST);
        clock.wait(now)
    }
}

impl<'a> Patient<'a> {
    fn repeat<T>(
        &self,
        what: &'static str,
        name: &str,
        call: impl Fn() -> Result<T, Trouble>,
    ) -> Result<Result<T, Trouble>> {
        let (mut waits, name) = (Waits::default(), name.to_owned());
        for left in (0..TRIES).rev() {
            match call() {
                Err(Trouble::Refused(why)) => return Err(ReplicateError::Refused { what, name, why }),
                Err(Trouble::Unclear(why)) if left == 0 || !waits.wait(self.clock) => {
                    return Err(ReplicateError::Unreachable { what, name, why });
                }
                Err(Trouble::Unclear(_)) => {}
                done => return Ok(done),
            }
        }
        unreachable!("the last try returns")
    }

    /// `None`: not there.
    pub(crate) fn find(&self, name: &str) -> Result<Option<Vec<u8>>> {
        match self.repeat("get", name, || self.bucket.get(name))? {
            Ok(bytes) => Ok(Some(bytes)),
            Err(_) => Ok(None),
        }
    }

    pub(crate) fn get(&self, name: &str, needs: &str) -> Result<Vec<u8>> {
        let missing = || ReplicateError::Missing { name: name.to_owned(), needs: needs.to_owned() };
        self.find(name)?.ok_or_else(missing)
    }

    /// `Some`: other bytes are there already. Bytes that an unclear earlier try put count as put.
    pub(crate) fn put_new(&self, name: &str, bytes: &[u8]) -> Result<Option<Vec<u8>>> {
        match self.repeat("put", name, || self.bucket.put_new(name, bytes))? {
            Ok(()) => Ok(None),
            Err(_) => {
                let found = self.get(name, "its own put")?;
                Ok((found != bytes).then_some(found))
            }
        }
    }

    pub(crate) fn list(&self, folder: &str) -> Result<Vec<String>> {
        Ok(self.repeat("list", folder, || self.bucket.list(folder))?.unwrap_or_default())
    }
}
