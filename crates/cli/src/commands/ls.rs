use crate::bytes::human;
use crate::commands::stat::{ObjectReport, class, flags};
use crate::context::Context;
use crate::directory::Directory;
use crate::exit::Exit;
use crate::failure::{Failure, Result};
use crate::listing::{Matching, every, matching, spread};
use crate::out::{Out, Widths};
use crate::process::{Holder, is_zero, listed};
use crate::rows::Rows;
use crate::terminal::note;
use crate::text::{address, count, hex, printable, time};
use crate::values::pool;
use clap::{Args, ValueEnum};
use indelible::{Pool, Selection, Stat, State};
use serde::Serialize;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::UNIX_EPOCH;

/// List objects by name: state, holders, size
///
/// States: D detached · R attached by readers · W attached by a writer, in a psync or not · C the
/// last writer died, and its last psync waits to be brought in place. (P, a psync on its way to
/// being durable, leaves nothing behind when its writer dies.) "needs recovery" marks objects whose
/// last writer died; the next attach recovers them, to exactly their last psync.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  pmo ls data.pmo
  pmo ls data.pmo logs/         what is in the directory; those in it are a line each
  pmo ls data.pmo /             the directories of the pool, and the objects in none
  pmo ls data.pmo logs/ --recursive
  pmo ls data.pmo 'logs/*.old'  * also covers /; ? and [a-z] work, too
  pmo ls data.pmo --sort size --columns size,psyncs,name
  pmo ls data.pmo 'ledger@*' --sort own --columns own,created,name    what each snapshot takes
  pmo ls data.pmo --json | jq -r '.[] | select(.needs_recovery).name'

JSON:
  [
  {\"name\":\"a\",\"state\":\"W\",\"holder\":{\"pid\":4711,\"command\":\"redis\"},\"needs_recovery\":false,\"size\":4096,
   \"own\":4096}
  ]
  A directory in the one that is listed is {\"name\":\"logs/old/\",\"directory\":true,\"objects\":12,\"size\":49152,\"own\":49152}.
  own are the bytes of pages that the object does not share with what it was copied from, or with its snapshots.
  holder is null if nobody has the object, or if it is not known who. It has \"stopped\":true if the process \
is stopped, and \"elsewhere\":true if it belongs to another pid namespace, where pid is its ID. An object that several \
processes read has the others in \"other_readers\":[…], and in \"unseen_readers\" the number of those that you may not see, \
at least.")]
pub struct Ls {
    /// The pool
    #[arg(value_parser = pool())]
    pool: PathBuf,

    /// Which names: a pattern with *, ? and [a-z], or a directory, with / at its end
    #[arg(value_name = "NAME-PATTERN")]
    pattern: Option<String>,

    /// List the objects of inner directories, too
    #[arg(short = 'R', long, requires = "pattern")]
    recursive: bool,

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

const USUAL: [Column; 4] = [Column::State, Column::Holder, Column::Size, Column::Name];

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
    fn rank(self, stat: &Stat) -> u64 {
        match self {
            Order::Name => 0,
            Order::Size => !stat.size,
            Order::Own => !stat.own,
            Order::Psyncs => !stat.psyncs,
            Order::Created => !stat.created.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs()),
            Order::State => stat.state.letter().into(),
        }
    }
}

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

/// A subdirectory.
#[derive(Serialize)]
struct Inner<'a> {
    name: &'a str,
    directory: bool,
    #[serde(flatten)]
    totals: Totals,
}

#[derive(Clone, Copy, Default, Serialize)]
struct Totals {
    objects: u64,
    size: u64,
    own: u64,
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

impl Column {
    fn of_directory(self, name: &str, totals: &Totals) -> String {
        match self {
            Column::State => "/".to_owned(),
            Column::Holder => count(totals.objects, "object"),
            Column::Size => human(totals.size),
            Column::Own => human(totals.own),
            Column::Name => printable(name),
            _ => "-".to_owned(),
        }
    }
}

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
    let found = Found::look(&pool, context, args)?;
    let mut out = Out::new();
    let mut damaged = found.damaged;
    if context.json { found.json(args, &mut out, &mut damaged) } else { found.text(args, &mut out) }?;
    out.finish()?;
    if damaged {
        return Err(Failure::Quiet(Exit::Damaged));
    }
    if found.is_empty() {
        if let Some(directory) = args.directory().filter(|directory| !directory.prefix().is_empty()) {
            return Err(directory.missing());
        }
        if !context.json {
            note(match args.pattern.as_deref() {
                Some(pattern) if pattern != "/" => "no object has such a name",
                _ => "the pool has no objects yet; `pmo create POOL NAME SIZE` makes one",
            });
        }
    }
    Ok(())
}

impl Ls {
    fn directory(&self) -> Option<Directory> {
        Directory::of(self.pattern.as_deref()?)
    }

    fn columns(&self) -> &[Column] {
        match (self.long, self.columns.is_empty()) {
            (true, _) => Column::value_variants(),
            (false, true) => &USUAL,
            (false, false) => &self.columns,
        }
    }
}

struct Found {
    directories: BTreeMap<String, Totals>,
    /// For JSON, which reads each object again: kept lines would take too much memory.
    objects: Selection,
    rows: Rows,
    widths: Widths,
    damaged: bool,
}

enum Shown {
    Inner(String, Stat),
    Row { rank: u64, name: String, cells: Vec<String> },
    Stat { rank: u64, stat: Stat },
}

impl Found {
    fn look(pool: &Pool, context: &Context, args: &Ls) -> Result<Found> {
        let columns = args.columns();
        let numbers: Vec<bool> = columns.iter().map(|column| column.is_number()).collect();
        let mut found = Found {
            directories: BTreeMap::new(),
            objects: pool.selection(),
            rows: Rows::default(),
            widths: Widths::of(&numbers),
            damaged: false,
        };
        let directory = args.directory();
        let flat = directory.as_ref().filter(|_| !args.recursive);
        let show = |stat: Stat| {
            if let Some(inner) = flat.and_then(|directory| directory.child(&stat.name)) {
                return Shown::Inner(inner.to_owned(), stat);
            }
            let rank = args.sort.rank(&stat);
            match context.json {
                true => Shown::Stat { rank, stat },
                false => Shown::Row { rank, cells: cells(columns, &stat), name: stat.name },
            }
        };
        let mut damaged = false;
        let look = |shown| {
            match shown {
                Shown::Inner(inner, stat) => found.count(&inner, &stat),
                Shown::Stat { rank, stat } => found.objects.add(&stat, rank),
                Shown::Row { rank, name, cells } => {
                    found.widths.fit(&cells[..padded(columns).len()]);
                    found.rows.add(rank, &name, columns.iter().zip(cells).filter(is_kept).map(|cell| cell.1));
                }
            }
            Ok(())
        };
        let matching = match directory.clone() {
            Some(inside) => Matching::List(pool.list().named(move |name| inside.has(name))),
            None => matching(pool, args.pattern.as_deref()),
        };
        match matching {
            Matching::List(list) => spread(list, &mut damaged, show, look),
            Matching::One(one) => every(one.map(|one| (*one).map(show)), &mut damaged, look),
        }?;
        found.damaged = damaged;
        found.objects.sort();
        found.rows.sort();
        if args.reverse {
            found.objects.reverse();
            found.rows.reverse();
        }
        Ok(found)
    }

    fn count(&mut self, directory: &str, stat: &Stat) {
        if !self.directories.contains_key(directory) {
            self.directories.insert(directory.to_owned(), Totals::default());
        }
        if let Some(totals) = self.directories.get_mut(directory) {
            totals.objects += 1;
            totals.size = totals.size.saturating_add(stat.size);
            totals.own = totals.own.saturating_add(stat.own);
        }
    }

    fn is_empty(&self) -> bool {
        self.objects.is_empty() && self.rows.is_empty() && self.directories.is_empty()
    }

    fn directories(&self, args: &Ls) -> Vec<(&String, &Totals)> {
        let mut all: Vec<_> = self.directories.iter().collect();
        if args.reverse {
            all.reverse();
        }
        all
    }

    fn json(&self, args: &Ls, out: &mut Out, damaged: &mut bool) -> Result {
        let mut array = out.begin_array();
        for (name, totals) in self.directories(args) {
            array.push(&Inner { name, directory: true, totals: *totals })?;
        }
        every(self.objects.stats(), damaged, |stat| match args.long {
            true => array.push(&ObjectReport::of(&stat)),
            false => array.push(&Row::of(&stat)),
        })?;
        array.end()
    }

    fn text(&self, args: &Ls, out: &mut Out) -> Result {
        if self.is_empty() {
            return Ok(());
        }
        let columns = args.columns();
        let mut first: Vec<Vec<String>> = Vec::new();
        if !args.no_header {
            first.push(columns.iter().map(|column| column.heading()).collect());
        }
        for (name, totals) in self.directories(args) {
            first.push(columns.iter().map(|column| column.of_directory(name, totals)).collect());
        }
        let mut widths = self.widths.clone();
        first.iter().for_each(|line| widths.fit(line));
        first.iter().try_for_each(|line| out.row(line, &widths))?;
        self.rows.each(|name, kept| {
            let cells = columns.iter().map(|column| match column {
                Column::Name => Cow::Owned(printable(name)),
                _ => Cow::Borrowed(kept.next().unwrap_or_default()),
            });
            out.row(cells, &widths)
        })
    }
}

/// The name makes its own cell.
fn is_kept((column, _): &(&Column, String)) -> bool {
    !matches!(column, Column::Name)
}

fn padded(columns: &[Column]) -> &[Column] {
    match columns.split_last() {
        Some((last, others)) if !last.is_number() => others,
        _ => columns,
    }
}

fn cells(columns: &[Column], stat: &Stat) -> Vec<String> {
    columns.iter().map(|column| column.text(stat)).collect()
}
