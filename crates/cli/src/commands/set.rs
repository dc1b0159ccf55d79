use crate::alike;
use crate::bytes::human;
use crate::commands::create::{class, note_medium};
use crate::commands::stat::ObjectReport;
use crate::context::Context;
use crate::failure::{Result, object};
use crate::keys::KeyArgs;
use crate::out::confirm;
use crate::values::{pool, size};
use clap::{Args, ValueEnum};
use indelible::Class;
use std::path::PathBuf;

/// Change the properties of a detached object
///
/// A position-independent object holds no pointers, and nothing else that depends on its addresses.
/// So `--rebase` of cp, mv, restore and clone gives it other addresses as it is, where an object
/// without descriptions of its pointers is refused. Nothing checks that. Heaps with described roots
/// and arrays of Python do not need it.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  pmo set data.pmo accounts --class transactional
  pmo set data.pmo accounts --class psync
  pmo set data.pmo sessions --class on-demand
  pmo set data.pmo accounts --readable-outside yes
  pmo set data.pmo samples --position-independent yes
  pmo set data.pmo samples --reach 64G       addresses to grow into
  pmo cp data.pmo samples trial --rebase     both can be attached by one process

Classes: psync, plain stores that become durable at psync; transactional, stores in transactions alone, each of which is durable \
when it is committed; on-demand, transactions that outlive the process when they are committed, and become durable later; \
shared, memory that any number of processes have at once, for waiting and queues, of which nothing becomes durable. \
The bytes stay; of a shared object nothing is in the pool. An object that is sealed or sparse is neither transactional nor \
on-demand, and only a volatile one is shared. In a pool in memory (tmpfs), of which a power cut \
leaves nothing, on-demand makes little difference.

An object that is readable outside is seen by plain loads of the process that has it, outside of its transactions: they see what was \
committed, of a commit that happens at that moment perhaps a part. Stores there are a SIGSEGV all the same. An object whose class becomes \
psync or shared is so no longer.

JSON: the object, as `pmo stat` has it")]
#[group(id = "property", required = true, multiple = true, args = ["class", "readable_outside", "position_independent", "reach", "give_memory_up"])]
pub struct Set {
    /// The pool
    #[arg(value_parser = pool())]
    pool: PathBuf,

    /// Name of the object
    name: String,

    /// Its durability class: psync, transactional, on-demand or shared
    #[arg(long, value_name = "CLASS", value_parser = class())]
    class: Option<Class>,

    /// Whether plain loads outside of transactions see what these committed
    #[arg(long, value_name = "yes|no")]
    readable_outside: Option<YesNo>,

    /// Whether nothing in it depends on its addresses
    #[arg(long, value_name = "yes|no")]
    position_independent: Option<YesNo>,

    /// Addresses that it can grow into, if those behind it are free; also while it is attached
    #[arg(long, value_name = "SIZE", value_parser = size, allow_hyphen_values = true)]
    reach: Option<u64>,

    /// Go on without commits that a dead process left in memory, if that is gone or damaged: as it
    /// was last durable
    #[arg(long)]
    give_memory_up: bool,

    #[command(flatten)]
    key: KeyArgs,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum YesNo {
    Yes,
    No,
}

pub fn run(context: &Context, args: &Set) -> Result {
    let key = args.key.read()?;
    let pool = context.open(&args.pool)?;
    let explained = |error| alike::explain(&pool, &args.name, error);
    let mut is = Vec::new();
    if args.give_memory_up {
        let given_up = pool.give_memory_up(&args.name, &key).map_err(explained)?;
        is.push(
            if given_up { "as it was last durable" } else { "whole: nothing was to be given up" }.to_owned(),
        );
    }
    if let Some(class) = args.class {
        pool.set_class(&args.name, &key, class).map_err(explained)?;
        note_medium(&pool, class);
        is.push(class.to_string());
    }
    if let Some(said) = args.readable_outside {
        let readable = said == YesNo::Yes;
        pool.set_readable_outside(&args.name, &key, readable).map_err(explained)?;
        is.push(if readable { "readable outside" } else { "closed outside of transactions" }.to_owned());
    }
    if let Some(said) = args.position_independent {
        let free = said == YesNo::Yes;
        pool.set_position_independent(&args.name, &key, free).map_err(explained)?;
        is.push(if free { "position-independent" } else { "taken to depend on its addresses" }.to_owned());
    }
    if let Some(bytes) = args.reach {
        pool.set_reach(&args.name, &key, bytes).map_err(explained)?;
        is.push(format!("free to grow to {}", human(pool.stat(&args.name)?.reach)));
    }
    let report = ObjectReport::of(&pool.stat(&args.name)?);
    confirm(context.json, &report, |_, out| {
        out.line(&format!("{} is {}", object(&args.name), is.join(", and ")))
    })
}
