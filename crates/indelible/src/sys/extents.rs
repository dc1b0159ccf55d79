//! Which blocks of a file keep data after a power cut.
//!
//! Invariants:
//! 1. `Map` is laid out as the kernel's `struct fiemap` with `MOST` extents behind it, and `most`
//!    has that number: the kernel writes no further.

#![allow(unsafe_code)]

use std::ops::Range;
use std::os::fd::{AsRawFd, BorrowedFd};

use rustix::io::Errno;

const MOST: usize = 64;
/// `FS_IOC_FIEMAP`: `_IOWR('f', 11, struct fiemap)`, without the extents.
const REQUEST: libc::c_ulong = 0xc020_660b;
const LAST: u32 = 1;
/// Unknown place, delayed allocation, unwritten.
const UNWRITTEN: u32 = 0x2 | 0x4 | 0x800;

#[repr(C)]
#[derive(Clone, Copy, Default)]
struct Extent {
    logical: u64,
    physical: u64,
    length: u64,
    reserved: [u64; 2],
    flags: u32,
    reserved2: [u32; 3],
}

#[repr(C)]
struct Map {
    start: u64,
    length: u64,
    flags: u32,
    mapped: u32,
    most: u32,
    reserved: u32,
    extents: [Extent; MOST],
}

const _: () = assert!(size_of::<Extent>() == 56 && size_of::<Map>() == 32 + MOST * 56);

/// Parts without blocks, or that read as zeros after a power cut; ascending and disjoint. `None`:
/// unknown.
pub(crate) fn unwritten(fd: BorrowedFd<'_>, range: Range<u64>) -> Result<Option<Vec<Range<u64>>>, Errno> {
    let (mut found, mut at) = (Vec::new(), range.start);
    let mut gap = |from: u64, to: u64| {
        if from < to {
            found.push(from..to);
        }
    };
    let mut open = range.start;
    while at < range.end {
        let mut map = Map {
            start: at,
            length: range.end - at,
            flags: 0,
            mapped: 0,
            most: MOST as u32,
            reserved: 0,
            extents: [Extent::default(); MOST],
        };
        // SAFETY: `map` is as the kernel expects it, and lives through the call (1); the descriptor
        // is borrowed.
        let done = unsafe { libc::ioctl(fd.as_raw_fd(), REQUEST as _, &raw mut map) };
        if done != 0 {
            return match std::io::Error::last_os_error().raw_os_error().map(Errno::from_raw_os_error) {
                Some(Errno::INTR) => continue,
                Some(Errno::NOTTY | Errno::OPNOTSUPP | Errno::NOSYS | Errno::INVAL | Errno::PERM) => Ok(None),
                error => Err(error.unwrap_or(Errno::IO)),
            };
        }
        let extents = &map.extents[..(map.mapped as usize).min(MOST)];
        for extent in extents {
            let (start, end) =
                (extent.logical.max(at), extent.logical.saturating_add(extent.length).min(range.end));
            if extent.flags & UNWRITTEN == 0 && start < end {
                gap(open, start);
                open = open.max(end);
            }
            at = at.max(end);
        }
        if extents.len() < MOST || extents.iter().any(|extent| extent.flags & LAST != 0) {
            break;
        }
    }
    gap(open, range.end);
    Ok(Some(found))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::fs::{FallocateFlags, fallocate};
    use std::fs::File;
    use std::os::fd::AsFd;
    use std::os::unix::fs::FileExt;

    /// On ext4, reserved blocks are unwritten until written, and again once zeroed.
    #[test]
    fn reserved_blocks_are_unwritten_until_they_are_written() {
        // A disk's file system is likelier here than in /tmp; unless the folder is another user's.
        let beside = std::env::current_exe().unwrap();
        let own = tempfile::tempfile_in(beside.parent().unwrap());
        let file: File = own.or_else(|_| tempfile::tempfile_in("/var/tmp")).unwrap();
        let all = 0..1 << 20;
        fallocate(&file, FallocateFlags::empty(), 0, 1 << 20).unwrap();
        let ask = || unwritten(file.as_fd(), all.clone()).unwrap();
        // Other file systems may not tell, or write all blocks.
        if ask() != Some(vec![all.clone()]) {
            println!("NOT TESTED: extents, on a file system that does not tell which are unwritten");
            return;
        }
        for page in [0, 1, 7, 255] {
            file.write_all_at(&[1; 4096], page * 4096).unwrap();
        }
        file.sync_data().unwrap();
        assert_eq!(ask().unwrap(), [0x2000..0x7000, 0x8000..0xff000]);
        for page in (1..256).step_by(2) {
            file.write_all_at(&[1; 4096], page * 4096).unwrap();
        }
        file.sync_data().unwrap();
        let expected: Vec<_> = (2..256).step_by(2).map(|page| page * 4096..(page + 1) * 4096).collect();
        assert_eq!(ask().unwrap(), expected);
        fallocate(&file, FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE, 0, 1 << 20).unwrap();
        assert_eq!(ask(), Some(vec![all.clone()]));
    }
}
