use crate::context::Context;
use crate::exit::Exit;
use crate::failure::{Failure, Result};
use crate::out::confirm;
use crate::values::pool;
use clap::Args;
use std::ffi::OsString;
use std::io::{BufRead, BufReader};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};

/// Show a volume to all programs, as a file system
///
/// Directories and files are in an object of the pool. `fsync` of any file is one psync of the
/// whole volume; one more comes every five seconds, and with the unmount. After a crash the whole
/// tree is exactly as one psync left it: files that were written before an fsync that returned are
/// there together.
///
/// A process `pmo-mount` serves the volume until `umount DIR` (`fusermount3 -u DIR` without root),
/// or a SIGTERM. If it dies, every access is an error until the volume is mounted again, which
/// recovers. Needs /dev/fuse, and root or fusermount3. `sync` and `syncfs` do not reach file
/// systems of this kind: use `fsync`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  pmo volume create data.pmo
  pmo mount data.pmo /mnt/data
  pmo mount data.pmo /mnt/monday -o snapshot=monday
  pmo mount data.pmo /mnt/data -o allow_other,volume=photos
  umount /mnt/data

Options of -o: volume=NAME [default: files]; snapshot=NAME, to read; ro, to read what the last psync left, beside a \
process that has the volume; allow_other, for the programs of other users")]
pub struct Mount {
    /// The pool
    #[arg(value_parser = pool())]
    pool: PathBuf,

    /// The directory to mount it at
    dir: PathBuf,

    /// Options, separated by commas
    #[arg(short = 'o', value_name = "OPTION,…", default_value = "", hide_default_value = true)]
    options: String,

    /// Serve the volume in this process, until it is unmounted, or Ctrl-C
    #[arg(long, short)]
    foreground: bool,
}

pub fn run(context: &Context, args: &Mount) -> Result {
    let mut command = Command::new(program());
    command.args([&args.pool, &args.dir]).arg(&args.options);
    if args.foreground {
        return Err(not_started(&command.exec()));
    }
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).process_group(0);
    let mut child = command.spawn().map_err(|error| not_started(&error))?;
    let mut said = String::new();
    if let Some(out) = child.stdout.take() {
        BufReader::new(out).read_line(&mut said)?;
    }
    match said.trim_end() {
        "mounted" => confirm(context.json, &args.dir, |dir, out| {
            out.line(&format!("mounted {} at {}", args.pool.display(), dir.display()))
        }),
        said => {
            let said = said.strip_prefix("error: ").unwrap_or("pmo-mount died");
            let help = "`pmo volume ls` shows whether there is a volume, `pmo ls` who has it; mounting takes /dev/fuse, and root or fusermount3";
            Err(Failure::new(Exit::Failed, format!("cannot mount {}: {said}", args.pool.display()), help))
        }
    }
}

fn program() -> OsString {
    let beside = std::env::current_exe().ok().map(|own| own.with_file_name("pmo-mount"));
    beside.filter(|path| path.exists()).map_or_else(|| "pmo-mount".into(), Into::into)
}

fn not_started(error: &std::io::Error) -> Failure {
    let help = "install it beside pmo, or into a folder of PATH (`cargo install --path crates/mount`)";
    Failure::new(Exit::NotFound, format!("cannot start pmo-mount: {error}"), help)
}
