use anyhow::{Context, Result, bail};
use indelible::MediumKind;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Environment {
    Disk,
    Memory,
    FullDisk,
    FullMemory,
    LittleMemory,
}

impl Environment {
    pub(crate) fn word(self) -> &'static str {
        match self {
            Environment::Disk => "disk",
            Environment::Memory => "memory",
            Environment::FullDisk => "full disk",
            Environment::FullMemory => "full memory file system",
            Environment::LittleMemory => "little memory",
        }
    }

    fn medium(self) -> MediumKind {
        match self {
            Environment::Memory | Environment::FullMemory => MediumKind::Memory,
            _ => MediumKind::File,
        }
    }

    fn capacity(self) -> u64 {
        if self == Environment::FullMemory { 8 << 20 } else { 14 << 20 }
    }
}

pub(crate) struct Place {
    folder: tempfile::TempDir,
    mounted: Option<PathBuf>,
    environment: Environment,
}

impl Place {
    /// `Ok(None)`: not permitted here.
    pub(crate) fn new(environment: Environment) -> Result<Option<Place>> {
        let below = if environment.medium() == MediumKind::Memory { "/dev/shm" } else { "/var/tmp" };
        let folder = tempfile::Builder::new()
            .prefix("indelible-kills-")
            .tempdir_in(below)
            .with_context(|| format!("cannot make a folder in {below}"))?;
        let mut place = Place { folder, mounted: None, environment };
        let done = match environment {
            Environment::FullDisk | Environment::FullMemory => place.mount()?,
            _ => true,
        };
        Ok(done.then_some(place))
    }

    fn mount(&mut self) -> Result<bool> {
        let at = self.folder.path().join("small");
        fs::create_dir(&at)?;
        let target = at.to_str().context("the folder's name is text")?;
        let size = self.environment.capacity();
        let mounted = if self.environment == Environment::FullMemory {
            succeeds("mount", &["-t", "tmpfs", "-o", &format!("size={size}"), "tmpfs", target])
        } else {
            let image = self.folder.path().join("image");
            fs::File::create(&image)?.set_len(size)?;
            let image = image.to_str().context("the folder's name is text")?;
            succeeds("mkfs.ext4", &["-q", "-m", "0", "-O", "^has_journal", image])
                && succeeds("mount", &["-o", "loop", image, target])
        };
        if mounted {
            self.mounted = Some(at);
        }
        Ok(mounted)
    }

    pub(crate) fn path(&self) -> &Path {
        self.mounted.as_deref().unwrap_or(self.folder.path())
    }

    pub(crate) fn pool(&self) -> PathBuf {
        self.path().join("pool.pmo")
    }

    pub(crate) fn confirm(&self, medium: MediumKind) -> Result<()> {
        if medium != self.environment.medium() {
            bail!("{} is {medium:?}, not {:?}", self.path().display(), self.environment.medium());
        }
        Ok(())
    }

    pub(crate) fn can_be_full(&self) -> bool {
        self.mounted.is_some()
    }

    pub(crate) fn fill(&self, bytes: u64) -> Result<()> {
        self.relieve()?;
        let statvfs = rustix::fs::statvfs(self.path())?;
        let free = statvfs.f_bavail * statvfs.f_frsize;
        let filler = fs::File::create(self.filler())?;
        if free > bytes {
            let flags = rustix::fs::FallocateFlags::empty();
            let _ = rustix::fs::fallocate(&filler, flags, 0, free - bytes);
        }
        Ok(())
    }

    pub(crate) fn relieve(&self) -> Result<()> {
        if self.filler().exists() {
            fs::remove_file(self.filler())?;
        }
        Ok(())
    }

    fn filler(&self) -> PathBuf {
        self.path().join("filler")
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        if let Some(at) = &self.mounted {
            let _ = Command::new("umount").arg("-l").arg(at).status();
        }
    }
}

fn succeeds(program: &str, arguments: &[&str]) -> bool {
    let mut command = Command::new(program);
    command.args(arguments).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}

pub(crate) struct Group {
    at: PathBuf,
    limit: &'static str,
}

impl Group {
    pub(crate) fn new() -> Option<Group> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("indelible-kills-{}-{count}", std::process::id());
        let own = fs::read_to_string("/proc/self/cgroup").ok()?;
        let own = own.lines().find_map(|line| line.split_once(":memory:")).map_or("", |(_, path)| path);
        let candidates = [
            (PathBuf::from(format!("/sys/fs/cgroup/memory{own}")), "memory.limit_in_bytes"),
            (PathBuf::from("/sys/fs/cgroup"), "memory.max"),
        ];
        candidates.into_iter().find_map(|(parent, limit)| {
            let at = parent.join(&name);
            fs::create_dir(&at).ok()?;
            let group = Group { at, limit };
            group.at.join(limit).exists().then_some(group)
        })
    }

    pub(crate) fn limit(&self, bytes: u64) -> std::io::Result<()> {
        fs::write(self.at.join(self.limit), bytes.to_string())
    }

    pub(crate) fn take(&self, pid: u32) -> std::io::Result<()> {
        fs::write(self.at.join("cgroup.procs"), pid.to_string())
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        let _ = fs::remove_dir(&self.at);
    }
}
