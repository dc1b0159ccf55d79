//! `kv`: keys and values of any size in objects, found by key, by order, and by value. Private data
//! has its own pool; the index is for all.

use anyhow::{Result, bail};
use clap::{Parser, Subcommand};
use indelible::Pool;
use indelible_examples::kv::{FarStore, Order};
use std::io::Write;
use std::path::{Path, PathBuf};

/// Keys and values in objects of two pools: a public one, and one for permitted users.
#[derive(Parser)]
#[command(version)]
struct Arguments {
    /// The pool with the index, and the public data
    #[arg(long, global = true, value_name = "PATH", default_value = "kv.pmo")]
    pool: PathBuf,
    /// A pool with data that fewer people may read; file permissions say who
    #[arg(long, global = true, value_name = "PATH")]
    private: Option<PathBuf>,
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Has a key have a value; with --private, both lie in that pool
    Put { key: String, value: String },
    /// Prints the value of a key
    Get { key: String },
    /// Takes a key out
    Del { key: String },
    /// Prints all keys with their values in order, from the first one that is not less
    Scan {
        #[arg(default_value = "")]
        from: String,
        /// So many, at most
        #[arg(long, value_name = "N", default_value_t = usize::MAX, hide_default_value = true)]
        limit: usize,
    },
    /// Prints the keys that have a value
    Find { value: String },
}

const STORE: &str = "kv";
const SIZE: u64 = 64 << 20;

fn main() -> Result<()> {
    let arguments = Arguments::parse();
    match &arguments.command {
        Command::Put { key, value } => {
            change(&arguments, |store, data| store.insert(data, key.as_bytes(), value.as_bytes()).map(drop))
        }
        Command::Del { key } => change(&arguments, |store, _| match store.remove(key.as_bytes())? {
            true => Ok(()),
            false => bail!("there is no key {key:?}"),
        }),
        Command::Get { key } => match read(&arguments)?.get(key.as_bytes())? {
            Some(value) => line(&[value]),
            None => bail!("there is no key {key:?}"),
        },
        Command::Scan { from, limit } => {
            let store = read(&arguments)?;
            for entry in store.scan(Order::Keys, from.as_bytes())?.take(*limit) {
                let (key, value) = entry?;
                line(&[key, b" ", value])?;
            }
            Ok(())
        }
        Command::Find { value } => {
            let store = read(&arguments)?;
            for entry in store.scan(Order::Values, value.as_bytes())? {
                let (key, found) = entry?;
                if found != value.as_bytes() {
                    break;
                }
                line(&[key])?;
            }
            Ok(())
        }
    }
}

fn line(texts: &[&[u8]]) -> Result<()> {
    let mut out = std::io::stdout().lock();
    texts.iter().try_for_each(|text| out.write_all(text))?;
    Ok(out.write_all(b"\n")?)
}

fn change(arguments: &Arguments, change: impl FnOnce(&mut FarStore, &[u8; 16]) -> Result<()>) -> Result<()> {
    let open = |path: &Path| Pool::open_or_format(path, SIZE);
    let pool = open(&arguments.pool)?;
    let mut store = FarStore::open(&pool, STORE, &[Order::Keys, Order::Values])?;
    let mut data = store.data(&pool, "kv-data")?;
    if let Some(private) = &arguments.private {
        data = store.data(&open(private)?, "kv-data")?;
    }
    change(&mut store, &data)?;
    store.psync()
}

fn read(arguments: &Arguments) -> Result<FarStore> {
    let paths = [Some(&arguments.pool), arguments.private.as_ref()];
    let pools = paths.into_iter().flatten().map(Pool::open).collect::<indelible::Result<Vec<_>>>()?;
    FarStore::read(&pools, STORE)
}
