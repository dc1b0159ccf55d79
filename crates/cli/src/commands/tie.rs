use crate::alike;
use crate::commands::stat::ObjectReport;
use crate::context::Context;
use crate::exit::Exit;
use crate::failure::{Failure, Result, object};
use crate::keys::KeyArgs;
use crate::out::show;
use crate::terminal::detail;
use crate::values::pool;
use clap::Args;
use indelible::{ErrorKind, Pool};
use std::path::PathBuf;

/// Have an object outlive another one
///
/// An object that is tied and removed loses its name, but stays as long as one that it is tied to
/// is there. Then it goes, too.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  pmo tie data.pmo part-1 index
  pmo rm data.pmo part-1        it goes when index goes
  pmo stat data.pmo part-1      shows its ties

JSON: the object, as `pmo stat` has it")]
pub struct Tie {
    #[command(flatten)]
    ends: Ends,
}

/// Take a tie back
#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  pmo untie data.pmo part-1 index

JSON: the object, as `pmo stat` has it")]
pub struct Untie {
    #[command(flatten)]
    ends: Ends,
}

#[derive(Debug, Args)]
struct Ends {
    /// The pool
    #[arg(value_parser = pool())]
    pool: PathBuf,

    /// The object that outlives the other one
    name: String,

    /// The other one
    other: String,

    #[command(flatten)]
    key: KeyArgs,
}

impl Ends {
    fn change(
        &self,
        context: &Context,
        change: impl FnOnce(&Pool, &[u8]) -> indelible::Result<bool>,
    ) -> Result<bool> {
        let key = self.key.read()?;
        let pool = context.open(&self.pool)?;
        let done = change(&pool, &key).map_err(|error| {
            // Either may be missing.
            let missing = [&self.name, &self.other].into_iter().find(|name| pool.stat(name).is_err());
            match missing.filter(|_| error.kind() == ErrorKind::NotFound) {
                Some(name) => alike::explain(&pool, name, error),
                None => Failure::from(error),
            }
        })?;
        if context.json && done {
            let report = ObjectReport::with_ties(&pool, &pool.stat(&self.name)?);
            show(true, &report, |_, _| Ok(()))?;
        }
        Ok(done)
    }
}

pub fn tie(context: &Context, args: &Tie) -> Result {
    let Ends { name, other, .. } = &args.ends;
    args.ends.change(context, |pool, key| pool.tie(name, other, key).map(|()| true))?;
    detail(|| format!("tied {} to {}", object(name), object(other)));
    Ok(())
}

pub fn untie(context: &Context, args: &Untie) -> Result {
    let Ends { name, other, .. } = &args.ends;
    if args.ends.change(context, |pool, key| pool.untie(name, other, key))? {
        detail(|| format!("untied {} from {}", object(name), object(other)));
        return Ok(());
    }
    let message = format!("{} is not tied to {}", object(name), object(other));
    Err(Failure::new(Exit::NotFound, message, "`pmo stat` shows its ties"))
}
