//! One client: bytes that came, requests carried out, replies that are to go once their changes are durable.

use crate::commands::perform;
use crate::data::Database;
use crate::reply::Reply;
use crate::request::{Request, parse};
use indelible::Heap;
use indelible::collections::PMutex;
use std::io::{self, ErrorKind, Read, Write};
use std::net::TcpStream;

/// Bytes read at a time.
const PIECE: usize = 64 << 10;

pub(crate) struct Connection {
    stream: TcpStream,
    input: Vec<u8>,
    reply: Reply,
    /// Bytes of the reply that have gone.
    sent: usize,
    /// Requests carried out since something was last sent.
    answered: usize,
    /// No further request is carried out: the client wants to go, or broke the protocol.
    ends: bool,
}

impl Connection {
    /// # Errors
    /// The connection is broken already.
    pub(crate) fn new(stream: TcpStream) -> io::Result<Connection> {
        stream.set_nodelay(true)?;
        stream.set_nonblocking(true)?;
        let (input, reply) = (Vec::new(), Reply::default());
        Ok(Connection { stream, input, reply, sent: 0, answered: 0, ends: false })
    }

    pub(crate) fn stream(&self) -> &TcpStream {
        &self.stream
    }

    /// Whether a reply waits to go. Until then nothing more is read.
    pub(crate) fn is_sending(&self) -> bool {
        self.sent < self.reply.len()
    }

    /// Takes what has arrived, and carries out all whole requests. Whether anything may have changed.
    ///
    /// # Errors
    /// The client is gone, or broke off.
    pub(crate) fn receive<'h>(
        &mut self,
        heap: &'h Heap,
        database: &PMutex<'h, Database<'h>>,
        piece: &mut Vec<u8>,
    ) -> io::Result<bool> {
        piece.resize(PIECE, 0);
        match self.stream.read(piece) {
            Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
            Ok(count) => self.input.extend_from_slice(&piece[..count]),
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {}
            Err(error) => return Err(error),
        }
        let (mut at, mut changed) = (0, false);
        while !self.ends {
            match parse(&self.input[at..]) {
                Ok(Request::Incomplete) => break,
                Ok(Request::Whole { words, len }) => {
                    at += len;
                    if !words.is_empty() {
                        let done = perform(heap, database, &words, &mut self.reply);
                        changed |= done.changed;
                        self.ends = done.ends;
                        self.answered += 1;
                    }
                }
                Err(why) => {
                    self.reply.error(&format!("ERR Protocol error: {why}"));
                    self.ends = true;
                }
            }
        }
        self.input.drain(..at);
        Ok(changed)
    }

    /// Answers the requests that were just carried out with the error that kept their changes from being durable.
    pub(crate) fn refuse(&mut self, error: &indelible::Error) {
        if self.answered > 0 {
            self.reply.clear();
        }
        (0..self.answered).for_each(|_| self.reply.error(&format!("ERR not durable: {error}")));
    }

    /// Sends as much of the reply as the client takes.
    ///
    /// # Errors
    /// The client is gone, or was to go, with the whole reply.
    pub(crate) fn send(&mut self) -> io::Result<()> {
        self.answered = 0;
        while self.is_sending() {
            match self.stream.write(&self.reply.bytes()[self.sent..]) {
                Ok(count) => self.sent += count,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        self.reply.clear();
        self.sent = 0;
        if self.ends { Err(ErrorKind::ConnectionAborted.into()) } else { Ok(()) }
    }
}
