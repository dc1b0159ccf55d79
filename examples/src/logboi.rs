//! A log of many clients: each line that a client sends is durable before the client goes on, and
//! the log says which clients left, and which crashed. Kill any of them, at any time, the server as
//! well: run it again, and it goes on.
//!
//!     logboi POOL serve
//!     logboi POOL send NAME < lines
//!     pmo log POOL log --follow

use anyhow::{Context, Result, bail};
use indelible::{Class, CreateOptions, ErrorKind, Log, Pool, Queue, QueueOptions, SharedObject};
use std::collections::BTreeMap;
use std::io::BufRead;
use std::time::Duration;

const QUEUE: &str = "clients";
const LOG: &str = "log";
const HOW: QueueOptions = QueueOptions { kind: indelible::QueueKind::ManyProducers, slots: 1024, most: 512 };
/// After such a time the server looks for clients that crashed.
const LOOK: Duration = Duration::from_millis(100);

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments[..] {
        [path, "serve"] => serve(&Pool::open_or_format(path, 256 << 20)?),
        [path, "send", name] => send(&Pool::open_or_format(path, 256 << 20)?, name),
        _ => bail!("usage: logboi POOL serve | logboi POOL send NAME"),
    }
}

/// The memory that all share, made anew after the machine was started.
fn shared(pool: &Pool) -> Result<(SharedObject, Queue)> {
    let how = CreateOptions::new(HOW.bytes()? as u64).class(Class::Shared);
    match pool.create_with(QUEUE, &how) {
        Err(error) if error.kind() != ErrorKind::Exists => return Err(error.into()),
        _ => {}
    }
    let object = pool.attach_shared(QUEUE)?;
    let queue = object.queue(0, &HOW)?;
    Ok((object, queue))
}

/// Clients that are there, by the numbers of their lives.
#[derive(Default)]
struct Clients(BTreeMap<u32, String>);

impl Clients {
    /// Takes in a line of the log: "LIFE hello NAME", "LIFE says TEXT", "LIFE bye", "LIFE crashed".
    fn see(&mut self, line: &[u8]) {
        let line = String::from_utf8_lossy(line);
        let mut words = line.splitn(3, ' ');
        let (life, what, rest) = (words.next(), words.next(), words.next());
        let Some(life) = life.and_then(|life| u32::from_str_radix(life, 16).ok()) else { return };
        match what {
            Some("hello") => drop(self.0.insert(life, rest.unwrap_or_default().to_owned())),
            Some("bye" | "crashed") => drop(self.0.remove(&life)),
            _ => {}
        }
    }
}

fn serve(pool: &Pool) -> Result<()> {
    let (object, queue) = shared(pool)?;
    let mut consumer = queue.consumer().context("is another server running?")?;
    // Clients that an earlier server has seen.
    let mut clients = Clients::default();
    let mut log = pool.open_log(LOG, b"")?;
    log.psync()?;
    log.detach()?;
    let mut reader = pool.read_log(LOG, b"")?;
    while let Some(record) = reader.read()? {
        clients.see(&record.bytes);
    }
    drop(reader);
    let mut log = pool.open_log(LOG, b"")?;
    println!("serving");
    loop {
        log.collect_each(&mut consumer, 256, Some(LOOK), |line| clients.see(line))?;
        tell_crashed(&object, &mut log, &mut clients)?;
    }
}

/// Logs the clients that died without a last message.
fn tell_crashed(object: &SharedObject, log: &mut Log, clients: &mut Clients) -> Result<()> {
    let mut crashed = Vec::new();
    for (life, name) in &clients.0 {
        if !object.is_alive(*life)? {
            crashed.push((*life, name.clone()));
        }
    }
    for (life, name) in crashed {
        let line = format!("{life:08x} crashed ({name})");
        log.append(line.as_bytes())?;
        log.psync()?;
        clients.see(line.as_bytes());
        println!("{name} crashed");
    }
    Ok(())
}

fn send(pool: &Pool, name: &str) -> Result<()> {
    let (object, queue) = shared(pool)?;
    let (mut producer, life) = (queue.producer()?, object.life());
    let mut tell = |text: &str| -> Result<()> {
        let line = format!("{life:08x} {text}");
        let number = producer.send(line.as_bytes(), None)?.context("the queue is full")?;
        // Durable: the server takes a line out once it is in the log.
        producer.wait_taken(number, None)?;
        Ok(())
    };
    tell(&format!("hello {name}"))?;
    for line in std::io::stdin().lock().lines() {
        let line = line?;
        tell(&format!("says {line}"))?;
        println!("{line}");
    }
    tell("bye")
}
