//! From arguments to an exit code.

use crate::args::{Cli, MkPmo, command_lines};
use crate::commands;
use crate::context::Context;
use crate::exit::Exit;
use crate::failure::{Failure, Result};
use crate::global::Global;
use crate::terminal::{self, Style};
use crate::values::default_pool;
use clap::error::ErrorKind;
use clap::{CommandFactory, Error, Parser};
use std::ffi::OsString;

/// Commands without an existing pool's path.
const NO_POOL: [&str; 7] = ["format", "doctor", "guard", "leds", "completions", "man", "help"];

/// Runs `pmo` with these arguments, the first its own name, and returns its exit code.
pub fn pmo(arguments: impl IntoIterator<Item = OsString>) -> u8 {
    let arguments: Vec<OsString> = arguments.into_iter().collect();
    let parsed = Cli::try_parse_from(&arguments).or_else(|error| with_default_pool(error, &arguments));
    finish(parsed, &arguments, |Cli { global, command }| {
        let context = begin(&global);
        commands::run(&context, &command)
    })
}

/// Runs `mkpmo`, as [`pmo`].
pub fn mkpmo(arguments: impl IntoIterator<Item = OsString>) -> u8 {
    let arguments: Vec<OsString> = arguments.into_iter().collect();
    finish(MkPmo::try_parse_from(&arguments), &arguments, |MkPmo { global, format }| {
        let context = begin(&global);
        commands::format::run(&context, &format)
    })
}

fn begin(global: &Global) -> Context {
    // A limit of a file's size is an error with its name, and the unfinished file is removed.
    indelible::survive_size_limit();
    indelible::keep_statuses();
    let Global { json, quiet, verbose, color, .. } = *global;
    terminal::set(Style { json, quiet, verbose, color });
    Context::new(global, command_lines)
}

fn with_default_pool(error: Error, arguments: &[OsString]) -> std::result::Result<Cli, Error> {
    if error.kind() != ErrorKind::MissingRequiredArgument || default_pool().is_none() {
        return Err(error);
    }
    let command = Cli::command();
    let find = |argument: &OsString| argument.to_str().and_then(|word| command.find_subcommand(word));
    let Some(at) = arguments.iter().skip(1).position(|argument| find(argument).is_some()) else {
        return Err(error);
    };
    let found = find(&arguments[at + 1]).filter(|found| !NO_POOL.contains(&found.get_name()));
    let Some(found) = found else { return Err(error) };
    let nested = usize::from(found.has_subcommands());
    let mut completed = arguments.to_vec();
    completed.insert((at + 2 + nested).min(completed.len()), "-".into());
    Cli::try_parse_from(completed).map_err(|_| error)
}

fn finish<P>(
    parsed: std::result::Result<P, Error>,
    arguments: &[OsString],
    work: impl FnOnce(P) -> Result,
) -> u8 {
    let result = match parsed {
        Ok(parsed) => work(parsed),
        Err(error) if error.use_stderr() && arguments.iter().any(|argument| argument == "--json") => {
            terminal::set(Style { json: true, ..Style::default() });
            Err(Failure::usage(&error.to_string()))
        }
        Err(error) => {
            let _ = error.print();
            return error.exit_code().try_into().unwrap_or(Exit::Usage as u8);
        }
    };
    let Err(failure) = result else { return Exit::Fine as u8 };
    failure.report();
    failure.status()
}
