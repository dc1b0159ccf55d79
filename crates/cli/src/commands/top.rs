use crate::bytes::human;
use crate::commands::ls::held_by;
use crate::commands::stat::Pending;
use crate::context::Context;
use crate::exit::Exit;
use crate::failure::{Failure, Result};
use crate::listing::{each, every};
use crate::out::{Out, Widths};
use crate::process::Holder;
use crate::text::{self, printable};
use crate::values::pool;
use clap::Args;
use indelible::{Logged, Pool, Selection, Stat};
use serde::Serialize;
use std::collections::HashMap;
use std::io::IsTerminal;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// Show the holders of objects and their rates of psyncs, again and again
///
/// Takes no locks: it delays no process. Objects with the most psyncs come first. Durable psyncs of
/// all processes are counted. BYTES/S are bytes that psyncs changed, in whole lines of 64. DIRTY
/// are bytes that may have changed since the last psync, at most; `-` if the holder's memory may
/// not be inspected. LAG are psynced bytes that the log alone has: recovery would bring them in
/// place if the writer died now. PENDING are bytes of commits on demand that a power cut would
/// take. On a terminal the table takes the place of the one before; Ctrl-C ends it.
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

fn interval(text: &str) -> std::result::Result<Duration, String> {
    let seconds: f64 = text.parse().map_err(|_| "not a number of seconds".to_owned())?;
    let usable = (0.01..=86_400.0).contains(&seconds).then(|| Duration::from_secs_f64(seconds));
    usable.ok_or_else(|| "an interval has from 0.01 seconds to a day".to_owned())
}

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
    let mut before = Look::at(&pool, args, None)?;
    loop {
        std::thread::sleep(args.interval);
        let now = Look::at(&pool, args, Some(&before))?;
        now.show(context.json, &pool, args)?;
        if args.once {
            return if now.damaged { Err(Failure::Quiet(Exit::Damaged)) } else { Ok(()) };
        }
        before = now;
    }
}

type Rates = (f64, f64);

struct Look {
    at: Instant,
    counted: Vec<([u8; 16], u64, Logged)>,
    active: HashMap<[u8; 16], Rates>,
    objects: Selection,
    damaged: bool,
}

impl Look {
    fn at(pool: &Pool, args: &Top, before: Option<&Look>) -> Result<Look> {
        let mut look = Look {
            at: Instant::now(),
            counted: Vec::new(),
            active: HashMap::new(),
            objects: pool.selection(),
            damaged: false,
        };
        let mut damaged = false;
        let seconds = before.map_or(1.0, |before| look.at.duration_since(before.at).as_secs_f64().max(1e-9));
        each(pool, args.pattern.as_deref(), &mut damaged, |stat| {
            look.note(&stat, before, seconds);
            Ok(())
        })?;
        look.damaged = damaged;
        look.counted.sort_unstable_by_key(|(id, ..)| *id);
        look.objects.sort();
        Ok(look)
    }

    fn note(&mut self, stat: &Stat, before: Option<&Look>, seconds: f64) {
        if stat.psyncs > 0 || stat.logged != Logged::default() {
            self.counted.push((stat.id, stat.psyncs, stat.logged));
        }
        let Some(before) = before else { return };
        let (then, logged) = before.of(&stat.id).unwrap_or_default();
        let psyncs = stat.psyncs.saturating_sub(then);
        let rates = (psyncs as f64 / seconds, logged_since(stat, logged, psyncs) / seconds);
        if rates != (0.0, 0.0) {
            self.active.insert(stat.id, rates);
        }
        // Bits of non-negative floats keep their order.
        self.objects.add(stat, !rates.0.to_bits());
    }

    fn of(&self, id: &[u8; 16]) -> Option<(u64, Logged)> {
        let at = self.counted.binary_search_by_key(id, |(id, ..)| *id).ok()?;
        let (_, psyncs, logged) = self.counted[at];
        Some((psyncs, logged))
    }

    fn row(&self, stat: Stat, pool: &Pool) -> Row {
        let (psyncs_per_second, bytes_per_second) = self.active.get(&stat.id).copied().unwrap_or_default();
        Row {
            state: stat.state.letter(),
            holder: Holder::of(&stat),
            psyncs_per_second,
            bytes_per_second,
            dirty: stat.dirty_bytes(),
            lag: stat.logged.bytes,
            pending: Pending::of(pool, &stat),
            psyncs: stat.psyncs,
            own: stat.own,
            size: stat.size,
            held_by: held_by(&stat),
            name: stat.name,
        }
    }

    fn show(&self, json: bool, pool: &Pool, args: &Top) -> Result {
        let mut out = Out::new();
        let mut damaged = false;
        if json {
            let mut before = "[";
            every(self.objects.stats(), &mut damaged, |stat| {
                out.bytes(format!("{before}{}", text::json(&self.row(stat, pool))?).as_bytes())?;
                before = ",";
                Ok(())
            })?;
            out.line(if before == "[" { "[]" } else { "]" })?;
            return out.finish();
        }
        if !args.once && std::io::stdout().is_terminal() {
            // Cursor home, clear screen.
            out.bytes(b"\x1b[H\x1b[2J")?;
        }
        let numbers = HEADINGS.map(|heading| !matches!(heading, "STATE" | "NAME" | "HOLDER"));
        let mut widths = Widths::of(&numbers);
        let headings = HEADINGS.map(str::to_owned);
        widths.fit(&headings);
        every(self.objects.stats(), &mut damaged, |stat| {
            widths.fit(&cells(&self.row(stat, pool)));
            Ok(())
        })?;
        out.row(&headings, &widths)?;
        every(self.objects.stats(), &mut damaged, |stat| out.row(cells(&self.row(stat, pool)), &widths))?;
        out.finish()
    }
}

const HEADINGS: [&str; 11] =
    ["STATE", "PSYNCS/S", "BYTES/S", "DIRTY", "LAG", "PENDING", "PSYNCS", "OWN", "SIZE", "NAME", "HOLDER"];

fn logged_since(stat: &Stat, then: Logged, psyncs: u64) -> f64 {
    let now = stat.logged;
    if then.generation == now.generation {
        now.bytes.saturating_sub(then.bytes) as f64
    } else if now.psyncs > 0 {
        // The log restarted: estimate by its present psyncs.
        now.bytes as f64 / now.psyncs as f64 * psyncs as f64
    } else {
        0.0
    }
}

fn cells(row: &Row) -> [String; HEADINGS.len()] {
    [
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
}
