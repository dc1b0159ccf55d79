use crate::bytes::exactly;
use crate::context::Context;
use crate::failure::{Failure, Result, object};
use crate::keys::KeyArgs;
use crate::out::Out;
use crate::sealing::{self, SealArgs};
use crate::terminal::note;
use crate::text::span;
use crate::values::pool;
use clap::Args;
use indelible::{Object, Pool, ReadObject};
use serde::Serialize;
use std::io::{self, Read};
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// Attach an object and detach it again, and report
///
/// If the object's last writer died, this recovers it. With --hold the object stays attached until
/// standard input ends, to show its effect on other commands.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  pmo attach-check data.pmo counters             for reading
  pmo attach-check data.pmo counters --write     for writing
  pmo attach-check data.pmo counters --hold      until Ctrl-D: `pmo ls` elsewhere shows it

JSON:
  {\"name\":\"counters\",\"write\":true,\"address\":\"0x6a2b40000000\",\"length\":4096,\"recovered\":false,
   \"recovered_bytes\":0,\"tracking\":\"wp-async\",\"attach_ns\":61000}
  recovered_bytes and tracking are null for reading.")]
pub struct AttachCheck {
    /// The pool
    #[arg(value_parser = pool())]
    pool: PathBuf,

    /// Name of the object
    name: String,

    /// Attach for writing, which excludes all other processes meanwhile
    #[arg(short, long)]
    write: bool,

    /// Keep it attached until standard input ends
    #[arg(long)]
    hold: bool,

    #[command(flatten)]
    key: KeyArgs,

    #[command(flatten)]
    seal: SealArgs,
}

#[derive(Serialize)]
struct Report {
    name: String,
    write: bool,
    address: String,
    length: u64,
    recovered: bool,
    /// Replayed bytes of its lane.
    recovered_bytes: Option<u64>,
    tracking: Option<String>,
    attach_ns: u64,
}

enum Attached {
    Writer(Box<Object>),
    Reader(ReadObject),
}

pub fn run(context: &Context, args: &AttachCheck) -> Result {
    let key = args.key.read()?;
    let pool = if args.write { context.open(&args.pool)? } else { context.open_to_read(&args.pool)? };
    let stat = pool.stat(&args.name)?;
    let stale = stat.needs_recovery;
    if let Some(pid) = stat.living_writer {
        note(&format!(
            "its last writer, process {pid}, runs, and does not have this file: if it is a copy of a pool in use, what it holds is of different moments"
        ));
    }
    let start = Instant::now();
    let attached = attach(&pool, args, &key)?;
    let report = attached.report(&args.name, stale, start.elapsed());
    let mut out = Out::new();
    if context.json {
        out.json(&report)?
    } else {
        report.text(&mut out)?
    }
    out.flush()?;
    if args.hold {
        io::copy(&mut io::stdin().lock().by_ref(), &mut io::sink()).map_err(Failure::from)?;
    }
    attached.detach()
}

fn attach(pool: &Pool, args: &AttachCheck, key: &[u8]) -> Result<Attached> {
    if args.write {
        return Ok(Attached::Writer(Box::new(sealing::attach(pool, &args.name, key, &args.seal)?)));
    }
    Ok(Attached::Reader(match sealing::attach_read(pool, &args.name, key, &args.seal)? {
        Some(sealed) => sealed,
        None => pool.attach_read_with_key(&args.name, key)?,
    }))
}

impl Attached {
    fn report(&self, name: &str, stale: bool, took: Duration) -> Report {
        let (at, len, writer) = match self {
            Attached::Writer(object) => (object.as_ptr(), object.len(), Some(&**object)),
            Attached::Reader(object) => (object.as_ptr(), object.len(), None),
        };
        let recovered_bytes = writer.map(Object::recovered_bytes);
        Report {
            name: name.to_owned(),
            write: writer.is_some(),
            address: crate::text::address(at.addr() as u64),
            length: len as u64,
            recovered: stale || recovered_bytes.is_some_and(|bytes| bytes > 0),
            recovered_bytes,
            tracking: writer.map(Object::rung),
            attach_ns: u64::try_from(took.as_nanos()).unwrap_or(u64::MAX),
        }
    }

    fn detach(self) -> Result {
        match self {
            Attached::Writer(object) => object.detach()?,
            Attached::Reader(object) => object.detach()?,
        }
        Ok(())
    }
}

impl Report {
    fn text(&self, out: &mut Out) -> Result {
        let purpose = if self.write { "writing" } else { "reading" };
        let took = span(Duration::from_nanos(self.attach_ns));
        out.line(&format!("attached {} for {purpose} in {took}", object(&self.name)))?;
        let recovered = match (self.recovered, self.recovered_bytes) {
            (false, _) => "none was needed".to_owned(),
            (true, Some(bytes)) => format!("its last writer had died; replayed {} of psyncs", exactly(bytes)),
            (true, None) => "its last writer had died".to_owned(),
        };
        out.fields(&[
            ("address", self.address.clone()),
            ("length", exactly(self.length)),
            ("recovery", recovered),
            ("tracking", self.tracking.clone().unwrap_or_else(|| "none: reading needs none".to_owned())),
        ])
    }
}
