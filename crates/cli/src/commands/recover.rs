use crate::context::Context;
use crate::exit::Exit;
use crate::failure::{Failure, Result};
use crate::out::confirm;
use crate::text::count;
use crate::values::pool;
use clap::Args;
use serde::Serialize;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::Command;

/// Make durable the commits on demand that processes which died have left in memory
///
/// The next attach of an object recovers them by itself, as `pmo guard` does when a process dies.
/// Until then, a power cut takes them. Commits of processes that run stay theirs.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  pmo recover data.pmo

JSON: {\"recovered\":2}
  recovered: objects whose commits were in memory")]
pub struct Recover {
    /// The pool
    #[arg(value_parser = pool())]
    pool: PathBuf,

    /// The memory of one process, by its number, in hexadecimal digits
    #[arg(long, hide = true, value_parser = number)]
    memory: Option<u64>,

    /// Become this user and group first
    #[arg(long, hide = true, value_name = "USER:GROUP", value_parser = user)]
    as_user: Option<(u32, u32)>,
}

fn user(text: &str) -> std::result::Result<(u32, u32), String> {
    let (user, group) = text.split_once(':').ok_or("not a user and a group")?;
    let number = |text: &str| text.parse().map_err(|_| format!("not a number: {text}"));
    Ok((number(user)?, number(group)?))
}

fn number(text: &str) -> std::result::Result<u64, String> {
    u64::from_str_radix(text, 16).map_err(|error| error.to_string())
}

#[derive(Serialize)]
struct Report {
    recovered: u64,
}

pub fn run(context: &Context, args: &Recover) -> Result {
    if let Some((user, group)) = args.as_user {
        return Err(become_user(user, group));
    }
    let pool = context.open(&args.pool)?;
    let recovered = match args.memory {
        Some(number) => pool.recover_memory(number)?,
        None => pool.recover()?,
    };
    confirm(context.json, &Report { recovered }, |report, out| {
        out.line(&format!("{} recovered", count(report.recovered, "object")))
    })
}

/// Restarts this process as another user's; returns the failure. /proc's files of a process belong
/// to root after a mere change of user.
fn become_user(user: u32, group: u32) -> Failure {
    let failed = |error: &std::io::Error| {
        let help = "`pmo guard run` as root recovers for all users";
        Failure::new(Exit::Denied, format!("cannot become user {user}: {error}"), help)
    };
    let mut arguments = std::env::args_os().skip(1);
    let mut command = match std::env::current_exe() {
        Ok(program) => Command::new(program),
        Err(error) => return failed(&error),
    };
    while let Some(argument) = arguments.next() {
        match argument.to_str() {
            Some("--as-user") => drop(arguments.next()),
            _ => drop(command.arg(argument)),
        }
    }
    failed(&command.uid(user).gid(group).exec())
}
