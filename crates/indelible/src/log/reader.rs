use super::beside::Beside;
use super::format::{HEAD, HEADER, Header, Record};
use crate::error::{Cause, Error, ErrorKind, LogError, Result};
use crate::object::ReadObject;
use crate::pool::Pool;

/// A log as of a psync: [`read`](LogReader::read) reads on, [`refresh`](LogReader::refresh) goes to
/// the newest psync.
pub struct LogReader {
    pool: Pool,
    name: String,
    source: Source,
    header: Header,
    at: usize,
    number: u64,
}

enum Source {
    Beside(Box<Beside>),
    Snapshot(ReadObject),
    Locked(ReadObject),
}

/// A record of a log.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LogRecord {
    /// Its number, from 0 on.
    pub number: u64,
    /// Its message's queue and number there; `None`: [appended](super::Log::append) otherwise.
    pub message: Option<(u64, u64)>,
    /// Its bytes.
    pub bytes: Vec<u8>,
}

impl Pool {
    /// Attaches the log `name` for reading from its first record, beside a writer. In a read-only
    /// pool the log is [locked](LogReader::is_locked) against appends.
    ///
    /// # Errors
    /// `RootType`: the object holds something else. `NotFound`, `WrongKey`, `Damaged`.
    pub fn read_log(&self, name: &str, key: &[u8]) -> Result<LogReader> {
        let beside = self.about("attach", name, Beside::attach(self.inner(), name, key))?;
        let source = match beside {
            Some(beside) => Source::Beside(Box::new(beside)),
            None => self.log_elsewhere(name, key)?,
        };
        let header = source.newest(name)?;
        Ok(LogReader { pool: self.clone(), name: name.to_owned(), source, header, at: HEADER, number: 0 })
    }

    fn log_elsewhere(&self, name: &str, key: &[u8]) -> Result<Source> {
        // It has no pointers, and this process may append to it.
        match self.attach_snapshot_anywhere(name, key) {
            Err(error) if error.kind() == ErrorKind::ReadOnly => {
                self.attach_read_with_key(name, key).map(Source::Locked)
            }
            snapshot => snapshot.map(Source::Snapshot),
        }
    }
}

impl Source {
    fn newest(&self, name: &str) -> Result<Header> {
        let object = match self {
            Source::Beside(beside) => return Ok(beside.newest()),
            Source::Snapshot(object) | Source::Locked(object) => object,
        };
        let header = Header::decode(object.as_slice(), object.len());
        header.map(|header| header.unwrap_or(Header::EMPTY)).map_err(|error| failed(name, error))
    }
}

fn failed(name: &str, error: LogError) -> Error {
    Error::new("read the log", error).object(name)
}

impl LogReader {
    /// The next record; `None`: none as of the shown psync.
    ///
    /// # Errors
    /// `Damaged`: what follows is no record. Those of [`refresh`](LogReader::refresh), if the log
    /// has moved.
    pub fn read(&mut self) -> Result<Option<LogRecord>> {
        if self.number >= self.header.records {
            return Ok(None);
        }
        let (at, number, end) = (self.at, self.number, self.header.end);
        let decode = |bytes| Record::decode(bytes, at, number);
        let decoded = match &mut self.source {
            Source::Snapshot(object) | Source::Locked(object) => decode(&object.as_slice()[at..end]),
            Source::Beside(beside) => {
                let found = record(beside, at, end);
                match found.map_err(|cause| self.pool.error("read", cause).object(&self.name))? {
                    Some(bytes) => decode(bytes),
                    None => {
                        self.read_elsewhere()?;
                        return self.read();
                    }
                }
            }
        };
        let (record, len) = decoded.map_err(|error| failed(&self.name, error))?;
        let message = (record.queue != 0).then_some((record.queue, record.message));
        let record = LogRecord { number: record.number, message, bytes: record.bytes.to_vec() };
        (self.at, self.number) = (at + len, number + 1);
        Ok(Some(record))
    }

    /// Goes to the newest psync; returns whether it was newer. The position stays.
    ///
    /// # Errors
    /// `NotFound`, and those of [`ReadObject::refresh`] of a locked log; `Damaged`, `RootType`: no
    /// log continues from here.
    pub fn refresh(&mut self) -> Result<bool> {
        let newer = match &mut self.source {
            Source::Snapshot(object) | Source::Locked(object) => object.refresh()?,
            Source::Beside(beside) => {
                let newer = beside.refresh(self.at);
                match newer.map_err(|cause| self.pool.error("refresh", cause).object(&self.name))? {
                    Some(newer) => newer,
                    None => self.read_elsewhere().map(|()| true)?,
                }
            }
        };
        let newest = self.source.newest(&self.name)?;
        if newest.end < self.at || newest.records < self.number {
            let error = LogError::Damaged { at: newest.end, why: "it is shorter than it was" };
            return Err(failed(&self.name, error));
        }
        let changed = newer || newest != self.header;
        self.header = newest;
        Ok(changed)
    }

    fn read_elsewhere(&mut self) -> Result<()> {
        if let Source::Beside(beside) = &self.source {
            self.source = self.pool.log_elsewhere(&self.name, beside.key())?;
        }
        Ok(())
    }

    /// Whether this reader locks the log against appends.
    #[must_use]
    pub fn is_locked(&self) -> bool {
        matches!(self.source, Source::Locked(_))
    }

    /// Records, as of the shown psync.
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

fn record(beside: &mut Beside, at: usize, end: usize) -> Result<Option<&[u8]>, Cause> {
    let Some(first) = beside.bytes(at, HEAD.min(end - at), end)? else { return Ok(None) };
    let len = first.first_chunk().and_then(Record::len).unwrap_or(0);
    beside.bytes(at, len.clamp(HEAD, end - at).min(end - at), end)
}

impl std::fmt::Debug for LogReader {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LogReader").field("object", &self.name).field("next", &self.number).finish()
    }
}
