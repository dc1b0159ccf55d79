//! Connects a pool's objects on demand with the machine's guard, if any
//! (docs/decisions/0058-guard.md).
//!
//! A thread registers, and obeys the guard, line by line:
//!
//! | line | of | it means |
//! |---|---|---|
//! | `writer 1 POOL-ID NUMBER PATH` | process | it has memory of this number; all three in hexadecimal digits, the last one the bytes of the pool's path |
//! | `measured BYTES NANOSECONDS` | process | its last epoch |
//! | `budget BYTES`, `budget none` | guard | so much may be not durable at a time |
//! | `publish TOKEN` | guard | make all commits durable, and from now on each before it returns, until the next `budget` |
//! | `published TOKEN BYTES NANOSECONDS` | process | that is done |
//! | `failed TOKEN WHY` | process | that could not be done |
//! | `bye` | process | everything is detached, and the pool has all commits |
//!
//! If commits stay in memory, the connection ends without `bye`, and the guard recovers them, as
//! after a death.
//!
//! A guard makes commits durable earlier, never later: without it there is no budget, and epochs
//! continue.

use super::demand::Demand;
use super::epochs::{LOOK, start};
use crate::error::Cause;
use crate::memory::MemoryLocation;
use crate::pool::{Guards, Inner};
use crate::sys::link::Link;
use indelible_store::format::LINE;
use indelible_store::{Mutant, Selected};
use std::fmt::Write;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::sync::{Arc, OnceLock, Weak};
use std::time::Instant;

pub(super) struct Access<S> {
    pub(super) demand: fn(&S) -> Option<&Demand>,
    pub(super) publish: fn(&S) -> Result<(), Cause>,
}

pub(super) fn watch<S: Send + Sync + 'static>(
    space: &Arc<S>,
    access: Access<S>,
    pool: &Inner,
) -> Result<(), Cause> {
    let Some(demand) = (access.demand)(space) else { return Ok(()) };
    let place = demand.group.place();
    if !place.origin.path.exists() {
        return Ok(());
    }
    let (hello, guards) = (hello(place, demand.group.number()), pool.guards().clone());
    let ended = demand.ended.clone();
    let (space, mutant) = (Arc::downgrade(space), Selected::here());
    start("indelible-guard", move || mutant.run(|| look_for((&space, &ended), &access, &guards, &hello)))
}

fn hello(place: &MemoryLocation, number: u64) -> String {
    let hex = |bytes: &[u8]| bytes.iter().fold(String::new(), |text, byte| text + &format!("{byte:02x}"));
    format!("writer 1 {} {number:016x} {}\n", hex(&place.pool), hex(place.origin.path.as_os_str().as_bytes()))
}

fn look_for<S>(
    (space, ended): (&Weak<S>, &OnceLock<bool>),
    access: &Access<S>,
    guards: &Guards,
    hello: &str,
) {
    while space.strong_count() > 0 {
        let found = guards.sockets().into_iter().find_map(|socket| Link::connect(&socket, LOOK).ok());
        if let Some(link) = found {
            let _ = serve((space, ended), access, link, hello);
            if let Some(space) = space.upgrade() {
                // Rule G1 of docs/protocol.md.
                (access.demand)(&space).iter().for_each(|demand| demand.set_budget(None));
            }
        }
        std::thread::sleep(LOOK);
    }
}

fn serve<S>(
    (space, ended): (&Weak<S>, &OnceLock<bool>),
    access: &Access<S>,
    mut link: Link,
    hello: &str,
) -> io::Result<()> {
    link.send(hello)?;
    let mut told = (0, 0);
    loop {
        let line = link.line()?;
        let Some(space) = space.upgrade() else {
            // Rule G9 of docs/protocol.md.
            match ended.get() {
                None => continue,
                Some(true) => return Ok(()),
                Some(false) => return link.send("bye\n"),
            }
        };
        let Some(demand) = (access.demand)(&space) else { return Ok(()) };
        if let Some(line) = line {
            follow(demand, || (access.publish)(&space), &link, &line)?;
        }
        let measured = demand.measured();
        if measured != told {
            link.send(&format!("measured {} {}\n", measured.0, measured.1))?;
            told = measured;
        }
    }
}

fn follow(
    demand: &Demand,
    epoch: impl FnOnce() -> Result<(), Cause>,
    link: &Link,
    line: &str,
) -> io::Result<()> {
    match line.split_once(' ') {
        Some(("budget", "none")) => demand.set_budget(None),
        Some(("budget", bytes)) => match bytes.parse::<u64>() {
            Ok(bytes) => demand.set_budget(Some(bytes / LINE)),
            Err(_) => return Err(io::ErrorKind::InvalidData.into()),
        },
        Some(("publish", token)) => publish(demand, epoch, link, token)?,
        _ => {}
    }
    Ok(())
}

fn publish(
    demand: &Demand,
    epoch: impl FnOnce() -> Result<(), Cause>,
    link: &Link,
    token: &str,
) -> io::Result<()> {
    // Rule G4 of docs/protocol.md: commits after the epoch's gate see this.
    demand.set_budget(Some(0));
    let (begin, bytes) = (Instant::now(), demand.pending() * LINE);
    let done = || format!("published {token} {bytes} {}\n", begin.elapsed().as_nanos());
    if Mutant::AcknowledgedUnflushed.is_on() {
        link.send(&done())?;
        // Simulates a slow medium: on one processor the epoch would end before the guard runs.
        std::thread::sleep(LOOK);
    }
    match epoch() {
        Ok(()) => link.send(&done()),
        Err(cause) => {
            let mut why = String::new();
            let _ = write!(why, "{cause}");
            why.retain(|letter| !letter.is_control());
            link.send(&format!("failed {token} {why}\n"))
        }
    }
}
