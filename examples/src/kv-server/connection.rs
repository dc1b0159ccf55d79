//! A conversation with one client: what has arrived is carried out, then made durable at once, then answered.

use crate::call::perform;
use crate::data::Database;
use crate::reply::Reply;
use crate::request::{Request, parse};
use indelible::collections::PMutex;
use indelible::{ErrorKind, Heap};
use std::io::{self, Read, Write};
use std::net::TcpStream;

/// Bytes read at a time.
const PIECE: usize = 64 << 10;

/// Answers requests until the client goes, or breaks the protocol.
///
/// # Errors
/// The connection broke.
pub(crate) fn converse<'h>(
    heap: &'h Heap,
    database: &PMutex<'h, Database<'h>>,
    mut stream: TcpStream,
) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let (mut input, mut piece, mut reply) = (Vec::new(), vec![0; PIECE], Reply::default());
    loop {
        let count = stream.read(&mut piece)?;
        if count == 0 {
            return Ok(());
        }
        input.extend_from_slice(&piece[..count]);
        reply.clear();
        let (mut at, mut answered, mut changed, mut ends) = (0, 0_usize, false, false);
        while !ends {
            match parse(&input[at..]) {
                Ok(Request::Incomplete) => break,
                Ok(Request::Whole { words, len }) => {
                    at += len;
                    if !words.is_empty() {
                        let done = perform(heap, database, &words, &mut reply);
                        (changed, ends) = (changed | done.changed, done.ends);
                        answered += 1;
                    }
                }
                Err(why) => {
                    reply.error(&format!("ERR Protocol error: {why}"));
                    ends = true;
                }
            }
        }
        input.drain(..at);
        if changed && let Err(error) = heap.commit().wait() {
            refuse(&error, answered, &mut reply);
            stream.write_all(reply.bytes())?;
            match error.kind() {
                ErrorKind::NoSpace | ErrorKind::NoRoom | ErrorKind::Busy => {}
                _ => {
                    // Only the next attach tells what is durable, so that nothing that is in memory counts any more.
                    eprintln!("{error}");
                    std::process::exit(1);
                }
            }
        } else {
            stream.write_all(reply.bytes())?;
        }
        if ends {
            return Ok(());
        }
    }
}

/// Answers all requests with the error that kept their changes from being durable.
fn refuse(error: &indelible::Error, answered: usize, reply: &mut Reply) {
    reply.clear();
    (0..answered).for_each(|_| reply.error(&format!("ERR not durable: {error}")));
}
