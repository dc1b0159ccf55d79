//! `pmo put`: bytes into an object, as one psync.

use crate::args::size;
use crate::bytes::{exactly, human};
use crate::context::Context;
use crate::exit::Exit;
use crate::failure::{Failure, Result, object};
use crate::keys::KeyArgs;
use crate::out::show;
use crate::progress;
use clap::Args;
use indelible::{CreateOptions, ErrorKind, Object, Pool};
use indicatif::ProgressBar;
use serde::Serialize;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

const PIECE: usize = 1 << 20;

/// Write bytes into an object, and psync: all of them become durable, or none
///
/// Reads FILE, or standard input. Bytes of the object before and behind the new ones stay as they are.
/// The new bytes are held in memory until the psync.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  pmo put data.pmo ledger ledger.bin
  pmo put data.pmo ledger ledger.bin --create      make the object if there is none
  echo hello | pmo put data.pmo greeting --offset 64

JSON:
  {\"name\":\"ledger\",\"offset\":0,\"bytes\":1048576}")]
pub struct Put {
    /// The pool
    pool: PathBuf,

    /// Name of the object
    name: String,

    /// File with the bytes; `-` or nothing: standard input
    file: Option<PathBuf>,

    /// First byte of the object to write to
    #[arg(long, value_name = "SIZE", value_parser = size, default_value = "0", hide_default_value = true)]
    offset: u64,

    /// Fill the object with zeros from where the bytes end
    #[arg(long)]
    zero_rest: bool,

    /// Make the object if there is none, as large as FILE needs
    #[arg(long, requires = "file")]
    create: bool,

    #[command(flatten)]
    key: KeyArgs,
}

#[derive(Serialize)]
struct Report {
    name: String,
    offset: u64,
    bytes: u64,
}

/// Source of the bytes.
struct Input {
    from: Box<dyn Read>,
    path: PathBuf,
    /// How many there are, if that is known.
    len: Option<u64>,
}

impl Input {
    fn open(path: Option<&Path>) -> Result<Self> {
        match path {
            Some(path) if path != Path::new("-") => {
                let file = File::open(path).map_err(|error| Failure::file("open", path, &error))?;
                let found = file.metadata().map_err(|error| Failure::file("inspect", path, &error))?;
                let len = found.is_file().then_some(found.len());
                Ok(Input { from: Box::new(file), path: path.to_owned(), len })
            }
            _ => Ok(Input { from: Box::new(io::stdin()), path: "standard input".into(), len: None }),
        }
    }

    /// Fills `into`, or as much of it as there are bytes.
    fn fill(&mut self, into: &mut [u8]) -> Result<usize> {
        let mut filled = 0;
        while filled < into.len() {
            match self.from.read(&mut into[filled..]) {
                Ok(0) => break,
                Ok(read) => filled += read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(Failure::file("read", &self.path, &error)),
            }
        }
        Ok(filled)
    }
}

pub fn run(context: &Context, args: &Put) -> Result {
    let key = args.key.read()?;
    let mut input = Input::open(args.file.as_deref())?;
    let pool = context.open(&args.pool)?;
    if args.create {
        create_missing(&pool, args, &input, &key)?;
    }
    let mut attached = pool.attach_with_key(&args.name, &key)?;
    let size = attached.stat()?.size;
    let room = size.saturating_sub(args.offset);
    if input.len.is_some_and(|len| len > room) || args.offset > size {
        return Err(too_long(args, size));
    }
    let bar = progress::bytes("storing", input.len);
    let bytes = store(&mut attached, args, &mut input, size, &bar)?;
    bar.set_message("psyncing");
    bar.tick();
    attached.psync()?;
    attached.detach()?;
    bar.finish_and_clear();
    show(context.json, &Report { name: args.name.clone(), offset: args.offset, bytes }, |report, out| {
        out.line(&format!("wrote {} to {}", exactly(report.bytes), object(&report.name)))
    })
}

fn create_missing(pool: &Pool, args: &Put, input: &Input, key: &[u8]) -> Result {
    let Some(len) = input.len else {
        let message = format!("{} has no length, so the object would have none", input.path.display());
        return Err(Failure::new(Exit::Usage, message, "create the object first, with `pmo create`"));
    };
    let size = len.saturating_add(args.offset).max(1);
    match pool.create_with(&args.name, &CreateOptions::new(size).key(key)) {
        Err(error) if error.kind() == ErrorKind::Exists => Ok(()),
        done => Ok(done?),
    }
}

/// Stores the input, and says how many bytes it had. Nothing of it is durable yet.
fn store(attached: &mut Object, args: &Put, input: &mut Input, size: u64, bar: &ProgressBar) -> Result<u64> {
    let (start, end) = (args.offset as usize, size as usize);
    let mut piece = vec![0; PIECE];
    let mut at = start;
    loop {
        let filled = input.fill(&mut piece)?;
        if filled > end - at {
            return Err(too_long(args, size));
        }
        attached.range_mut(at..at + filled).copy_from_slice(&piece[..filled]);
        at += filled;
        bar.inc(filled as u64);
        if filled < PIECE {
            break;
        }
    }
    if args.zero_rest {
        attached.range_mut(at..end).fill(0);
    }
    Ok((at - start) as u64)
}

fn too_long(args: &Put, size: u64) -> Failure {
    let message = match args.offset {
        0 => format!("{} has {}: the input does not fit", object(&args.name), human(size)),
        offset => format!(
            "{} has {}: the input does not fit from byte {offset} on",
            object(&args.name),
            human(size)
        ),
    };
    Failure::new(Exit::Full, message, "nothing was changed; `pmo resize` makes the object larger")
}
