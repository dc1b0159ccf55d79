//! The commands, and how their failures end the process.

mod args;
mod out;
mod restore;
mod run;
mod status;

use args::{Arguments, Command};
use clap::Parser;
use indelible_replicate::ReplicateError;
use nix::sys::signal::{SigSet, Signal};
use serde::Serialize;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

pub(crate) fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let stop = Arc::new(AtomicBool::new(false));
    let (json, command) = (arguments.json, arguments.command);
    let done = match command {
        Command::Run(args) => {
            end_by_signals(&stop);
            run::run(&args, json, &stop)
        }
        Command::Status(args) => status::run(&args, json),
        Command::Restore(args) => restore::run(&args, json),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) if out::is_closed(&error) => ExitCode::SUCCESS,
        Err(error) => fail(&error, json),
    }
}

/// SIGTERM, SIGINT and SIGHUP end the run between two moments.
fn end_by_signals(stop: &Arc<AtomicBool>) {
    // Before there are threads, which inherit the mask.
    let signals = SigSet::from_iter([Signal::SIGTERM, Signal::SIGINT, Signal::SIGHUP]);
    if signals.thread_block().is_err() {
        return;
    }
    let stop = stop.clone();
    let wait = move || {
        let _ = signals.wait();
        stop.store(true, Ordering::Release);
        // The second one ends a run that waits for the pool.
        let _ = signals.wait();
        std::process::exit(1);
    };
    let _ = std::thread::Builder::new().name("signals".into()).spawn(wait);
}

#[derive(Serialize)]
struct Failure {
    error: String,
    exit: u8,
}

fn fail(error: &ReplicateError, json: bool) -> ExitCode {
    let exit = exit(error);
    let text = error.to_string();
    match json {
        true => {
            let failure = Failure { error: text, exit };
            out::note(&serde_json::to_string(&failure).unwrap_or_default());
        }
        false => out::note(&format!("error: {text}")),
    }
    ExitCode::from(exit)
}

// As `pmo`'s: docs/cookbook has the list.
fn exit(error: &ReplicateError) -> u8 {
    match error {
        ReplicateError::Url { .. } => 2,
        error if error.is_gone() => 3,
        ReplicateError::Damaged { .. } | ReplicateError::Foreign { .. } => 3,
        ReplicateError::Owned { .. } | ReplicateError::Fenced { .. } | ReplicateError::Restless => 4,
        ReplicateError::Missing { .. } | ReplicateError::Empty(_) | ReplicateError::NoMoment { .. } => 5,
        ReplicateError::Refused { .. } => 6,
        ReplicateError::Exists(_) => 7,
        ReplicateError::NoRoom { .. } => 8,
        ReplicateError::File { cause, .. } if is_full(cause) => 8,
        ReplicateError::Version { .. }
        | ReplicateError::OtherPool { .. }
        | ReplicateError::Unrelated { .. } => 9,
        _ => 1,
    }
}

fn is_full(error: &std::io::Error) -> bool {
    use std::io::ErrorKind::{FileTooLarge, QuotaExceeded, StorageFull};
    matches!(error.kind(), StorageFull | QuotaExceeded | FileTooLarge)
}

/// A number of bytes for people.
fn size(bytes: u64) -> String {
    let units = ["B", "KiB", "MiB", "GiB", "TiB"];
    let (mut number, mut unit) = (bytes as f64, 0);
    while number >= 1024.0 && unit + 1 < units.len() {
        number /= 1024.0;
        unit += 1;
    }
    match unit {
        0 => format!("{bytes} B"),
        _ => format!("{number:.1} {}", units[unit]),
    }
}
