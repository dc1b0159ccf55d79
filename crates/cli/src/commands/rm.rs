use super::rotate::not_erasable;
use crate::alike;
use crate::bytes::human;
use crate::context::Context;
use crate::directory::Directory;
use crate::erasing::LastKey;
use crate::exit::Exit;
use crate::failure::{Failure, Result, object};
use crate::glob::Glob;
use crate::keys::KeyArgs;
use crate::out::{Out, show};
use crate::sealing::SealArgs;
use crate::terminal::{detail, note};
use crate::values::pool;
use clap::Args;
use indelible::{ErrorKind, Pool, State};
use serde::Serialize;
use std::path::PathBuf;

/// Destroy objects; there is no way back
///
/// Objects that a process has attached are refused, unless --later is given. Of several names,
/// those that can be destroyed are; the exit code is that of the first that cannot. A name is taken
/// as it is, with any characters; for patterns there is --match, for directories --recursive. Each
/// object goes as a step of its own: a command that is cut short leaves the others.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  pmo rm data.pmo counters
  pmo rm data.pmo a b c
  pmo rm data.pmo --recursive logs/old/               a directory with all that is in it
  pmo rm data.pmo --match 'logs/2024*' --dry-run      which would that be?
  pmo rm data.pmo --force a                           no failure if there is none
  pmo rm data.pmo --later a                           although a process has it attached
  pmo rm data.pmo patient --erase --seal-key-file patient.key
  pmo rm data.pmo -- --odd-name

JSON:
  {\"dry_run\":false,\"destroyed\":[{\"name\":\"a\",\"size\":4096}]}")]
pub struct Rm {
    /// The pool
    #[arg(value_parser = pool())]
    pool: PathBuf,

    /// Names of the objects
    #[arg(required_unless_present = "patterns", value_name = "NAME")]
    names: Vec<String>,

    /// Objects whose names match a pattern with *, ? and [a-z], too; * covers / as well
    #[arg(short = 'm', long = "match", value_name = "PATTERN")]
    patterns: Vec<String>,

    /// Take names with / at their end as directories, and destroy the objects in them; / is the
    /// whole pool
    #[arg(short, long)]
    recursive: bool,

    /// List what would be destroyed, and do nothing
    #[arg(short = 'n', long)]
    dry_run: bool,

    /// Take a name that no object has for destroyed
    #[arg(short, long)]
    force: bool,

    /// Take the name from objects that processes have attached, now; each goes when the last of
    /// them detaches or ends
    #[arg(short, long)]
    later: bool,

    /// Destroy the key file of an erasable object first, so that no copy, snapshot or backup of it
    /// can be read either. Copies of the key file, and a medium that keeps overwritten bytes, are
    /// yours to destroy
    #[arg(long, conflicts_with_all = ["patterns", "recursive", "dry_run", "force", "later"])]
    erase: bool,

    #[command(flatten)]
    key: KeyArgs,

    #[command(flatten)]
    seal: SealArgs,
}

const LATER: &str = "wait until it is detached, or have it go then: `pmo rm --later`";

#[derive(Serialize)]
struct Report {
    dry_run: bool,
    destroyed: Vec<Destroyed>,
}

#[derive(Serialize)]
struct Destroyed {
    name: String,
    size: u64,
}

pub fn run(context: &Context, args: &Rm) -> Result {
    if !args.erase && args.seal.is_asked() {
        return Err(Failure::usage("a seal key is given, which only --erase needs"));
    }
    let key = args.key.read()?;
    let pool = if args.dry_run { context.look(&args.pool) } else { context.open(&args.pool) }?;
    let mut report = Report { dry_run: args.dry_run, destroyed: Vec::new() };
    let mut first = None;
    if args.erase {
        erase(&pool, args, &key)?;
    }
    for name in names(&pool, args)? {
        match destroy(&pool, args, &name, &key) {
            Ok(None) => {}
            Ok(Some(size)) => report.destroyed.push(Destroyed { name, size }),
            Err(failure) => {
                failure.report();
                first = first.or(Some(failure.exit()));
            }
        }
    }
    if context.json || args.dry_run {
        show(context.json, &report, text)?;
    }
    first.map_or(Ok(()), |exit| Err(Failure::Quiet(exit)))
}

fn names(pool: &Pool, args: &Rm) -> Result<Vec<String>> {
    let directory = |name: &String| Directory::of(name).filter(|_| args.recursive);
    let (directories, mut names): (Vec<_>, Vec<_>) =
        args.names.iter().cloned().partition(|name| directory(name).is_some());
    let directories: Vec<Directory> = directories.iter().filter_map(directory).collect();
    let globs: Vec<Glob> = args.patterns.iter().map(|pattern| Glob::new(pattern)).collect();
    if globs.is_empty() && directories.is_empty() {
        return Ok(names);
    }
    let asked = directories.clone();
    let matches = move |name: &str| {
        globs.iter().any(|glob| glob.matches(name)) || asked.iter().any(|directory| directory.has(name))
    };
    let mut matching = Vec::new();
    for stat in pool.list().named(matches) {
        let name = stat?.name;
        if !names.contains(&name) {
            matching.push(name);
        }
    }
    let is_missing = |directory: &&Directory| !matching.iter().any(|name| directory.has(name));
    match directories.iter().find(is_missing) {
        Some(missing) if !args.force => return Err(missing.missing()),
        _ if matching.is_empty() && !args.patterns.is_empty() => note("no object has a name that matches"),
        _ => {}
    }
    matching.sort_unstable();
    names.append(&mut matching);
    Ok(names)
}

/// Destroys the key file, which must prove to be the object's. The object is destroyed after it: a
/// command that is cut short leaves an object without a key.
fn erase(pool: &Pool, args: &Rm, key: &[u8]) -> Result {
    let [name] = &args.names[..] else {
        return Err(Failure::usage("--erase takes one object at a time: each has a key file of its own"));
    };
    let last = LastKey::open(&args.seal.required_file()?)?;
    let attached = pool.attach_read_sealed(name, key, &args.seal.required()?);
    let proven = attached.map_err(|error| alike::explain(pool, name, error))?;
    if !pool.is_erasable(name, key)? {
        return Err(not_erasable(name));
    }
    drop(proven);
    last.destroy()?;
    detail(|| format!("destroyed the key file of {}", object(name)));
    Ok(())
}

fn destroy(pool: &Pool, args: &Rm, name: &str, key: &[u8]) -> Result<Option<u64>> {
    let stat = pool.stat(name);
    let size = stat.as_ref().map_or(0, |stat| stat.size);
    let done = match stat {
        Ok(stat) if args.dry_run => {
            if stat.state != State::Detached && !stat.needs_recovery && !args.later {
                let message = format!("{} would not be destroyed: a process has it attached", object(name));
                return Err(Failure::new(Exit::Busy, message, format!("`pmo ls` shows which; {LATER}")));
            }
            Ok(())
        }
        Err(error) if args.dry_run => Err(error),
        _ if args.later => pool.delete(name, key),
        _ => pool.destroy_with_key(name, key),
    };
    match done {
        Err(error) if error.kind() == ErrorKind::NotFound && args.force => Ok(None),
        Err(error) if error.kind() == ErrorKind::Held => Err(Failure::from(error).with_help(LATER)),
        Err(error) if error.kind() == ErrorKind::NotFound && has_objects(pool, name) => {
            let help = "it is a directory: `pmo rm --recursive` destroys what is in it";
            Err(Failure::from(error).with_help(help))
        }
        Err(error) => Err(alike::explain(pool, name, error)),
        Ok(()) => {
            if !args.dry_run {
                detail(|| format!("destroyed {}", object(name)));
            }
            Ok(Some(size))
        }
    }
}

fn has_objects(pool: &Pool, name: &str) -> bool {
    let Some(directory) = Directory::of(name) else { return false };
    pool.list().named(move |name| directory.has(name)).next().is_some()
}

fn text(report: &Report, out: &mut Out) -> Result {
    for Destroyed { name, size } in &report.destroyed {
        out.line(&format!("would destroy {}, {}", object(name), human(*size)))?;
    }
    Ok(())
}
