//! `pmo replicate restore`.

use super::args::Restore;
use super::out::{line, note, print};
use super::size;
use indelible::PoolOptions;
use indelible_replicate::{Result, SystemClock, restore};
use serde::Serialize;
use std::io::{IsTerminal, Write};

#[derive(Serialize)]
struct Report {
    moment: String,
    created: u64,
    pool: String,
    objects: Vec<String>,
    segments: u64,
    bytes: u64,
}

pub(super) fn run(args: &Restore, json: bool) -> Result<()> {
    let (bucket, clock) = (args.store.open()?, SystemClock::new(Default::default()));
    let shown = !args.quiet && !json && std::io::stderr().is_terminal();
    let mut progress = |done: u64, all: u64| {
        if shown {
            let _ = write!(std::io::stderr(), "\r{} of {} restored", size(done), size(all));
        }
    };
    let done = restore(&*bucket, &clock, &args.pool, args.at, &PoolOptions::new(), &mut progress);
    if shown {
        note("");
    }
    let done = done?;
    if json {
        let (moment, objects) = (done.position.to_string(), done.objects);
        let (created, pool, segments, bytes) = (done.created, done.pool, done.segments, done.bytes);
        return print(&Report { moment, created, pool, objects, segments, bytes });
    }
    if !args.quiet {
        let (path, moment, count) = (args.pool.display(), done.position, done.objects.len());
        let bytes = size(done.bytes);
        line(&format!("restored {path} as of {moment}: {count} objects, {bytes} of segments"))?;
    }
    Ok(())
}
