//! Threads, each with some of the clients: it carries out what has arrived from all of them, waits for one ticket, and answers. The
//! threads share durable writes.

use crate::connection::Connection;
use crate::data::{Database, ROOT};
use anyhow::Result;
use indelible::collections::PMutex;
use indelible::{ErrorKind, Heap};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use std::net::TcpListener;

/// Serves clients, for ever.
///
/// # Errors
/// The root cannot be used, or sockets cannot be waited for.
pub(crate) fn serve(heap: &Heap, listener: &TcpListener, threads: usize) -> Result<()> {
    let database = heap.root_ref::<PMutex<Database>>(ROOT)?;
    // Of the threads that learn of a client one gets it.
    listener.set_nonblocking(true)?;
    std::thread::scope(|scope| {
        let threads: Vec<_> =
            (0..threads.max(1)).map(|_| scope.spawn(|| attend(heap, database, listener))).collect();
        threads.into_iter().try_for_each(|thread| {
            let ended = thread.join();
            ended.unwrap_or_else(|_| Err(anyhow::anyhow!("a thread that serves clients panicked")))
        })
    })
}

fn attend<'h>(heap: &'h Heap, database: &PMutex<'h, Database<'h>>, listener: &TcpListener) -> Result<()> {
    let (mut clients, mut piece) = (Vec::<Connection>::new(), Vec::new());
    loop {
        let ready = wait(listener, &clients)?;
        let (mut changed, mut at) = (false, 0);
        clients.retain_mut(|client| {
            at += 1;
            if !ready[at] || client.is_sending() {
                return true;
            }
            match client.receive(heap, database, &mut piece) {
                Ok(changes) => {
                    changed |= changes;
                    true
                }
                // Its last changes are durable with the others' requests, or with the next.
                Err(_) => false,
            }
        });
        if changed && let Err(error) = heap.commit().wait() {
            clients.iter_mut().for_each(|client| client.refuse(&error));
            clients.retain_mut(|client| client.send().is_ok());
            match error.kind() {
                ErrorKind::NoSpace | ErrorKind::NoRoom | ErrorKind::Busy => {}
                // Only the next attach tells what is durable, so that nothing that is in memory counts any more.
                _ => {
                    eprintln!("{error}");
                    std::process::exit(1);
                }
            }
        }
        clients.retain_mut(|client| client.send().is_ok());
        if ready[0] {
            // Another thread may have been quicker, or the client is gone again.
            match listener.accept().and_then(|(stream, _)| Connection::new(stream)) {
                Ok(client) => clients.push(client),
                Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {}
                Err(error) => eprintln!("cannot accept a client: {error}"),
            }
        }
    }
}

/// Waits until somebody has something for us, or takes something; whether the listener has, and each of the clients.
fn wait(listener: &TcpListener, clients: &[Connection]) -> Result<Vec<bool>> {
    let mut sockets = vec![PollFd::new(listener, PollFlags::IN)];
    sockets.extend(clients.iter().map(|client| {
        let wanted = if client.is_sending() { PollFlags::OUT } else { PollFlags::IN };
        PollFd::new(client.stream(), wanted)
    }));
    loop {
        match poll(&mut sockets, None) {
            Ok(_) => return Ok(sockets.iter().map(|socket| !socket.revents().is_empty()).collect()),
            Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}
