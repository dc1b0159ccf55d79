//! A connection with a deadline for all of its reads and writes, so that slow bytes do not extend
//! it.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::time::{Duration, Instant};

/// For a request and its answer.
const PATIENCE: Duration = Duration::from_secs(10);
/// For the client to read the end of the answer, and bytes to discard meanwhile.
const FAREWELL: Duration = Duration::from_secs(1);
const MOST: u64 = 1 << 20;

pub struct Socket {
    stream: TcpStream,
    until: Instant,
}

impl Socket {
    pub fn new(stream: TcpStream) -> Socket {
        Socket { stream, until: Instant::now() + PATIENCE }
    }

    /// Begins a new time-out: the answer may have taken a while.
    pub fn wind(&mut self) {
        self.until = Instant::now() + PATIENCE;
    }

    fn left(&self) -> io::Result<Option<Duration>> {
        let left = self.until.saturating_duration_since(Instant::now());
        if left.is_zero() { Err(ErrorKind::TimedOut.into()) } else { Ok(Some(left)) }
    }

    /// Closes without a reset: a client that still sends would lose the answer.
    pub fn close(mut self) {
        self.until = Instant::now() + FAREWELL;
        if self.stream.shutdown(Shutdown::Write).is_ok() {
            let _ = io::copy(&mut Read::by_ref(&mut self).take(MOST), &mut io::sink());
        }
    }
}

impl Read for Socket {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        self.stream.set_read_timeout(self.left()?)?;
        self.stream.read(bytes)
    }
}

impl Write for Socket {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.stream.set_write_timeout(self.left()?)?;
        self.stream.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.stream.flush()
    }
}
