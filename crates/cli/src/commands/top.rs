//! `pmo top`: who has which object, and how often it is psynced.

use crate::bytes::human;
use crate::commands::ls::{held_by, rows};
use crate::commands::stat::Pending;
use crate::context::Context;
use crate::exit::Exit;
use crate::failure::{Failure, Result};
use crate::out::Out;
use crate::process::Holder;
use crate::text::{self, printable};
use crate::values::pool;
use clap::Args;
use indelible::{Pool, Stat};
use serde::Serialize;
use std::collections::HashMap;
use std::io::IsTerminal;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// Show who has which object, and how often it is psynced, again and again
///
/// Takes no locks: it is in nobody's way. Objects with the most psyncs come first. Psyncs are counted that are durable, whoever
/// makes them. BYTES/S are bytes that psyncs changed, in whole lines of 64. DIRTY is what may have changed since the last psync, at most; - if
/// the holder may not be looked into. LAG is what psyncs changed and the log alone has: recovery would bring it in place if the
/// writer died now. PENDING is what commits on demand changed and a power cut would take. On a terminal the table takes the place of the one before; Ctrl-C ends it.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  pmo top data.pmo
  pmo top data.pmo 'logs/*' --interval 0.2
  pmo top data.pmo --once --json | jq '.[0].psyncs_per_second'

JSON, a line for each look, the first one after an interval:
  [{\"name\":\"a\",\"state\":\"W\",\"holder\":{\"pid\":4711,\"command\":\"redis\"},\"psyncs_per_second\":812.5,
    \"bytes_per_second\":52000.0,\"dirty\":8192,\"lag\":65536,\"pending\":null,\"psyncs\":90123,\"own\":4096,\"size\":4096}]
  dirty is null if it cannot be told, pending as in `pmo stat`, null if nobody has the object on demand. bytes_per_second is exact unless the log began anew in the interval: then it is taken \
from the psyncs that the log has now.")]
pub struct Top {
    /// The pool
    #[arg(value_parser = pool())]
    pool: PathBuf,

    /// Which objects: a pattern with *, ? and [a-z]
    #[arg(value_name = "NAME-PATTERN")]
    pattern: Option<String>,

    /// Seconds between two looks
    #[arg(long, short, value_name = "SECONDS", default_value = "1", value_parser = interval, allow_hyphen_values = true)]
    interval: Duration,

    /// Look once, after an interval
    #[arg(long)]
    once: bool,
}

/// Reads an interval: one of no length would leave nobody any time.
fn interval(text: &str) -> std::result::Result<Duration, String> {
    let seconds: f64 = text.parse().map_err(|_| "not a number of seconds".to_owned())?;
    let usable = (0.01..=86_400.0).contains(&seconds).then(|| Duration::from_secs_f64(seconds));
    usable.ok_or_else(|| "an interval has from 0.01 seconds to a day".to_owned())
}

/// A line, for programs.
#[derive(Serialize)]
struct Row {
    name: String,
    state: char,
    holder: Option<Holder>,
    psyncs_per_second: f64,
    bytes_per_second: f64,
    dirty: Option<u64>,
    lag: u64,
    pending: Option<Pending>,
    psyncs: u64,
    own: u64,
    size: u64,
    #[serde(skip)]
    held_by: String,
}

pub fn run(context: &Context, args: &Top) -> Result {
    let pool = context.look(&args.pool)?;
    let mut before = Look::at(&pool, args)?;
    loop {
        std::thread::sleep(args.interval);
        let now = Look::at(&pool, args)?;
        show(context.json, &now.since(&before, &pool), args)?;
        if args.once {
            return if now.damaged { Err(Failure::Quiet(Exit::Damaged)) } else { Ok(()) };
        }
        before = now;
    }
}

/// The objects at a moment.
struct Look {
    at: Instant,
    objects: Vec<Stat>,
    damaged: bool,
}

impl Look {
    fn at(pool: &Pool, args: &Top) -> Result<Look> {
        let mut damaged = false;
        let objects = rows(pool, args.pattern.as_deref(), &mut damaged)?;
        Ok(Look { at: Instant::now(), objects, damaged })
    }

    /// Lines for what happened since, those with most psyncs first.
    fn since(&self, before: &Look, pool: &Pool) -> Vec<Row> {
        let then: HashMap<_, _> = before.objects.iter().map(|stat| (stat.id, stat)).collect();
        let seconds = self.at.duration_since(before.at).as_secs_f64().max(1e-9);
        let row = |stat: &Stat| {
            // One that was created since had none.
            let then = then.get(&stat.id).copied();
            let psyncs = stat.psyncs.saturating_sub(then.map_or(0, |then| then.psyncs));
            Row {
                name: stat.name.clone(),
                state: stat.state.letter(),
                holder: Holder::of(stat),
                psyncs_per_second: psyncs as f64 / seconds,
                bytes_per_second: logged_since(stat, then, psyncs) / seconds,
                dirty: stat.dirty_bytes(),
                lag: stat.logged.bytes,
                pending: Pending::of(pool, stat),
                psyncs: stat.psyncs,
                own: stat.own,
                size: stat.size,
                held_by: held_by(stat),
            }
        };
        let mut rows: Vec<Row> = self.objects.iter().map(row).collect();
        rows.sort_by(|a, b| {
            b.psyncs_per_second.total_cmp(&a.psyncs_per_second).then_with(|| a.name.cmp(&b.name))
        });
        rows
    }
}

/// Bytes that so many psyncs of an object changed since `then`.
fn logged_since(stat: &Stat, then: Option<&Stat>, psyncs: u64) -> f64 {
    let now = stat.logged;
    match then.map(|then| then.logged) {
        Some(then) if then.generation == now.generation => now.bytes.saturating_sub(then.bytes) as f64,
        // The log began anew: as the psyncs that it has now.
        _ if now.psyncs > 0 => now.bytes as f64 / now.psyncs as f64 * psyncs as f64,
        _ => 0.0,
    }
}

fn show(json: bool, rows: &[Row], args: &Top) -> Result {
    let mut out = Out::new();
    if json {
        out.line(&text::json(rows)?)?;
        return out.finish();
    }
    if !args.once && std::io::stdout().is_terminal() {
        // To the first place, with nothing behind.
        out.bytes(b"\x1b[H\x1b[2J")?;
    }
    const HEADINGS: [&str; 11] = [
        "STATE", "PSYNCS/S", "BYTES/S", "DIRTY", "LAG", "PENDING", "PSYNCS", "OWN", "SIZE", "NAME", "HOLDER",
    ];
    let mut table = vec![HEADINGS.map(str::to_owned).to_vec()];
    table.extend(rows.iter().map(|row| {
        vec![
            row.state.to_string(),
            format!("{:.1}", row.psyncs_per_second),
            human(row.bytes_per_second as u64),
            row.dirty.map_or_else(|| "-".to_owned(), human),
            human(row.lag),
            row.pending.as_ref().map_or_else(|| "-".to_owned(), |pending| human(pending.bytes)),
            row.psyncs.to_string(),
            human(row.own),
            human(row.size),
            printable(&row.name),
            row.held_by.clone(),
        ]
    }));
    let numbers = HEADINGS.map(|heading| !matches!(heading, "STATE" | "NAME" | "HOLDER"));
    out.table(&table, &numbers)?;
    out.finish()
}
