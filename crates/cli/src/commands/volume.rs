use crate::commands::run::finished;
use crate::context::Context;
use crate::exit::Exit;
use crate::failure::{Failure, Result, object};
use crate::out::{Out, confirm};
use crate::text::{count, date, printable, quoted};
use crate::values::pool;
use clap::{Args, Subcommand};
use indelible::Supervisor;
use indelible_posix::{Attributes, Copied, Entry, Error, Kind, New, Volume as Files};
use rustix::fs::{XattrFlags, removexattr, setxattr};
use rustix::io::Errno;
use serde::Serialize;
use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// An attribute of a mount's root directory begins and ends a group.
const GROUP: &str = "pmo.group";

/// Make volumes, directories and files in an object, and copy from and to them
///
/// A volume is crash-consistent as a whole: after a crash all its directories and files are as one
/// psync left them. `pmo mount` shows it to all programs, as a file system; these commands work
/// without that, also where a machine has no FUSE.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  pmo volume create data.pmo
  pmo volume cp data.pmo ./photos :/photos     all of it, or nothing
  pmo volume ls data.pmo /photos
  pmo volume cp data.pmo :/photos/2026 ./2026
  pmo volume snapshot data.pmo monday
  pmo volume ls data.pmo --volume monday
  pmo volume group /mnt/data -- make install   all of its changes, or none

JSON of ls: an array of entries: name, kind, inode, mode (octal), links, uid, gid, size, held, modified. \
Of cp: files, directories, links, bytes")]
pub struct Volume {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Make an empty volume
    Create(Create),
    /// List a directory as of the last psync, also while it is mounted
    Ls(Ls),
    /// Copy a file or a whole folder into the volume, or out of it, as one step
    ///
    /// A copy out has its name once it is whole and durable. One that was cut short may leave
    /// NAME.PID.partial beside, which the next copy to that name removes.
    Cp(Cp),
    /// Run a program, and make all its changes below a mount durable as one step when it ends
    ///
    /// `fsync` of the program and of those that it starts returns at once; that of other programs
    /// waits for the end. If the time is over before that, the changes until then become durable,
    /// and this command fails when the program ends. SIGINT, SIGTERM, SIGHUP and SIGQUIT are passed
    /// on to the program, and the group ends with it. If this command is killed, the changes until
    /// then become durable, and the program goes on without a group.
    Group(Group),
    /// Keep the volume as its last psync left it, under another name
    Snapshot(Snapshot),
}

#[derive(Debug, Args)]
struct Of {
    /// The pool
    #[arg(value_parser = pool())]
    pool: PathBuf,

    /// Name of the volume, or of a snapshot of one
    #[arg(long, default_value = "files")]
    volume: String,
}

#[derive(Debug, Args)]
struct Create {
    #[command(flatten)]
    of: Of,

    /// Permissions of the root directory, octal
    #[arg(long, default_value = "755", value_parser = octal)]
    mode: u32,
}

#[derive(Debug, Args)]
struct Ls {
    #[command(flatten)]
    of: Of,

    /// A directory, or a file
    #[arg(default_value = "/")]
    path: OsString,
}

#[derive(Debug, Args)]
struct Cp {
    #[command(flatten)]
    of: Of,

    /// The source; a colon before a path means the volume
    from: OsString,

    /// The target: a name that does not exist, or a directory to copy into
    to: OsString,
}

#[derive(Debug, Args)]
struct Group {
    /// A directory of the mount
    dir: PathBuf,

    /// Longest time, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 60, value_parser = clap::value_parser!(u64).range(1..=3600))]
    limit: u64,

    /// The program, and its arguments
    #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true, value_name = "PROGRAM")]
    program: Vec<OsString>,
}

#[derive(Debug, Args)]
struct Snapshot {
    #[command(flatten)]
    of: Of,

    /// Name of the snapshot
    name: String,
}

fn octal(text: &str) -> std::result::Result<u32, String> {
    u32::from_str_radix(text, 8)
        .ok()
        .filter(|mode| *mode <= 0o7777)
        .ok_or("it takes octal digits, up to 7777".into())
}

#[derive(Serialize)]
struct Line {
    name: String,
    kind: &'static str,
    inode: u64,
    mode: String,
    links: u32,
    uid: u32,
    gid: u32,
    size: u64,
    held: u64,
    modified: String,
}

impl Line {
    fn of(name: &[u8], found: &Attributes) -> Line {
        let kind = match found.kind {
            Kind::File => "file",
            Kind::Directory => "directory",
            Kind::Symlink => "symlink",
            Kind::Fifo => "fifo",
            Kind::Socket => "socket",
        };
        Line {
            name: String::from_utf8_lossy(name).into_owned(),
            kind,
            inode: found.inode,
            mode: format!("{:04o}", found.mode & 0o7777),
            links: found.links,
            uid: found.uid,
            gid: found.gid,
            size: found.size,
            held: found.held,
            modified: date(found.modified.seconds.max(0) as u64),
        }
    }

    fn cells(&self) -> Vec<String> {
        let slash = if self.kind == "directory" { "/" } else { "" };
        let name = printable(&self.name) + slash;
        let numbers = [u64::from(self.links), self.uid.into(), self.gid.into(), self.size];
        let numbers = numbers.iter().map(u64::to_string);
        [self.mode.clone()].into_iter().chain(numbers).chain([self.modified.clone(), name]).collect()
    }
}

#[derive(Serialize)]
struct Numbers {
    files: u64,
    directories: u64,
    links: u64,
    bytes: u64,
}

impl From<Copied> for Numbers {
    fn from(Copied { files, directories, links, bytes }: Copied) -> Numbers {
        Numbers { files, directories, links, bytes }
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Failure {
        if error.is_outside() {
            return outside(&error);
        }
        let (exit, help) = match Errno::from_raw_os_error(error.errno()) {
            Errno::NOENT => (
                Exit::NotFound,
                "`pmo ls` lists objects, `pmo volume ls` files; `pmo volume create` makes a volume",
            ),
            Errno::EXIST => (Exit::Exists, "choose another name, or remove what is there"),
            Errno::NOSPC => {
                (Exit::Full, "destroy objects or remove files, or make the pool longer (`pmo grow`)")
            }
            Errno::BUSY => (
                Exit::Busy,
                "use the files through the mount, or unmount the volume; `pmo ls` shows who has it",
            ),
            Errno::ACCESS | Errno::PERM | Errno::ROFS => {
                (Exit::Denied, "get permission, or name the volume and not a snapshot")
            }
            Errno::IO => (Exit::Damaged, "run `pmo check`, and go back to a snapshot or a backup"),
            Errno::NOTDIR | Errno::ISDIR | Errno::INVAL => {
                (Exit::Usage, "check the path; `pmo volume ls` lists directories")
            }
            _ => (Exit::Failed, "the system's own error says what it refused"),
        };
        Failure::new(exit, error.to_string(), help)
    }
}

/// A file of the system, from or to which a copy went.
fn outside(error: &Error) -> Failure {
    let (exit, help) = match Errno::from_raw_os_error(error.errno()) {
        Errno::NOENT | Errno::NOTDIR => (Exit::NotFound, "check the path outside of the volume"),
        Errno::EXIST => (Exit::Exists, "choose another name, or remove what is there"),
        Errno::NOSPC | Errno::DQUOT | Errno::FBIG => {
            (Exit::Full, "free room on the file system of that path, or copy to another one")
        }
        Errno::ACCESS | Errno::PERM | Errno::ROFS => {
            (Exit::Denied, "get permission for that path, or name another one")
        }
        _ => (Exit::Failed, "the system's own error says what it refused"),
    };
    Failure::new(exit, error.to_string(), help)
}

pub fn run(context: &Context, args: &Volume) -> Result {
    match &args.action {
        Action::Create(args) => create(context, args),
        Action::Ls(args) => ls(context, args),
        Action::Cp(args) => cp(context, args),
        Action::Group(args) => group(args),
        Action::Snapshot(args) => {
            let pool = context.open(&args.of.pool)?;
            drop(Files::open_read(&pool, &args.of.volume)?);
            pool.snapshot(&args.of.volume, &args.name, b"")?;
            confirm(context.json, &args.name, |name, out| {
                out.line(&format!("kept volume {} as {}", quoted(&args.of.volume), object(name)))
            })
        }
    }
}

fn create(context: &Context, args: &Create) -> Result {
    let pool = context.open(&args.of.pool)?;
    let [user, group] = [rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw()];
    Files::create(&pool, &args.of.volume, &New::of(args.mode, user, group))?;
    confirm(context.json, &args.of.volume, |name, out| out.line(&format!("created volume {}", quoted(name))))
}

fn ls(context: &Context, args: &Ls) -> Result {
    let pool = context.open_to_read(&args.of.pool)?;
    let files = Files::open_read(&pool, &args.of.volume)?;
    let path = args.path.as_bytes();
    let inode = files.find(path)?;
    let found = files.attributes(inode)?;
    let mut out = Out::new();
    let mut lines = Vec::new();
    if found.kind == Kind::Directory {
        for Entry { name, inode, .. } in files.entries(inode, None, usize::MAX)? {
            lines.push(Line::of(&name, &files.attributes(inode)?));
        }
    } else {
        lines.push(Line::of(path, &found));
    }
    match context.json {
        true => out.array(&lines)?,
        false => {
            let cells: Vec<_> = lines.iter().map(Line::cells).collect();
            out.table(&cells, &[false, true, true, true, true, false, false])?;
        }
    }
    out.finish()
}

fn cp(context: &Context, args: &Cp) -> Result {
    let (from, to) = (args.from.as_bytes(), args.to.as_bytes());
    let copied: Numbers = match (from.strip_prefix(b":"), to.strip_prefix(b":")) {
        (None, Some(inside)) => {
            let source = Path::new(&args.from);
            let name = name_of(source)?;
            let pool = context.open(&args.of.pool)?;
            let mut files = Files::open(&pool, &args.of.volume)?;
            let (directory, name) = files.place_for(inside, name.as_bytes())?;
            let copied = files.copy_in(source, directory, &name)?;
            files.sync()?;
            copied.into()
        }
        (Some(inside), None) => {
            let pool = context.open_to_read(&args.of.pool)?;
            let files = Files::open_read(&pool, &args.of.volume)?;
            let inode = files.find(inside)?;
            let mut target = PathBuf::from(&args.to);
            if target.is_dir() {
                let (_, name) = files.find_parent(inside)?;
                target.push(std::ffi::OsStr::from_bytes(name));
            }
            files.copy_out(inode, &target)?.into()
        }
        _ => return Err(Failure::usage("one of FROM and TO is in the volume, and begins with a colon")),
    };
    confirm(context.json, &copied, |copied, out| {
        let parts =
            [count(copied.files, "file"), count(copied.directories, "folder"), count(copied.links, "link")];
        out.line(&format!("copied {}: {}", parts.join(", "), crate::bytes::human(copied.bytes)))
    })
}

fn name_of(source: &Path) -> Result<OsString> {
    let named = match source.file_name() {
        Some(name) => Some(name.to_owned()),
        None => source.canonicalize().ok().and_then(|path| path.file_name().map(ToOwned::to_owned)),
    };
    named.ok_or_else(|| Failure::usage("the source has no name: give that of a file or a folder"))
}

fn group(args: &Group) -> Result {
    let root = root_of(&args.dir)?;
    // Before the group begins: a signal ends the program, and with it the group.
    let supervisor = Supervisor::new();
    let value = format!("{} {}", args.limit, std::process::id());
    setxattr(&root, GROUP, value.as_bytes(), XattrFlags::empty()).map_err(|error| no_group(&root, error))?;
    let ran = supervisor.run(Command::new(&args.program[0]).args(&args.program[1..]));
    let ended = removexattr(&root, GROUP);
    let ran = ran.map_err(|error| Failure::file("start", Path::new(&args.program[0]), &error))?;
    ended.map_err(|error| not_ended(&root, error))?;
    finished(&ran)
}

fn no_group(root: &Path, error: Errno) -> Failure {
    let (exit, help) = match error {
        Errno::BUSY => (Exit::Busy, "wait until the other group ends"),
        Errno::SRCH => (Exit::Unsuitable, "run it where `pmo-mount` runs: not in another PID namespace"),
        _ => (Exit::Unsuitable, "name a directory of a volume that `pmo mount` mounted"),
    };
    Failure::new(exit, format!("cannot have a group of changes below {}: {error}", root.display()), help)
}

fn not_ended(root: &Path, error: Errno) -> Failure {
    let (exit, help) = match error {
        Errno::TIMEDOUT => (Exit::Failed, "its changes became durable in parts; give a longer --limit"),
        Errno::NOSPC => (Exit::Full, "its changes are not durable yet: make room in the pool (`pmo grow`)"),
        Errno::NOTCONN => (Exit::Failed, "`pmo-mount` died; mount again, and look which changes are there"),
        _ => (Exit::Failed, "its changes may be durable in parts: look at the files"),
    };
    Failure::new(exit, format!("cannot end the group of changes below {}: {error}", root.display()), help)
}

fn root_of(dir: &Path) -> Result<PathBuf> {
    let look = |path: &Path| path.metadata().map_err(|error| Failure::file("open", path, &error));
    let mut root = dir.canonicalize().map_err(|error| Failure::file("open", dir, &error))?;
    let device = look(&root)?.dev();
    while let Some(above) = root.parent() {
        if look(above)?.dev() != device {
            break;
        }
        root = above.to_owned();
    }
    Ok(root)
}
