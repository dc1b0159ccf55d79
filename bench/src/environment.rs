use crate::Result;
use crate::clock::Clock;
use crate::modelled::Model;
use indelible::{MediumKind, Pool, PoolOptions, Tracking};
use indicatif::{ProgressBar, ProgressStyle};
use std::fs::File;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Medium {
    Memory,
    File,
}

impl Medium {
    pub const ALL: [Medium; 2] = [Medium::Memory, Medium::File];

    pub fn word(self) -> &'static str {
        match self {
            Medium::Memory => "memory-as-persistent",
            Medium::File => "SSD file",
        }
    }

    pub fn short(self) -> &'static str {
        match self {
            Medium::Memory => "memory",
            Medium::File => "ssd",
        }
    }

    pub fn kind(self) -> MediumKind {
        match self {
            Medium::Memory => MediumKind::Memory,
            Medium::File => MediumKind::File,
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Extent {
    Smoke,
    Quick,
    Full,
    PaperSizes,
}

impl Extent {
    pub fn option(self) -> Option<&'static str> {
        match self {
            Extent::Smoke => Some("--smoke"),
            Extent::Quick => Some("--quick"),
            Extent::Full => None,
            Extent::PaperSizes => Some("--paper-sizes"),
        }
    }
}

pub struct Environment {
    pub clock: Clock,
    /// The minimum, too little to judge speed.
    pub smoke: bool,
    pub quick: bool,
    pub paper_sizes: bool,
    pub tpcc_divisor: u32,
    pub model: Option<Model>,
    pub luks: Option<PathBuf>,
    memory: Scratch,
    file: Scratch,
}

impl Environment {
    pub fn new(memory: &Path, file: &Path, extent: Extent) -> Result<Self> {
        Ok(Environment {
            clock: Clock::calibrate(),
            smoke: extent == Extent::Smoke,
            quick: matches!(extent, Extent::Smoke | Extent::Quick),
            paper_sizes: extent == Extent::PaperSizes,
            tpcc_divisor: 1,
            model: None,
            luks: None,
            memory: Scratch::new(memory)?,
            file: Scratch::new(file)?,
        })
    }

    pub fn dir(&self, medium: Medium) -> &Path {
        match medium {
            Medium::Memory => &self.memory.path,
            Medium::File => &self.file.path,
        }
    }

    pub fn path(&self, medium: Medium, name: &str) -> PathBuf {
        self.dir(medium).join(name)
    }

    pub fn pool(&self, medium: Medium, name: &str, len: u64) -> Result<Pool> {
        self.pool_tracking(medium, Tracking::Auto, name, len)
    }

    pub fn pool_tracking(&self, medium: Medium, how: Tracking, name: &str, len: u64) -> Result<Pool> {
        let options = PoolOptions::new().medium(medium.kind()).tracking(how).force(true);
        Ok(options.format(self.path(medium, name), len)?)
    }

    pub fn budget(&self, full: Duration, quick: Duration) -> Budget {
        let time = if self.quick { quick } else { full };
        Budget { end: Instant::now() + if self.smoke { Duration::ZERO } else { time } }
    }

    pub fn some<'a, T>(&self, all: &'a [T], few: usize) -> &'a [T] {
        if self.smoke { &all[..few.min(all.len())] } else { all }
    }
}

pub struct Budget {
    end: Instant,
}

impl Budget {
    pub fn allows(&self, done: usize, least: usize) -> bool {
        done < least || Instant::now() < self.end
    }
}

pub fn discard(pool: Pool) {
    let path = pool.path().to_owned();
    drop(pool);
    let _ = std::fs::remove_file(path);
}

pub fn progress(total: usize, what: &str) -> ProgressBar {
    let bar = ProgressBar::new(total as u64);
    let style = ProgressStyle::with_template("{msg:<46} {wide_bar} {pos}/{len} {elapsed}");
    bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
    bar.set_message(what.to_owned());
    bar
}

const PREFIX: &str = "pmo-bench.";

/// A locked folder of this process. Folders of killed runs are removed on the way.
struct Scratch {
    path: PathBuf,
    _lock: File,
}

impl Scratch {
    fn new(parent: &Path) -> Result<Self> {
        let within = |error| format!("{}: {error}", parent.display());
        for entry in std::fs::read_dir(parent).map_err(within)?.flatten() {
            if entry.file_name().to_string_lossy().starts_with(PREFIX) && lock(&entry.path()).is_some() {
                let _ = std::fs::remove_dir_all(entry.path());
            }
        }
        for number in 0..16 {
            let path = parent.join(format!("{PREFIX}{}.{number}", std::process::id()));
            match std::fs::create_dir(&path) {
                Ok(()) => {}
                Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => continue,
                Err(error) => return Err(within(error).into()),
            }
            if let Some(lock) = lock(&path).filter(|_| path.exists()) {
                return Ok(Scratch { path, _lock: lock });
            }
        }
        Err(format!("{}: no folder could be made", parent.display()).into())
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.path);
    }
}

fn lock(path: &Path) -> Option<File> {
    let folder = File::open(path).ok()?;
    rustix::fs::flock(&folder, rustix::fs::FlockOperation::NonBlockingLockExclusive).ok()?;
    Some(folder)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_lives_as_long_as_its_run() {
        let parent = std::env::temp_dir().join(format!("scratch-{}", std::process::id()));
        std::fs::create_dir(&parent).unwrap();
        let stale = parent.join("pmo-bench.1.0");
        std::fs::create_dir(&stale).unwrap();
        let (one, two) = (Scratch::new(&parent).unwrap(), Scratch::new(&parent).unwrap());
        assert!(!stale.exists() && one.path.is_dir() && two.path.is_dir() && one.path != two.path);
        let path = one.path.clone();
        drop(one);
        assert!(!path.exists() && two.path.is_dir());
        drop(two);
        std::fs::remove_dir(&parent).unwrap();
    }
}
