//! A client's bytes in both directions. No client can block the guard or make it keep unbounded
//! data.

use crate::kernel::Peer;
use crate::process::Process;
use crate::writer::Writer;
use std::collections::VecDeque;
use std::io::{self, ErrorKind, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

const LONGEST: usize = 9000;
const WAITING: usize = 1 << 20;
const TURN: usize = 64 << 10;

#[derive(Debug)]
pub(crate) struct Connection {
    stream: UnixStream,
    received: Vec<u8>,
    to_send: VecDeque<u8>,
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Received {
    /// Perhaps none; more may follow.
    Lines(Vec<String>),
    /// The last lines before the client closed its end.
    Last(Vec<String>),
    /// A violation of the protocol.
    Garbage,
}

impl Connection {
    pub(crate) fn new(stream: UnixStream) -> io::Result<Connection> {
        stream.set_nonblocking(true)?;
        Ok(Connection { stream, received: Vec::new(), to_send: VecDeque::new() })
    }

    pub(crate) fn receive(&mut self) -> Received {
        let (mut ended, mut bytes) = (false, [0; 4096]);
        let mut turn = 0;
        while turn < TURN {
            match self.stream.read(&mut bytes) {
                Ok(0) => ended = true,
                Ok(got) => {
                    turn += got;
                    self.received.extend(&bytes[..got]);
                    continue;
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(error) => ended = error.kind() != ErrorKind::WouldBlock,
            }
            break;
        }
        let mut lines = Vec::new();
        while let Some(end) = self.received.iter().position(|byte| *byte == b'\n') {
            let line: Vec<u8> = self.received.drain(..=end).collect();
            match String::from_utf8(line[..end].to_vec()) {
                Ok(line) if end <= LONGEST => lines.push(line),
                _ => return Received::Garbage,
            }
        }
        match (self.received.len() > LONGEST, ended) {
            (true, _) => Received::Garbage,
            (_, true) => Received::Last(lines),
            (_, false) => Received::Lines(lines),
        }
    }

    /// `false`: the client does not read, or is gone.
    pub(crate) fn send(&mut self, text: &str) -> bool {
        self.to_send.extend(text.as_bytes());
        self.to_send.len() <= WAITING && self.flush()
    }

    pub(crate) fn flush(&mut self) -> bool {
        while !self.to_send.is_empty() {
            match self.stream.write(self.to_send.as_slices().0) {
                Ok(0) => return false,
                Ok(sent) => drop(self.to_send.drain(..sent)),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return error.kind() == ErrorKind::WouldBlock,
            }
        }
        true
    }

    pub(crate) fn is_behind(&self) -> bool {
        !self.to_send.is_empty()
    }
}

impl AsFd for Connection {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.stream.as_fd()
    }
}

const PATIENCE: Duration = Duration::from_secs(5);

#[derive(Debug)]
pub(crate) struct Client {
    pub(crate) connection: Connection,
    pub(crate) peer: Peer,
    /// The connecting process, until it registers; `None`: it is gone.
    pub(crate) process: io::Result<Option<Process>>,
    /// Deadline of its first message; `None`: received.
    pub(crate) until: Option<Instant>,
    pub(crate) writer: Option<Writer>,
}

impl Client {
    pub(crate) fn new(connection: Connection, peer: Peer, process: io::Result<Option<Process>>) -> Client {
        Client { connection, peer, process, until: Some(Instant::now() + PATIENCE), writer: None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Shutdown;

    fn pair() -> (Connection, UnixStream) {
        let (own, other) = UnixStream::pair().unwrap();
        (Connection::new(own).unwrap(), other)
    }

    #[test]
    fn lines_are_whole_and_bounded() {
        let (mut own, mut other) = pair();
        let lines = |lines: &[&str]| lines.iter().map(|line| (*line).to_owned()).collect::<Vec<_>>();
        assert_eq!(own.receive(), Received::Lines(vec![]));
        other.write_all(b"one\ntw").unwrap();
        assert_eq!(own.receive(), Received::Lines(lines(&["one"])));
        other.write_all(b"o\n\nthree").unwrap();
        assert_eq!(own.receive(), Received::Lines(lines(&["two", ""])));
        other.shutdown(Shutdown::Both).unwrap();
        assert_eq!(own.receive(), Received::Last(vec![]), "a part of a line is none");
        for garbage in [&b"\xff\xfe\n"[..], &[b'x'; 2 * LONGEST]] {
            let (mut own, mut other) = pair();
            other.write_all(garbage).unwrap();
            assert_eq!(own.receive(), Received::Garbage);
        }
    }

    #[test]
    fn a_client_that_does_not_read_is_not_waited_for() {
        let (mut own, other) = pair();
        let text = "x".repeat(64 << 10);
        let sent = (0..100).take_while(|_| own.send(&text)).count();
        assert!((1..100).contains(&sent) && own.is_behind(), "{sent}");
        other.shutdown(Shutdown::Both).unwrap();
        assert!(!own.flush());
    }
}
