//! Serves a [`Disk`] as a file by FUSE, and beside it a file for lines.

use super::disk::{Disk, Failure};
use crate::workloads::wire::Said;
use fuser::{
    Errno, FileAttr, FileHandle, FileType, Filesystem, FopenFlags, Generation, INodeNo, LockOwner, OpenFlags,
    ReplyAttr, ReplyData, ReplyEmpty, ReplyEntry, ReplyOpen, ReplyWrite, Request, WriteFlags,
};
use std::ffi::OsStr;
use std::sync::Arc;
use std::time::{Duration, UNIX_EPOCH};

/// Before the process number: the kernel knows a leftover loop device by this name.
pub(crate) const DISK: &str = "indelible-disks-";
/// Every line written to this file is on the tape before the write returns.
pub(crate) const SAID: &str = "said";

const DISK_INODE: INodeNo = INodeNo(2);
const SAID_INODE: INodeNo = INodeNo(3);
const FOREVER: Duration = Duration::from_secs(1 << 30);

pub(crate) struct Server(pub(crate) Arc<Disk>);

impl Server {
    fn attributes(&self, inode: INodeNo) -> Option<FileAttr> {
        let (kind, size) = match inode {
            INodeNo::ROOT => (FileType::Directory, 0),
            DISK_INODE => (FileType::RegularFile, self.0.size),
            SAID_INODE => (FileType::RegularFile, 0),
            _ => return None,
        };
        Some(FileAttr {
            ino: inode,
            size,
            blocks: size / 512,
            atime: UNIX_EPOCH,
            mtime: UNIX_EPOCH,
            ctime: UNIX_EPOCH,
            crtime: UNIX_EPOCH,
            kind,
            perm: 0o700,
            nlink: 1,
            uid: 0,
            gid: 0,
            rdev: 0,
            flags: 0,
            blksize: 4096,
        })
    }
}

fn errno(failure: Failure) -> Errno {
    match failure {
        Failure::Io => Errno::EIO,
        Failure::NoSpace => Errno::ENOSPC,
    }
}

impl Filesystem for Server {
    fn lookup(&self, _: &Request, _: INodeNo, name: &OsStr, reply: ReplyEntry) {
        let inode = match name.to_str() {
            Some(SAID) => SAID_INODE,
            Some(name) if name.starts_with(DISK) => DISK_INODE,
            _ => return reply.error(Errno::ENOENT),
        };
        match self.attributes(inode) {
            Some(attributes) => reply.entry(&FOREVER, &attributes, Generation(0)),
            None => reply.error(Errno::ENOENT),
        }
    }

    fn getattr(&self, _: &Request, inode: INodeNo, _: Option<FileHandle>, reply: ReplyAttr) {
        match self.attributes(inode) {
            Some(attributes) => reply.attr(&FOREVER, &attributes),
            None => reply.error(Errno::ENOENT),
        }
    }

    fn open(&self, _: &Request, inode: INodeNo, _: OpenFlags, reply: ReplyOpen) {
        let seek = if inode == SAID_INODE { FopenFlags::FOPEN_NONSEEKABLE } else { FopenFlags::empty() };
        reply.opened(FileHandle(0), FopenFlags::FOPEN_DIRECT_IO | seek);
    }

    fn read(
        &self,
        _: &Request,
        inode: INodeNo,
        _: FileHandle,
        offset: u64,
        size: u32,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyData,
    ) {
        let left = if inode == DISK_INODE { self.0.size.saturating_sub(offset) } else { 0 };
        let mut data = vec![0; left.min(u64::from(size)) as usize];
        match self.0.read(offset, &mut data) {
            Ok(()) => reply.data(&data),
            Err(failure) => reply.error(errno(failure)),
        }
    }

    fn write(
        &self,
        _: &Request,
        inode: INodeNo,
        _: FileHandle,
        offset: u64,
        data: &[u8],
        _: WriteFlags,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyWrite,
    ) {
        if inode == SAID_INODE {
            for line in String::from_utf8_lossy(data).lines() {
                let unknown = || Said::Wrong { why: format!("unknown line {line:?}") };
                self.0.hear(Said::parse(line).unwrap_or_else(unknown));
            }
            return reply.written(data.len() as u32);
        }
        match self.0.write(offset, data) {
            Ok(()) => reply.written(data.len() as u32),
            Err(failure) => reply.error(errno(failure)),
        }
    }

    fn fsync(&self, _: &Request, _: INodeNo, _: FileHandle, _: bool, reply: ReplyEmpty) {
        match self.0.flush() {
            Ok(()) => reply.ok(),
            Err(failure) => reply.error(errno(failure)),
        }
    }

    /// Closing does not flush. `ENOSYS` keeps the kernel from asking again.
    fn flush(&self, _: &Request, _: INodeNo, _: FileHandle, _: LockOwner, reply: ReplyEmpty) {
        reply.error(Errno::ENOSYS);
    }

    fn fallocate(&self, _: &Request, _: INodeNo, _: FileHandle, _: u64, _: u64, _: i32, reply: ReplyEmpty) {
        reply.error(Errno::EOPNOTSUPP);
    }
}
