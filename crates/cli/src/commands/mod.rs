//! The commands, one file each.

mod attach_check;
mod backup;
mod cat;
mod check;
mod clone;
mod completions;
mod context;
mod cp;
mod create;
mod diff;
mod doctor;
mod dump;
mod export;
pub mod format;
mod gc;
mod grow;
mod guard;
mod heap;
mod inspect;
mod key;
mod leds;
mod log;
mod ls;
mod man;
mod metrics;
mod migrate;
mod mount;
mod mv;
mod put;
mod recover;
mod references;
mod repair;
mod replicate;
mod resize;
mod restore;
mod rm;
mod rollback;
mod rotate;
mod run;
mod scrub;
mod set;
mod signer;
mod snapshot;
mod sqlite;
mod stat;
mod tie;
mod top;
mod types;
mod upgrade;
mod verify;
mod view;
mod volume;

use crate::context::Context;
use crate::failure::Result;
use clap::Subcommand;

/// The command to run.
#[derive(Debug, Subcommand)]
pub enum Command {
    Format(format::Format),
    Create(create::Create),
    Ls(ls::Ls),
    Stat(stat::Stat),
    Put(put::Put),
    Cat(cat::Cat),
    Resize(resize::Resize),
    Set(set::Set),
    Cp(cp::Cp),
    Mv(mv::Mv),
    Snapshot(snapshot::Snapshot),
    Rollback(rollback::Rollback),
    Diff(diff::Diff),
    Rm(rm::Rm),
    Tie(tie::Tie),
    Untie(tie::Untie),
    Gc(gc::Gc),
    Grow(grow::Grow),
    Backup(backup::Backup),
    Verify(verify::Verify),
    Restore(restore::Restore),
    Replicate(replicate::Replicate),
    Clone(clone::Clone),
    View(view::View),
    Context(context::SecurityContexts),
    Run(run::Run),
    Export(export::Export),
    Import(export::Import),
    AttachCheck(attach_check::AttachCheck),
    Check(check::Check),
    Repair(repair::Repair),
    Scrub(scrub::Scrub),
    Dump(dump::Dump),
    Upgrade(upgrade::Upgrade),
    Heap(heap::Heap),
    Types(types::Types),
    Migrate(migrate::Migrate),
    Leds(leds::Leds),
    Log(log::Log),
    Sqlite(sqlite::Sqlite),
    Volume(volume::Volume),
    Mount(mount::Mount),
    Key(key::Key),
    Guard(guard::Guard),
    Recover(recover::Recover),
    Top(top::Top),
    Inspect(inspect::Inspect),
    Metrics(metrics::Metrics),
    Doctor(doctor::Doctor),
    Completions(completions::Completions),
    Man(man::Man),
}

pub fn run(context: &Context, command: &Command) -> Result {
    match command {
        Command::Format(args) => format::run(context, args),
        Command::Create(args) => create::run(context, args),
        Command::Ls(args) => ls::run(context, args),
        Command::Stat(args) => stat::run(context, args),
        Command::Put(args) => put::run(context, args),
        Command::Cat(args) => cat::run(context, args),
        Command::Resize(args) => resize::run(context, args),
        Command::Set(args) => set::run(context, args),
        Command::Cp(args) => cp::run(context, args),
        Command::Mv(args) => mv::run(context, args),
        Command::Snapshot(args) => snapshot::run(context, args),
        Command::Rollback(args) => rollback::run(context, args),
        Command::Diff(args) => diff::run(context, args),
        Command::Backup(args) => backup::run(context, args),
        Command::Verify(args) => verify::run(context, args),
        Command::Restore(args) => restore::run(context, args),
        Command::Replicate(args) => replicate::run(context, args),
        Command::Clone(args) => clone::run(context, args),
        Command::View(args) => view::run(context, args),
        Command::Context(args) => context::run(context, args),
        Command::Run(args) => run::run(context, args),
        Command::Export(args) => export::export(context, args),
        Command::Import(args) => export::import(context, args),
        Command::Rm(args) => rm::run(context, args),
        Command::Tie(args) => tie::tie(context, args),
        Command::Untie(args) => tie::untie(context, args),
        Command::Gc(args) => gc::run(context, args),
        Command::Guard(args) => guard::run(context, args),
        Command::Recover(args) => recover::run(context, args),
        Command::Grow(args) => grow::run(context, args),
        Command::AttachCheck(args) => attach_check::run(context, args),
        Command::Check(args) => check::run(context, args),
        Command::Heap(args) => heap::run(context, args),
        Command::Key(args) => key::run(context, args),
        Command::Types(args) => types::run(context, args),
        Command::Migrate(args) => migrate::run(context, args),
        Command::Leds(args) => leds::run(context, args),
        Command::Log(args) => log::run(context, args),
        Command::Sqlite(args) => sqlite::run(context, args),
        Command::Volume(args) => volume::run(context, args),
        Command::Mount(args) => mount::run(context, args),
        Command::Repair(args) => repair::run(context, args),
        Command::Scrub(args) => scrub::run(context, args),
        Command::Upgrade(args) => upgrade::run(context, args),
        Command::Dump(args) => dump::run(context, args),
        Command::Doctor(args) => doctor::run(context, args),
        Command::Completions(args) => completions::run(context, args),
        Command::Man(args) => man::run(context, args),
        Command::Metrics(args) => metrics::run(context, args),
        Command::Top(args) => top::run(context, args),
        Command::Inspect(args) => inspect::run(context, args),
    }
}
