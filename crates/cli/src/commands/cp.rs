use crate::alike;
use crate::bytes::human;
use crate::commands::stat::ObjectReport;
use crate::context::Context;
use crate::exit::Exit;
use crate::failure::{Failure, Result, object};
use crate::keys::KeyArgs;
use crate::out::confirm;
use crate::progress;
use crate::values::pool;
use clap::Args;
use indelible::CreateOptions;
use std::path::{Path, PathBuf};

/// Copy an object, within its pool or to another one
///
/// Within a pool it takes no time, for any size: the two share the pages that neither has changed.
/// To another pool, the state of the last psync is copied, or a snapshot; pages of zeros take no
/// space there. A process that writes the object goes on.
///
/// The copy has an identity of its own, and the addresses of the object, so that pointers in it are
/// right: a process attaches one of the two at a time. With --rebase it gets addresses of its own,
/// and all pointers in it are changed: that needs a heap whose roots are described with all that
/// they lead to, and is refused otherwise.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  pmo cp data.pmo ledger trial
  pmo cp data.pmo ledger ledger --to /mnt/usb/archive.pmo
  pmo cp data.pmo:ledger /mnt/usb/archive.pmo:       the same
  pmo cp data.pmo ledger trial --rebase      both can be attached by one process
  pmo cp data.pmo ledger@2026-11-24T03:00:00Z ledger-then

JSON: the new object, as `pmo stat` has it")]
pub struct Cp {
    /// The pool; or POOL:NAME, followed by POOL: or POOL:NEW
    #[arg(value_parser = pool())]
    pool: PathBuf,

    /// Name of the object, or of a snapshot
    name: String,

    /// Name of the copy
    new: Option<String>,

    /// The pool that gets the copy, if it is another one
    #[arg(long, value_name = "POOL", value_parser = pool())]
    to: Option<PathBuf>,

    /// Give the copy other addresses, and change the pointers in it
    #[arg(long)]
    rebase: bool,

    #[command(flatten)]
    key: KeyArgs,
}

struct Names {
    pool: PathBuf,
    name: String,
    to: Option<PathBuf>,
    new: String,
}

fn split(text: &str) -> Option<(PathBuf, &str)> {
    let mut colons = text.match_indices(':').map(|(at, _)| text.split_at(at));
    let (path, rest) = colons.find(|(path, _)| !path.is_empty() && Path::new(path).exists())?;
    Some((path.into(), &rest[1..]))
}

impl Cp {
    fn names(&self) -> Result<Names> {
        let usage = |what: String| Failure::new(Exit::Usage, what, "`pmo cp --help` has examples");
        match &self.new {
            Some(new) => {
                if let Some(path) = new.strip_suffix(':').filter(|path| Path::new(path).exists()) {
                    let what =
                        format!("{new} is no name of a copy, but looks like the pool that is to get it");
                    return Err(usage(what).with_help(format!("say `--to {path}`, and the name of the copy")));
                }
                let (pool, name) = (self.pool.clone(), self.name.clone());
                Ok(Names { pool, name, to: self.to.clone(), new: new.clone() })
            }
            None => {
                let text = self.pool.to_string_lossy();
                let missing =
                    |text: &str| usage(format!("{text} does not begin with the path of a pool and a colon"));
                if self.to.is_some() {
                    return Err(usage("the name of the copy is missing".to_owned()));
                }
                let (pool, name) = split(&text).ok_or_else(|| missing(&text))?;
                let (to, new) = split(&self.name).ok_or_else(|| missing(&self.name))?;
                let new = if new.is_empty() { name } else { new };
                Ok(Names { pool, name: name.to_owned(), to: Some(to), new: new.to_owned() })
            }
        }
    }
}

pub fn run(context: &Context, args: &Cp) -> Result {
    let names = args.names()?;
    let key = args.key.read()?;
    let (from, to) = match &names.to {
        None => {
            let pool = context.open(&names.pool)?;
            (pool.clone(), pool)
        }
        Some(to) => (context.open_to_read(&names.pool)?, context.open(to)?),
    };
    let copied = if from.id() == to.id() && !args.rebase {
        from.create_from(&names.name, &names.new, &key, &CreateOptions::new(0))
    } else {
        let bar = progress::bytes("copying", Some(0));
        let tell = &mut |done, total| {
            bar.set_length(total);
            bar.set_position(done);
        };
        let copied = match args.rebase {
            true => from.copy_rebased(&names.name, &key, &to, &names.new, tell),
            false => from.copy_to(&names.name, &key, &to, &names.new, tell),
        };
        bar.finish_and_clear();
        copied
    };
    copied.map_err(|error| alike::explain(&from, &names.name, error))?;
    alike::warn(&to, &names.new);
    let report = ObjectReport::of(&to.stat(&names.new)?);
    confirm(context.json, &report, |report, out| {
        let (name, new) = (object(&names.name), object(&names.new));
        out.line(&format!("copied {name} as {new}: {}", human(report.size)))
    })
}
