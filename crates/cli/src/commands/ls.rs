//! `pmo ls`: the objects of a pool, by name.

use crate::bytes::human;
use crate::context::Context;
use crate::exit::Exit;
use crate::failure::{Failure, Result, note};
use crate::glob::Glob;
use crate::out::Out;
use crate::process::Holder;
use crate::text::printable;
use clap::Args;
use indelible::{ErrorKind, Pool, Stat};
use serde::Serialize;
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
  pmo ls data.pmo --json | jq -r '.[] | select(.needs_recovery).name'

JSON:
  [
  {\"name\":\"a\",\"state\":\"W\",\"holder\":{\"pid\":4711,\"command\":\"redis\"},\"needs_recovery\":false,\"size\":4096}
  ]
  holder is null if nobody has the object, or if it is not known who. It has \"stopped\":true if the process
  is stopped, and \"elsewhere\":true if it belongs to another pid namespace, where pid is its ID.")]
pub struct Ls {
    /// The pool
    pool: PathBuf,

    /// Which names: a pattern with *, ? and [a-z]
    #[arg(value_name = "NAME-PATTERN")]
    pattern: Option<String>,
}

/// The fields of a line. Small: a pool may have millions of objects, and sorting needs all of them.
#[derive(Serialize)]
struct Row {
    name: String,
    state: char,
    holder: Option<Box<Holder>>,
    needs_recovery: bool,
    size: u64,
}

impl Row {
    fn of(stat: Stat) -> Self {
        let holder = Holder::of(&stat).map(Box::new);
        let Stat { mut name, state, needs_recovery, size, .. } = stat;
        name.shrink_to_fit();
        Row { name, state: state.letter(), holder, needs_recovery, size }
    }

    fn holder(&self) -> String {
        match (&self.holder, self.needs_recovery) {
            (Some(holder), _) => holder.to_string(),
            (None, true) => "needs recovery".to_owned(),
            (None, false) if self.state == 'D' => "-".to_owned(),
            (None, false) => "?".to_owned(),
        }
    }
}

pub fn run(context: &Context, args: &Ls) -> Result {
    let pool = context.look(&args.pool)?;
    let mut damaged = false;
    let rows = rows(&pool, args.pattern.as_deref(), &mut damaged)?;
    let mut out = Out::new();
    if context.json {
        out.array(&rows)?;
    } else {
        text(&rows, &mut out)?;
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
fn rows(pool: &Pool, pattern: Option<&str>, damaged: &mut bool) -> Result<Vec<Row>> {
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
            rows.push(Row::of(stat));
        }
    }
    rows.sort_unstable_by(|a, b| a.name.cmp(&b.name));
    Ok(rows)
}

fn text(rows: &[Row], out: &mut Out) -> Result {
    if rows.is_empty() {
        return Ok(());
    }
    let width = rows.iter().map(|row| row.holder().chars().count()).max().unwrap_or(0).max("HOLDER".len());
    out.line(&format!("STATE  {:<width$}  {:>10}  NAME", "HOLDER", "SIZE"))?;
    for row in rows {
        let (holder, size, name) = (row.holder(), human(row.size), printable(&row.name));
        out.line(&format!("{}      {holder:<width$}  {size:>10}  {name}", row.state))?;
    }
    Ok(())
}
