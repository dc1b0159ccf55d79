//! Groups: processes whose changes become durable as one step.
//!
//! Setting the root directory's attribute `pmo.group` begins one; the value is a number of seconds
//! and, optionally, the owner's process number. A process of the group ends it by removing the
//! attribute; the owner's death ends it, too.

use fuser::Errno;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::{Duration, Instant};

pub(crate) const NAME: &[u8] = b"pmo.group";
/// In seconds.
const LONGEST: u64 = 3600;

pub(crate) struct Group {
    /// The group is this process with its descendants.
    pub(crate) owner: u32,
    pub(crate) until: Instant,
    /// Readable once the owner is dead; `None`: the kernel shows no number of it here.
    life: Option<Arc<OwnedFd>>,
}

impl Group {
    /// # Errors
    /// `EINVAL`: the value; `ESRCH`: there is no such owner.
    pub(crate) fn of(value: &[u8], process: u32) -> Result<Group, Errno> {
        let (seconds, owner) = parse(value).ok_or(Errno::EINVAL)?;
        let owner = owner.unwrap_or(process);
        let owner = field(owner, "Tgid:").unwrap_or(owner);
        let life = match Pid::from_raw(owner as i32) {
            Some(pid) => Some(pidfd_open(pid, PidfdFlags::empty()).map_err(|_| Errno::ESRCH)?),
            None => None,
        };
        let until = Instant::now() + Duration::from_secs(seconds);
        Ok(Group { owner, until, life: life.map(Arc::new) })
    }

    pub(crate) fn life(&self) -> Option<Arc<OwnedFd>> {
        self.life.clone()
    }

    pub(crate) fn owner_lives(&self) -> bool {
        let Some(life) = &self.life else { return true };
        let now = Timespec::default();
        poll(&mut [PollFd::new(life, PollFlags::IN)], Some(&now)).is_ok_and(|dead| dead == 0)
    }
}

fn parse(value: &[u8]) -> Option<(u64, Option<u32>)> {
    let mut words = std::str::from_utf8(value).ok()?.split_whitespace();
    let seconds = words.next()?.parse().ok().filter(|seconds| (1..=LONGEST).contains(seconds))?;
    let owner = words.next().map(|word| word.parse().ok().filter(|owner| *owner <= i32::MAX as u32));
    match owner {
        Some(None) => None,
        owner => Some((seconds, owner.flatten())),
    }
}

fn field(process: u32, name: &str) -> Option<u32> {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix(name))?;
    line.trim().parse().ok()
}

pub(crate) fn descends(thread: u32, owner: u32) -> bool {
    generations(thread, owner).is_some()
}

/// From a thread's process up to the owner; `None`: it is of none of the owner's.
pub(crate) fn generations(thread: u32, owner: u32) -> Option<usize> {
    let (first, owner) = (field(thread, "Tgid:").unwrap_or(thread), field(owner, "Tgid:").unwrap_or(owner));
    // Bounded: process numbers may be reused meanwhile.
    std::iter::successors(Some(first), |process| field(*process, "PPid:"))
        .take(1000)
        .position(|process| process == owner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_descends_from_its_parents() {
        let own = std::process::id();
        assert!(descends(own, own) && descends(own, std::os::unix::process::parent_id()));
        assert!(!descends(std::os::unix::process::parent_id(), own));
        assert_eq!(parse(b"5"), Some((5, None)));
        assert_eq!(parse(b"5 9"), Some((5, Some(9))));
        assert!(parse(b"0").is_none() && parse(b"no").is_none() && parse(b"5 no").is_none());
    }

    #[test]
    fn an_owner_is_seen_to_die() {
        let mut owner =
            std::process::Command::new("cat").stdin(std::process::Stdio::piped()).spawn().unwrap();
        let group = Group::of(format!("5 {}", owner.id()).as_bytes(), 0).unwrap_or_else(|_| panic!());
        assert!(group.owner_lives());
        owner.kill().unwrap();
        owner.wait().unwrap();
        assert!(!group.owner_lives());
    }
}
