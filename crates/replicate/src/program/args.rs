//! The command line.

use clap::{Args, Parser, Subcommand};
use indelible_replicate::{Bucket, Position, ReplicateError, Result, open};
use std::path::PathBuf;
use std::time::Duration;

/// Ship a pool's changes to object storage, and restore them
///
/// STORE is `file:///FOLDER`, or `s3://BUCKET/PREFIX` with credentials, region and endpoint of the
/// environment: AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_REGION, AWS_ENDPOINT_URL. A prefix
/// has one pool. The server must know `If-None-Match: *`: Amazon S3, MinIO, Ceph and R2 do.
#[derive(Debug, Parser)]
#[command(
    name = "pmo-replicate",
    bin_name = "pmo replicate",
    version,
    after_help = "\
Examples:
  pmo replicate run data.pmo s3://backups/data
  pmo replicate status s3://backups/data
  pmo replicate restore s3://backups/data elsewhere.pmo
  pmo replicate run elsewhere.pmo s3://backups/data --promote"
)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub(crate) command: Command,

    /// Print JSON for programs, one value a line
    #[arg(long, global = true)]
    pub(crate) json: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Run(Run),
    Status(Status),
    Restore(Restore),
}

#[derive(Debug, Args)]
pub(crate) struct Store {
    /// The store: file:///FOLDER or s3://BUCKET/PREFIX
    #[arg(value_name = "STORE")]
    url: String,

    /// Another server than that of AWS, such as http://localhost:9000
    #[arg(long, value_name = "URL")]
    endpoint: Option<String>,
}

impl Store {
    pub(crate) fn open(&self) -> Result<Box<dyn Bucket>> {
        open(&self.url, self.endpoint.as_deref())
    }

    pub(crate) fn name(&self) -> &str {
        &self.url
    }
}

/// Ship changes of psyncs, beside the programs that use the pool
///
/// The first moment is the whole pool, or the changes since an earlier run to this store. From then
/// on a moment is shipped at every tick in which something changed: bytes that psyncs wrote, and
/// objects that came, went, or were renamed. Changes that one psync of several objects made durable
/// are in one moment. While the store does not answer, the changes wait in the pool, and the next
/// moment has all of them.
///
/// A snapshot `pmo-replica.STORE.…` of each object stays in the pool meanwhile; runs to other
/// stores have their own. SIGTERM ends the run between two moments, and gives the prefix up, so
/// that another run need not wait. The snapshots stay for the next run, which then ships only what
/// changed; `--once` removes them at its end.
#[derive(Debug, Args)]
pub(crate) struct Run {
    /// The pool
    pub(crate) pool: PathBuf,

    #[command(flatten)]
    pub(crate) store: Store,

    /// Seconds between two moments
    #[arg(long, value_name = "SECONDS", default_value = "1", value_parser = seconds)]
    pub(crate) tick: Duration,

    /// Ship one moment, and end
    #[arg(long)]
    pub(crate) once: bool,

    /// With --once, too, leave the snapshots, so that the next run ships only what changed
    #[arg(long)]
    pub(crate) keep: bool,

    /// Seconds without a sign of life after which another run may take over
    #[arg(long, value_name = "SECONDS", default_value = "10", value_parser = seconds)]
    pub(crate) lease: Duration,

    /// Take over at once: a run that lives can ship no more
    #[arg(long)]
    pub(crate) take_over: bool,

    /// Ship a pool that was restored from this store, in place of the first; one without any of its
    /// objects is refused
    #[arg(long)]
    pub(crate) promote: bool,

    /// File with the key of objects that have one; a line break at its end does not count [env:
    /// PMO_KEY has the key itself]
    #[arg(long, value_name = "FILE")]
    key_file: Option<PathBuf>,

    /// Print nothing but failures
    #[arg(long, short)]
    pub(crate) quiet: bool,
}

impl Run {
    /// Empty: none.
    pub(crate) fn key(&self) -> Result<Vec<u8>> {
        use std::os::unix::ffi::OsStringExt;
        let Some(path) = &self.key_file else {
            return Ok(std::env::var_os("PMO_KEY").map(OsStringExt::into_vec).unwrap_or_default());
        };
        let read = std::fs::read(path);
        let mut key =
            read.map_err(|cause| ReplicateError::File { what: "read", path: path.clone(), cause })?;
        if key.last() == Some(&b'\n') {
            key.pop();
        }
        Ok(key)
    }
}

/// Show the owner, the epochs and the lag of a store
#[derive(Debug, Args)]
pub(crate) struct Status {
    #[command(flatten)]
    pub(crate) store: Store,

    /// List each moment that can be restored; reads all segments
    #[arg(long)]
    pub(crate) moments: bool,
}

/// Restore a moment into a new pool
///
/// Everything is proved by hashes before the pool gets its name: there is a whole pool, or an error
/// that names the object of the store. The pool has its own ID, and the addresses of the first.
#[derive(Debug, Args)]
pub(crate) struct Restore {
    #[command(flatten)]
    pub(crate) store: Store,

    /// The new pool
    pub(crate) pool: PathBuf,

    /// The moment, of `pmo replicate status --moments`, instead of the newest
    #[arg(long, value_name = "EPOCH.SEQ", value_parser = position)]
    pub(crate) at: Option<Position>,

    /// Print nothing but failures
    #[arg(long, short)]
    pub(crate) quiet: bool,
}

/// Ten years, in seconds.
const LONGEST: f64 = 315_360_000.0;

fn seconds(text: &str) -> Result<Duration, String> {
    let number: f64 = text.parse().map_err(|_| "not a number of seconds".to_owned())?;
    let usable = (0.0..=LONGEST).contains(&number).then(|| Duration::from_secs_f64(number));
    usable.ok_or_else(|| format!("give from 0 to {LONGEST} seconds, ten years"))
}

fn position(text: &str) -> Result<Position, String> {
    Position::parse(text).ok_or_else(|| "not a moment, such as 1.17".to_owned())
}
