//! Where benchmarks run: media, folders that go away by themselves, progress for people.

use crate::Result;
use crate::clock::Clock;
use indelible::{MediumKind, Pool, PoolOptions};
use indicatif::{ProgressBar, ProgressStyle};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// What a pool is put on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Medium {
    /// Memory treated as persistent.
    Memory,
    /// A file on a disk, by system calls.
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

    pub fn kind(self) -> MediumKind {
        match self {
            Medium::Memory => MediumKind::Memory,
            Medium::File => MediumKind::File,
        }
    }
}

/// See the module.
pub struct Ground {
    pub clock: Clock,
    /// Fewer repetitions, smaller sizes.
    pub quick: bool,
    memory: Scratch,
    file: Scratch,
}

impl Ground {
    pub fn new(memory: &Path, file: &Path, quick: bool) -> Result<Self> {
        Ok(Ground {
            clock: Clock::calibrate(),
            quick,
            memory: Scratch::new(memory)?,
            file: Scratch::new(file)?,
        })
    }

    /// A folder on the medium.
    pub fn dir(&self, medium: Medium) -> &Path {
        match medium {
            Medium::Memory => &self.memory.0,
            Medium::File => &self.file.0,
        }
    }

    /// A path on the medium.
    pub fn path(&self, medium: Medium, name: &str) -> PathBuf {
        self.dir(medium).join(name)
    }

    /// An empty pool.
    pub fn pool(&self, medium: Medium, name: &str, len: u64) -> Result<Pool> {
        let path = self.path(medium, name);
        Ok(PoolOptions::new().medium(medium.kind()).force(true).format(path, len)?)
    }

    /// The longer time, or the shorter one of a quick run.
    pub fn budget(&self, full: Duration, quick: Duration) -> Budget {
        Budget { end: Instant::now() + if self.quick { quick } else { full } }
    }
}

/// Time to spend.
pub struct Budget {
    end: Instant,
}

impl Budget {
    /// Whether there is time for another round; `done` rounds of at least `least` were made.
    pub fn allows(&self, done: usize, least: usize) -> bool {
        done < least || Instant::now() < self.end
    }
}

/// Removes a pool's file once nobody has it.
pub fn discard(pool: Pool) {
    let path = pool.path().to_owned();
    drop(pool);
    let _ = std::fs::remove_file(path);
}

/// A bar on standard error.
pub fn progress(total: usize, what: &str) -> ProgressBar {
    let bar = ProgressBar::new(total as u64);
    let style = ProgressStyle::with_template("{msg:<46} {wide_bar} {pos}/{len} {elapsed}");
    bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
    bar.set_message(what.to_owned());
    bar
}

const PREFIX: &str = "pmo-bench.";

/// A folder of this process. Those that killed runs left behind are removed on the way.
struct Scratch(PathBuf);

impl Scratch {
    fn new(parent: &Path) -> Result<Self> {
        let within = |error| format!("{}: {error}", parent.display());
        for entry in std::fs::read_dir(parent).map_err(within)?.flatten() {
            if left_by(&entry.file_name().to_string_lossy()).is_some_and(|pid| !is_alive(pid)) {
                let _ = std::fs::remove_dir_all(entry.path());
            }
        }
        // Both media may be told to use one folder.
        let mut number = 0;
        loop {
            let dir = parent.join(format!("{PREFIX}{}.{number}", std::process::id()));
            match std::fs::create_dir(&dir) {
                Ok(()) => return Ok(Scratch(dir)),
                Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists && number < 16 => number += 1,
                Err(error) => return Err(within(error).into()),
            }
        }
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// The process whose folder has this name.
fn left_by(name: &str) -> Option<i32> {
    name.strip_prefix(PREFIX)?.split('.').next()?.parse().ok()
}

fn is_alive(pid: i32) -> bool {
    rustix::process::Pid::from_raw(pid)
        .is_some_and(|pid| rustix::process::test_kill_process(pid) != Err(rustix::io::Errno::SRCH))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_name_their_process() {
        assert_eq!(left_by("pmo-bench.123.0"), Some(123));
        assert_eq!(left_by("pmo-bench.x"), None);
        assert_eq!(left_by("other.123"), None);
        assert!(is_alive(std::process::id().cast_signed()));
        assert!(!is_alive(i32::MAX));
    }

    #[test]
    fn a_scratch_folder_goes_with_its_owner() {
        let parent = std::env::temp_dir();
        let (one, two) = (Scratch::new(&parent).unwrap(), Scratch::new(&parent).unwrap());
        let path = one.0.clone();
        assert!(path.is_dir() && two.0 != path);
        drop(one);
        assert!(!path.exists());
    }
}
