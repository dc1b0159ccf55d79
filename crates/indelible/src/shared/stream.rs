//! Byte streams through queues: messages are parts, and an empty message is the end.

use super::consumer::Consumer;
use super::producer::Producer;
use std::io::{self, Read, Write};
use std::time::Duration;

/// Writes a stream into a one-producer queue, or one without other users. Dropping it leaves the
/// stream open for the next writer; [`end`](Self::end) ends it.
#[derive(Debug)]
pub struct StreamWriter {
    producer: Producer,
    timeout: Option<Duration>,
}

impl StreamWriter {
    /// Each write waits for room up to `timeout` (`None`: for ever).
    #[must_use]
    pub fn new(producer: Producer, timeout: Option<Duration>) -> StreamWriter {
        StreamWriter { producer, timeout }
    }

    /// Ends the stream for its reader.
    ///
    /// # Errors
    /// As for `write`.
    pub fn end(mut self) -> io::Result<()> {
        self.put(&[])
    }

    fn put(&mut self, part: &[u8]) -> io::Result<()> {
        match self.producer.send(part, self.timeout).map_err(io::Error::other)? {
            Some(_) => Ok(()),
            None => Err(io::Error::new(io::ErrorKind::TimedOut, "the queue of the stream is full")),
        }
    }
}

impl Write for StreamWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if bytes.is_empty() {
            return Ok(0);
        }
        let part = bytes.len().min(self.producer.queue().options().most);
        self.put(&bytes[..part])?;
        Ok(part)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Reads a stream out of a queue.
#[derive(Debug)]
pub struct StreamReader {
    consumer: Consumer,
    timeout: Option<Duration>,
    part: Vec<u8>,
    read: usize,
    ended: bool,
}

impl StreamReader {
    /// Each read waits for bytes up to `timeout` (`None`: for ever).
    #[must_use]
    pub fn new(consumer: Consumer, timeout: Option<Duration>) -> StreamReader {
        StreamReader { consumer, timeout, part: Vec::new(), read: 0, ended: false }
    }
}

impl Read for StreamReader {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        if bytes.is_empty() || self.ended {
            return Ok(0);
        }
        if self.read == self.part.len() {
            self.read = 0;
            self.part.clear();
            if !self.consumer.receive(&mut self.part, self.timeout).map_err(io::Error::other)? {
                return Err(io::Error::new(io::ErrorKind::TimedOut, "nothing was written to the stream"));
            }
            self.ended = self.part.is_empty();
        }
        let len = bytes.len().min(self.part.len() - self.read);
        bytes[..len].copy_from_slice(&self.part[self.read..self.read + len]);
        self.read += len;
        Ok(len)
    }
}
