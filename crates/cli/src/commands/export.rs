use crate::bytes::human;
use crate::context::Context;
use crate::failure::Result;
use crate::keys::KeyArgs;
use crate::out::confirm;
use crate::progress;
use crate::text::count;
use crate::values::pool;
use clap::Args;
use indelible::Space;
use indelible_backup::{export_file, export_to, import_from};
use serde::Serialize;
use std::fs::File;
use std::io::{BufReader, Read};
use std::path::{Path, PathBuf};

/// Write objects, with all that their far pointers lead to, as one stream
///
/// Follows the entries of the objects' tables of other objects, by ID and by name, through any
/// number of objects; each of them is written as its last psync left it. The stream is a full
/// backup of them: `pmo verify` verifies it.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  pmo export data.pmo graph graph.export
  pmo export data.pmo graph - --with more.pmo | ssh host pmo import - data.pmo
  pmo export data.pmo graph graph.export --only       not what it leads to
  pmo import graph.export other.pmo

JSON: file, id, objects, size (bytes of the objects), held (bytes of their pages), bytes (of the \
stream)")]
pub struct Export {
    /// The pool
    #[arg(value_parser = pool())]
    pool: PathBuf,

    /// The objects, by name or as id: and 32 hexadecimal digits
    #[arg(required = true, value_name = "OBJECT")]
    objects: Vec<String>,

    /// A file to be made, or - for standard output
    #[arg(value_name = "DEST")]
    to: PathBuf,

    /// Another pool in which objects are looked for, behind the first; may be given several times
    #[arg(long = "with", short, value_name = "POOL")]
    with: Vec<PathBuf>,

    /// Only the objects named, not what they lead to
    #[arg(long)]
    only: bool,

    /// Replace a backup that exists
    #[arg(long, short)]
    force: bool,

    #[command(flatten)]
    key: KeyArgs,
}

#[derive(Debug, Serialize)]
struct Exported {
    file: Option<PathBuf>,
    id: String,
    objects: u64,
    size: u64,
    held: u64,
    bytes: u64,
}

pub fn export(context: &Context, args: &Export) -> Result {
    let key = args.key.read()?;
    let first = context.open_to_read(&args.pool)?;
    let mut space = Space::new();
    space.add(&first);
    for with in &args.with {
        space.add(&context.open_to_read(with)?);
    }
    let ids = args.objects.iter().map(|name| {
        first.stat(name).map(|stat| stat.id).map_err(|error| crate::alike::explain(&first, name, error))
    });
    let ids = ids.collect::<std::result::Result<Vec<_>, _>>()?;
    let bar = progress::bytes("exporting", Some(0));
    let mut tell = |done, total| {
        bar.set_length(total);
        bar.set_position(done);
    };
    if args.to == Path::new("-") {
        let mut out = std::io::stdout().lock();
        export_to(&space, &ids, !args.only, &key, &mut out, &mut tell)?;
        bar.finish_and_clear();
        return Ok(());
    }
    let made = export_file(&space, &ids, !args.only, &key, (&args.to, args.force), &mut tell)?;
    bar.finish_and_clear();
    let report = Exported {
        file: made.path,
        id: made.id,
        objects: made.objects,
        size: made.size,
        held: made.held,
        bytes: made.bytes,
    };
    confirm(context.json, &report, |report, out| {
        let (objects, file) = (count(report.objects, "object"), args.to.display());
        out.line(&format!("{file}: {objects} of {}, {} in the file", human(report.size), human(report.bytes)))
    })
}

/// Bring the objects of an export into a pool
///
/// All of the stream is read and verified before any object is there. They have their names, IDs
/// and keys again. Position-independent objects get free addresses; the others keep theirs, which
/// must be free in the pool, unless --rebase.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  pmo import graph.export other.pmo
  ssh host pmo export data.pmo graph - | pmo import - other.pmo

JSON: pool, objects (names), bytes (of pages)")]
pub struct Import {
    /// The export: a file, or - for standard input
    from: PathBuf,

    /// The pool, which exists
    #[arg(value_parser = pool())]
    pool: PathBuf,

    /// Give all objects other addresses, and change the pointers in them, which must be known
    #[arg(long)]
    rebase: bool,
}

#[derive(Debug, Serialize)]
struct Imported {
    pool: PathBuf,
    objects: Vec<String>,
    bytes: u64,
}

pub fn import(context: &Context, args: &Import) -> Result {
    let pool = context.open(&args.pool)?;
    let bar = progress::bytes("importing", Some(0));
    let mut tell = |done, total| {
        bar.set_length(total);
        bar.set_position(done);
    };
    let mut input: Box<dyn Read> = match args.from == Path::new("-") {
        true => Box::new(std::io::stdin().lock()),
        false => Box::new(BufReader::with_capacity(
            1 << 20,
            File::open(&args.from).map_err(|cause| {
                let path = args.from.clone();
                indelible_backup::BackupError::File { action: "read", path, cause }
            })?,
        )),
    };
    let imported = import_from(&mut input, &args.from, &pool, args.rebase, &mut tell)?;
    bar.finish_and_clear();
    let report = Imported { pool: args.pool.clone(), objects: imported.objects, bytes: imported.bytes };
    confirm(context.json, &report, |report, out| {
        let objects = count(report.objects.len() as u64, "object");
        out.line(&format!(
            "imported {objects} into {}: {} of pages",
            report.pool.display(),
            human(report.bytes)
        ))
    })
}
