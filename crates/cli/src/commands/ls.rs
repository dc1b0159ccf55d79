//! `pmo ls`: the objects of a pool, by name.

use crate::bytes::human;
use crate::commands::stat::{ObjectReport, class, flags};
use crate::context::Context;
use crate::exit::Exit;
use crate::failure::{Failure, Result};
use crate::glob::Glob;
use crate::out::Out;
use crate::process::{Holder, is_zero, listed};
use crate::terminal::note;
use crate::text::{address, hex, printable, time};
use crate::values::pool;
use clap::{Args, ValueEnum};
use indelible::{ErrorKind, Pool, Stat, State};
use serde::Serialize;
use std::cmp::Ordering;
use std::path::PathBuf;

/// List objects by name: state, who has them, size
///
/// States: D detached, nobody has it · R readers have it · W a writer has it, in a psync or not · C the
/// last writer died, and its last psync waits to be brought in place. (P, a psync on its way to being
/// durable, leaves nothing behind when its writer dies.) "needs recovery" marks objects whose last writer
/// died; the next attach recovers them, to exactly their last psync.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  pmo ls data.pmo
  pmo ls data.pmo 'logs/*'      * also covers /, names are not paths; ? and [a-z] work, too
  pmo ls data.pmo --sort size --columns size,psyncs,name
  pmo ls data.pmo 'ledger@*' --sort own --columns own,created,name    what each snapshot takes
  pmo ls data.pmo --json | jq -r '.[] | select(.needs_recovery).name'

JSON:
  [
  {\"name\":\"a\",\"state\":\"W\",\"holder\":{\"pid\":4711,\"command\":\"redis\"},\"needs_recovery\":false,\"size\":4096,
   \"own\":4096}
  ]
  own are the bytes of pages that the object does not share with what it was copied from, or with its snapshots.
  holder is null if nobody has the object, or if it is not known who. It has \"stopped\":true if the process \
is stopped, and \"elsewhere\":true if it belongs to another pid namespace, where pid is its ID. An object that several \
processes read has the others in \"other_readers\":[…], and in \"unseen_readers\" the number of those that you may not see, \
at least.")]
pub struct Ls {
    /// The pool
    #[arg(value_parser = pool())]
    pool: PathBuf,

    /// Which names: a pattern with *, ? and [a-z]
    #[arg(value_name = "NAME-PATTERN")]
    pattern: Option<String>,

    /// Sort by this: size, own, psyncs and created begin with the largest
    #[arg(short, long, value_name = "ORDER", value_enum, default_value_t)]
    sort: Order,

    /// The other way round
    #[arg(short, long)]
    reverse: bool,

    /// Show these columns, separated by commas
    #[arg(short, long, value_name = "COLUMNS", value_enum, value_delimiter = ',', conflicts_with = "long")]
    columns: Vec<Column>,

    /// Show all columns; with --json all that `pmo stat` has
    #[arg(short, long)]
    long: bool,

    /// Leave the line with the names of the columns out
    #[arg(long)]
    no_header: bool,
}

/// A column of the listing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Column {
    State,
    Holder,
    Size,
    Name,
    Psyncs,
    Published,
    Extent,
    Own,
    Address,
    Reach,
    Created,
    Id,
    Class,
    Flags,
}

/// The columns unless others are chosen.
const USUAL: [Column; 4] = [Column::State, Column::Holder, Column::Size, Column::Name];

/// The order of lines.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum Order {
    #[default]
    Name,
    Size,
    Own,
    Psyncs,
    Created,
    State,
}

impl Order {
    /// Largest, latest first; names ascending, where all else is equal, too.
    fn compare(self, a: &Stat, b: &Stat) -> Ordering {
        let first = match self {
            Order::Name => Ordering::Equal,
            Order::Size => b.size.cmp(&a.size),
            Order::Own => b.own.cmp(&a.own),
            Order::Psyncs => b.psyncs.cmp(&a.psyncs),
            Order::Created => b.created.cmp(&a.created),
            Order::State => a.state.letter().cmp(&b.state.letter()),
        };
        first.then_with(|| a.name.cmp(&b.name))
    }
}

/// The fields of a line for programs.
#[derive(Serialize)]
struct Row<'a> {
    name: &'a str,
    state: char,
    holder: Option<Holder>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    other_readers: Vec<Holder>,
    #[serde(skip_serializing_if = "is_zero")]
    unseen_readers: usize,
    needs_recovery: bool,
    size: u64,
    own: u64,
}

impl<'a> Row<'a> {
    fn of(stat: &'a Stat) -> Self {
        Row {
            name: &stat.name,
            state: stat.state.letter(),
            holder: Holder::of(stat),
            other_readers: Holder::others(stat),
            unseen_readers: stat.unseen_readers,
            needs_recovery: stat.needs_recovery,
            size: stat.size,
            own: stat.own,
        }
    }
}

impl Column {
    fn heading(self) -> String {
        self.to_possible_value().map_or_else(String::new, |value| value.get_name().to_uppercase())
    }

    fn is_number(self) -> bool {
        use Column::{Extent, Own, Psyncs, Published, Reach, Size};
        matches!(self, Size | Psyncs | Published | Extent | Own | Reach)
    }

    fn text(self, stat: &Stat) -> String {
        match self {
            Column::State => stat.state.letter().to_string(),
            Column::Holder => held_by(stat),
            Column::Size => human(stat.size),
            Column::Name => printable(&stat.name),
            Column::Psyncs => stat.psyncs.to_string(),
            Column::Published => human(stat.published),
            Column::Extent => human(stat.extent),
            Column::Own => human(stat.own),
            Column::Address => address(stat.address),
            Column::Reach => human(stat.reach),
            Column::Created => time(stat.created),
            Column::Id => hex(&stat.id),
            Column::Class => class(stat),
            Column::Flags => flags(stat),
        }
    }
}

/// The processes that have an object, for people.
pub fn held_by(stat: &Stat) -> String {
    let listed = listed(Holder::of(stat).as_ref(), &Holder::others(stat), stat.unseen_readers);
    match (!listed.is_empty(), stat.needs_recovery) {
        (true, _) => listed,
        (false, true) => "needs recovery".to_owned(),
        (false, false) if stat.state == State::Detached => "-".to_owned(),
        (false, false) => "?".to_owned(),
    }
}

pub fn run(context: &Context, args: &Ls) -> Result {
    let pool = context.look(&args.pool)?;
    let mut damaged = false;
    let mut rows = rows(&pool, args.pattern.as_deref(), &mut damaged)?;
    rows.sort_unstable_by(|a, b| args.sort.compare(a, b));
    if args.reverse {
        rows.reverse();
    }
    let mut out = Out::new();
    if !context.json {
        text(&rows, args, &mut out)?;
    } else if args.long {
        out.array(rows.iter().map(ObjectReport::of))?;
    } else {
        out.array(rows.iter().map(Row::of))?;
    }
    out.finish()?;
    if damaged {
        return Err(Failure::Quiet(Exit::Damaged));
    }
    if rows.is_empty() && !context.json {
        note(match args.pattern {
            Some(_) => "no object has such a name",
            None => "the pool has no objects yet; `pmo create POOL NAME SIZE` makes one",
        });
    }
    Ok(())
}

/// The objects that match. Damaged ones are reported, and the rest listed.
pub fn rows(pool: &Pool, pattern: Option<&str>, damaged: &mut bool) -> Result<Vec<Stat>> {
    let glob = pattern.map(Glob::new);
    let mut rows = Vec::new();
    for stat in pool.list() {
        let stat = match stat {
            Ok(stat) => stat,
            Err(error) if error.kind() == ErrorKind::Damaged => {
                Failure::from(error).report();
                *damaged = true;
                continue;
            }
            Err(error) => return Err(error.into()),
        };
        if glob.as_ref().is_none_or(|glob| glob.matches(&stat.name)) {
            rows.push(stat);
        }
    }
    Ok(rows)
}

fn text(rows: &[Stat], args: &Ls, out: &mut Out) -> Result {
    if rows.is_empty() {
        return Ok(());
    }
    let columns: &[Column] = match (args.long, args.columns.is_empty()) {
        (true, _) => Column::value_variants(),
        (false, true) => &USUAL,
        (false, false) => &args.columns,
    };
    let mut table: Vec<Vec<String>> = Vec::new();
    if !args.no_header {
        table.push(columns.iter().map(|column| column.heading()).collect());
    }
    table.extend(rows.iter().map(|stat| columns.iter().map(|column| column.text(stat)).collect()));
    let numbers: Vec<bool> = columns.iter().map(|column| column.is_number()).collect();
    out.table(&table, &numbers)
}
