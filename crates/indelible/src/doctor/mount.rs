//! The mount of a path, as far as it affects durability.

use super::Facility;
use std::path::{Path, PathBuf};

const COPY_ON_WRITE: [&str; 4] = ["btrfs", "zfs", "bcachefs", "nilfs2"];

struct Mount {
    point: PathBuf,
    kind: String,
    options: Vec<String>,
}

impl Mount {
    fn parse(line: &str) -> Option<Mount> {
        let (mount, system) = line.split_once(" - ")?;
        let mut fields = mount.split(' ').skip(4);
        let (point, own) = (fields.next()?, fields.next()?);
        let mut system = system.split(' ');
        let (kind, all) = (system.next()?, system.nth(1).unwrap_or(""));
        let options = own.split(',').chain(all.split(',')).map(str::to_owned).collect();
        let point = point.replace("\\040", " ").replace("\\011", "\t").replace("\\134", "\\");
        Some(Mount { point: point.into(), kind: kind.to_owned(), options })
    }

    fn has(&self, option: &str) -> bool {
        self.options.iter().any(|own| own == option)
    }
}

pub(super) fn facts(path: &Path) -> Vec<Facility> {
    let table = std::fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    // An unnamed file's descriptor link leads nowhere, but names the folder.
    let at = path.canonicalize().or_else(|_| path.read_link()).unwrap_or_else(|_| path.to_owned());
    judge(&table, &at)
}

fn judge(table: &str, at: &Path) -> Vec<Facility> {
    let on = |mount: &Mount| at.starts_with(&mount.point);
    // A later mount at the same point hides the earlier.
    let mounts = table.lines().filter_map(Mount::parse).filter(on);
    let Some(mount) = mounts.max_by_key(|mount| mount.point.components().count()) else { return Vec::new() };
    let mut facts = Vec::new();
    let mut fact = |available, found: String, advice: &str| {
        facts.push(Facility { name: "file system", available, found, advice: advice.to_owned() });
    };
    let off = ["nobarrier", "barrier=0", "barrier=none"].into_iter().find(|option| mount.has(option));
    if mount.kind == "overlay" && mount.has("volatile") {
        let found = "overlay, mounted volatile: it ignores requests for durability".to_owned();
        fact(Some(false), found, "no psync survives the power here: use a volume, or mount without volatile");
    } else if let Some(option) = off {
        let found = format!("{}, mounted with {option}: the disk's cache is not flushed", mount.kind);
        fact(
            Some(false),
            found,
            "psyncs survive a power cut only if the disk's cache does: mount with barriers",
        );
    } else if COPY_ON_WRITE.contains(&mount.kind.as_str()) {
        let found = format!("{}, which writes changed blocks elsewhere", mount.kind);
        fact(
            Some(true),
            found,
            "keep some space free: on a full one even reserved space cannot be overwritten",
        );
    } else {
        fact(
            Some(true),
            mount.kind,
            "requests for durability reach the disk, as far as its mount options tell",
        );
    }
    facts
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &str = "\
22 1 254:0 / / rw,relatime - ext4 /dev/vda rw,discard
30 22 0:40 / /run/with\\040blank rw - tmpfs tmpfs rw
31 22 0:41 / /merged rw,relatime shared:5 - overlay overlay rw,lowerdir=/l,upperdir=/u,workdir=/w,volatile
32 22 8:1 / /old rw - xfs /dev/sda1 rw,nobarrier
33 22 8:2 / /data rw master:1 propagate_from:2 - btrfs /dev/sdb rw,compress=zstd
34 22 8:3 / /merged/inner rw - ext4 /dev/sdc rw";

    #[test]
    fn mounts_that_are_not_durable_are_named() {
        let at = |path: &str| {
            let facts = judge(TABLE, Path::new(path));
            (facts[0].available, facts[0].found.clone(), facts.len())
        };
        assert_eq!(at("/home/x.pmo"), (Some(true), "ext4".to_owned(), 1));
        assert_eq!(at("/run/with blank/x").1, "tmpfs");
        let (available, found, _) = at("/merged/x");
        assert!(available == Some(false) && found.contains("volatile"), "{found}");
        assert_eq!(at("/merged/inner/x").1, "ext4");
        assert_eq!(at("/mergedx").1, "ext4", "names are not prefixes");
        let (available, found, _) = at("/old");
        assert!(available == Some(false) && found.contains("nobarrier"), "{found}");
        assert!(at("/data/deep/x").1.starts_with("btrfs, which writes"));
        assert!(judge("nonsense\n", Path::new("/x")).is_empty());
    }
}
