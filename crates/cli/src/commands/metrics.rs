use crate::commands::stat::Pending;
use crate::context::Context;
use crate::exit::Exit;
use crate::failure::{Failure, Result};
use crate::listing::each;
use crate::out::Out;
use crate::replicas::Replica;
use crate::text::printable;
use crate::values::pool;
use clap::Args;
use indelible::{Pool, Stat};
use std::path::PathBuf;

/// Print figures of a pool and its objects as OpenMetrics text, as Prometheus reads it
///
/// Takes no locks: it delays no process, and can run every few seconds. Counters of psyncs include
/// all that are durable now.
///
/// The lag of replication is that of `pmo replicate run` processes of this machine and user.
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

/// A family with a figure for each object: name, kind, help, optional figure.
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
    let (mut figures, mut damaged) = (Figures::default(), false);
    let mut replicas = Replica::of(&pool.id());
    each(&pool, args.pattern.as_deref(), &mut damaged, |stat| {
        figures.keep(&pool, &stat);
        replicas.iter_mut().for_each(|replica| replica.count(&stat));
        Ok(())
    })?;
    if damaged {
        return Err(Failure::Quiet(Exit::Damaged));
    }
    figures.sort();
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
    for (nth, (name, kind, help, _)) in OBJECTS.into_iter().enumerate() {
        family(&mut out, name, kind, help)?;
        let suffix = if kind == "counter" { "_total" } else { "" };
        for object in figures.objects() {
            let Some(figure) = object.figures[nth] else { continue };
            let object = escaped(object.name);
            out.line(&format!("{name}{suffix}{{pool=\"{path}\",object=\"{object}\"}} {figure}"))?;
        }
    }
    pending(&mut out, &path, &figures)?;
    replication(&mut out, &path, &replicas)?;
    family(&mut out, "pmo_object_state", "gauge", "1 for the state that the object is in, with its holder.")?;
    for object in figures.objects() {
        let pid = object.holder.map_or_else(String::new, |pid| pid.to_string());
        let (name, state) = (escaped(object.name), object.state);
        let labels = format!("pool=\"{path}\",object=\"{name}\",state=\"{state}\",pid=\"{pid}\"");
        out.line(&format!("pmo_object_state{{{labels}}} 1"))?;
    }
    out.line("# EOF")?;
    out.finish()
}

fn pending(out: &mut Out, path: &str, figures: &Figures) -> Result {
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
    for (name, kind, help, figure) in FIGURES {
        family(out, name, kind, help)?;
        let suffix = if kind == "counter" { "_total" } else { "" };
        for (name_of, pending) in &figures.pending {
            let object = escaped(name_of);
            out.line(&format!("{name}{suffix}{{pool=\"{path}\",object=\"{object}\"}} {}", figure(pending)))?;
        }
    }
    Ok(())
}

fn replication(out: &mut Out, path: &str, replicas: &[Replica]) -> Result {
    family(out, "pmo_replica_runs", "gauge", "Running `pmo replicate run` of this machine and user.")?;
    out.line(&format!("pmo_replica_runs{{pool=\"{path}\"}} {}", replicas.len()))?;
    let mut each = |name: &str, help: &str, figure: &dyn Fn(&Replica) -> Option<String>| -> Result {
        family(out, name, "gauge", help)?;
        for replica in replicas {
            let Some(figure) = figure(replica) else { continue };
            let (store, pid) = (escaped(replica.store()), replica.process());
            out.line(&format!("{name}{{pool=\"{path}\",store=\"{store}\",pid=\"{pid}\"}} {figure}"))?;
        }
        Ok(())
    };
    each(
        "pmo_replica_lag_seconds",
        "Time since the moment up to which all changes are in the store; absent before the run's first moment.",
        &|replica| replica.lag().map(|lag| format!("{lag:.2}")),
    )?;
    each(
        "pmo_replica_lag_psyncs",
        "Psyncs of the shown objects that the store does not have; absent before the first moment, and for more than 65536 objects.",
        &|replica| replica.behind().map(|psyncs| psyncs.to_string()),
    )
}

#[derive(Default)]
struct Figures {
    bytes: Vec<u8>,
    places: Vec<usize>,
    pending: Vec<(String, Pending)>,
}

struct Figured<'f> {
    name: &'f str,
    state: char,
    holder: Option<u64>,
    figures: [Option<u64>; OBJECTS.len()],
}

impl Figures {
    fn keep(&mut self, pool: &Pool, stat: &Stat) {
        self.places.push(self.bytes.len());
        self.put(Some(stat.name.len() as u64));
        self.bytes.extend(stat.name.as_bytes());
        self.put(Some(u64::from(stat.state.letter())));
        self.put(stat.holder.or(stat.holder_elsewhere).map(u64::from));
        for (_, _, _, figure) in OBJECTS {
            self.put(figure(stat));
        }
        self.pending.extend(Pending::of(pool, stat).map(|pending| (stat.name.clone(), pending)));
    }

    fn put(&mut self, figure: Option<u64>) {
        let mut rest = figure.map_or(0, |figure| u128::from(figure) + 1);
        while rest > 0x7f {
            self.bytes.push(rest as u8 | 0x80);
            rest >>= 7;
        }
        self.bytes.push(rest as u8);
    }

    fn sort(&mut self) {
        let bytes = &self.bytes;
        self.places.sort_unstable_by_key(|place| name_of(&mut &bytes[*place..]));
        self.pending.sort_unstable_by(|a, b| a.0.cmp(&b.0));
    }

    fn objects(&self) -> impl Iterator<Item = Figured<'_>> {
        self.places.iter().map(|place| {
            let mut rest = &self.bytes[*place..];
            let name = std::str::from_utf8(name_of(&mut rest)).unwrap_or_default();
            let state = take(&mut rest).and_then(|state| char::from_u32(state as u32)).unwrap_or('?');
            let holder = take(&mut rest);
            Figured { name, state, holder, figures: std::array::from_fn(|_| take(&mut rest)) }
        })
    }
}

fn name_of<'f>(rest: &mut &'f [u8]) -> &'f [u8] {
    let len = take(rest).unwrap_or(0) as usize;
    let (name, behind) = rest.split_at(len);
    *rest = behind;
    name
}

fn take(rest: &mut &[u8]) -> Option<u64> {
    let mut figure = 0_u128;
    for shift in (0..).step_by(7) {
        let (byte, behind) = rest.split_first()?;
        *rest = behind;
        figure |= u128::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            break;
        }
    }
    figure.checked_sub(1).map(|figure| figure as u64)
}

fn family(out: &mut Out, name: &str, kind: &str, help: &str) -> Result {
    out.line(&format!("# TYPE {name} {kind}"))?;
    out.line(&format!("# HELP {name} {help}"))
}

fn escaped(text: &str) -> String {
    printable(text).replace('\\', "\\\\").replace('"', "\\\"")
}
