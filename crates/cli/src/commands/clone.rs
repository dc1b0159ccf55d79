use crate::bytes::human;
use crate::context::Context;
use crate::failure::Result;
use crate::keys::KeyArgs;
use crate::out::confirm;
use crate::progress;
use crate::text::hex;
use crate::values::pool;
use clap::Args;
use indelible_backup::{clone_pool, clone_rebased};
use serde::Serialize;
use std::path::PathBuf;

/// Copy an unused pool, to one with an ID of its own
///
/// All content of the file is in the clone: objects, keys, snapshots, psyncs of programs that died
/// and were not recovered. Commits on demand that such programs left in memory are brought to the
/// pool first. Holes stay holes, and file systems that can share the blocks share them. The clone
/// gets its name once it is durable. (A plain `cp` makes a second pool of the same ID: programs
/// refuse to open both, and while a process writes the pool, a copy has parts of different
/// moments.)
///
/// Both can be open at once. The objects of the clone have the addresses of the original, so that
/// pointers in them are right: a process attaches an object of one of the two pools at a time.
///
/// With --rebase the clone has addresses of its own, and all pointers in its objects are changed: a
/// process can attach objects of both. That needs objects whose pointers are known, heaps whose
/// roots are described with all that they lead to, and arrays of the package for Python; if one is
/// not, there is no clone. Such a clone has no volatile objects and no ties, each snapshot in it
/// takes all of its pages, and processes may go on using the original meanwhile.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  pmo clone data.pmo trial.pmo
  pmo clone data.pmo trial.pmo --rebase      to be attached beside the original

JSON: pool, id, length, copied (bytes of data; 0 if the file system shares them)")]
pub struct Clone {
    /// The pool
    #[arg(value_parser = pool())]
    pool: PathBuf,

    /// File to be made
    new: PathBuf,

    /// Give the clone other addresses, and change the pointers in its objects
    #[arg(long)]
    rebase: bool,

    #[command(flatten)]
    key: KeyArgs,
}

#[derive(Debug, Serialize)]
struct Report {
    pool: PathBuf,
    id: String,
    length: u64,
    copied: u64,
}

pub fn run(context: &Context, args: &Clone) -> Result {
    let key = args.key.read()?;
    let bar = progress::bytes("cloning", Some(0));
    let mut tell = |done, total| {
        bar.set_length(total);
        bar.set_position(done);
    };
    let copied = match args.rebase {
        false => clone_pool(&args.pool, &args.new, &context.options, &mut tell)?.copied,
        true => {
            let pool = context.open(&args.pool)?;
            clone_rebased(&pool, &key, &args.new, &context.options, &mut tell)?.bytes
        }
    };
    bar.finish_and_clear();
    let info = context.look(&args.new)?.info()?;
    let id = hex(&info.id);
    let report = Report { pool: args.new.clone(), id, length: info.length, copied };
    confirm(context.json, &report, |report, out| {
        let copied = match report.copied {
            0 => "the file system shares its blocks with the original's".to_owned(),
            copied => format!("{} copied", human(copied)),
        };
        out.line(&format!("cloned {} to {}: {copied}", args.pool.display(), report.pool.display()))
    })
}
