//! A server with the protocols of Redis and memcached, whose answers show durable data alone. Its
//! state is one object: texts, hashes, lists and sorted sets are collections in a heap, and clients
//! share durable writes by tickets.
//!
//! ```sh
//! cargo run --release -p indelible-examples --bin kv-server -- kv.pmo --memcached 127.0.0.1:11212
//! redis-cli -p 6380 set greeting hello
//! ```

#![forbid(unsafe_code)]

mod call;
mod commands;
mod connection;
mod data;
mod decimal;
mod glob;
mod hashes;
mod keys;
mod lists;
mod memcached;
mod protocol;
mod redis;
mod reply;
mod request;
mod server;
mod service;
mod session;
mod sorted;
mod strings;

use anyhow::{Context, Result};
use clap::Parser;
use data::{Database, ROOT};
use indelible::collections::PMutex;
use indelible::{PoolOptions, Tracking};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use server::{Listener, Speaks};
use service::Service;
use std::net::TcpListener;
use std::path::PathBuf;

/// The server's own files.
const OWN_FILES: u64 = 64;

/// Serves texts, hashes, lists and sorted sets that survive a crash, in the protocols of Redis and
/// memcached.
#[derive(Parser)]
struct Arguments {
    /// The pool; made if there is none.
    pool: PathBuf,
    /// Address and port of the Redis protocol; port 0 takes a free one.
    #[arg(long, default_value = "127.0.0.1:6380")]
    listen: String,
    /// Address and port of the memcached protocol, whose keys are its own; none if not given.
    #[arg(long)]
    memcached: Option<String>,
    /// Threads that serve clients; half as many as there are cores if not given.
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

/// Half of the cores: clients and kernel need the others, and fewer threads answer more requests
/// with each durable write (1.2 to 1.5 times as many on two cores).
fn threads() -> usize {
    std::thread::available_parallelism().map_or(1, |cores| cores.get().div_ceil(2))
}

fn main() -> Result<()> {
    let arguments = Arguments::parse();
    // Explicit by default: only typed code, which marks its stores, stores to the heap.
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
    let mut listeners = vec![listen(&arguments.listen, Speaks::Redis)?];
    if let Some(address) = &arguments.memcached {
        listeners.push(listen(address, Speaks::Memcached)?);
    }
    let service = Service::new(&heap, clients())?;
    server::serve(&service, &listeners, arguments.threads.unwrap_or_else(threads))
}

fn listen(address: &str, speaks: Speaks) -> Result<Listener> {
    let socket = TcpListener::bind(address).with_context(|| format!("cannot listen at {address}"))?;
    println!("listening at {}", socket.local_addr()?);
    Ok(Listener { socket, speaks })
}

/// Clients within the limit of open files, which is raised as far as permitted.
fn clients() -> usize {
    let limit = getrlimit(Resource::Nofile);
    let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit });
    let files = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
    usize::try_from(files.saturating_sub(OWN_FILES).max(1)).unwrap_or(usize::MAX)
}
