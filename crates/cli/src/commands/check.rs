//! `pmo check`: is everything in a pool as it should be?

use crate::context::Context;
use crate::exit::Exit;
use crate::failure::{Failure, Result};
use crate::out::{Out, show};
use crate::progress;
use crate::text::{count, printable};
use crate::values::pool;
use clap::Args;
use indelible::Severity;
use serde::Serialize;
use std::path::PathBuf;

/// Verify a whole pool; nothing in it is changed
///
/// Reads every structure of the pool and reports damage: the structure, its offset, the object
/// concerned, and advice. Works on pools that cannot be opened, and beside programs that use the pool. Contents of
/// objects have no checksums, so they are not judged.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  pmo check data.pmo
  pmo check data.pmo && echo fine         exit code 3: something is wrong
  pmo check data.pmo --json | jq '.findings[] | select(.severity == \"error\")'

JSON:
  {\"clean\":false,\"objects\":12,\"lanes\":1,\"waiting\":0,\"left_off\":0,
   \"findings\":[{\"severity\":\"error\",\"part\":\"table entry\",\"offset\":593920,\"object\":\"counters\",
                \"what\":\"…\",\"remedy\":\"…\"}]}
  severity is note, warning or error; clean means that there are notes at most. waiting counts psyncs of
  writers that died, which the next attach completes. left_off counts findings beyond those listed.")]
pub struct Check {
    /// The pool
    #[arg(value_parser = pool())]
    pool: PathBuf,
}

/// A check, for programs.
#[derive(Serialize)]
pub struct Report {
    clean: bool,
    objects: u64,
    lanes: u32,
    waiting: u64,
    left_off: u64,
    findings: Vec<Finding>,
}

#[derive(Serialize)]
struct Finding {
    severity: &'static str,
    part: String,
    offset: u64,
    object: Option<String>,
    what: String,
    remedy: String,
}

impl Report {
    pub fn of(report: &indelible::Report) -> Self {
        let findings = report.findings.iter().map(|finding| Finding {
            severity: match finding.severity {
                Severity::Note => "note",
                Severity::Warning => "warning",
                Severity::Error => "error",
            },
            part: finding.part.to_string(),
            offset: finding.offset,
            object: finding.object.clone(),
            what: finding.what.clone(),
            remedy: finding.remedy.clone(),
        });
        Report {
            clean: report.is_clean(),
            objects: report.objects,
            lanes: report.lanes,
            waiting: report.waiting,
            left_off: report.left_off,
            findings: findings.collect(),
        }
    }

    /// Exit code 3 if something is wrong.
    pub fn verdict(&self) -> Result {
        if self.clean { Ok(()) } else { Err(Failure::Quiet(Exit::Damaged)) }
    }

    pub fn text(&self, out: &mut Out) -> Result {
        for Finding { severity, part, offset, object, what, remedy } in &self.findings {
            let object =
                object.as_ref().map(|name| format!("{}: ", crate::failure::object(name))).unwrap_or_default();
            out.line(&format!("{severity}: {part} at {offset}: {object}{}", printable(what)))?;
            out.line(&format!("  help: {}", printable(remedy)))?;
        }
        if self.left_off > 0 {
            out.line(&format!("and {} more", self.left_off))?;
        }
        let wrong =
            self.findings.iter().filter(|finding| finding.severity != "note").count() as u64 + self.left_off;
        let verdict =
            if self.clean { "clean".to_owned() } else { format!("{} found", count(wrong, "problem")) };
        let waiting = match self.waiting {
            0 => String::new(),
            n => format!(", {} of dead writers waiting to be completed", count(n, "psync")),
        };
        out.line(&format!(
            "{}, {}{waiting}: {verdict}",
            count(self.objects, "object"),
            count(self.lanes.into(), "lane")
        ))
    }
}

pub fn run(context: &Context, args: &Check) -> Result {
    let bar = progress::steps("checking");
    let found = indelible::check(&args.pool, &context.options, &mut |done, total| {
        bar.set_length(total);
        bar.set_position(done);
    });
    bar.finish_and_clear();
    let report = Report::of(&found?);
    show(context.json, &report, Report::text)?;
    report.verdict()
}
