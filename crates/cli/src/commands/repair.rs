use crate::context::Context;
use crate::exit::Exit;
use crate::failure::{Failure, Result};
use crate::out::{Out, show};
use crate::progress;
use crate::text::{count, printable};
use crate::values::pool;
use clap::Args;
use indelible::{RepairAction, RepairOptions};
use serde::Serialize;
use std::path::PathBuf;

/// Mend the damage that check finds, as far as nothing is lost by it
///
/// No process may have the pool open. Objects of writers that died are recovered; structures that
/// can be rebuilt from intact ones are rebuilt. Damage whose repair gives something up is left
/// alone without --drop-damaged: copy the pool's file first. Run a killed repair again: its
/// mends stay. Programs need no repair after a crash: attaching recovers.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  pmo repair data.pmo --dry-run           say what would be done
  pmo repair data.pmo
  pmo repair data.pmo --drop-damaged      give up what cannot be saved

JSON:
  {\"dry_run\":false,\"repaired\":true,
   \"actions\":[{\"done\":true,\"part\":\"superblock\",\"offset\":0,\"object\":null,\"what\":\"…\",\"lost\":null}]}
  lost says what was given up. The exit code is 3 if something was left alone.")]
pub struct Repair {
    /// The pool
    #[arg(value_parser = pool())]
    pool: PathBuf,

    /// List the actions, and do nothing
    #[arg(short = 'n', long)]
    dry_run: bool,

    /// Give up parts that are damaged for good, such as objects whose entries are lost
    #[arg(long)]
    drop_damaged: bool,
}

#[derive(Serialize)]
struct Report {
    dry_run: bool,
    /// Whether no finding is left, or, in a dry run, would be.
    repaired: bool,
    actions: Vec<Action>,
}

#[derive(Serialize)]
struct Action {
    done: bool,
    part: String,
    offset: u64,
    object: Option<String>,
    what: String,
    lost: Option<String>,
}

impl Action {
    fn of(action: &RepairAction) -> Self {
        Action {
            done: action.done,
            part: action.part.to_string(),
            offset: action.offset,
            object: action.object.clone(),
            what: action.what.clone(),
            lost: action.lost.clone(),
        }
    }
}

pub fn run(context: &Context, args: &Repair) -> Result {
    let how = RepairOptions { dry_run: args.dry_run, drop_damaged: args.drop_damaged };
    let bar = progress::steps("repairing");
    let done = indelible::repair(&args.pool, &context.options, &how, &mut |done, total| {
        bar.set_length(total);
        bar.set_position(done);
    });
    bar.finish_and_clear();
    let actions: Vec<_> = done?.iter().map(Action::of).collect();
    let report =
        Report { dry_run: args.dry_run, repaired: actions.iter().all(|action| action.done), actions };
    show(context.json, &report, text)?;
    if report.repaired { Ok(()) } else { Err(Failure::Quiet(Exit::Damaged)) }
}

fn text(report: &Report, out: &mut Out) -> Result {
    for Action { done, part, offset, object, what, lost } in &report.actions {
        let mark = match (done, report.dry_run) {
            (false, _) => "left alone",
            (true, true) => "would do",
            (true, false) => "done",
        };
        let object =
            object.as_ref().map(|name| format!("{}: ", crate::failure::object(name))).unwrap_or_default();
        out.line(&format!("{mark}: {part} at {offset}: {object}{}", printable(what)))?;
        if let Some(lost) = lost {
            out.line(&format!("  lost: {}", printable(lost)))?;
        }
    }
    let left = report.actions.iter().filter(|action| !action.done).count() as u64;
    let did = count(report.actions.len() as u64 - left, "repair");
    out.line(&match (report.actions.is_empty(), left) {
        (true, _) => "nothing to repair".to_owned(),
        (false, 0) if report.dry_run => format!("{did} would be made"),
        (false, 0) => format!("{did} made"),
        (false, left) => format!("{did}, {} left alone", count(left, "problem")),
    })
}
