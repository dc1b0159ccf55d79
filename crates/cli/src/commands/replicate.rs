use crate::context::Context;
use crate::exit::Exit;
use crate::failure::{Failure, Result};
use clap::Args;
use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::process::Command;

/// Ship a pool's changes to object storage, and restore them
///
/// Runs the separate program `pmo-replicate`, whose help `pmo replicate --help` shows.
/// A store is a folder, `file:///FOLDER`, or a prefix in S3, `s3://BUCKET/PREFIX`.
#[derive(Debug, Args)]
#[command(
    disable_help_flag = true,
    after_help = "\
Examples:
  pmo replicate run data.pmo s3://backups/data
  pmo replicate status s3://backups/data
  pmo replicate restore s3://backups/data elsewhere.pmo"
)]
pub struct Replicate {
    /// run, status or restore, with their arguments
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "ARGUMENT")]
    arguments: Vec<OsString>,
}

pub fn run(context: &Context, args: &Replicate) -> Result {
    let mut command = Command::new(program());
    command.args(&args.arguments);
    if context.json {
        command.arg("--json");
    }
    let error = command.exec();
    let help = "install it beside pmo, or into a folder of PATH (`cargo install --path crates/replicate`)";
    Err(Failure::new(Exit::NotFound, format!("cannot start pmo-replicate: {error}"), help))
}

fn program() -> OsString {
    let beside = std::env::current_exe().ok().map(|own| own.with_file_name("pmo-replicate"));
    beside.filter(|path| path.exists()).map_or_else(|| "pmo-replicate".into(), Into::into)
}
