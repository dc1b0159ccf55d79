//! Marks of file systems, partition tables, volume managers and RAID on a device.

use std::io;
use std::os::unix::fs::FileExt;

/// Bytes to examine at both ends, where nearly all marks are, or copies.
const END: u64 = 1 << 20;
/// Copies of the btrfs superblock.
const MIRRORS: [u64; 2] = [64 << 20, 256 << 30];

/// A mark: owner, bytes, offset; negative: from the device's end.
type Mark = (&'static str, &'static [u8], i64);

const MARKS: [Mark; 15] = [
    ("a GPT partition table", b"EFI PART", 512),
    ("a GPT partition table", b"EFI PART", -512),
    ("an ext2, ext3 or ext4 file system", &[0x53, 0xef], 1080),
    ("an XFS file system", b"XFSB", 0),
    ("a btrfs file system", b"_BHRfS_M", 65600),
    ("a btrfs file system", b"_BHRfS_M", (64 << 20) + 64),
    ("an F2FS file system", &[0x10, 0x20, 0xf5, 0xf2], 1024),
    ("an NTFS file system", b"NTFS    ", 3),
    ("an ISO 9660 file system", b"CD001", 32769),
    ("an encrypted volume (LUKS)", b"LUKS\xba\xbe", 0),
    ("a physical volume of LVM", b"LABELONE", 512),
    ("swap space", b"SWAPSPACE2", 4086),
    ("a member of a software RAID", &[0xfc, 0x4e, 0x2b, 0xa9], 4096),
    ("a member of a software RAID", &[0xfc, 0x4e, 0x2b, 0xa9], 0),
    ("a boot sector or partition table", &[0x55, 0xaa], 510),
];

/// The owner of a device of `len` bytes, by its mark, or where other data begin. `None`: it is
/// blank at both ends.
pub fn find(device: &impl FileExt, len: u64) -> io::Result<Option<String>> {
    for (owner, bytes, at) in MARKS {
        let at = if at < 0 { len.checked_add_signed(at) } else { u64::try_from(at).ok() };
        let Some(at) = at.filter(|at| at.saturating_add(bytes.len() as u64) <= len) else { continue };
        let mut found = vec![0; bytes.len()];
        device.read_exact_at(&mut found, at)?;
        if found == bytes {
            return Ok(Some(owner.to_owned()));
        }
    }
    let ends = [(0, END.min(len)), (len.saturating_sub(END), END.min(len))];
    let mirrors = MIRRORS.into_iter().filter(|at| at + 4096 <= len).map(|at| (at, 4096));
    for (at, count) in ends.into_iter().chain(mirrors) {
        let mut bytes = vec![0; count as usize];
        device.read_exact_at(&mut bytes, at)?;
        if let Some(first) = bytes.iter().position(|byte| *byte != 0) {
            return Ok(Some(format!("data, at byte {}", at + first as u64)));
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_are_found_at_both_ends() {
        const LEN: u64 = 80 << 20;
        let file = tempfile::tempfile().expect("a file");
        file.set_len(LEN).expect("sparse");
        let found = || find(&file, LEN).expect("read");
        assert_eq!(found(), None);
        for (owner, bytes, at) in MARKS {
            let at = LEN.checked_add_signed(at).filter(|_| at < 0).unwrap_or(at as u64);
            file.write_all_at(bytes, at).expect("written");
            assert_eq!(found().as_deref(), Some(owner), "at {at}");
            file.write_all_at(&vec![0; bytes.len()], at).expect("cleared");
        }
        for at in [700_000, 64 << 20, LEN - 1] {
            file.write_all_at(&[1], at).expect("written");
            assert_eq!(found(), Some(format!("data, at byte {at}")));
            file.write_all_at(&[0], at).expect("cleared");
        }
        file.write_all_at(&[1], 30 << 20).expect("written");
        assert_eq!(found(), None, "nobody has a mark there");
        assert_eq!(find(&file, 100).expect("read"), None);
    }
}
