use crate::context::Context;
use crate::failure::Result;
use crate::out::{Out, show};
use crate::progress;
use crate::text::count;
use crate::values::pool;
use clap::Args;
use indelible_store::format::VERSION;
use serde::Serialize;
use std::path::PathBuf;

/// Make a pool of an earlier format one of this format, where it is
///
/// No process may have the pool open, and earlier releases refuse it from then on. Psyncs of
/// programs that died are recovered; objects keep their names, IDs, addresses and contents, which
/// are not touched. It may be cut short at any time: the same command goes on with it. A damaged
/// pool is left as it was.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  pmo upgrade data.pmo --dry-run     say whether it can be done
  pmo upgrade data.pmo

JSON:
  {\"dry_run\":false,\"from\":1,\"to\":2,\"objects\":12,\"recovered\":0}
  recovered: objects whose programs had died. If from is to, nothing was to be done.")]
pub struct Upgrade {
    /// The pool
    #[arg(value_parser = pool())]
    pool: PathBuf,

    /// Try it in memory, and change nothing
    #[arg(short = 'n', long)]
    dry_run: bool,
}

#[derive(Serialize)]
struct Report {
    dry_run: bool,
    from: u32,
    to: u32,
    objects: u64,
    recovered: u64,
}

pub fn run(context: &Context, args: &Upgrade) -> Result {
    let bar = progress::steps("checking");
    let done = indelible::upgrade(&args.pool, &context.options, args.dry_run, &mut |done, total| {
        bar.set_length(total);
        bar.set_position(done);
    });
    bar.finish_and_clear();
    let done = done?;
    let report = Report {
        dry_run: args.dry_run,
        from: done.from,
        to: VERSION,
        objects: done.objects,
        recovered: done.recovered,
    };
    show(context.json, &report, text)
}

fn text(report: &Report, out: &mut Out) -> Result {
    let Report { from, to, .. } = report;
    if from == to {
        return out.line(&format!("the pool has format {to} already"));
    }
    let objects = count(report.objects, "object");
    let recovered = match report.recovered {
        0 => String::new(),
        dead => format!(", {} recovered", count(dead, "object")),
    };
    out.line(&if report.dry_run {
        format!("the pool can be upgraded from format {from} to {to}: {objects}{recovered}")
    } else {
        format!("upgraded from format {from} to {to}: {objects}{recovered}")
    })
}
