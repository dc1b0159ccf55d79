use crate::alike;
use crate::bytes::{exactly, human};
use crate::context::Context;
use crate::exit::Exit;
use crate::failure::{Failure, Result, object};
use crate::keys::KeyArgs;
use crate::out::confirm;
use crate::progress;
use crate::sealing::{self, SealArgs};
use crate::terminal::detail;
use crate::text::hex;
use crate::values::{pool, size};
use clap::Args;
use indelible::{ByContent, CreateOptions, ErrorKind, Object, Pool};
use indicatif::ProgressBar;
use serde::Serialize;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

const PIECE: usize = 1 << 20;
const BATCH: usize = 64 << 20;
const FIRST: u64 = 1 << 20;
const UNFINISHED: &str = "~unfinished put";

/// Write bytes into an object, and psync: all of them become durable, or none
///
/// Reads FILE, or standard input. Bytes of the object before and behind the new ones stay as they
/// are. The new bytes are held in memory until the psync. With --create, an object that is not
/// there yet is made under another name, psynced in pieces, and renamed when it is whole; a command
/// that is killed leaves NAME~unfinished put, which the next one destroys.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  pmo put data.pmo ledger ledger.bin
  pmo put data.pmo ledger ledger.bin --create      make the object if there is none
  tar c folder | pmo put data.pmo folder.tar - --create
  pmo put data.pmo model model.bin --by-content    an object whose ID is the hash of these bytes
  echo hello | pmo put data.pmo greeting --offset 64

JSON:
  {\"name\":\"ledger\",\"offset\":0,\"bytes\":1048576}
  With --by-content: {\"name\":\"model\",\"id\":\"…32 hex digits…\",\"bytes\":1048576,\"made\":true}; name is that of the object \
that has these bytes, and made says whether it is a new one.")]
pub struct Put {
    /// The pool
    #[arg(value_parser = pool())]
    pool: PathBuf,

    /// Name of the object
    name: String,

    /// File with the bytes; `-` or nothing: standard input
    file: Option<PathBuf>,

    /// First byte of the object to write to
    #[arg(long, value_name = "SIZE", value_parser = size, allow_hyphen_values = true, default_value = "0", hide_default_value = true)]
    offset: u64,

    /// Fill the object with zeros from where the bytes end
    #[arg(long)]
    zero_rest: bool,

    /// Make the object if there is none, as large as the input needs
    #[arg(long)]
    create: bool,

    /// Make a read-only object whose ID is the hash of the bytes, unless the pool has it already;
    /// all of them are held in memory
    #[arg(long, conflicts_with_all = ["offset", "zero_rest", "create", "key", "key_file"])]
    by_content: bool,

    #[command(flatten)]
    key: KeyArgs,

    #[command(flatten)]
    seal: SealArgs,
}

#[derive(Serialize)]
struct Content {
    name: String,
    id: String,
    bytes: u64,
    made: bool,
}

#[derive(Serialize)]
struct Report {
    name: String,
    offset: u64,
    bytes: u64,
}

struct Input {
    from: Box<dyn Read>,
    path: PathBuf,
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
    let pool = context.open_to_fill(&args.pool, &args.name)?;
    if args.by_content && (args.seal.is_given() || !key.is_empty()) {
        let help = "leave the keys away: PMO_KEY and the like count, too";
        return Err(Failure::new(Exit::Usage, "an object by content has no keys".to_owned(), help));
    }
    if args.by_content {
        return by_content(context, &pool, &args.name, &mut input);
    }
    let missing = || pool.stat(&args.name).is_err_and(|error| error.kind() == ErrorKind::NotFound);
    let bytes = if args.create && !args.seal.is_given() && missing() {
        make(&pool, args, &mut input, &key)?
    } else {
        replace(sealing::attach(&pool, &args.name, &key, &args.seal)?, args, &mut input)?
    };
    confirm(context.json, &Report { name: args.name.clone(), offset: args.offset, bytes }, |report, out| {
        out.line(&format!("wrote {} to {}", exactly(report.bytes), object(&report.name)))
    })
}

fn by_content(context: &Context, pool: &Pool, name: &str, input: &mut Input) -> Result {
    let mut content = Vec::new();
    let read = input.from.read_to_end(&mut content);
    read.map_err(|error| Failure::file("read", &input.path, &error))?;
    let ByContent { id, made, .. } = pool.create_by_content(name, &content)?;
    let id = hex(&id);
    let found = pool.stat(&format!("id:{id}"))?;
    let report = Content { name: found.name, id, bytes: content.len() as u64, made };
    confirm(context.json, &report, |report, out| {
        let object = object(&report.name);
        out.line(&match report.made {
            true => format!("wrote {} to {object}, id:{}", exactly(report.bytes), report.id),
            false => format!("{object} has these bytes already, id:{}", report.id),
        })
    })
}

fn replace(mut attached: Object, args: &Put, input: &mut Input) -> Result<u64> {
    let size = attached.len() as u64;
    if input.len.is_some_and(|len| len > size.saturating_sub(args.offset)) || args.offset > size {
        return Err(too_long(args, size));
    }
    let bar = progress::bytes("storing", input.len);
    let bytes = store(&mut attached, args, input, size, &bar)?;
    phase(&bar, "psyncing", bytes);
    attached.psync()?;
    attached.detach()?;
    bar.finish_and_clear();
    Ok(bytes)
}

fn make(pool: &Pool, args: &Put, input: &mut Input, key: &[u8]) -> Result<u64> {
    let unfinished = format!("{}{UNFINISHED}", args.name);
    match pool.destroy_with_key(&unfinished, key) {
        Err(error) if error.kind() == ErrorKind::NotFound => {}
        Err(error) => return Err(error.into()),
        Ok(()) => detail(|| format!("destroyed {}, left by a command that was killed", object(&unfinished))),
    }
    let size = input.len.unwrap_or(FIRST).saturating_add(args.offset).max(1);
    // An input of unknown length may need the whole pool.
    let reach = if input.len.is_some() { 0 } else { pool.info()?.length.max(size) };
    pool.create_with(&unfinished, &CreateOptions::new(size).key(key).reach(reach))?;
    detail(|| format!("created {}, {}", object(&unfinished), human(size)));
    let made = fill(pool, args, input, &unfinished, key).and_then(|bytes| {
        pool.rename(&unfinished, &args.name, key)?;
        detail(|| format!("renamed it to {}", object(&args.name)));
        Ok(bytes)
    });
    if made.is_err() {
        let _ = pool.destroy_with_key(&unfinished, key);
    }
    alike::warn(pool, &args.name);
    made
}

fn fill(pool: &Pool, args: &Put, input: &mut Input, name: &str, key: &[u8]) -> Result<u64> {
    let bar = progress::bytes("storing", input.len);
    let mut attached = pool.attach_with_key(name, key)?;
    let (mut piece, mut at, mut since) = (vec![0; PIECE], args.offset as usize, 0);
    loop {
        let filled = input.fill(&mut piece)?;
        if at + filled > attached.len() {
            let (needed, twice) = ((at + filled) as u64, 2 * attached.len() as u64);
            attached.grow(twice.max(needed)).or_else(|_| attached.grow(needed))?;
        }
        prepare(&attached, at..at + filled)?;
        attached.range_mut(at..at + filled).copy_from_slice(&piece[..filled]);
        (at, since) = (at + filled, since + filled);
        bar.inc(filled as u64);
        if filled < PIECE {
            break;
        }
        if since >= BATCH {
            attached.psync()?;
            attached.detach()?;
            (attached, since) = (pool.attach_with_key(name, key)?, 0);
        }
    }
    let bytes = (at - args.offset as usize) as u64;
    phase(&bar, "psyncing", bytes);
    let size = (at as u64).max(1);
    let longer = attached.len() as u64 > size;
    attached.psync()?;
    attached.detach()?;
    if longer {
        pool.resize(name, size, key)?;
    }
    bar.finish_and_clear();
    Ok(bytes)
}

fn phase(bar: &ProgressBar, what: &'static str, bytes: u64) {
    bar.set_message(what);
    bar.tick();
    detail(|| format!("stored {}; {what}", exactly(bytes)));
}

fn store(attached: &mut Object, args: &Put, input: &mut Input, size: u64, bar: &ProgressBar) -> Result<u64> {
    let (start, end) = (args.offset as usize, size as usize);
    let mut piece = vec![0; PIECE];
    let mut at = start;
    loop {
        let filled = input.fill(&mut piece)?;
        if filled > end - at {
            return Err(too_long(args, size));
        }
        prepare(attached, at..at + filled)?;
        attached.range_mut(at..at + filled).copy_from_slice(&piece[..filled]);
        at += filled;
        bar.inc(filled as u64);
        if filled < PIECE {
            break;
        }
    }
    if args.zero_rest {
        prepare(attached, at..end)?;
        attached.range_mut(at..end).fill(0);
    }
    Ok((at - start) as u64)
}

/// Brings pages into memory before their stores: a page that does not verify, or a full memory file
/// system, is an error here, and a signal at the store.
fn prepare(attached: &Object, bytes: std::ops::Range<usize>) -> Result {
    attached.prefault(bytes)?;
    Ok(())
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
