//! One who reads a log, beside whoever appends to it.

use super::format::{HEADER, Header, Record};
use crate::error::{Error, ErrorKind, LogError, Result};
use crate::object::ReadObject;
use crate::pool::Pool;

/// A log in an object, as a psync left it: [`read`](LogReader::read) reads on, [`refresh`](LogReader::refresh) goes to the newest psync.
pub struct LogReader {
    object: ReadObject,
    header: Header,
    locked: bool,
    /// Offset and number of the next record.
    at: usize,
    number: u64,
}

/// A record of a log.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LogRecord {
    /// Its number, from 0 on.
    pub number: u64,
    /// The queue that its message came from, and the message's number there; `None`: it was [appended](super::Log::append) otherwise.
    pub message: Option<(u64, u64)>,
    /// Its bytes.
    pub bytes: Vec<u8>,
}

impl Pool {
    /// Attaches the log `name` for reading, from its first record on, beside a process that appends. In a
    /// pool without a free piece as large as the log, or one that was opened for reading, the log
    /// is locked
    /// instead: no process can append to it as long as the reader is there
    /// ([`LogReader::is_locked`]).
    ///
    /// # Errors
    /// `RootType`: the object holds something else. `Damaged`; those of [`attach_snapshot_anywhere`](Pool::attach_snapshot_anywhere).
    pub fn read_log(&self, name: &str, key: &[u8]) -> Result<LogReader> {
        // It has no pointers, and this process may append to it.
        let beside = self.attach_snapshot_anywhere(name, key);
        let (object, locked) = match beside {
            Err(error)
                if matches!(error.kind(), ErrorKind::NoRoom | ErrorKind::NoSpace | ErrorKind::ReadOnly) =>
            {
                match self.attach_read_with_key(name, key) {
                    // A writer is there: that it cannot be read beside is what the caller has to
                    // know.
                    Err(held) if held.kind() == ErrorKind::Held => return Err(error),
                    locked => (locked?, true),
                }
            }
            beside => (beside?, false),
        };
        let header = header(&object)?;
        Ok(LogReader { object, header, locked, at: HEADER, number: 0 })
    }
}

fn header(object: &ReadObject) -> Result<Header> {
    let header = Header::decode(object.as_slice()).map_err(|error| failed(object, error))?;
    Ok(header.unwrap_or(Header::EMPTY))
}

fn failed(object: &ReadObject, error: LogError) -> Error {
    Error::new("read the log", error).object(object.name())
}

impl LogReader {
    /// The next record; `None`: there is none, as of the psync that it shows.
    ///
    /// # Errors
    /// `Damaged`: what follows is no record.
    pub fn read(&mut self) -> Result<Option<LogRecord>> {
        if self.number >= self.header.records {
            return Ok(None);
        }
        // The header ends inside the object.
        let log = &self.object.as_slice()[..self.header.end];
        let (record, next) =
            Record::decode(log, self.at, self.number).map_err(|error| failed(&self.object, error))?;
        let message = (record.queue != 0).then_some((record.queue, record.message));
        let record = LogRecord { number: record.number, message, bytes: record.bytes.to_vec() };
        (self.at, self.number) = (next, self.number + 1);
        Ok(Some(record))
    }

    /// Goes to the newest psync; returns whether there was one. The next record stays the next one.
    ///
    /// # Errors
    /// Those of [`ReadObject::refresh`]; `Damaged`, `RootType`: there is no log any more that goes on from here.
    pub fn refresh(&mut self) -> Result<bool> {
        if !self.object.refresh()? {
            return Ok(false);
        }
        let newer = header(&self.object)?;
        if newer.end < self.at || newer.records < self.number {
            let error = LogError::Damaged { at: newer.end, why: "it is shorter than it was" };
            return Err(failed(&self.object, error));
        }
        self.header = newer;
        Ok(true)
    }

    /// Whether no process can append to the log as long as this reader is there.
    #[must_use]
    pub fn is_locked(&self) -> bool {
        self.locked
    }

    /// Records, as of the psync that it shows.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.header.records
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl std::fmt::Debug for LogReader {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LogReader").field("object", &self.object.name()).field("next", &self.number).finish()
    }
}
