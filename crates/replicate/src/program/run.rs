//! `pmo replicate run`.

use super::args::Run;
use super::out::{note, print};
use super::size;
use indelible::PoolOptions;
use indelible_replicate::{
    Beacon, Beginning, Claim, Clock, Result, Shipped, Shipper, StoreAuthority, SystemClock, uptime,
};
use serde::Serialize;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// A shipped moment.
#[derive(Serialize)]
struct Line {
    moment: String,
    full: bool,
    segments: u64,
    /// Bytes of objects.
    changed: u64,
    /// Bytes in the store.
    bytes: u64,
    /// Seconds from the moment to its last put.
    lag: f64,
}

pub(super) fn run(args: &Run, json: bool, stop: &Arc<AtomicBool>) -> Result<()> {
    let pool = PoolOptions::new().open(&args.pool)?;
    let bucket = args.store.open()?;
    let clock = SystemClock::new(stop.clone());
    let mut authority = StoreAuthority::new(&*bucket, &clock, args.lease);
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let owner = format!("{} (process {})", host.trim(), std::process::id());
    let claim = Claim { take_over: args.take_over, promote: args.promote, ..Claim::of(&pool, &owner)? };
    let mut shipper = Shipper::begin(&pool, &args.key()?, &mut authority, &claim)?;
    if !args.quiet && !json {
        let (pool, store, epoch) = (args.pool.display(), args.store.name(), shipper.position().epoch);
        note(&format!("shipping {pool} to {store} as epoch {epoch}"));
        if let Some(line) = begins(shipper.beginning()) {
            note(&line);
        }
    }
    let mut beacon = Beacon::new(&pool.id(), &args.pool, &shipper.store_id(), args.store.name())
        .inspect_err(|error| note(&format!("pmo metrics and status will not show the lag: {error}")))
        .ok();
    let mut behind = Instant::now();
    loop {
        let (begin, as_of) = (Instant::now(), uptime());
        match shipper.tick() {
            Ok(shipped) => {
                if let Some(shipped) = shipped
                    && !args.quiet
                    && let Err(error) = tell(&shipped, behind.elapsed(), json)
                {
                    shipper.pause();
                    return Err(error);
                }
                behind = Instant::now();
                if let Some(beacon) = &mut beacon {
                    let _ = beacon.tell(as_of, &shipper.psyncs());
                }
            }
            Err(error) if shipper.has_ended() => return Err(error),
            Err(error) if args.once => {
                match args.keep {
                    true => shipper.pause(),
                    false => shipper.end(),
                }
                return Err(error);
            }
            // No later tick finds the pool again.
            Err(error) if error.is_gone() => {
                shipper.end();
                return Err(error);
            }
            Err(error) => {
                let lag = behind.elapsed().as_secs_f64();
                note(&format!("nothing shipped for {lag:.1} s, trying again: {error}"));
            }
        }
        let stopped = stop.load(Ordering::Acquire);
        if args.once || stopped || !clock.wait(args.tick.saturating_sub(begin.elapsed())) {
            match args.once && !args.keep {
                true => shipper.end(),
                false => shipper.pause(),
            }
            return Ok(());
        }
    }
}

/// Why the first moment is the whole pool, or where the run goes on.
fn begins(beginning: &Beginning) -> Option<String> {
    match beginning {
        Beginning::First => None,
        Beginning::Whole(why) => Some(format!("the whole pool is shipped: {why}")),
        Beginning::Continues { from, anew } if anew.is_empty() => Some(format!("going on from {from}")),
        Beginning::Continues { from, anew } => Some(format!(
            "going on from {from}, with {} objects shipped whole, of which the pool has no snapshot that {from} states: {anew:?}",
            anew.len(),
        )),
    }
}

fn tell(shipped: &Shipped, lag: Duration, json: bool) -> Result<()> {
    let Shipped { position, segments, bytes, changed, full } = *shipped;
    if json {
        let (moment, lag) = (position.to_string(), lag.as_secs_f64());
        return print(&Line { moment, full, segments, changed, bytes, lag });
    }
    let what = if full { "the whole pool" } else { "changes" };
    let (changed, bytes, lag) = (size(changed), size(bytes), lag.as_secs_f64());
    note(&format!("{position}: {what}, {changed} of objects in {bytes}, {lag:.2} s behind"));
    Ok(())
}
