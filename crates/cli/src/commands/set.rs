//! `pmo set`: properties of an object that can change.

use crate::alike;
use crate::commands::create::class;
use crate::commands::stat::ObjectReport;
use crate::context::Context;
use crate::failure::{Result, object};
use crate::keys::KeyArgs;
use crate::out::confirm;
use crate::values::pool;
use clap::Args;
use indelible::Class;
use std::path::PathBuf;

/// Change what an object is, while nobody has it attached
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  pmo set data.pmo accounts --class transactional
  pmo set data.pmo accounts --class psync

Classes: psync, plain stores that become durable at psync; transactional, stores in transactions alone, each of which is durable
when it is committed. The bytes stay. An object that is sealed or sparse is of class psync.

JSON: the object, as `pmo stat` has it")]
pub struct Set {
    /// The pool
    #[arg(value_parser = pool())]
    pool: PathBuf,

    /// Name of the object
    name: String,

    /// Its durability class: psync or transactional
    #[arg(long, value_name = "CLASS", value_parser = class())]
    class: Class,

    #[command(flatten)]
    key: KeyArgs,
}

pub fn run(context: &Context, args: &Set) -> Result {
    let key = args.key.read()?;
    let pool = context.open(&args.pool)?;
    let set = pool.set_class(&args.name, &key, args.class);
    set.map_err(|error| alike::explain(&pool, &args.name, error))?;
    let report = ObjectReport::of(&pool.stat(&args.name)?);
    confirm(context.json, &report, |report, out| {
        out.line(&format!("{} is {}", object(&args.name), report.class))
    })
}
