use crate::alike;
use crate::commands::stat::ObjectReport;
use crate::context::Context;
use crate::directory::Directory;
use crate::exit::Exit;
use crate::failure::{Failure, Result, object};
use crate::keys::KeyArgs;
use crate::out::show;
use crate::progress;
use crate::sealing::SealArgs;
use crate::terminal::detail;
use crate::values::pool;
use clap::Args;
use indelible::{ErrorKind, Pool};
use serde::Serialize;
use std::path::{Path, PathBuf};

/// Give an object or a directory another name, or move an object to another pool; everything else
/// about it stays
///
/// The object must not be attached, and the name must be free: nothing is replaced. The name of a
/// sealed object is sealed with it: another one takes its seal key, and its sign
/// key if it is signed.
///
/// A name with / at its end is a directory. An object goes into it under the last part of its name.
/// A directory is moved with all that is in it, as one step: a crash leaves all of it in its old
/// place, or all in its new one. About a thousand objects fit into one step, in a pool with very
/// many about sixty; more are refused, and so are sealed objects.
///
/// In another pool, on any medium, the object keeps its identity, keys and addresses. Its snapshots
/// and copies stay where they are. It is removed here once it is durable there: if the command is
/// cut short before, the object is here and nothing is there; if it is cut short in between, the
/// object is in both pools, the next `pmo mv` reports that, and `pmo rm` removes one of the two.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  pmo mv data.pmo counters counters.old
  pmo mv data.pmo counters old/              now old/counters
  pmo mv data.pmo logs/ archive/logs/        all of it, or nothing
  pmo mv data.pmo counters --to /dev/shm/fast.pmo
  pmo mv data.pmo ledger ledger.old --seal-key-file ledger.key

JSON: the object, as `pmo stat` has it; of a directory
  {\"from\":\"logs/\",\"to\":\"archive/logs/\",\"objects\":12}")]
pub struct Mv {
    /// The pool
    #[arg(value_parser = pool())]
    pool: PathBuf,

    /// Name it has; a directory, with / at its end
    old: String,

    /// Name it is to have; a directory, with / at its end
    #[arg(required_unless_present = "to")]
    new: Option<String>,

    /// The pool that it is moved to
    #[arg(long, value_name = "POOL", value_parser = pool(), conflicts_with = "new")]
    to: Option<PathBuf>,

    /// Give it other addresses there, and change the pointers in it
    #[arg(long, conflicts_with = "new")]
    rebase: bool,

    #[command(flatten)]
    seal: SealArgs,

    #[command(flatten)]
    key: KeyArgs,
}

#[derive(Serialize)]
struct Moved<'a> {
    from: &'a str,
    to: &'a str,
    objects: u64,
}

pub fn run(context: &Context, args: &Mv) -> Result {
    let key = args.key.read()?;
    if args.to.is_some() && args.seal.is_asked() {
        let message = "an object is moved to another pool with its name, and sealed as it is";
        return Err(Failure::new(Exit::Usage, message, "leave its seal key out"));
    }
    let pool = context.open(&args.pool)?;
    let is_object = || args.new.as_deref().and_then(Directory::of).is_none() && pool.stat(&args.old).is_ok();
    if let Some(from) = Directory::of(&args.old).filter(|_| !is_object()) {
        return move_directory(context, args, &pool, &from, &key);
    }
    let (pool, name) = match (&args.to, &args.new) {
        (Some(to), _) => (move_to(context, args, &pool, to, &key)?, args.old.clone()),
        (None, new) => {
            let new = new.as_ref().unwrap_or(&args.old);
            let new = Directory::of(new).map_or_else(|| new.clone(), |into| into.name_of(&args.old));
            let renamed = match args.seal.read()? {
                Some(seal) => pool.rename_sealed(&args.old, &new, &key, &seal),
                None => pool.rename(&args.old, &new, &key),
            };
            renamed.map_err(|error| alike::explain(&pool, &args.old, error))?;
            detail(|| format!("renamed {} to {}", object(&args.old), object(&new)));
            (pool, new)
        }
    };
    alike::warn(&pool, &name);
    if context.json { show(true, &ObjectReport::of(&pool.stat(&name)?), |_, _| Ok(())) } else { Ok(()) }
}

fn move_directory(context: &Context, args: &Mv, pool: &Pool, from: &Directory, key: &[u8]) -> Result {
    let Some(to) = args.new.as_deref().and_then(Directory::of) else {
        return Err(Failure::usage(match args.to {
            Some(_) => {
                "a directory stays in its pool: `pmo export` and `pmo import` bring objects to another one"
            }
            None => "a directory gets the name of a directory, with / at its end",
        }));
    };
    if args.seal.is_asked() {
        return Err(Failure::usage("sealed objects are renamed one by one, each with its seal key"));
    }
    let moved =
        pool.rename_directory(from.prefix(), to.prefix(), key).map_err(|error| match error.kind() {
            ErrorKind::NotFound => from.missing(),
            _ => error.into(),
        })?;
    detail(|| format!("renamed {} objects of {} to {}", moved, from.shown(), to.shown()));
    let report = Moved { from: from.prefix(), to: to.prefix(), objects: moved };
    if context.json { show(true, &report, |_, _| Ok(())) } else { Ok(()) }
}

fn move_to(context: &Context, args: &Mv, from: &Pool, to: &Path, key: &[u8]) -> Result<Pool> {
    let other = context.open(to)?;
    if from.id() == other.id() {
        return Err(Failure::usage("cannot move an object to the pool that it is in"));
    }
    let bar = progress::bytes("moving", Some(0));
    let tell = &mut |done, total| {
        bar.set_length(total);
        bar.set_position(done);
    };
    let moved = match args.rebase {
        true => from.move_rebased(&args.old, key, &other, tell),
        false => from.move_to(&args.old, key, &other, tell),
    };
    bar.finish_and_clear();
    moved.map_err(|error| {
        let ids = [from, &other].map(|pool| pool.stat(&args.old).ok().map(|stat| stat.id));
        let (kind, failure) = (error.kind(), alike::explain(from, &args.old, error));
        match (kind, ids) {
            (_, [Some(here), Some(there)]) if here == there => failure.with_help(format!(
                "it is in both pools, as a move was cut short once it was whole there: compare the two, then \
                 `pmo rm {} NAME` ends the move, and `pmo rm {} NAME` undoes it",
                args.pool.display(),
                to.display()
            )),
            (ErrorKind::ObjectReadOnly, _) => {
                failure.with_help("a snapshot stays where it is: `pmo cp` copies what it holds")
            }
            _ => failure,
        }
    })?;
    detail(|| format!("moved {} to {}", object(&args.old), to.display()));
    Ok(other)
}
