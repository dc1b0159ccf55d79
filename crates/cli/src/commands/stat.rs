use crate::alike;
use crate::bytes::{exactly, human};
use crate::context::Context;
use crate::failure::Result;
use crate::out::{Out, show};
use crate::process::{Holder, is_zero, listed};
use crate::text::{address, count, hex, printable, time};
use crate::values::pool;
use clap::Args;
use indelible::{Class, Pool, Stat as ObjectStat, State};
use serde::Serialize;
use std::path::PathBuf;

/// Show all that is known of a pool, or of one of its objects
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  pmo stat data.pmo
  pmo stat data.pmo counters
  pmo stat data.pmo --json | jq .free

JSON of a pool:
  {\"path\":\"/srv/data.pmo\",\"label\":\"\",\"id\":\"…32 hex digits…\",\"medium\":\"file\",\"version\":1,
   \"length\":1073741824,\"objects\":1,\"free\":1073152000,\"largest_free\":1073152000,\"free_pieces\":1,
   \"window\":\"0x6a2b40000000\",\"window_len\":1099511627776,\"boots\":1,\"created\":\"2025-01-01T00:00:00Z\"}

JSON of an object:
  {\"name\":\"counters\",\"id\":\"…\",\"state\":\"D\",\"holder\":null,\"needs_recovery\":false,\"size\":4096,
   \"extent\":4096,\"offset\":589824,\"address\":\"0x6a2b40000000\",\"reach\":65536,\"published\":4096,\"psyncs\":7,
   \"class\":\"psync\",
   \"read_only\":false,\"sparse\":false,\"volatile\":false,\"gone\":false,\"sealed\":false,\"ecc\":false,
   \"readable_outside\":false,\"snapshot\":false,
   \"position_independent\":false,\"by_content\":false,\"shares\":false,
   \"own\":4096,\"read_key\":false,\"write_key\":false,\"created\":\"2025-01-01T00:00:00Z\"}
  of an object that a process has on demand also
  \"pending\":{\"transactions\":12,\"bytes\":768,\"age_seconds\":0.31,\"at_once\":0}
  commits that a power cut would take: transactions and age those of the process in the pool, bytes those of the object; at_once: \
transactions that the guard had become durable before they returned")]
pub struct Stat {
    /// The pool
    #[arg(value_parser = pool())]
    pool: PathBuf,

    /// Name of an object
    name: Option<String>,
}

#[derive(Serialize)]
pub struct PoolReport {
    pub path: String,
    pub label: String,
    pub id: String,
    pub medium: &'static str,
    pub version: u32,
    pub length: u64,
    pub objects: u64,
    pub free: u64,
    pub largest_free: u64,
    pub free_pieces: u64,
    pub window: String,
    pub window_len: u64,
    pub boots: u32,
    pub created: String,
}

#[derive(Serialize)]
pub struct ObjectReport {
    pub name: String,
    pub id: String,
    pub state: char,
    pub holder: Option<Holder>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub other_readers: Vec<Holder>,
    #[serde(skip_serializing_if = "is_zero")]
    pub unseen_readers: usize,
    pub needs_recovery: bool,
    /// The last writer, where this may be a copy of a pool in use.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub living_writer: Option<u32>,
    pub size: u64,
    pub extent: u64,
    pub offset: u64,
    pub address: String,
    pub reach: u64,
    pub published: u64,
    pub psyncs: u64,
    pub class: String,
    pub read_only: bool,
    pub sparse: bool,
    pub volatile: bool,
    pub gone: bool,
    pub sealed: bool,
    pub ecc: bool,
    pub readable_outside: bool,
    pub snapshot: bool,
    pub position_independent: bool,
    pub by_content: bool,
    pub shares: bool,
    pub own: u64,
    pub read_key: bool,
    pub write_key: bool,
    pub created: String,
    /// Pending commits on demand; lists omit them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pending: Option<Pending>,
    /// Objects that it outlives, by name; lists omit them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub ties: Vec<String>,
}

#[derive(Serialize)]
pub struct Pending {
    pub transactions: u64,
    pub bytes: u64,
    pub age_seconds: f64,
    pub at_once: u64,
}

impl Pending {
    /// `None`: another class, or no permission to look.
    pub fn of(pool: &Pool, stat: &ObjectStat) -> Option<Pending> {
        if stat.class.is_none_or(|class| class == Class::Psync) {
            return None;
        }
        let found = pool.pending(&stat.name).ok()??;
        Some(Pending {
            transactions: found.transactions,
            bytes: found.bytes,
            age_seconds: found.age.as_secs_f64(),
            at_once: found.at_once,
        })
    }

    fn text(&self) -> String {
        let (commits, bytes) = (count(self.transactions, "transaction"), human(self.bytes));
        format!(
            "{commits} of the process, {bytes} of the object, since {:.3} s; {} durable at once",
            self.age_seconds, self.at_once
        )
    }
}

impl PoolReport {
    pub fn of(pool: &Pool) -> Result<Self> {
        let info = pool.info()?;
        Ok(PoolReport {
            path: info.path.to_string_lossy().into_owned(),
            label: info.label,
            id: hex(&info.id),
            medium: info.medium.word(),
            version: info.version,
            length: info.length,
            objects: info.objects,
            free: info.free,
            largest_free: info.largest_free,
            free_pieces: info.free_pieces,
            window: address(info.window),
            window_len: info.window_len,
            boots: info.boots,
            created: time(info.created),
        })
    }

    fn text(&self, out: &mut Out) -> Result {
        let label = if self.label.is_empty() { "-".to_owned() } else { printable(&self.label) };
        out.fields(&[
            ("pool", printable(&self.path)),
            ("label", label),
            ("id", self.id.clone()),
            ("medium", self.medium.to_owned()),
            ("format", format!("version {}", self.version)),
            ("length", exactly(self.length)),
            ("objects", self.objects.to_string()),
            (
                "free",
                format!(
                    "{}, largest piece {}, {}",
                    human(self.free),
                    human(self.largest_free),
                    count(self.free_pieces, "piece")
                ),
            ),
            ("addresses", format!("{} and {} from there", self.window, human(self.window_len))),
            ("boots", format!("{} wrote to it", self.boots)),
            ("formatted", self.created.clone()),
        ])
    }
}

impl ObjectReport {
    pub fn of(stat: &ObjectStat) -> Self {
        ObjectReport {
            name: stat.name.clone(),
            id: hex(&stat.id),
            state: stat.state.letter(),
            holder: Holder::of(stat),
            other_readers: Holder::others(stat),
            unseen_readers: stat.unseen_readers,
            needs_recovery: stat.needs_recovery,
            living_writer: stat.living_writer,
            size: stat.size,
            extent: stat.extent,
            offset: stat.offset,
            address: address(stat.address),
            reach: stat.reach,
            published: stat.published,
            psyncs: stat.psyncs,
            class: class(stat),
            read_only: stat.read_only,
            sparse: stat.sparse,
            volatile: stat.volatile,
            gone: stat.gone,
            sealed: stat.sealed,
            ecc: stat.ecc,
            readable_outside: stat.readable_outside,
            snapshot: stat.snapshot,
            position_independent: stat.position_independent,
            by_content: stat.by_content,
            shares: stat.shares,
            own: stat.own,
            read_key: stat.read_key,
            write_key: stat.write_key,
            created: time(stat.created),
            pending: None,
            ties: Vec::new(),
        }
    }

    /// Adds pending commits and ties if readable; `pmo check` reports the rest.
    pub fn with_ties(pool: &Pool, stat: &ObjectStat) -> Self {
        let ties = pool.ties(&stat.name).unwrap_or_default();
        let ties = ties.into_iter().map(|tie| tie.name + if tie.deleted { " (deleted)" } else { "" });
        ObjectReport { ties: ties.collect(), pending: Pending::of(pool, stat), ..ObjectReport::of(stat) }
    }

    fn flags(&self) -> String {
        let flags = [
            (self.snapshot, "snapshot"),
            (self.read_only && !self.snapshot, "read-only"),
            // An object that shares pages claims space when they change.
            (self.sparse && !self.shares, "sparse"),
            (self.shares, "shares pages"),
            (self.sealed, "sealed"),
            (self.ecc, "check words"),
            (self.readable_outside, "readable outside"),
            (self.position_independent, "position-independent"),
            (self.by_content, "ID by content"),
            (self.volatile && !self.gone, "volatile"),
            (self.gone, "volatile, of an earlier boot: gone"),
            (self.read_key, "read key"),
            (self.write_key, "write key"),
        ];
        let set: Vec<_> = flags.into_iter().filter(|(set, _)| *set).map(|(_, word)| word).collect();
        if set.is_empty() { "-".to_owned() } else { set.join(", ") }
    }

    fn text(&self, state: State, out: &mut Out) -> Result {
        let holder = match listed(self.holder.as_ref(), &self.other_readers, self.unseen_readers) {
            listed if !listed.is_empty() => listed,
            _ if state == State::Detached || self.needs_recovery => "-".to_owned(),
            _ => "?".to_owned(),
        };
        let ties: Vec<_> = self.ties.iter().map(|name| printable(name)).collect();
        out.fields(&[
            ("name", printable(&self.name)),
            ("id", self.id.clone()),
            ("state", format!("{}, {}", self.state, self.meaning(state))),
            ("holder", holder),
            ("size", exactly(self.size)),
            ("extent", format!("{} at offset {}", exactly(self.extent), self.offset)),
            ("own", exactly(self.own)),
            ("address", format!("{}, can grow to {}", self.address, human(self.reach))),
            ("psyncs", format!("{}, up to byte {}", self.psyncs, self.published)),
            ("class", self.class.clone()),
            ("pending", self.pending.as_ref().map_or_else(|| "-".to_owned(), Pending::text)),
            ("flags", self.flags()),
            ("tied to", if ties.is_empty() { "-".to_owned() } else { ties.join(", ") }),
            ("created", self.created.clone()),
        ])
    }

    pub fn meaning(&self, state: State) -> String {
        if let Some(pid) = self.living_writer {
            return format!(
                "its last writer, process {pid}, runs, and does not have this file: this may be a copy of a pool in use"
            );
        }
        let words = match (self.needs_recovery, state) {
            (true, State::Copying) => "its last writer died: the next attach completes its last psync",
            (true, _) => "its last writer died: the next attach recovers it",
            (false, State::Detached) => "detached: nobody has it",
            (false, State::Reading) => "attached for reading",
            (false, State::Persisting) => "a psync is being made durable",
            (false, State::Copying) => "a psync is being brought in place",
            (false, _) => "attached for writing",
        };
        words.to_owned()
    }
}

pub fn flags(stat: &ObjectStat) -> String {
    ObjectReport::of(stat).flags()
}

pub fn class(stat: &ObjectStat) -> String {
    stat.class.map_or_else(|| "of a later release".to_owned(), |class| class.to_string())
}

pub fn run(context: &Context, args: &Stat) -> Result {
    let pool = context.look(&args.pool)?;
    match &args.name {
        None => show(context.json, &PoolReport::of(&pool)?, |report, out| report.text(out)),
        Some(name) => {
            let stat = pool.stat(name).map_err(|error| alike::explain(&pool, name, error))?;
            let report = ObjectReport::with_ties(&pool, &stat);
            show(context.json, &report, |report, out| report.text(stat.state, out))
        }
    }
}
