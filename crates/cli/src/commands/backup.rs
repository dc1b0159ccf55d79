use crate::bytes::human;
use crate::context::Context;
use crate::failure::Result;
use crate::keys::KeyArgs;
use crate::out::{Out, confirm};
use crate::progress;
use crate::text::count;
use crate::values::pool;
use clap::Args;
use indelible_backup::{Choice, Summary, backup_file, backup_into, backup_to};
use serde::Serialize;
use std::path::{Path, PathBuf};

/// Back up a pool, while it is in use
///
/// All objects but volatile ones are kept as of one moment, each as its last psync left it. A
/// folder gets the changes since the newest backup of this pool there, by the index beside it;
/// without one, or if a file that it rests on has changed, the chain is read and verified first,
/// and if it is not intact, the new one is full. `pmo verify` reads every byte. A file, or `-` for
/// standard output, gets a full backup.
///
/// An object that no process writes is held while it is copied: a process that wants to write it
/// waits as long as its `--wait` says. Objects that processes are writing are kept as snapshots,
/// and the processes go on. The pool needs a free piece as large as each of these objects, which
/// stays in use until `pmo gc` runs while no process writes the object.
///
/// A backup has its name once it is whole and durable. One into a folder that was interrupted, or
/// failed, as on a full disk, is no backup; its written part stays in the folder, and the next one
/// goes on from there.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  pmo backup data.pmo /backup/data/          a folder: what changed since the last one
  pmo backup data.pmo /backup/data/ --full
  pmo backup data.pmo data.backup            one file, with all
  pmo backup data.pmo - | ssh host 'cat > data.backup'
  pmo verify /backup/data/                   reads it back
  pmo restore /backup/data/ new.pmo

JSON: file, id, objects, size (bytes of the objects), held (bytes of the pages in this backup), \
bytes (of the backup), base (the file that it rests on) or null, resumed (whether that was \
interrupted, and this one goes on from there), why_full or null, others (IDs of other pools that have \
backups in the folder)")]
pub struct Backup {
    /// The pool
    #[arg(value_parser = pool())]
    pool: PathBuf,

    /// A folder (it exists, or the name ends with /), a file to be made, or - for standard output
    #[arg(value_name = "DEST")]
    to: PathBuf,

    /// Only this object; may be given several times [default: all]
    #[arg(long = "object", short, value_name = "NAME")]
    objects: Vec<String>,

    /// All objects, not only what changed
    #[arg(long)]
    full: bool,

    /// Also snapshot idle objects, so that new writers need not wait
    #[arg(long)]
    snapshots: bool,

    /// Replace a backup that exists
    #[arg(long, short)]
    force: bool,

    #[command(flatten)]
    key: KeyArgs,
}

#[derive(Debug, Serialize)]
struct Report {
    file: Option<PathBuf>,
    id: String,
    objects: u64,
    size: u64,
    held: u64,
    bytes: u64,
    base: Option<PathBuf>,
    resumed: bool,
    why_full: Option<String>,
    others: Vec<String>,
}

pub fn run(context: &Context, args: &Backup) -> Result {
    let key = args.key.read()?;
    let pool = context.open_to_read(&args.pool)?;
    let choice = Choice { objects: &args.objects, key: &key, snapshots: args.snapshots };
    let bar = progress::bytes("backing up", Some(0));
    let mut tell = |done, total| {
        bar.set_length(total);
        bar.set_position(done);
    };
    if args.to == Path::new("-") {
        let mut out = std::io::stdout().lock();
        backup_to(&pool, &choice, &mut out, &mut tell)?;
        bar.finish_and_clear();
        return Ok(());
    }
    let folder = args.to.is_dir() || args.to.as_os_str().as_encoded_bytes().ends_with(b"/");
    let made = if folder {
        backup_into(&pool, &choice, &args.to, args.full, &mut tell)?
    } else {
        backup_file(&pool, &choice, &args.to, args.force, &mut tell)?
    };
    bar.finish_and_clear();
    confirm(context.json, &Report::of(made), said)
}

fn said(report: &Report, out: &mut Out) -> Result {
    let file = report.file.as_deref().unwrap_or(Path::new("-")).display();
    let kind = match (&report.base, &report.why_full) {
        (Some(base), _) if report.resumed => {
            format!("goes on from {}, which was interrupted", base.display())
        }
        (Some(base), _) => format!("what changed since {}", base.display()),
        (None, Some(why)) => format!("all, as the newest one cannot be built on: {why}"),
        (None, None) => "all".into(),
    };
    out.line(&format!(
        "{file}: {} of {}; {} of pages, {} in the backup; {kind}",
        count(report.objects, "object"),
        human(report.size),
        human(report.held),
        human(report.bytes)
    ))?;
    if report.others.is_empty() {
        return Ok(());
    }
    out.line(&format!(
        "the folder has backups of other pools: {}; `pmo restore` of the folder needs --pool-id",
        report.others.join(", ")
    ))
}

impl Report {
    fn of(made: Summary) -> Self {
        let Summary { path, id, objects, size, held, bytes, base, resumed, why_full, others } = made;
        Report { file: path, id, objects, size, held, bytes, base, resumed, why_full, others }
    }
}
