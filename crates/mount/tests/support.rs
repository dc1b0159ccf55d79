//! A pool with a volume, and the process that shows it.

use indelible::Pool;
use indelible_posix::{New, Volume};
use rustix::process::{Pid, Signal, kill_process};
use std::io::{BufRead, BufReader};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// A folder with a pool, a volume `files`, and a directory to mount it at.
pub struct Place {
    pub folder: tempfile::TempDir,
    pub pool: PathBuf,
    pub dir: PathBuf,
}

impl Place {
    /// `None`: mounting is impossible here.
    pub fn new(size: u64) -> Option<Place> {
        let root = rustix::process::geteuid().is_root();
        let fuse = std::fs::File::options().read(true).write(true).open("/dev/fuse");
        let helper = std::env::split_paths(&std::env::var_os("PATH").unwrap_or_default())
            .any(|folder| folder.join("fusermount3").is_file());
        if fuse.is_err() || !(root || helper) {
            indelible_testing::not_tested("mounts: they take /dev/fuse, and root or fusermount3");
            return None;
        }
        let folder = tempfile::tempdir().unwrap();
        let (pool, dir) = (folder.path().join("pool.pmo"), folder.path().join("mounted"));
        std::fs::create_dir(&dir).unwrap();
        let opened = Pool::format(&pool, size).unwrap();
        let own = New::of(0o755, rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw());
        Volume::create(&opened, "files", &own).unwrap();
        Some(Place { folder, pool, dir })
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.join(name)
    }

    pub fn try_mount(&self, dir: &Path, options: &str) -> Result<Mounted, String> {
        let mut command = Command::new(env!("CARGO_BIN_EXE_pmo-mount"));
        command.args([&self.pool, dir]).arg(options).stdin(Stdio::null()).stdout(Stdio::piped());
        let mut process = command.process_group(0).spawn().unwrap();
        let mut said = String::new();
        BufReader::new(process.stdout.take().unwrap()).read_line(&mut said).unwrap();
        let mounted = Mounted { process, dir: dir.to_owned() };
        if said == "mounted\n" { Ok(mounted) } else { Err(said) }
    }

    /// `None`: this user may not mount.
    pub fn mount(&self) -> Option<Mounted> {
        match self.try_mount(&self.dir, "") {
            Ok(mounted) => Some(mounted),
            Err(said) if said.contains("not permitted") || said.contains("Permission denied") => {
                indelible_testing::not_tested(format_args!("mounts: {}", said.trim_end()));
                None
            }
            Err(said) => panic!("{said}"),
        }
    }
}

pub struct Mounted {
    process: Child,
    dir: PathBuf,
}

impl Mounted {
    /// Its process group, too.
    pub fn id(&self) -> u32 {
        self.process.id()
    }

    pub fn end(mut self) {
        let pid = Pid::from_child(&self.process);
        kill_process(pid, Signal::TERM).unwrap();
        assert!(self.process.wait().unwrap().success());
    }

    pub fn kill(&mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
        for (program, options) in [("umount", &["-l", "-q"][..]), ("fusermount3", &["-u", "-z", "-q"])] {
            let ran = Command::new(program).args(options).arg(&self.dir).stderr(Stdio::null()).status();
            if ran.is_ok_and(|status| status.success()) {
                break;
            }
        }
    }
}

/// This program, to run an ignored test on `dir`.
pub fn process(test: &str, dir: &Path) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", test, "--nocapture", "--ignored"]).env("WORK", dir).stdout(Stdio::piped());
    command
}

pub fn work() -> Option<PathBuf> {
    std::env::var_os("WORK").map(PathBuf::from)
}
