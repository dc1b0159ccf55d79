//! A file system on a recording disk: FUSE shows the disk, a loop device makes a block device of
//! it.
//!
//! Other processes touch the mounted folder, as threads of this one serve the disk. Mounts are
//! private to this process and its children.

use super::disk::Disk;
use super::serve::{DISK, SAID, Server};
use anyhow::{Context, Result, bail};
use clap::ValueEnum;
use fuser::{BackgroundSession, MountOption};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

const PREFIX: &str = DISK;

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Kind {
    Ext4,
    Xfs,
    Btrfs,
}

impl Kind {
    pub(crate) const ALL: [Kind; 3] = [Kind::Ext4, Kind::Xfs, Kind::Btrfs];

    pub(crate) fn word(self) -> &'static str {
        match self {
            Kind::Ext4 => "ext4",
            Kind::Xfs => "xfs",
            Kind::Btrfs => "btrfs",
        }
    }

    fn size(self) -> u64 {
        match self {
            Kind::Ext4 => 64 << 20,
            Kind::Xfs => 300 << 20,
            Kind::Btrfs => 128 << 20,
        }
    }

    fn mkfs(self) -> (&'static str, &'static [&'static str]) {
        match self {
            Kind::Ext4 => (
                "mkfs.ext4",
                &["-q", "-F", "-b", "4096", "-E", "nodiscard,lazy_itable_init=0,lazy_journal_init=0"],
            ),
            Kind::Xfs => ("mkfs.xfs", &["-q", "-f", "-K"]),
            Kind::Btrfs => ("mkfs.btrfs", &["-q", "-f", "-K"]),
        }
    }

    /// Whether a write must not tear: btrfs relies on whole writes of its one or two superblocks of
    /// 4 KiB.
    pub(crate) fn whole(self) -> fn(u64) -> bool {
        match self {
            Kind::Btrfs => |at| at == 64 << 10 || at == 64 << 20,
            _ => |_| false,
        }
    }

    pub(crate) fn install() {
        if Kind::ALL.into_iter().all(|kind| on_path(kind.mkfs().0)) {
            return;
        }
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/disks/install.sh");
        match Command::new("sh").arg(script).stdin(Stdio::null()).output() {
            Ok(output) if output.status.success() => {}
            Ok(output) => eprintln!("install.sh: {}", String::from_utf8_lossy(&output.stderr).trim_end()),
            Err(error) => eprintln!("install.sh: {error}"),
        }
    }

    fn package(self) -> &'static str {
        match self {
            Kind::Ext4 => "e2fsprogs",
            Kind::Xfs => "xfsprogs",
            Kind::Btrfs => "btrfs-progs",
        }
    }

    pub(crate) fn missing(self) -> Option<String> {
        let (mkfs, _) = self.mkfs();
        if !on_path(mkfs) {
            return Some(format!("{mkfs} is missing (package {})", self.package()));
        }
        let _ = Command::new("modprobe").arg(self.word()).stderr(Stdio::null()).status();
        let known = fs::read_to_string("/proc/filesystems").unwrap_or_default();
        let known = known.lines().any(|line| line.trim_start_matches("nodev").trim() == self.word());
        (!known).then(|| format!("this kernel has no {}", self.word()))
    }
}

fn on_path(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path)
        .chain(["/sbin", "/usr/sbin"].map(PathBuf::from))
        .any(|folder| folder.join(program).is_file())
}

pub(crate) fn missing() -> Option<String> {
    if !rustix::process::geteuid().is_root() {
        return Some("mounting needs root".into());
    }
    for device in ["/dev/fuse", "/dev/loop-control"] {
        if let Err(error) = fs::File::options().read(true).write(true).open(device) {
            return Some(format!("{device}: {error}"));
        }
    }
    ["mount", "umount", "losetup"]
        .into_iter()
        .find(|program| !on_path(program))
        .map(|program| format!("{program} is missing (package mount)"))
}

/// Makes mounts private and removes loop devices of killed campaigns. Call it before there are
/// threads.
pub(crate) fn prepare() -> Result<()> {
    nix::sched::unshare(nix::sched::CloneFlags::CLONE_NEWNS).context("cannot have mounts of our own")?;
    run("mount", &["--make-rprivate", "/"])?;
    for line in run("losetup", &["--list", "--noheadings", "--output", "NAME,BACK-FILE"])?.lines() {
        let Some((device, file)) = line.split_once(' ') else { continue };
        let maker = file.split(PREFIX).nth(1).and_then(|rest| rest.split('-').next()?.parse::<u32>().ok());
        if maker.is_some_and(|pid| !Path::new(&format!("/proc/{pid}")).exists()) {
            let _ = run("losetup", &["--detach", device]);
        }
    }
    Ok(())
}

pub(crate) struct Machine {
    pub(crate) kind: Kind,
    pub(crate) disk: Arc<Disk>,
    folder: tempfile::TempDir,
    server: Option<BackgroundSession>,
    device: String,
}

impl Machine {
    pub(crate) fn new(kind: Kind) -> Result<Machine> {
        let prefix = format!("{PREFIX}{}-", std::process::id());
        let folder = tempfile::Builder::new().prefix(&prefix).tempdir()?;
        for name in ["fuse", "mounted"] {
            fs::create_dir(folder.path().join(name))?;
        }
        let disk = Arc::new(Disk::new(kind.size()));
        let mut config = fuser::Config::default();
        config.mount_options = vec![MountOption::FSName("indelible-disk".into())];
        let server = fuser::spawn_mount(Server(disk.clone()), folder.path().join("fuse"), &config)
            .context("cannot mount by FUSE")?;
        let mut machine = Machine { kind, disk, folder, server: Some(server), device: String::new() };
        let file = machine.path("fuse").join(format!("{DISK}{}-disk", std::process::id()));
        let file = text(&file)?;
        // Direct, so that the loop device delays nothing and passes every flush on.
        machine.device = run("losetup", &["--find", "--show", "--direct-io=on", file])?.trim().to_owned();
        let direct = run("losetup", &["--noheadings", "--output", "DIO", "--list", &machine.device])?;
        if direct.trim() != "1" {
            bail!("{} refuses direct I/O", machine.device);
        }
        // FUSE takes 1 MiB at a time. If a longer request fails beyond that, the loop device loses
        // acknowledged writes.
        let name = machine.device.trim_start_matches("/dev/");
        let longest = format!("/sys/block/{name}/queue/max_sectors_kb");
        fs::write(&longest, "512").with_context(|| longest.clone())?;
        let (mkfs, options) = kind.mkfs();
        run(mkfs, &[options, &[&machine.device]].concat())?;
        machine.disk.settle();
        Ok(machine)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn pool(&self) -> PathBuf {
        self.path("mounted/pool.pmo")
    }

    pub(crate) fn stderr(&self) -> PathBuf {
        self.path("stderr")
    }

    pub(crate) fn said(&self) -> Result<fs::File> {
        Ok(fs::File::options().write(true).open(self.path("fuse").join(SAID))?)
    }

    pub(crate) fn mount(&self) -> Result<()> {
        let options = if self.kind == Kind::Btrfs { "nodiscard" } else { "defaults" };
        let at = self.path("mounted");
        run("mount", &["-i", "-t", self.kind.word(), "-o", options, &self.device, text(&at)?]).map(drop)
    }

    pub(crate) fn unmount(&self) -> Result<()> {
        let at = self.path("mounted");
        let begin = Instant::now();
        loop {
            match run("umount", &["-i", text(&at)?]) {
                Err(_) if begin.elapsed() < Duration::from_secs(10) => {
                    std::thread::sleep(Duration::from_millis(2));
                }
                done => return done.map(drop),
            }
        }
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        self.disk.mend(false);
        let at = self.path("mounted");
        let _ = Command::new("umount").args(["-i", "-l"]).arg(&at).stderr(Stdio::null()).status();
        if !self.device.is_empty() {
            let _ = run("losetup", &["--detach", &self.device]);
        }
        let _ =
            Command::new("umount").args(["-i", "-l"]).arg(self.path("fuse")).stderr(Stdio::null()).status();
        drop(self.server.take());
    }
}

fn text(path: &Path) -> Result<&str> {
    path.to_str().context("a temporary folder has a name that is text")
}

pub(crate) fn run(program: &str, arguments: &[&str]) -> Result<String> {
    let output = Command::new(program)
        .args(arguments)
        .stdin(Stdio::null())
        .output()
        .with_context(|| format!("cannot run {program}"))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        bail!("{program} {}: {}", arguments.join(" "), said.trim_end());
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}
