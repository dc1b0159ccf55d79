use crate::context::Context;
use crate::exit::Exit;
use crate::failure::{Failure, Result};
use crate::out::{Out, show};
use crate::text::printable;
use clap::Args;
use rustix::fs::{Mode, OFlags};
use serde::Serialize;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};

/// Show this machine's features, and advice on missing ones
///
/// With PATH, also the kind of medium there, and whether this software can use the pool on it: PATH
/// may be a folder, or the name of a file yet to be made. Needs no rights, and changes nothing.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  pmo doctor
  pmo doctor data.pmo
  pmo doctor /mnt/pmem           would it be DAX?
  pmo doctor --json | jq -r .tracking

JSON:
  {\"tracking\":\"wp-async\",\"medium\":null,
   \"facilities\":[{\"name\":\"kernel\",\"available\":null,\"found\":\"6.18.0\",\"advice\":\"…\"}]}
  available is null where that is not a question. The exit code is 9 if PATH cannot be used.")]
pub struct Doctor {
    /// A pool, a file or device that might become one, or a folder to make one in
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
    let stand_in = args.path.as_deref().and_then(StandIn::make);
    let path = stand_in.as_ref().map(StandIn::path).or_else(|| args.path.clone());
    let found = indelible::doctor(path.as_deref());
    let facilities = found.facilities.into_iter().map(|facility| Facility {
        name: facility.name,
        available: facility.available,
        found: match (&stand_in, &path) {
            (Some(stand_in), Some(path)) => {
                facility.found.replace(&path.display().to_string(), &format!("a file {}", stand_in.place))
            }
            _ => facility.found,
        },
        advice: facility.advice,
    });
    let report = Report {
        tracking: found.tracking,
        medium: found.medium.map(indelible::MediumKind::word),
        facilities: facilities.collect(),
    };
    show(context.json, &report, text)?;
    let refused =
        report.facilities.iter().any(|found| found.name == "pool" && found.available == Some(false));
    if refused || args.path.is_some() && report.medium.is_none() {
        return Err(Failure::Quiet(Exit::Unsuitable));
    }
    Ok(())
}

struct StandIn {
    file: OwnedFd,
    place: String,
}

impl StandIn {
    fn make(path: &Path) -> Option<Self> {
        let folder = if path.is_dir() {
            path
        } else if path.symlink_metadata().is_err() {
            path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
        } else {
            return None;
        };
        let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
        let file = rustix::fs::open(folder, flags, Mode::RUSR | Mode::WUSR).ok()?;
        // The smallest pool's length: an empty file has no medium.
        rustix::fs::ftruncate(&file, 1 << 20).ok()?;
        Some(StandIn { file, place: format!("in {}", folder.display()) })
    }

    fn path(&self) -> PathBuf {
        format!("/proc/self/fd/{}", self.file.as_raw_fd()).into()
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
