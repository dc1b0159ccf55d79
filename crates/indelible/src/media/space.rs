use std::os::fd::BorrowedFd;

use indelible_store::medium::{Extended, Fatal, MediumError, ReserveError};
use rustix::fs::{FallocateFlags, FileType, SeekFrom, fallocate, fstat, fstatfs, ftruncate, seek};
use rustix::io::Errno;

const PIECE: usize = 1 << 20;

/// `ENOSPC` is not special: it may come from earlier write-back or after a partial write.
pub(super) fn failed(error: Errno) -> Fatal {
    match error {
        Errno::ROFS => Fatal(MediumError::ReadOnly),
        _ => Fatal(MediumError::Io(error.into())),
    }
}

pub(super) fn refused(error: Errno) -> ReserveError {
    match error {
        Errno::NOSPC | Errno::DQUOT | Errno::FBIG => ReserveError::NoSpace,
        _ => ReserveError::Fatal(failed(error)),
    }
}

#[inline]
pub(super) fn check(offset: u64, len: u64, size: u64) -> Result<(), MediumError> {
    if offset <= size && len <= size - offset {
        return Ok(());
    }
    Err(MediumError::OutOfBounds { offset, len, size })
}

fn retried(mut call: impl FnMut() -> Result<(), Errno>) -> Result<(), Errno> {
    loop {
        match call() {
            Err(Errno::INTR) => {}
            done => return done,
        }
    }
}

fn unsupported(error: Errno) -> bool {
    matches!(error, Errno::OPNOTSUPP | Errno::NOSYS | Errno::NODEV | Errno::INVAL | Errno::PERM)
}

/// Without support, zeros fill the holes: the range is the caller's alone. A device without holes
/// needs nothing.
pub(super) fn reserve(fd: BorrowedFd<'_>, offset: u64, len: u64) -> Result<(), Errno> {
    if len == 0 {
        return Ok(());
    }
    match retried(|| fallocate(fd, FallocateFlags::KEEP_SIZE, offset, len)) {
        Err(e) if unsupported(e) => fill_holes(fd, offset, offset + len),
        done => done,
    }
}

pub(super) fn shows_holes(fd: BorrowedFd<'_>) -> bool {
    const FUSE: i64 = 0x6573_5546;
    fstatfs(fd).is_ok_and(|found| found.f_type != FUSE)
}

/// On ext4 the page counts as mapped after a failed write-back, so later ones never mark the block
/// as written.
pub(super) fn forgets_blocks(fd: BorrowedFd<'_>) -> bool {
    const EXT4: i64 = 0xef53;
    fstatfs(fd).is_ok_and(|found| found.f_type == EXT4)
}

pub(super) fn lengthen(fd: BorrowedFd<'_>, len: u64) -> Result<Option<Extended>, ReserveError> {
    let stat = fstat(fd).map_err(failed)?;
    if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
        return Ok(None);
    }
    let zeros_from = u64::try_from(stat.st_size).unwrap_or(0);
    if zeros_from < len {
        retried(|| ftruncate(fd, len)).map_err(refused)?;
    }
    Ok(Some(Extended { len: zeros_from.max(len), zeros_from }))
}

pub(super) fn is_written(fd: BorrowedFd<'_>, offset: u64, len: u64) -> bool {
    seek(fd, SeekFrom::Hole(offset)).is_ok_and(|hole| hole >= offset + len)
}

fn fill_holes(fd: BorrowedFd<'_>, mut at: u64, end: u64) -> Result<(), Errno> {
    while at < end {
        // A file system without holes reports one at the end of the file; a device refuses the
        // question.
        let Ok(hole) = seek(fd, SeekFrom::Hole(at)) else {
            return Ok(());
        };
        if hole >= end {
            return Ok(());
        }
        // ENXIO: only hole up to the end of the file.
        let data = seek(fd, SeekFrom::Data(hole)).unwrap_or(end).min(end);
        write_zeros(fd, hole, data - hole)?;
        at = data;
    }
    Ok(())
}

pub(super) fn zero(fd: BorrowedFd<'_>, offset: u64, len: u64) -> Result<(), Errno> {
    if len == 0 {
        return Ok(());
    }
    if punch(fd, offset, len).is_err() {
        return write_zeros(fd, offset, len);
    }
    Ok(())
}

pub(super) fn punch(fd: BorrowedFd<'_>, offset: u64, len: u64) -> Result<(), Errno> {
    retried(|| fallocate(fd, FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE, offset, len))
}

fn write_zeros(fd: BorrowedFd<'_>, mut offset: u64, len: u64) -> Result<(), Errno> {
    let end = offset + len;
    let zeros = vec![0; PIECE.min(usize::try_from(len).unwrap_or(PIECE))];
    while offset < end {
        let n = zeros.len().min(usize::try_from(end - offset).unwrap_or(PIECE));
        write_all(&zeros[..n], offset, |bytes, at| rustix::io::pwrite(fd, bytes, at))?;
        offset += n as u64;
    }
    Ok(())
}

pub(super) fn read_all(fd: BorrowedFd<'_>, offset: u64, buf: &mut [u8]) -> Result<(), MediumError> {
    let mut done = 0;
    while done < buf.len() {
        match rustix::io::pread(fd, &mut buf[done..], offset + done as u64) {
            Ok(0) => return Err(MediumError::Gone { what: "truncated" }),
            Ok(n) => done += n,
            Err(Errno::INTR) => {}
            Err(e) => return Err(MediumError::Io(e.into())),
        }
    }
    Ok(())
}

pub(super) fn write_all(
    mut bytes: &[u8],
    mut offset: u64,
    mut write: impl FnMut(&[u8], u64) -> Result<usize, Errno>,
) -> Result<(), Errno> {
    while !bytes.is_empty() {
        match write(bytes, offset) {
            Ok(0) => return Err(Errno::IO),
            Ok(n) => {
                bytes = &bytes[n.min(bytes.len())..];
                offset += n as u64;
            }
            Err(Errno::INTR) => {}
            Err(e) => return Err(e),
        }
    }
    Ok(())
}
