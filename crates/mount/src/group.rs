//! Groups: processes whose changes become durable as one step.
//!
//! Setting the root directory's attribute `pmo.group` begins one; the value is a number of seconds
//! and, optionally, the owner's process number. A process of the group ends it by removing the
//! attribute.

use std::time::{Duration, Instant};

pub(crate) const NAME: &[u8] = b"pmo.group";
/// In seconds.
const LONGEST: u64 = 3600;

pub(crate) struct Group {
    /// The group is this process with its descendants.
    pub(crate) owner: u32,
    pub(crate) until: Instant,
}

impl Group {
    pub(crate) fn of(value: &[u8], process: u32) -> Option<Group> {
        let mut words = std::str::from_utf8(value).ok()?.split_whitespace();
        let seconds: u64 = words.next()?.parse().ok().filter(|seconds| (1..=LONGEST).contains(seconds))?;
        let owner = words.next().map_or(Some(process), |word| word.parse().ok())?;
        Some(Group { owner, until: Instant::now() + Duration::from_secs(seconds) })
    }
}

pub(crate) fn descends(thread: u32, owner: u32) -> bool {
    let field = |process: u32, name: &str| -> Option<u32> {
        let status = std::fs::read_to_string(format!("/proc/{process}/status")).ok()?;
        let line = status.lines().find_map(|line| line.strip_prefix(name))?;
        line.trim().parse().ok()
    };
    let (first, owner) = (field(thread, "Tgid:").unwrap_or(thread), field(owner, "Tgid:").unwrap_or(owner));
    // Bounded: process numbers may be reused meanwhile.
    std::iter::successors(Some(first), |process| field(*process, "PPid:"))
        .take(1000)
        .any(|process| process == owner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_descends_from_its_parents() {
        let own = std::process::id();
        assert!(descends(own, own) && descends(own, std::os::unix::process::parent_id()));
        assert!(!descends(std::os::unix::process::parent_id(), own));
        assert_eq!(Group::of(b"5", 7).map(|group| group.owner), Some(7));
        assert_eq!(Group::of(b"5 9", 7).map(|group| group.owner), Some(9));
        assert!(Group::of(b"0", 7).is_none() && Group::of(b"no", 7).is_none());
    }
}
