//! userfaultfd: asynchronous write protection, and faults answered by a thread.

#![allow(unsafe_code)]

use std::io;
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};

use super::PAGE;
use super::fork::ForkFd;
use super::per_process::PerProcess;

#[repr(C)]
#[derive(Default)]
struct Api {
    api: u64,
    features: u64,
    ioctls: u64,
}

#[repr(C)]
#[derive(Default)]
struct Range {
    start: u64,
    len: u64,
}

/// Also `uffdio_zeropage` and `uffdio_poison`: the last word is the kernel's answer.
#[repr(C)]
#[derive(Default)]
struct RangeMode {
    range: Range,
    mode: u64,
    answer: i64,
}

#[repr(C)]
#[derive(Default)]
struct Protect {
    range: Range,
    mode: u64,
}

#[repr(C)]
#[derive(Default)]
struct Copy {
    dst: u64,
    src: u64,
    len: u64,
    mode: u64,
    copied: i64,
}

#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
struct Message {
    event: u8,
    reserved: [u8; 7],
    flags: u64,
    address: u64,
    thread: u64,
}

const _: () = assert!(size_of::<Api>() == 24 && size_of::<Range>() == 16 && size_of::<RangeMode>() == 32);
const _: () = assert!(size_of::<Protect>() == 24 && size_of::<Copy>() == 40 && size_of::<Message>() == 32);

/// 32 bits, in libc's type.
const fn request(direction: u32, number: u32, size: u32) -> libc::Ioctl {
    (direction << 30 | size << 16 | 0xaa << 8 | number) as libc::Ioctl
}

const API: libc::Ioctl = request(3, 0x3f, 24);
const REGISTER: libc::Ioctl = request(3, 0, 32);
const WAKE: libc::Ioctl = request(2, 2, 16);
const COPY: libc::Ioctl = request(3, 3, 40);
const WRITEPROTECT: libc::Ioctl = request(3, 6, 24);
const POISON: libc::Ioctl = request(3, 8, 32);
/// `USERFAULTFD_IOC_NEW` of /dev/userfaultfd: `_IO(0xAA, 0)`.
const NEW: libc::Ioctl = request(0, 0, 0);

const EVENT_PAGEFAULT: u8 = 0x12;
const USER_MODE_ONLY: libc::c_int = 1;

/// Write faults clear the protection without a message (Linux 6.7).
pub(crate) const WP_ASYNC: u64 = 1 << 15;
/// A page can be made to raise SIGBUS (Linux 6.6).
pub(crate) const FEATURE_POISON: u64 = 1 << 14;

/// A thread that drops watched pages waits until the event was read (Linux 4.11).
pub(crate) const EVENT_REMOVE: u64 = 1 << 3;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reach {
    /// Faults of user code and of system calls.
    Full,
    /// A system call that meets a missing page fails with `EFAULT`.
    UserMode,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Watch {
    Writes,
    Missing,
    MissingAndWrites,
}

#[derive(Debug)]
pub(crate) struct Uffd {
    fd: ForkFd,
    reach: Reach,
    features: u64,
}

impl Uffd {
    pub(crate) fn open(reach: Reach, wanted: u64, optional: u64) -> io::Result<Uffd> {
        // A handshake fixes the features, so they are probed separately.
        let (probe, _) = new_fd(reach)?;
        let mut api = Api { api: 0xaa, ..Api::default() };
        ioctl(&probe, API, &mut api)?;
        if api.features & wanted != wanted {
            return Err(io::Error::from_raw_os_error(libc::EOPNOTSUPP));
        }
        let features = wanted | optional & api.features;
        let (fd, reach) = new_fd(reach)?;
        let mut api = Api { api: 0xaa, features, ..Api::default() };
        ioctl(&fd, API, &mut api)?;
        Ok(Uffd { fd: ForkFd::new(fd)?, reach, features })
    }

    pub(crate) fn wp_async() -> io::Result<&'static Uffd> {
        static SHARED: PerProcess<Uffd> = PerProcess::new();
        // The kernel lifts the protection itself, also for system calls.
        SHARED.get_or_try(|_| Uffd::open(Reach::UserMode, WP_ASYNC, 0))
    }

    pub(crate) fn reach(&self) -> Reach {
        self.reach
    }

    pub(crate) fn has(&self, feature: u64) -> bool {
        self.features & feature == feature
    }

    pub(crate) fn register(&self, addr: usize, len: usize, watch: Watch) -> io::Result<()> {
        let mode = match watch {
            Watch::Missing => 1,
            Watch::Writes => 2,
            Watch::MissingAndWrites => 3,
        };
        ioctl(&self.fd, REGISTER, &mut RangeMode { range: range(addr, len), mode, answer: 0 })
    }

    #[inline]
    pub(crate) fn protect(&self, addr: usize, len: usize) -> io::Result<()> {
        self.set_protection(addr, len, 1)
    }

    /// Ends protection: each present page counts as written, and absent ones keep no mark.
    pub(crate) fn unprotect(&self, addr: usize, len: usize) -> io::Result<()> {
        self.set_protection(addr, len, 0)
    }

    #[inline]
    fn set_protection(&self, addr: usize, len: usize, mode: u64) -> io::Result<()> {
        loop {
            let done = ioctl(&self.fd, WRITEPROTECT, &mut Protect { range: range(addr, len), mode });
            match done {
                Err(e) if e.raw_os_error() == Some(libc::EAGAIN) => {}
                done => return done,
            }
        }
    }

    pub(crate) fn copy(&self, addr: usize, bytes: &[u8], protect: bool) -> io::Result<usize> {
        let mut copy = Copy {
            dst: addr as u64,
            src: bytes.as_ptr().expose_provenance() as u64,
            len: bytes.len() as u64,
            mode: if protect { 2 } else { 0 },
            copied: 0,
        };
        match ioctl(&self.fd, COPY, &mut copy) {
            Ok(()) => Ok(bytes.len()),
            Err(_) if copy.copied > 0 => Ok(copy.copied as usize),
            Err(e) => Err(e),
        }
    }

    pub(crate) fn poison(&self, addr: usize) -> io::Result<()> {
        ioctl(&self.fd, POISON, &mut RangeMode { range: range(addr, PAGE), mode: 0, answer: 0 })
    }

    pub(crate) fn wake(&self, addr: usize, len: usize) -> io::Result<()> {
        ioctl(&self.fd, WAKE, &mut range(addr, len))
    }

    pub(crate) fn never_wait(&self) -> io::Result<()> {
        use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
        Ok(fcntl_setfl(&self.fd, fcntl_getfl(&self.fd)? | OFlags::NONBLOCK)?)
    }

    /// Calls `before` before it releases the dropping thread.
    pub(crate) fn wait_for_removals(&self, before: impl FnOnce()) -> io::Result<()> {
        use rustix::event::{PollFd, PollFlags, poll};
        match poll(&mut [PollFd::new(&self.fd, PollFlags::IN)], None) {
            Ok(_) => {}
            Err(rustix::io::Errno::INTR) => return Ok(()),
            Err(error) => return Err(error.into()),
        }
        before();
        self.wait(|_| {})
    }

    pub(crate) fn wait(&self, mut each: impl FnMut(usize)) -> io::Result<()> {
        let mut messages = [Message::default(); 16];
        let room = size_of_val(&messages);
        // SAFETY: `messages` is `room` bytes of plain integers for the kernel to fill.
        let read = unsafe { libc::read(self.fd.as_fd().as_raw_fd(), messages.as_mut_ptr().cast(), room) };
        let Ok(read) = usize::try_from(read) else {
            let error = io::Error::last_os_error();
            return match error.raw_os_error() {
                Some(libc::EINTR | libc::EAGAIN) => Ok(()),
                _ => Err(error),
            };
        };
        for message in &messages[..read / size_of::<Message>()] {
            if message.event == EVENT_PAGEFAULT {
                each(message.address as usize);
            }
        }
        Ok(())
    }
}

fn range(addr: usize, len: usize) -> Range {
    Range { start: addr as u64, len: len as u64 }
}

fn ioctl<T>(fd: &impl AsFd, request: libc::Ioctl, arg: &mut T) -> io::Result<()> {
    // SAFETY: every caller passes the struct that the request names, with the kernel's layout
    // (sizes asserted above). The kernel writes only to it and to registered ranges.
    if unsafe { libc::ioctl(fd.as_fd().as_raw_fd(), request, std::ptr::from_mut(arg)) } < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}

fn new_fd(least: Reach) -> io::Result<(OwnedFd, Reach)> {
    let flags = libc::O_CLOEXEC;
    let error = match syscall(flags) {
        Ok(fd) => return Ok((fd, Reach::Full)),
        Err(e) => e,
    };
    if let Ok(fd) = device(flags) {
        return Ok((fd, Reach::Full));
    }
    if least == Reach::Full {
        return Err(error);
    }
    Ok((syscall(flags | USER_MODE_ONLY)?, Reach::UserMode))
}

fn syscall(flags: libc::c_int) -> io::Result<OwnedFd> {
    // SAFETY: the call takes flags and returns a new descriptor.
    own(unsafe { libc::syscall(libc::SYS_userfaultfd, flags) })
}

fn device(flags: libc::c_int) -> io::Result<OwnedFd> {
    use rustix::fs::{Mode, OFlags, open};
    let device = open("/dev/userfaultfd", OFlags::RDWR | OFlags::CLOEXEC, Mode::empty())?;
    // SAFETY: the request takes flags by value and returns a new descriptor.
    own(unsafe { libc::ioctl(device.as_raw_fd(), NEW, flags) }.into())
}

fn own(fd: libc::c_long) -> io::Result<OwnedFd> {
    match libc::c_int::try_from(fd) {
        // SAFETY: the kernel returned this descriptor to this call alone.
        Ok(fd) if fd >= 0 => Ok(unsafe { OwnedFd::from_raw_fd(fd) }),
        _ => Err(io::Error::last_os_error()),
    }
}
