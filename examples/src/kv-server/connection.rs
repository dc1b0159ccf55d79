//! A client: input, execution, and replies, which leave once everything that they show is durable.

use crate::protocol::{Protocol, Step};
use crate::reply::Reply;
use crate::service::Access;
use std::io::{self, ErrorKind, Read, Write};
use std::net::TcpStream;
use std::sync::atomic::Ordering::Relaxed;

const PIECE: usize = 64 << 10;
/// Bytes of waiting replies that stop execution: a client that does not read costs this and one
/// reply.
const FULL: usize = 1 << 20;
const REQUEST: usize = 1 << 30;
/// Bytes of buffers that an idle client keeps.
const KEEP: usize = 16 << 10;

pub(crate) struct Connection {
    stream: TcpStream,
    protocol: Box<dyn Protocol>,
    input: Vec<u8>,
    reply: Reply,
    sent: usize,
    answered: usize,
    ends: bool,
    is_blocked: bool,
    /// Input may have whole requests, left as replies waited.
    has_more: bool,
}

impl Connection {
    pub(crate) fn new(stream: TcpStream, protocol: Box<dyn Protocol>) -> Connection {
        let (input, reply) = (Vec::new(), Reply::default());
        let (sent, answered, ends, is_blocked, has_more) = (0, 0, false, false, false);
        Connection { stream, protocol, input, reply, sent, answered, ends, is_blocked, has_more }
    }

    pub(crate) fn stream(&self) -> &TcpStream {
        &self.stream
    }

    /// While a reply waits, nothing is read.
    pub(crate) fn is_sending(&self) -> bool {
        self.sent < self.reply.len()
    }

    pub(crate) fn is_blocked(&self) -> bool {
        self.is_blocked
    }

    pub(crate) fn has_more(&self) -> bool {
        self.has_more && !self.is_blocked
    }

    /// Reads what has arrived.
    pub(crate) fn receive(&mut self, piece: &mut Vec<u8>) -> io::Result<()> {
        if self.is_sending() || self.has_more {
            return Ok(());
        }
        piece.resize(PIECE, 0);
        match self.stream.read(piece) {
            Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
            Ok(count) => self.input.extend_from_slice(&piece[..count]),
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {}
            Err(error) => return Err(error),
        }
        Ok(())
    }

    /// Executes the requests that are whole.
    pub(crate) fn execute(&mut self, access: &mut Access<'_, '_>) {
        if self.is_sending() {
            return;
        }
        let (mut at, before) = (0, self.answered);
        self.has_more = false;
        while !self.ends {
            if self.reply.len() >= FULL {
                self.has_more = true;
                break;
            }
            match self.protocol.step(access, &self.input[at..], &mut self.reply) {
                Step::Incomplete => break,
                Step::Done { len, answered, ends } => {
                    at += len;
                    self.answered += usize::from(answered);
                    self.ends = ends;
                }
            }
        }
        access.service.figures.requests.fetch_add((self.answered - before) as u64, Relaxed);
        self.input.drain(..at);
        if self.input.len() > REQUEST {
            self.protocol.refuse("the request is too long", &mut self.reply);
            self.ends = true;
        }
        if self.input.is_empty() && self.input.capacity() > KEEP {
            self.input = Vec::new();
        }
    }

    pub(crate) fn refuse(&mut self, error: &str) {
        if self.answered > 0 {
            self.reply.clear();
        }
        (0..self.answered)
            .for_each(|_| self.protocol.refuse(&format!("not durable: {error}"), &mut self.reply));
    }

    pub(crate) fn send(&mut self) -> io::Result<()> {
        self.answered = 0;
        while self.is_sending() {
            match self.stream.write(&self.reply.bytes()[self.sent..]) {
                Ok(count) => self.sent += count,
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    self.is_blocked = true;
                    return Ok(());
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        self.is_blocked = false;
        self.reply.clear();
        self.reply.keep(KEEP);
        self.sent = 0;
        if self.ends { Err(ErrorKind::ConnectionAborted.into()) } else { Ok(()) }
    }
}
