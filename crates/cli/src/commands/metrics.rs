//! `pmo metrics`: a pool in numbers, for monitoring.

use crate::commands::stat::Pending;
use crate::context::Context;
use crate::failure::Result;
use crate::glob::Glob;
use crate::out::Out;
use crate::process::Holder;
use crate::text::printable;
use crate::values::pool;
use clap::Args;
use indelible::{Pool, Stat};
use std::path::PathBuf;

/// Print figures of a pool and its objects as OpenMetrics text, as Prometheus reads it
///
/// Takes no locks: it is in nobody's way, and may be asked every few seconds. Counters of psyncs have all that are durable now.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  pmo metrics data.pmo
  pmo metrics data.pmo 'logs/*'
  pmo metrics data.pmo > pmo.prom.new && mv pmo.prom.new pmo.prom    in the folder of an exporter")]
pub struct Metrics {
    /// The pool
    #[arg(value_parser = pool())]
    pool: PathBuf,

    /// Which objects: a pattern with *, ? and [a-z]
    #[arg(value_name = "NAME-PATTERN")]
    pattern: Option<String>,
}

/// A family of figures with one for each object: name, kind, help, figure, if there is one.
type Family = (&'static str, &'static str, &'static str, fn(&Stat) -> Option<u64>);

const OBJECTS: [Family; 9] = [
    ("pmo_object_size_bytes", "gauge", "Size of the object.", |stat| Some(stat.size)),
    ("pmo_object_extent_bytes", "gauge", "Space of the pool that the object has.", |stat| Some(stat.extent)),
    ("pmo_object_published_bytes", "gauge", "Bytes ever psynced, as a high-water mark.", |stat| {
        Some(stat.published)
    }),
    ("pmo_object_psyncs", "counter", "Psyncs over the life of the object.", |stat| Some(stat.psyncs)),
    ("pmo_object_needs_recovery", "gauge", "Whether the last writer died.", |stat| {
        Some(stat.needs_recovery.into())
    }),
    ("pmo_object_created_timestamp_seconds", "gauge", "When the object was created.", |stat| {
        stat.created.duration_since(std::time::UNIX_EPOCH).ok().map(|since| since.as_secs())
    }),
    (
        "pmo_object_lag_bytes",
        "gauge",
        "Bytes that psyncs changed and the log alone has. It grows by what each psync changes, and begins anew at a checkpoint.",
        |stat| Some(stat.logged.bytes),
    ),
    ("pmo_object_lag_psyncs", "gauge", "Psyncs that the log alone has.", |stat| Some(stat.logged.psyncs)),
    (
        "pmo_object_dirty_bytes",
        "gauge",
        "Bytes of pages that the writer may have stored to since its last psync, at most; absent if it may not be looked into.",
        Stat::dirty_bytes,
    ),
];

pub fn run(context: &Context, args: &Metrics) -> Result {
    let pool = context.look(&args.pool)?;
    let info = pool.info()?;
    let glob = args.pattern.as_deref().map(Glob::new);
    let mut stats = Vec::new();
    for stat in pool.list() {
        let stat = stat?;
        if glob.as_ref().is_none_or(|glob| glob.matches(&stat.name)) {
            stats.push(stat);
        }
    }
    stats.sort_unstable_by(|a, b| a.name.cmp(&b.name));
    let path = escaped(&info.path.to_string_lossy());
    let mut out = Out::new();
    for (name, help, figure) in [
        ("pmo_pool_length_bytes", "Length of the pool.", info.length),
        ("pmo_pool_free_bytes", "Free space of the pool.", info.free),
        ("pmo_pool_largest_free_bytes", "Largest free piece of the pool.", info.largest_free),
        ("pmo_pool_objects", "Objects in the pool.", info.objects),
    ] {
        family(&mut out, name, "gauge", help)?;
        out.line(&format!("{name}{{pool=\"{path}\"}} {figure}"))?;
    }
    for (name, kind, help, figure) in OBJECTS {
        family(&mut out, name, kind, help)?;
        let suffix = if kind == "counter" { "_total" } else { "" };
        for stat in &stats {
            let Some(figure) = figure(stat) else { continue };
            let object = escaped(&stat.name);
            out.line(&format!("{name}{suffix}{{pool=\"{path}\",object=\"{object}\"}} {figure}"))?;
        }
    }
    pending(&mut out, &pool, &path, &stats)?;
    family(&mut out, "pmo_object_state", "gauge", "1 for the state that the object is in, with its holder.")?;
    for stat in &stats {
        let pid = Holder::of(stat).map_or_else(String::new, |holder| holder.pid.to_string());
        let (object, state) = (escaped(&stat.name), stat.state.letter());
        let labels = format!("pool=\"{path}\",object=\"{object}\",state=\"{state}\",pid=\"{pid}\"");
        out.line(&format!("pmo_object_state{{{labels}}} 1"))?;
    }
    out.line("# EOF")?;
    out.finish()
}

/// Commits on demand that are not durable, of each object that a process has so.
fn pending(out: &mut Out, pool: &Pool, path: &str, stats: &[Stat]) -> Result {
    type Figure = fn(&Pending) -> f64;
    const FIGURES: [(&str, &str, &str, Figure); 4] = [
        (
            "pmo_object_pending_bytes",
            "gauge",
            "Bytes of the object that commits on demand changed and a power cut would take.",
            |pending| pending.bytes as f64,
        ),
        (
            "pmo_object_pending_transactions",
            "gauge",
            "Transactions of the process that has the object which a power cut would take.",
            |pending| pending.transactions as f64,
        ),
        ("pmo_object_pending_age_seconds", "gauge", "Time since the first of them.", |pending| {
            pending.age_seconds
        }),
        (
            "pmo_object_commits_at_once",
            "counter",
            "Transactions of the process that were durable when they returned, because the guard could not have saved them.",
            |pending| pending.at_once as f64,
        ),
    ];
    let found: Vec<_> = stats.iter().filter_map(|stat| Some((stat, Pending::of(pool, stat)?))).collect();
    for (name, kind, help, figure) in FIGURES {
        family(out, name, kind, help)?;
        let suffix = if kind == "counter" { "_total" } else { "" };
        for (stat, pending) in &found {
            let object = escaped(&stat.name);
            out.line(&format!("{name}{suffix}{{pool=\"{path}\",object=\"{object}\"}} {}", figure(pending)))?;
        }
    }
    Ok(())
}

fn family(out: &mut Out, name: &str, kind: &str, help: &str) -> Result {
    out.line(&format!("# TYPE {name} {kind}"))?;
    out.line(&format!("# HELP {name} {help}"))
}

/// A value of a label. The format has no escapes for characters that command a terminal: they are
/// shown as elsewhere.
fn escaped(text: &str) -> String {
    printable(text).replace('\\', "\\\\").replace('"', "\\\"")
}
