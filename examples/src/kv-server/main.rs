//! A server that speaks the protocol of Redis and answers a change once it is durable. Its whole state lives in one object: strings,
//! hashes and sorted sets are collections in a heap, and clients that come at a time share durable writes by tickets.
//!
//! ```sh
//! cargo run --release -p indelible-examples --bin kv-server -- kv.pmo
//! redis-cli -p 6380 set greeting hello
//! ```

#![forbid(unsafe_code)]

mod call;
mod commands;
mod connection;
mod data;
mod glob;
mod hashes;
mod keys;
mod reply;
mod request;
mod server;
mod sorted;
mod strings;

use anyhow::{Context, Result};
use clap::Parser;
use data::{Database, ROOT};
use indelible::collections::PMutex;
use indelible::{PoolOptions, Tracking};
use std::net::TcpListener;
use std::path::PathBuf;

/// Serves strings, hashes and sorted sets that survive a crash, in the protocol of Redis.
#[derive(Parser)]
struct Arguments {
    /// The pool; made if there is none.
    pool: PathBuf,
    /// Address and port; port 0 takes a free one.
    #[arg(long, default_value = "127.0.0.1:6380")]
    listen: String,
    /// Threads that serve clients; half as many as there are cores, unless said otherwise.
    #[arg(long)]
    threads: Option<usize>,
    /// How stores are found: wp-async, mprotect or explicit.
    #[arg(long, default_value = "explicit", value_parser = tracking)]
    tracking: Tracking,
    /// MiB of a new pool.
    #[arg(long, default_value_t = 1024)]
    size: u64,
}

fn tracking(word: &str) -> Result<Tracking, String> {
    let found = Tracking::WORDS.into_iter().find(|(name, _)| *name == word);
    found.map(|(_, tracking)| tracking).ok_or_else(|| format!("there is no tracking {word:?}"))
}

/// Clients and kernel need the other half of the cores. A thread that waits for one of them answers fewer requests with each
/// durable write: on two cores, one thread makes 1.2 to 1.5 times as many changes of 50 clients durable as four do.
fn threads() -> usize {
    std::thread::available_parallelism().map_or(1, |cores| cores.get().div_ceil(2))
}

fn main() -> Result<()> {
    let arguments = Arguments::parse();
    // Explicit by default: only typed code stores to the heap, and that marks its stores.
    let options = PoolOptions::new().tracking(arguments.tracking);
    let pool = match options.open(&arguments.pool) {
        Err(error) if error.kind() == indelible::ErrorKind::NoPool => {
            options.format(&arguments.pool, arguments.size << 20)?
        }
        opened => opened?,
    };
    let mut heap = pool.heap("kv", 1 << 20)?;
    heap.root_or_insert_with::<PMutex<Database>, _>(ROOT, |place| {
        PMutex::new_in(Database::default(), place)
    })?;
    heap.psync()?;
    let listener = TcpListener::bind(&arguments.listen)
        .with_context(|| format!("cannot listen at {}", arguments.listen))?;
    println!("listening at {}", listener.local_addr()?);
    server::serve(&heap, &listener, arguments.threads.unwrap_or_else(threads))
}
