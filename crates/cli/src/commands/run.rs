use crate::alike;
use crate::context::Context;
use crate::exit::Exit;
use crate::failure::{Failure, Result};
use crate::terminal::note;
use crate::text::quoted;
use crate::values::pool;
use clap::Args;
use indelible::{Ended, SecurityContext, Supervisor, View};
use std::ffi::OsString;
use std::io;
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

/// Run a program in a view, and start it again where it dies
///
/// The program finds the view in its environment: it attaches it by `indelible::resume` in Rust,
/// which runs another function after a death, and reports the losses. All objects are then as their
/// last psyncs left them. A death is an end by a signal: a crash, or kill -9. An exit with any
/// status is none, and neither is an end by a signal to `pmo run`: SIGINT, SIGTERM, SIGHUP and
/// SIGQUIT are passed on, as are SIGUSR1 and SIGUSR2.
///
/// Restarts come after a pause, which doubles each time, up to 10 seconds, and begins anew when the
/// program has run for a minute.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  pmo run data.pmo --view work ./program --its-option
  pmo run data.pmo --view work --context staff --context ann ./program
  pmo run data.pmo --view work --restarts 3 --pause 1 -- ./program

Exit code: that of the program; 128 and the signal's number if a signal ended it. Codes of the \
tool itself if the program could not be started.

The program's environment: PMO_POOL, the pool's path; PMO_VIEW, the view's name; PMO_CONTEXT, names \
of security contexts, a line for each; PMO_RESUME after a death: the number of restarts, the process that died, and the signal.")]
pub struct Run {
    /// The pool
    #[arg(value_parser = pool())]
    pool: PathBuf,

    /// Name of the view
    #[arg(long)]
    view: String,

    /// Name of a security context: the program has the rights that its contexts allow. Several are
    /// given by several options; without any, everything is allowed
    #[arg(long = "context", value_name = "CONTEXT")]
    contexts: Vec<String>,

    /// Start the program again so many times without a minute of work in between
    #[arg(long, value_name = "COUNT", default_value_t = 10)]
    restarts: u32,

    /// Seconds before the first restart
    #[arg(long, value_name = "SECONDS", default_value = "0.1", value_parser = crate::global::seconds)]
    pause: Duration,

    /// The program, and its arguments
    #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true, value_name = "PROGRAM")]
    program: Vec<OsString>,
}

const LONGEST: Duration = Duration::from_secs(10);

const WORKED: Duration = Duration::from_secs(60);

pub fn run(context: &Context, args: &Run) -> Result {
    check(context, args)?;
    let path = std::path::absolute(&args.pool).unwrap_or_else(|_| args.pool.clone());
    let supervisor = Supervisor::new();
    let (mut restarts, mut in_a_row, mut pause) = (0_u32, 0, args.pause);
    let mut told = None;
    loop {
        let mut command = Command::new(&args.program[0]);
        command.args(&args.program[1..]).env("PMO_POOL", &path).env("PMO_VIEW", &args.view);
        match args.contexts.is_empty() {
            true => command.env_remove("PMO_CONTEXT"),
            false => command.env("PMO_CONTEXT", args.contexts.join("\n")),
        };
        match &told {
            Some(told) => command.env("PMO_RESUME", told),
            None => command.env_remove("PMO_RESUME"),
        };
        let ended = supervisor.run(&mut command).map_err(|error| cannot_start(args, &error))?;
        let Some(signal) = ended.status.signal().filter(|_| ended.asked.is_none()) else {
            return finished(&ended);
        };
        if ended.ran >= WORKED {
            (in_a_row, pause) = (0, args.pause);
        }
        let name = quoted(&args.program[0].to_string_lossy());
        if in_a_row >= args.restarts {
            note(&format!("{name} died of signal {signal}, and is not started again"));
            return finished(&ended);
        }
        if let Some(asked) = supervisor.pause(pause) {
            return Err(Failure::Program(of_signal(asked)));
        }
        (restarts, in_a_row, pause) = (restarts.saturating_add(1), in_a_row + 1, (pause * 2).min(LONGEST));
        note(&format!("{name} died of signal {signal}, and is started again"));
        told = Some(format!("{restarts} {} {signal}", ended.process));
    }
}

fn check(context: &Context, args: &Run) -> Result {
    let pool = context.open(&args.pool)?;
    View::read(&pool, &args.view).map_err(|error| alike::explain(&pool, &args.view, error))?;
    for context in &args.contexts {
        SecurityContext::read(&pool, context).map_err(|error| alike::explain(&pool, context, error))?;
    }
    Ok(())
}

fn cannot_start(args: &Run, error: &io::Error) -> Failure {
    let exit = match error.kind() {
        io::ErrorKind::NotFound => Exit::NotFound,
        io::ErrorKind::PermissionDenied => Exit::Denied,
        _ => Exit::Failed,
    };
    let message = format!("cannot start {}: {error}", quoted(&args.program[0].to_string_lossy()));
    Failure::new(exit, message, "give the path of a program, or the name of one in PATH")
}

fn of_signal(signal: i32) -> u8 {
    u8::try_from(128 + signal).unwrap_or(u8::MAX)
}

/// The program's status as that of the command.
pub(super) fn finished(ended: &Ended) -> Result {
    let code = match (ended.status.code(), ended.status.signal()) {
        (Some(code), _) => u8::try_from(code).unwrap_or(u8::MAX),
        (None, signal) => of_signal(signal.unwrap_or(0)),
    };
    if code == 0 { Ok(()) } else { Err(Failure::Program(code)) }
}
