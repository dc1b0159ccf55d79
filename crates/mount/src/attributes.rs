use fuser::{FileAttr, FileType, INodeNo, TimeOrNow};
use indelible_posix::{Attributes, Kind, Time};
use std::time::{Duration, SystemTime};

pub(crate) const fn file_type(kind: Kind) -> FileType {
    match kind {
        Kind::File => FileType::RegularFile,
        Kind::Directory => FileType::Directory,
        Kind::Symlink => FileType::Symlink,
        Kind::Fifo => FileType::NamedPipe,
        Kind::Socket => FileType::Socket,
    }
}

fn system(time: Time) -> SystemTime {
    let rest = Duration::from_nanos(time.nanoseconds);
    let whole = Duration::from_secs(time.seconds.unsigned_abs());
    let base = match time.seconds < 0 {
        true => SystemTime::UNIX_EPOCH.checked_sub(whole),
        false => SystemTime::UNIX_EPOCH.checked_add(whole),
    };
    base.and_then(|base| base.checked_add(rest)).unwrap_or(SystemTime::UNIX_EPOCH)
}

pub(crate) fn time(time: SystemTime) -> Time {
    match time.duration_since(SystemTime::UNIX_EPOCH) {
        Ok(since) => Time { seconds: since.as_secs() as i64, nanoseconds: since.subsec_nanos().into() },
        Err(before) => {
            let before = before.duration();
            let part = u64::from(before.subsec_nanos());
            let whole = -(before.as_secs() as i64);
            match part {
                0 => Time { seconds: whole, nanoseconds: 0 },
                part => Time { seconds: whole - 1, nanoseconds: 1_000_000_000 - part },
            }
        }
    }
}

pub(crate) fn time_or_now(wanted: TimeOrNow) -> Time {
    match wanted {
        TimeOrNow::SpecificTime(wanted) => time(wanted),
        TimeOrNow::Now => time(SystemTime::now()),
    }
}

pub(crate) fn attributes(of: &Attributes) -> FileAttr {
    FileAttr {
        ino: INodeNo(of.inode),
        size: of.size,
        blocks: of.held.div_ceil(512),
        atime: system(of.accessed),
        mtime: system(of.modified),
        ctime: system(of.changed),
        crtime: system(of.born),
        kind: file_type(of.kind),
        perm: (of.mode & 0o7777) as u16,
        nlink: of.links,
        uid: of.uid,
        gid: of.gid,
        rdev: 0,
        blksize: 64 << 10,
        flags: 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_before_1970_keep_their_nanoseconds() {
        for before in [
            Time { seconds: -1, nanoseconds: 999_999_999 },
            Time { seconds: -5, nanoseconds: 0 },
            Time { seconds: 5, nanoseconds: 1 },
        ] {
            assert_eq!(time(system(before)), before);
        }
    }
}
