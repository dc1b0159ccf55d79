//! `pmo doctor`: what this machine offers.

use crate::context::Context;
use crate::exit::Exit;
use crate::failure::{Failure, Result};
use crate::out::{Out, show};
use crate::text::printable;
use clap::Args;
use serde::Serialize;
use std::path::PathBuf;

/// Say what this machine offers, and what to do about what is missing
///
/// With PATH, also what a pool there stands on. Needs no rights, and changes nothing.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  pmo doctor
  pmo doctor data.pmo
  pmo doctor --json | jq -r .tracking

JSON:
  {\"tracking\":\"wp-async\",\"medium\":null,
   \"facilities\":[{\"name\":\"kernel\",\"available\":null,\"found\":\"6.18.0\",\"advice\":\"…\"}]}
  available is null where that is not a question. The exit code is 9 if PATH cannot be used.")]
pub struct Doctor {
    /// A pool, or a file or device that might become one
    path: Option<PathBuf>,
}

#[derive(Serialize)]
struct Report {
    tracking: String,
    medium: Option<&'static str>,
    facilities: Vec<Facility>,
}

#[derive(Serialize)]
struct Facility {
    name: &'static str,
    available: Option<bool>,
    found: String,
    advice: String,
}

pub fn run(context: &Context, args: &Doctor) -> Result {
    let found = indelible::doctor(args.path.as_deref());
    let facilities = found.facilities.into_iter().map(|facility| Facility {
        name: facility.name,
        available: facility.available,
        found: facility.found,
        advice: facility.advice,
    });
    let report = Report {
        tracking: found.tracking,
        medium: found.medium.map(indelible::MediumKind::word),
        facilities: facilities.collect(),
    };
    show(context.json, &report, text)?;
    match (&args.path, report.medium) {
        (Some(_), None) => Err(Failure::Quiet(Exit::Unsuitable)),
        _ => Ok(()),
    }
}

fn text(report: &Report, out: &mut Out) -> Result {
    let width = report.facilities.iter().map(|facility| facility.name.len()).max().unwrap_or(0);
    for Facility { name, available, found, advice } in &report.facilities {
        let mark = match available {
            Some(true) => "yes",
            Some(false) => "no",
            None => "",
        };
        out.line(&format!("{name:<width$}  {mark:<3}  {}", printable(found)))?;
        out.line(&format!("{:<width$}       {advice}", ""))?;
    }
    out.line("")?;
    out.line(&format!("Stores will be noticed by {}.", report.tracking))
}
