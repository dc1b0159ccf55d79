use super::format::{HEADER, Header, Record, room};
use crate::error::{Cause, Error, ErrorKind, LogError, Result};
use crate::object::Object;
use crate::pool::Pool;
use crate::shared::Consumer;
use indelible_store::Mutant;
use std::time::Duration;

const FIRST: u64 = 64 << 10;
const MOST: usize = 64 << 20;

/// A log attached for appending. Records are durable once [`psync`](Log::psync) returns; a power
/// cut or death before leaves some psync's records.
///
/// ```
/// # let dir = tempfile::tempdir().unwrap();
/// # let pool = indelible::Pool::format(dir.path().join("p"), 16 << 20)?;
/// let mut log = pool.open_log("events", b"")?; // created if there is none
/// log.append(b"started")?;
/// log.psync()?;
///
/// let mut reader = pool.read_log("events", b"")?; // beside it, in any process
/// assert_eq!(reader.read()?.expect("a record").bytes, b"started");
/// # Ok::<(), indelible::Error>(())
/// ```
pub struct Log {
    object: Object,
    header: Header,
}

impl Pool {
    /// Attaches the log `name` for appending; creates it if absent.
    ///
    /// # Errors
    /// `RootType`: the object holds something else. `Damaged`; those of [`attach`](Pool::attach)
    /// and [`create`](Pool::create).
    pub fn open_log(&self, name: &str, key: &[u8]) -> Result<Log> {
        let options = crate::pool::CreateOptions::new(FIRST).key(key);
        let object = match self.attach_with_key(name, key) {
            Err(error) if error.kind() == ErrorKind::NotFound => {
                match self.create_attached_with(name, &options) {
                    Err(error) if error.kind() == ErrorKind::Exists => self.attach_with_key(name, key)?,
                    created => created?,
                }
            }
            attached => attached?,
        };
        let header = Header::decode(object.as_slice(), object.len());
        let header =
            header.map_err(|error| Error::new("open the log", error).pool(self.path()).object(name))?;
        Ok(Log { object, header: header.unwrap_or(Header::EMPTY) })
    }
}

impl Log {
    /// Appends a record, durable at the next psync; returns its number, from 0 on.
    ///
    /// # Errors
    /// Those of growing: nothing was appended.
    pub fn append(&mut self, bytes: &[u8]) -> Result<u64> {
        self.append_message(bytes, (0, 0))
    }

    fn append_message(&mut self, bytes: &[u8], (queue, message): (u64, u64)) -> Result<u64> {
        let Header { end, records: number, .. } = self.header;
        let behind = end + room(bytes.len());
        let len = self.object.len();
        if behind > len {
            self.grow(behind)?;
        }
        let record = Record { number, queue, message, bytes };
        let encoded = record.encode(self.object.range_mut(end..behind));
        encoded.map_err(|error| self.error("append to the log", error))?;
        (self.header.end, self.header.records) = (behind, number + 1);
        Ok(number)
    }

    fn grow(&mut self, least: usize) -> Result<()> {
        let len = self.object.len();
        let mut more = len.clamp(FIRST as usize, MOST);
        loop {
            match self.object.grow(least.max(len + more) as u64) {
                Err(error)
                    if matches!(error.kind(), ErrorKind::NoRoom | ErrorKind::NoSpace)
                        && len + more > least =>
                {
                    more /= 2;
                }
                grown => return grown,
            }
        }
    }

    /// Makes all appended records durable.
    ///
    /// # Errors
    /// Those of [`Object::psync`].
    pub fn psync(&mut self) -> Result<()> {
        self.object.range_mut(0..HEADER).copy_from_slice(&self.header.encode());
        self.object.psync()
    }

    /// Records, including those not yet durable.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.header.records
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Waits up to `timeout` (`None`: for ever) for a message of a queue. Appends up to `most`
    /// available messages, makes them durable by one psync, then takes them out of the queue: a
    /// message that a producer finds [taken](crate::Producer::wait_taken) is in the log for good.
    /// After a death, no message is appended twice, unless the log has since collected from another
    /// queue. Returns the number of messages.
    ///
    /// # Errors
    /// Those of [`Consumer::look`], [`append`](Self::append) and [`psync`](Self::psync): the
    /// messages stay in the queue.
    pub fn collect(
        &mut self,
        consumer: &mut Consumer,
        most: usize,
        timeout: Option<Duration>,
    ) -> Result<usize> {
        self.collect_each(consumer, most, timeout, |_| {})
    }

    /// As [`collect`](Self::collect); `each` sees each message as it is appended, before it is
    /// durable.
    pub fn collect_each(
        &mut self,
        consumer: &mut Consumer,
        most: usize,
        timeout: Option<Duration>,
        each: impl FnMut(&[u8]),
    ) -> Result<usize> {
        let collected = self.look_and_append(consumer, most, timeout, each).and_then(|count| {
            if count == 0 {
                return Ok(0);
            }
            if Mutant::AcknowledgedEarly.is_on() {
                consumer.release()?;
            }
            self.psync()?;
            consumer.release()?;
            Ok(count)
        });
        if collected.is_err() {
            consumer.rewind();
        }
        collected
    }

    fn look_and_append(
        &mut self,
        consumer: &mut Consumer,
        most: usize,
        mut timeout: Option<Duration>,
        mut each: impl FnMut(&[u8]),
    ) -> Result<usize> {
        let (mut bytes, mut count) = (Vec::new(), 0);
        let queue = consumer.queue().id();
        while count < most {
            let Some(message) = consumer.look(&mut bytes, timeout)? else { break };
            timeout = Some(Duration::ZERO);
            count += 1;
            if self.header.queue == queue && message < self.header.next {
                continue;
            }
            self.append_message(&bytes, (queue, message))?;
            each(&bytes);
            (self.header.queue, self.header.next) = (queue, message + 1);
        }
        Ok(count)
    }

    /// Detaches. Records that were not psynced are lost.
    ///
    /// # Errors
    /// As for [`Object::detach`].
    pub fn detach(self) -> Result<()> {
        self.object.detach()
    }

    fn error(&self, operation: &'static str, error: LogError) -> Error {
        Error::new(operation, Cause::from(error)).object(self.object.name())
    }
}

impl std::fmt::Debug for Log {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Log").field("object", &self.object.name()).field("records", &self.len()).finish()
    }
}
