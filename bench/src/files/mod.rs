//! Folders to measure: a mounted volume of a pool, and a plain folder on the same medium.

pub mod work;

use crate::Result;
use crate::environment::{Environment, Medium};
use indelible::PoolOptions;
use indelible_posix::{New, Volume};
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// A folder on a mounted volume, or a plain one.
pub struct Side {
    pub name: String,
    pub dir: PathBuf,
    mount: Option<Mount>,
}

impl Side {
    /// Makes a pool and mounts it. `Err` without FUSE, the rights to mount, or `pmo-mount` beside
    /// this program.
    pub fn mounted(environment: &Environment, medium: Medium) -> Result<Side> {
        let size = if environment.smoke { 64 << 20 } else { 512 << 20 };
        let (pool, dir) = (environment.path(medium, "files.pmo"), environment.path(medium, "files-mounted"));
        let opened = PoolOptions::new().medium(medium.kind()).force(true).format(&pool, size)?;
        let (uid, gid) = (rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw());
        Volume::create(&opened, "files", &New::of(0o755, uid, gid))?;
        drop(opened);
        std::fs::create_dir(&dir)?;
        let mount = Mount::new(&pool, &dir)?;
        Ok(Side { name: "indelible, mounted".into(), dir, mount: Some(mount) })
    }

    pub fn plain(environment: &Environment, medium: Medium) -> Result<Side> {
        let dir = environment.path(medium, "files-plain");
        std::fs::create_dir(&dir)?;
        let name = match medium {
            Medium::Memory => "tmpfs",
            Medium::File => "the disk's file system",
        };
        Ok(Side { name: name.into(), dir, mount: None })
    }

    pub fn sync(&self) -> Result<()> {
        let folder = File::open(&self.dir)?;
        match self.mount {
            Some(_) => folder.sync_all()?,
            None => rustix::fs::syncfs(folder.as_fd())?,
        }
        Ok(())
    }

    pub fn remove(mut self) -> Result<()> {
        let pool = self.mount.take().map(|mut mount| -> Result<PathBuf> {
            mount.end()?;
            Ok(mount.pool.clone())
        });
        std::fs::remove_dir_all(&self.dir)?;
        if let Some(pool) = pool {
            std::fs::remove_file(pool?)?;
        }
        Ok(())
    }
}

struct Mount {
    process: Child,
    pool: PathBuf,
}

impl Mount {
    fn new(pool: &Path, dir: &Path) -> Result<Mount> {
        let program = std::env::current_exe()?.with_file_name("pmo-mount");
        let mut command = Command::new(&program);
        command.args([pool, dir]).stdin(Stdio::null()).stdout(Stdio::piped());
        let mut process = command.spawn().map_err(|error| format!("{}: {error}", program.display()))?;
        let mut said = String::new();
        if let Some(output) = process.stdout.take() {
            BufReader::new(output).read_line(&mut said)?;
        }
        match said.trim_end() {
            "mounted" => Ok(Mount { process, pool: pool.to_owned() }),
            said => {
                process.wait()?;
                Err(format!("{}: {said}", program.display()).into())
            }
        }
    }

    fn end(&mut self) -> Result<()> {
        let pid = rustix::process::Pid::from_child(&self.process);
        rustix::process::kill_process(pid, rustix::process::Signal::TERM)?;
        match self.process.wait()?.success() {
            true => Ok(()),
            false => Err("pmo-mount failed".into()),
        }
    }
}

impl Drop for Mount {
    /// After [`end`](Mount::end) there is no process left.
    fn drop(&mut self) {
        if let Ok(None) = self.process.try_wait() {
            let _ = self.end();
        }
    }
}
