//! The requests of the kernel, each an operation of the volume.
//!
//! The kernel holds each reported inode until it forgets it. It checks permissions, and may cache
//! names and attributes forever: all changes pass it.

use crate::attributes::{attributes, file_type, time_or_now};
use crate::group::{self, Group};
use crate::state::{Shared, State, say};
use fuser::{
    Errno, FileHandle, FileType, Filesystem, FopenFlags, Generation, INodeNo, KernelConfig, LockOwner,
    OpenFlags, RenameFlags, ReplyAttr, ReplyCreate, ReplyData, ReplyDirectory, ReplyEmpty, ReplyEntry,
    ReplyLseek, ReplyOpen, ReplyStatfs, ReplyWrite, ReplyXattr, Request, TimeOrNow, WriteFlags,
};
use indelible_posix::{Allocate, Attributes, Existing, New, ROOT, Rename, Result, Seek, Set};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

const FOREVER: Duration = Duration::from_secs(1 << 30);
/// Pages stay cached over a reopen.
const CACHED: FopenFlags = FopenFlags::FOPEN_KEEP_CACHE;

pub(crate) struct Server(pub(crate) Arc<Shared>);

/// The kernel holds the inode from here on.
fn told(state: &mut State, inode: Result<u64>) -> Result<Attributes> {
    let found = state.volume.attributes(inode?)?;
    state.volume.hold(found.inode)?;
    Ok(found)
}

impl Server {
    fn entry(&self, reply: ReplyEntry, find: impl FnOnce(&mut State) -> Result<u64>) {
        let mut state = self.0.lock();
        let found = find(&mut state);
        match told(&mut state, found) {
            Ok(found) => reply.entry(&FOREVER, &attributes(&found), Generation(0)),
            Err(error) => reply.error(say(&error)),
        }
    }

    fn done(&self, reply: ReplyEmpty, change: impl FnOnce(&mut State) -> Result<()>) {
        let done = change(&mut self.0.lock());
        match done {
            Ok(()) => reply.ok(),
            Err(error) => reply.error(say(&error)),
        }
    }
}

/// Only the kernel could enforce them, such as access control lists.
fn is_refused(name: &OsStr) -> bool {
    name.as_bytes().starts_with(b"system.")
}

/// A size of 0 asks for the length.
fn value(reply: ReplyXattr, size: u32, found: Result<Vec<u8>>) {
    match found {
        Ok(bytes) if size == 0 => reply.size(bytes.len() as u32),
        Ok(bytes) if bytes.len() > size as usize => reply.error(Errno::ERANGE),
        Ok(bytes) => reply.data(&bytes),
        Err(error) => reply.error(say(&error)),
    }
}

impl Filesystem for Server {
    fn init(&mut self, _: &Request, config: &mut KernelConfig) -> std::io::Result<()> {
        let _ = config.set_max_readahead(1 << 20);
        Ok(())
    }

    fn lookup(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        self.entry(reply, |state| state.volume.lookup(parent.0, name.as_bytes()));
    }

    fn forget(&self, _: &Request, inode: INodeNo, holds: u64) {
        if let Err(error) = self.0.lock().volume.release(inode.0, holds) {
            say(&error);
        }
    }

    fn getattr(&self, _: &Request, inode: INodeNo, _: Option<FileHandle>, reply: ReplyAttr) {
        match self.0.lock().volume.attributes(inode.0) {
            Ok(found) => reply.attr(&FOREVER, &attributes(&found)),
            Err(error) => reply.error(say(&error)),
        }
    }

    fn setattr(
        &self,
        _: &Request,
        inode: INodeNo,
        mode: Option<u32>,
        uid: Option<u32>,
        gid: Option<u32>,
        size: Option<u64>,
        accessed: Option<TimeOrNow>,
        modified: Option<TimeOrNow>,
        _: Option<SystemTime>,
        _: Option<FileHandle>,
        _: Option<SystemTime>,
        _: Option<SystemTime>,
        _: Option<SystemTime>,
        _: Option<fuser::BsdFileFlags>,
        reply: ReplyAttr,
    ) {
        let (accessed, modified) = (accessed.map(time_or_now), modified.map(time_or_now));
        let set = Set { mode, uid, gid, size, accessed, modified };
        let volume = &mut self.0.lock().volume;
        match volume.set(inode.0, &set).and_then(|()| volume.attributes(inode.0)) {
            Ok(found) => reply.attr(&FOREVER, &attributes(&found)),
            Err(error) => reply.error(say(&error)),
        }
    }

    fn readlink(&self, _: &Request, inode: INodeNo, reply: ReplyData) {
        match self.0.lock().volume.read_link(inode.0) {
            Ok(target) => reply.data(&target),
            Err(error) => reply.error(say(&error)),
        }
    }

    fn mknod(
        &self,
        request: &Request,
        parent: INodeNo,
        name: &OsStr,
        mode: u32,
        _: u32,
        _: u32,
        reply: ReplyEntry,
    ) {
        let new = New::of(mode, request.uid(), request.gid());
        self.entry(reply, |state| state.volume.create_node(parent.0, name.as_bytes(), &new));
    }

    fn mkdir(&self, request: &Request, parent: INodeNo, name: &OsStr, mode: u32, _: u32, reply: ReplyEntry) {
        let new = New::of(mode, request.uid(), request.gid());
        self.entry(reply, |state| state.volume.create_directory(parent.0, name.as_bytes(), &new));
    }

    fn unlink(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        self.done(reply, |state| state.volume.unlink(parent.0, name.as_bytes()));
    }

    fn rmdir(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        self.done(reply, |state| state.volume.remove_directory(parent.0, name.as_bytes()));
    }

    fn symlink(&self, request: &Request, parent: INodeNo, name: &OsStr, target: &Path, reply: ReplyEntry) {
        let target = target.as_os_str().as_bytes();
        let new = New { target, ..New::of(0o777, request.uid(), request.gid()) };
        self.entry(reply, |state| state.volume.create_link(parent.0, name.as_bytes(), &new));
    }

    fn rename(
        &self,
        _: &Request,
        parent: INodeNo,
        name: &OsStr,
        new_parent: INodeNo,
        new_name: &OsStr,
        flags: RenameFlags,
        reply: ReplyEmpty,
    ) {
        let how = if flags.is_empty() {
            Rename::Replace
        } else if flags == RenameFlags::RENAME_NOREPLACE {
            Rename::Keep
        } else if flags == RenameFlags::RENAME_EXCHANGE {
            Rename::Exchange
        } else {
            return reply.error(Errno::EINVAL);
        };
        let (from, to) = ((parent.0, name.as_bytes()), (new_parent.0, new_name.as_bytes()));
        self.done(reply, |state| state.volume.rename(from, to, how));
    }

    fn link(&self, _: &Request, inode: INodeNo, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        self.entry(reply, |state| {
            state.volume.link(inode.0, parent.0, name.as_bytes())?;
            Ok(inode.0)
        });
    }

    /// Files have no state of their own: the kernel asks neither for opens nor for closes again,
    /// and keeps a file's pages.
    fn open(&self, _: &Request, _: INodeNo, _: OpenFlags, reply: ReplyOpen) {
        reply.error(Errno::ENOSYS);
    }

    fn create(
        &self,
        request: &Request,
        parent: INodeNo,
        name: &OsStr,
        mode: u32,
        _: u32,
        _: i32,
        reply: ReplyCreate,
    ) {
        let new = New::of(mode, request.uid(), request.gid());
        let mut state = self.0.lock();
        let made = state.volume.create_file(parent.0, name.as_bytes(), &new);
        match told(&mut state, made) {
            Ok(made) => reply.created(&FOREVER, &attributes(&made), Generation(0), FileHandle(0), CACHED),
            Err(error) => reply.error(say(&error)),
        }
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
        let read = self.0.lock().volume.read(inode.0, offset, size as usize);
        match read {
            Ok(bytes) => reply.data(&bytes),
            Err(error) => reply.error(say(&error)),
        }
    }

    fn write(
        &self,
        _: &Request,
        inode: INodeNo,
        _: FileHandle,
        offset: u64,
        bytes: &[u8],
        _: WriteFlags,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyWrite,
    ) {
        let written = self.0.lock().volume.write(inode.0, offset, bytes);
        match written {
            Ok(()) => reply.written(bytes.len() as u32),
            Err(error) => reply.error(say(&error)),
        }
    }

    /// Closing makes nothing durable; the kernel does not ask again.
    fn flush(&self, _: &Request, _: INodeNo, _: FileHandle, _: LockOwner, reply: ReplyEmpty) {
        reply.error(Errno::ENOSYS);
    }

    fn fsync(&self, request: &Request, _: INodeNo, _: FileHandle, _: bool, reply: ReplyEmpty) {
        self.0.lock().sync(request.pid(), reply);
    }

    fn fsyncdir(&self, request: &Request, _: INodeNo, _: FileHandle, _: bool, reply: ReplyEmpty) {
        self.0.lock().sync(request.pid(), reply);
    }

    fn opendir(&self, _: &Request, _: INodeNo, _: OpenFlags, reply: ReplyOpen) {
        let mut state = self.0.lock();
        state.last += 1;
        reply.opened(FileHandle(state.last), FopenFlags::empty());
    }

    /// A directory's list is made at its first read: offsets index it.
    fn readdir(
        &self,
        _: &Request,
        inode: INodeNo,
        handle: FileHandle,
        offset: u64,
        mut reply: ReplyDirectory,
    ) {
        let mut state = self.0.lock();
        if offset == 0 || !state.directories.contains_key(&handle.0) {
            match state.volume.entries(inode.0, None, usize::MAX) {
                Ok(entries) => drop(state.directories.insert(handle.0, entries)),
                Err(error) => return reply.error(say(&error)),
            }
        }
        let above = state.volume.lookup(inode.0, b"..").unwrap_or(ROOT);
        for (place, number, name) in [(1, inode.0, "."), (2, above, "..")] {
            let full = place > offset && reply.add(INodeNo(number), place, FileType::Directory, name);
            if full {
                return reply.ok();
            }
        }
        let entries = state.directories.get(&handle.0).map_or(&[][..], Vec::as_slice);
        for (at, entry) in entries.iter().enumerate().skip(offset.saturating_sub(2) as usize) {
            let name = OsStr::from_bytes(&entry.name);
            if reply.add(INodeNo(entry.inode), at as u64 + 3, file_type(entry.kind), name) {
                break;
            }
        }
        reply.ok();
    }

    fn releasedir(&self, _: &Request, _: INodeNo, handle: FileHandle, _: OpenFlags, reply: ReplyEmpty) {
        self.0.lock().directories.remove(&handle.0);
        reply.ok();
    }

    fn statfs(&self, _: &Request, _: INodeNo, reply: ReplyStatfs) {
        let room = self.0.lock().volume.room();
        match room {
            Ok(room) => {
                let (size, free) = (room.size / 4096, room.free / 4096);
                reply.statfs(size, free, free, room.inodes + free, free, 4096, 255, 4096);
            }
            Err(error) => reply.error(say(&error)),
        }
    }

    fn setxattr(
        &self,
        request: &Request,
        inode: INodeNo,
        name: &OsStr,
        bytes: &[u8],
        flags: i32,
        _: u32,
        reply: ReplyEmpty,
    ) {
        let existing = match flags {
            0 => Existing::Any,
            libc::XATTR_CREATE => Existing::Refuse,
            libc::XATTR_REPLACE => Existing::Require,
            _ => return reply.error(Errno::EINVAL),
        };
        if is_refused(name) {
            return reply.error(Errno::EOPNOTSUPP);
        }
        if inode.0 == ROOT && name.as_bytes() == group::NAME {
            return match Group::of(bytes, request.pid()).map(|group| self.0.begin_group(group)) {
                Err(errno) => reply.error(errno),
                Ok(Ok(())) => reply.ok(),
                Ok(Err(error)) => reply.error(say(&error)),
            };
        }
        self.done(reply, |state| state.volume.set_attribute(inode.0, name.as_bytes(), bytes, existing));
    }

    fn getxattr(&self, _: &Request, inode: INodeNo, name: &OsStr, size: u32, reply: ReplyXattr) {
        if is_refused(name) {
            return reply.error(Errno::EOPNOTSUPP);
        }
        value(reply, size, self.0.lock().volume.attribute(inode.0, name.as_bytes()));
    }

    fn listxattr(&self, _: &Request, inode: INodeNo, size: u32, reply: ReplyXattr) {
        let names = self.0.lock().volume.attribute_names(inode.0);
        value(
            reply,
            size,
            names.map(|names| names.into_iter().flat_map(|name| [name, vec![0]].concat()).collect()),
        );
    }

    fn removexattr(&self, request: &Request, inode: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        if is_refused(name) {
            return reply.error(Errno::EOPNOTSUPP);
        }
        if inode.0 == ROOT && name.as_bytes() == group::NAME {
            return match self.0.end_group(request.pid()) {
                Ok(()) => reply.ok(),
                Err(errno) => reply.error(errno),
            };
        }
        self.done(reply, |state| state.volume.remove_attribute(inode.0, name.as_bytes()));
    }

    fn fallocate(
        &self,
        _: &Request,
        inode: INodeNo,
        _: FileHandle,
        offset: u64,
        length: u64,
        mode: i32,
        reply: ReplyEmpty,
    ) {
        let how = match mode {
            0 => Allocate::Grow,
            libc::FALLOC_FL_KEEP_SIZE => Allocate::Keep,
            libc::FALLOC_FL_ZERO_RANGE => Allocate::Zero,
            _ if mode == libc::FALLOC_FL_ZERO_RANGE | libc::FALLOC_FL_KEEP_SIZE => Allocate::ZeroKeep,
            _ if mode == libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE => Allocate::Punch,
            _ => return reply.error(Errno::EOPNOTSUPP),
        };
        let range = offset..offset.saturating_add(length);
        self.done(reply, |state| state.volume.allocate(inode.0, range, how));
    }

    fn lseek(&self, _: &Request, inode: INodeNo, _: FileHandle, offset: i64, whence: i32, reply: ReplyLseek) {
        let what = match whence {
            libc::SEEK_DATA => Seek::Data,
            libc::SEEK_HOLE => Seek::Hole,
            _ => return reply.error(Errno::EINVAL),
        };
        let found = u64::try_from(offset).map(|offset| self.0.lock().volume.seek(inode.0, offset, what));
        match found {
            Ok(Ok(place)) => reply.offset(place as i64),
            Ok(Err(error)) => reply.error(say(&error)),
            Err(_) => reply.error(Errno::ENXIO),
        }
    }
}
