//! `pmo-evidence`: each command is one layer of evidence; it writes its counts as a
//! [`Record`](indelible_record::Record) and fails on a violation.

#[cfg(target_arch = "x86_64")]
mod commands;
mod crashes;
mod disks;
mod ecc;
#[cfg_attr(not(target_arch = "x86_64"), path = "faults/elsewhere.rs")]
mod faults;
#[cfg(target_arch = "x86_64")]
mod flushes;
mod hostile;
mod kills;
mod messages;
mod mutants;
mod report;
mod retention;
mod snapshots;
mod stores;
mod tamper;
mod workloads;

use clap::{Parser, Subcommand};
use std::process::ExitCode;

/// Tries to break the promise of psync, and counts.
#[derive(Parser)]
#[command(name = "pmo-evidence", version)]
struct Arguments {
    #[command(subcommand)]
    layer: Layer,
}

#[derive(Subcommand)]
enum Layer {
    /// Lets each system call on a pool fail once, in each way
    Faults(faults::Faults),
    #[command(hide = true)]
    FaultsChild(faults::Child),
    /// Kills commands of `pmo`, and compares their pools and backups with those before and after
    #[cfg(target_arch = "x86_64")]
    Commands(commands::Commands),
    #[cfg(target_arch = "x86_64")]
    #[command(hide = true)]
    CommandsChild(commands::Child),
    /// Kills processes that share a pool, and compares the pool with a model
    Kills(kills::Kills),
    #[command(hide = true)]
    KillsChild(kills::Child),
    #[command(hide = true)]
    KillsBeside(kills::BesideChild),
    #[command(hide = true)]
    KillsTransfers(kills::TransfersChild),
    /// Cuts the power of, and fails, disks below real file systems
    Disks(disks::Disks),
    #[command(hide = true)]
    DisksChild(disks::Child),
    /// Damages words and their check words, and checks the repairs
    Ecc(ecc::Ecc),
    /// Kills senders of messages, and the collector that keeps them in a log, and compares the log
    /// with the acknowledged messages
    Messages(messages::Messages),
    #[command(hide = true)]
    MessagesChild(messages::Child),
    /// Stores to objects in every way there is, under kills, and compares the objects with a model
    Stores(stores::Stores),
    #[command(hide = true)]
    StoresChild(stores::Child),
    /// Converts, migrates, extends and resets data of changed types, under kills, and compares them
    /// with a model
    Retention(retention::Retention),
    #[command(hide = true)]
    RetentionChild(retention::Child),
    /// Keeps, copies and follows an object of 64 GiB beside its writer, under kills, and measures
    /// the writer's cost
    Snapshots(snapshots::Snapshots),
    #[command(hide = true)]
    SnapshotsChild(snapshots::Child),
    /// Looks at the instructions of a psync to memory, one by one
    #[cfg(target_arch = "x86_64")]
    Flushes(flushes::Flushes),
    #[cfg(target_arch = "x86_64")]
    #[command(hide = true)]
    FlushesChild(flushes::Child),
    /// Flips every bit of small pools, and replays what fuzzing found
    Hostile(hostile::Hostile),
    /// Exchanges and forges sealed objects without a key, with right checksums, and asks for them
    /// by their keys
    Tamper(tamper::Tamper),
    /// Cuts the power of a simulated medium everywhere in short and in random programs
    Crashes(crashes::Crashes),
    /// Breaks each rule of the protocol on purpose, and says which layer notices
    Mutants(mutants::Mutants),
    /// Prints the records of all layers, and renders docs/evidence.md from them
    Report(report::Report),
}

fn main() -> ExitCode {
    let done = match Arguments::parse().layer {
        Layer::Faults(faults) => faults.run(),
        Layer::FaultsChild(child) => child.run(),
        #[cfg(target_arch = "x86_64")]
        Layer::Commands(commands) => commands.run(),
        #[cfg(target_arch = "x86_64")]
        Layer::CommandsChild(child) => child.run(),
        Layer::Kills(kills) => kills.run(),
        Layer::KillsChild(child) => child.run(),
        Layer::KillsBeside(child) => child.run(),
        Layer::KillsTransfers(child) => child.run(),
        Layer::Disks(disks) => disks.run(),
        Layer::DisksChild(child) => child.run(),
        Layer::Ecc(ecc) => ecc.run(),
        Layer::Messages(messages) => messages.run(),
        Layer::MessagesChild(child) => child.run(),
        Layer::Stores(stores) => stores.run(),
        Layer::StoresChild(child) => child.run(),
        Layer::Retention(retention) => retention.run(),
        Layer::RetentionChild(child) => child.run(),
        Layer::Snapshots(snapshots) => snapshots.run(),
        Layer::SnapshotsChild(child) => child.run(),
        #[cfg(target_arch = "x86_64")]
        Layer::Flushes(flushes) => flushes.run(),
        #[cfg(target_arch = "x86_64")]
        Layer::FlushesChild(child) => child.run(),
        Layer::Hostile(hostile) => hostile.run(),
        Layer::Tamper(tamper) => tamper.run(),
        Layer::Crashes(crashes) => crashes.run(),
        Layer::Mutants(mutants) => mutants.run(),
        Layer::Report(report) => report.run(),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("pmo-evidence: {error:#}");
            ExitCode::FAILURE
        }
    }
}
