//! The memory that this process may use.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

use super::PAGE;

/// Of the machine, or of the process's control group if that may use less. Read once.
pub(crate) fn usable_pages() -> usize {
    static PAGES: AtomicUsize = AtomicUsize::new(0);
    let known = PAGES.load(Ordering::Relaxed);
    if known > 0 {
        return known;
    }
    let read = |path: &Path| std::fs::read_to_string(path).ok();
    let pages = usize::try_from(usable(&read).unwrap_or(u64::MAX) / PAGE as u64).unwrap_or(usize::MAX);
    PAGES.store(pages, Ordering::Relaxed);
    pages
}

fn usable(read: &dyn Fn(&Path) -> Option<String>) -> Option<u64> {
    let machine = read(Path::new("/proc/meminfo")).and_then(|text| total(&text));
    let groups = read(Path::new("/proc/self/cgroup")).unwrap_or_default();
    let limits = groups.lines().flat_map(limits_of);
    let limits = limits.filter_map(|file| read(&file)?.trim().parse::<u64>().ok());
    machine.into_iter().chain(limits).min()
}

fn total(meminfo: &str) -> Option<u64> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)
}

/// Those of the group and of the groups that it is in: version 2 ("0::/path") or 1.
fn limits_of(line: &str) -> Vec<PathBuf> {
    let mut fields = line.splitn(3, ':').skip(1);
    let (Some(controllers), Some(group)) = (fields.next(), fields.next()) else { return Vec::new() };
    let (root, file) = match controllers {
        "" => ("/sys/fs/cgroup", "memory.max"),
        _ if controllers.split(',').any(|name| name == "memory") => {
            ("/sys/fs/cgroup/memory", "memory.limit_in_bytes")
        }
        _ => return Vec::new(),
    };
    // In a container the group's path may be one outside, which is not there.
    Path::new(group.trim_start_matches('/'))
        .ancestors()
        .map(|group| Path::new(root).join(group).join(file))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const MEMINFO: &str = "MemTotal:       16384 kB\nMemFree:         512 kB\n";

    fn with(files: &[(&str, &str)]) -> Option<u64> {
        let text = |path: &Path| {
            let found = files.iter().find(|(name, _)| Path::new(name) == path);
            found.map(|(_, text)| (*text).to_owned())
        };
        usable(&text)
    }

    #[test]
    fn the_least_limit_of_machine_and_groups_counts() {
        let machine = ("/proc/meminfo", MEMINFO);
        assert_eq!(with(&[]), None);
        assert_eq!(with(&[machine]), Some(16 << 20));
        let group = ("/proc/self/cgroup", "0::/a/b\n");
        assert_eq!(with(&[machine, group, ("/sys/fs/cgroup/a/memory.max", "max\n")]), Some(16 << 20));
        let limits = [
            machine,
            group,
            ("/sys/fs/cgroup/a/memory.max", "4096000\n"),
            ("/sys/fs/cgroup/a/b/memory.max", "8192000\n"),
        ];
        assert_eq!(with(&limits), Some(4_096_000));
        let old = ("/proc/self/cgroup", "3:cpuset:/\n4:memory:/not/here\n1:cpu,cpuacct:/\n");
        let root = ("/sys/fs/cgroup/memory/memory.limit_in_bytes", "1048576\n");
        assert_eq!(with(&[machine, old, root]), Some(1 << 20));
        let none = ("/sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
        assert_eq!(with(&[machine, old, none]), Some(16 << 20));
    }

    #[test]
    fn this_machine_has_memory() {
        assert!((1 << 10..usize::MAX / PAGE).contains(&usable_pages()));
    }
}
