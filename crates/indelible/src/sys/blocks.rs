use rustix::fs::{FallocateFlags, fallocate, fstat, ftruncate};
use rustix::io::{Errno, pwrite};
use std::os::fd::AsFd;

const PIECE: usize = 1 << 20;

pub(crate) fn allot(file: impl AsFd, len: u64) -> Result<(), Errno> {
    loop {
        match fallocate(&file, FallocateFlags::empty(), 0, len) {
            Err(Errno::INTR) => {}
            Err(Errno::PERM | Errno::NOSYS | Errno::OPNOTSUPP) => return write_zeros(&file, len),
            done => return done,
        }
    }
}

fn write_zeros(file: impl AsFd, len: u64) -> Result<(), Errno> {
    let mut at = u64::try_from(fstat(&file)?.st_size).unwrap_or(0);
    ftruncate(&file, at.max(len))?;
    let zeros = vec![0; PIECE];
    while at < len {
        let most = usize::try_from(len - at).unwrap_or(PIECE).min(PIECE);
        match pwrite(&file, &zeros[..most], at) {
            Ok(written) => at += written as u64,
            Err(Errno::INTR) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}
