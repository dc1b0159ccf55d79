//! The memory of a process's on-demand objects of a pool.

use super::area::{Area, Words};
use super::figures::{Figures, HEAD, LOGS};
use super::log::Log;
use super::place::MemoryLocation;
use crate::backing::{Backing, BackingError};
use crate::sys::PAGE;
use std::sync::atomic::Ordering;
use std::sync::{Mutex, MutexGuard, PoisonError};

#[derive(Debug)]
struct Logs {
    backings: Vec<Backing>,
    free: Vec<Log>,
}

#[derive(Debug)]
pub(crate) struct Group {
    place: MemoryLocation,
    number: u64,
    /// `None`: ended.
    head: Mutex<Option<Area>>,
    logs: Mutex<Logs>,
    figures: Figures,
}

impl Group {
    pub(crate) fn new(place: MemoryLocation, number: u64) -> Result<Group, BackingError> {
        let head = Area::create(&place, &place.part(number, 0), (HEAD, HEAD))?;
        let logs = Logs { backings: Vec::new(), free: Vec::new() };
        let figures = Figures::of(head.again()?);
        Ok(Group { place, number, head: Mutex::new(Some(head)), logs: Mutex::new(logs), figures })
    }

    #[inline]
    pub(crate) fn figures(&self) -> &Figures {
        &self.figures
    }

    pub(crate) fn place(&self) -> &MemoryLocation {
        &self.place
    }

    pub(crate) fn number(&self) -> u64 {
        self.number
    }

    pub(crate) fn memory_of(
        &self,
        object: [u8; 16],
        (len, room): (usize, usize),
    ) -> Result<Area, BackingError> {
        Area::create(&self.place, &self.place.object(self.number, object), (len, room))
    }

    fn logs(&self) -> MutexGuard<'_, Logs> {
        self.logs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn log(&self, lines: usize) -> Result<Log, BackingError> {
        let mut logs = self.logs();
        if let Some(free) = logs.free.iter().position(|log| log.capacity() >= lines) {
            return Ok(logs.free.swap_remove(free));
        }
        let nth = logs.backings.len() + 1;
        let identity = self.place.part(self.number, nth as u64);
        let len = Log::bytes(lines).next_multiple_of(PAGE);
        let backing = Backing::create(self.place.folders(), &identity, len)?;
        let (backing, log) = backing.used_by(|backing| {
            let log = Log::new(Words::of(backing)?);
            self.tell_of_log(nth, len, backing).map(|()| log)
        })?;
        logs.backings.push(backing);
        Ok(log)
    }

    fn tell_of_log(&self, nth: usize, len: usize, backing: &Backing) -> Result<(), BackingError> {
        let head = self.head.lock().unwrap_or_else(PoisonError::into_inner);
        let known = head
            .as_ref()
            .and_then(|head| Some((head.words().all()[..LOGS].get(nth)?, &head.words().all()[0])));
        let Some((length, count)) = known else {
            let path = backing.path().to_owned();
            let source = std::io::Error::other("too many threads have one, or its objects are detached");
            return Err(BackingError::Io { what: "keep another log, ", path, source });
        };
        length.store(len as u64, Ordering::Release);
        count.store(nth as u64, Ordering::Release);
        Ok(())
    }

    pub(crate) fn give_back(&self, log: Log) {
        self.logs().free.push(log);
    }

    /// `left`: the pool may lack commits.
    pub(crate) fn end(&self, left: bool) {
        let head = self.head.lock().unwrap_or_else(PoisonError::into_inner).take();
        let backings = std::mem::take(&mut self.logs().backings);
        if !left {
            backings.into_iter().for_each(|log| drop(log.remove()));
            drop(head.map(Area::remove));
        }
    }
}
