mod roots;

use crate::alike;
use crate::bytes::{exactly, human};
use crate::context::Context;
use crate::failure::{Result, object};
use crate::keys::KeyArgs;
use crate::out::{Out, show};
use crate::text::count;
use crate::values::pool;
use clap::Args;
use indelible::Difference;
use serde::Serialize;
use std::path::PathBuf;

const PAGE: u64 = 4096;

/// Show which pages of two objects, or snapshots, hold other bytes
///
/// Either may be an object, a snapshot or a copy. An object counts with the state of its last
/// psync, attached or not. Shared pages are equal, and not read: of two snapshots of a large object
/// only the changes in between cost time.
///
/// For heaps, names the roots that differ in type, are in only one of the two, or have different
/// values, as far as the types of the roots are described. Values that only raw pointers lead to
/// belong to no root.
///
/// A sealed object is compared with its snapshots and copies without its seal key, and without its
/// roots: by the pages that were sealed anew in between, even with their former bytes.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  pmo diff data.pmo ledger@2026-11-24T03:00:00Z ledger
  pmo diff data.pmo monday tuesday --json | jq .bytes

JSON: {\"older_size\":9000,\"newer_size\":9000,\"pages\":1,\"bytes\":4096,\"ranges\":[{\"offset\":4096,\"length\":4096}],
   \"roots\":[{\"name\":\"list\",\"change\":\"changed\",\"type\":\"PVec<u64>\"}]}
  change is added, removed, retyped (with the older type in \"was\"), changed, or unknown; roots is null if the two are sealed, have check words, or are no heaps
  all of it in bytes, but for pages, which are those that differ; bytes behind the end of an object count as zeros")]
pub struct Diff {
    /// The pool
    #[arg(value_parser = pool())]
    pool: PathBuf,

    /// Name of the older one
    older: String,

    /// Name of the newer one
    newer: String,

    #[command(flatten)]
    key: KeyArgs,
}

#[derive(Serialize)]
struct Report {
    older_size: u64,
    newer_size: u64,
    pages: u64,
    bytes: u64,
    ranges: Vec<Range>,
    roots: Option<Vec<roots::RootChange>>,
}

#[derive(Serialize)]
struct Range {
    offset: u64,
    length: u64,
}

pub fn run(context: &Context, args: &Diff) -> Result {
    let key = args.key.read()?;
    let pool = context.open_to_read(&args.pool)?;
    let found = pool.diff(&args.older, &args.newer, &key).map_err(|error| {
        let missing = [&args.older, &args.newer].into_iter().find(|name| pool.stat(name).is_err());
        alike::explain(&pool, missing.unwrap_or(&args.newer), error)
    })?;
    // A sealed object's content needs its seal key; check words make the pool's bytes differ from
    // those of programs.
    let not_looked_at = pool.stat(&args.newer).is_ok_and(|stat| stat.sealed || stat.ecc);
    let roots = match not_looked_at {
        true => None,
        false => roots::changed(&pool, (&args.older, &args.newer), &key, &found)?,
    };
    show(context.json, &Report::of(&found, roots), |report, out| report.text(args, out))
}

impl Report {
    fn of(found: &Difference, roots: Option<Vec<roots::RootChange>>) -> Report {
        let range = |pages: &std::ops::Range<u64>| Range {
            offset: pages.start * PAGE,
            length: (pages.end - pages.start) * PAGE,
        };
        Report {
            older_size: found.older_size,
            newer_size: found.newer_size,
            pages: found.count(),
            bytes: found.count() * PAGE,
            ranges: found.pages.iter().map(range).collect(),
            roots,
        }
    }

    fn text(&self, args: &Diff, out: &mut Out) -> Result {
        for Range { offset, length } in &self.ranges {
            out.line(&format!("{} at {offset}", human(*length)))?;
        }
        self.roots.iter().flatten().try_for_each(|root| root.text(out))?;
        let (older, newer) = (object(&args.older), object(&args.newer));
        if self.older_size != self.newer_size {
            let sizes = [self.older_size, self.newer_size].map(exactly);
            out.line(&format!("{older} has {}, {newer} has {}", sizes[0], sizes[1]))?;
        }
        let of = count(self.older_size.max(self.newer_size).div_ceil(PAGE), "page");
        out.line(&format!("{} of {of} differ in {older} and {newer}", self.pages))
    }
}
