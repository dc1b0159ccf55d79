//! `pmo replicate status`.

use super::args::Status;
use super::out::{line, print};
use super::size;
use indelible_replicate::{Beacon, Moment, ReplicateError, Result, SystemClock, moments, status};
use serde::Serialize;
use std::time::{SystemTime, UNIX_EPOCH};

#[derive(Serialize)]
struct Report {
    #[serde(flatten)]
    status: indelible_replicate::Status,
    /// Seconds since the newest moment; absent before the first.
    lag: Option<u64>,
    /// The run of this machine and user that ships to it.
    run: Option<Running>,
    moments: Option<Vec<Moment>>,
}

#[derive(Serialize)]
struct Running {
    process: u32,
    pool: String,
    /// Seconds since the moment up to which all changes are in the store.
    lag: Option<f64>,
}

pub(super) fn run(args: &Status, json: bool) -> Result<()> {
    let (bucket, clock) = (args.store.open()?, SystemClock::new(Default::default()));
    let found = status(&*bucket, &clock)?;
    let status = found.ok_or_else(|| ReplicateError::Empty(format!("{} is empty", args.store.name())))?;
    let moments = args.moments.then(|| moments(&*bucket, &clock)).transpose()?;
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    let lag = (status.shipped > 0).then(|| now.saturating_sub(status.shipped));
    let run = Beacon::of_store(&status.id).map(|account| {
        let lag = account.lag();
        Running { process: account.process, pool: account.pool, lag }
    });
    if json {
        return print(&Report { status, lag, run, moments });
    }
    line(&text(&status, lag, run.as_ref(), moments.as_deref().unwrap_or_default(), now))
}

fn text(
    status: &indelible_replicate::Status,
    lag: Option<u64>,
    run: Option<&Running>,
    moments: &[Moment],
    now: u64,
) -> String {
    let mut lines = vec![format!("pool {}", status.pool)];
    lines.extend(status.epochs.iter().map(|epoch| {
        let state = match (epoch.ended, status.released && Some(epoch) == status.epochs.last()) {
            (true, _) => "ended",
            (false, true) => "given up",
            (false, false) => "open",
        };
        format!("epoch {}: {} segments, {state}, by {}", epoch.epoch, epoch.segments, epoch.owner)
    }));
    lines.push(match lag {
        Some(lag) => format!("the newest moment known to the owner is {lag} s old"),
        None => "no moment is known to the owner".to_owned(),
    });
    lines.push(match run {
        Some(Running { process, pool, lag: Some(lag) }) => {
            format!("process {process} ships {pool}: all changes until {lag:.1} s ago are in the store")
        }
        Some(Running { process, pool, lag: None }) => {
            format!("process {process} ships {pool}, and has shipped no moment")
        }
        None => "no run of this machine and user ships to it".to_owned(),
    });
    lines.extend(moments.iter().map(|Moment { at, created, full, bytes }| {
        let what = if *full { "whole pool" } else { "changes" };
        format!("{at}  {} s ago  {}  {what}", now.saturating_sub(*created), size(*bytes))
    }));
    lines.join("\n")
}
