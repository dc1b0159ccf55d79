//! Threads, one for each client.

use crate::connection::converse;
use crate::data::{Database, ROOT};
use anyhow::Result;
use indelible::Heap;
use indelible::collections::PMutex;
use std::net::TcpListener;
use std::thread::Builder;

/// Accepts clients, for ever.
pub(crate) fn serve(heap: &Heap, listener: &TcpListener) -> Result<()> {
    let database = heap.root_ref::<PMutex<Database>>(ROOT)?;
    std::thread::scope(|scope| {
        loop {
            let stream = match listener.accept() {
                Ok((stream, _)) => stream,
                Err(error) => {
                    // A client that went away, or too many of them: the others go on.
                    eprintln!("cannot accept a client: {error}");
                    std::thread::yield_now();
                    continue;
                }
            };
            // A client that breaks off is gone; another comes when it likes.
            let client = move || drop(converse(heap, database, stream));
            if let Err(error) = Builder::new().spawn_scoped(scope, client) {
                eprintln!("cannot start a thread for a client: {error}");
            }
        }
    })
}
