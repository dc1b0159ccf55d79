use libc::c_long;
use std::fmt;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Fault {
    /// Returns this error without effect.
    Error(i32),
    /// Takes effect and returns this error.
    Late(i32),
    Short,
    /// The process is killed before it.
    Kill,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = |error: i32| match error {
            libc::EIO => "EIO",
            libc::ENOSPC => "ENOSPC",
            libc::EINTR => "EINTR",
            libc::ENOMEM => "ENOMEM",
            _ => "another error",
        };
        match self {
            Fault::Error(error) => f.write_str(name(*error)),
            Fault::Late(error) => write!(f, "{} afterwards", name(*error)),
            Fault::Short => f.write_str("short"),
            Fault::Kill => f.write_str("SIGKILL"),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum About {
    Descriptor,
    /// A descriptor, if the second argument is a command of open-file-description locks.
    Lock,
    /// A descriptor of userfaultfd or of the page map.
    Control,
    Path(usize),
    /// A mapping of the medium, or at a requested address.
    Map,
    Address,
    Itself,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Effect {
    /// Moves bytes: the third argument is their number.
    Bytes,
    /// Moves bytes: the second and third argument are pieces of memory.
    Pieces,
    Barrier,
    /// Asks for lost writes; starts no I/O.
    Report,
    /// Changes a folder, or copies within the kernel: the process is only killed before it.
    Whole,
    Other,
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Call {
    number: c_long,
    pub(crate) name: &'static str,
    pub(crate) about: About,
    pub(crate) effect: Effect,
}

const fn call(number: c_long, name: &'static str, about: About, effect: Effect) -> Call {
    Call { number, name, about, effect }
}

const PUNCH: &str = "fallocate-punch";

/// Without `munmap` and `close`, which do not fail for whole mappings and open descriptors.
const CALLS: [Call; 39] = [
    call(libc::SYS_read, "read", About::Descriptor, Effect::Bytes),
    call(libc::SYS_write, "write", About::Descriptor, Effect::Bytes),
    call(libc::SYS_pread64, "pread64", About::Descriptor, Effect::Bytes),
    call(libc::SYS_pwrite64, "pwrite64", About::Descriptor, Effect::Bytes),
    call(libc::SYS_readv, "readv", About::Descriptor, Effect::Pieces),
    call(libc::SYS_writev, "writev", About::Descriptor, Effect::Pieces),
    call(libc::SYS_preadv, "preadv", About::Descriptor, Effect::Pieces),
    call(libc::SYS_pwritev, "pwritev", About::Descriptor, Effect::Pieces),
    call(libc::SYS_preadv2, "preadv2", About::Descriptor, Effect::Pieces),
    call(libc::SYS_pwritev2, "pwritev2", About::Descriptor, Effect::Pieces),
    call(libc::SYS_fsync, "fsync", About::Descriptor, Effect::Barrier),
    call(libc::SYS_fdatasync, "fdatasync", About::Descriptor, Effect::Barrier),
    call(libc::SYS_sync_file_range, "sync_file_range", About::Descriptor, Effect::Report),
    call(libc::SYS_fallocate, "fallocate", About::Descriptor, Effect::Other),
    // Frees or zeros bytes.
    call(libc::SYS_fallocate, PUNCH, About::Descriptor, Effect::Other),
    call(libc::SYS_ftruncate, "ftruncate", About::Descriptor, Effect::Other),
    call(libc::SYS_fstat, "fstat", About::Descriptor, Effect::Other),
    call(libc::SYS_fstatfs, "fstatfs", About::Descriptor, Effect::Other),
    call(libc::SYS_lseek, "lseek", About::Descriptor, Effect::Other),
    call(libc::SYS_fcntl, "fcntl", About::Lock, Effect::Other),
    call(libc::SYS_ioctl, "ioctl", About::Control, Effect::Other),
    call(libc::SYS_open, "open", About::Path(0), Effect::Other),
    call(libc::SYS_stat, "stat", About::Path(0), Effect::Other),
    call(libc::SYS_lstat, "lstat", About::Path(0), Effect::Other),
    call(libc::SYS_openat, "openat", About::Path(1), Effect::Other),
    call(libc::SYS_newfstatat, "newfstatat", About::Path(1), Effect::Other),
    call(libc::SYS_statx, "statx", About::Path(1), Effect::Other),
    call(libc::SYS_linkat, "linkat", About::Path(3), Effect::Other),
    call(libc::SYS_rename, "rename", About::Path(1), Effect::Whole),
    call(libc::SYS_renameat2, "renameat2", About::Path(3), Effect::Whole),
    call(libc::SYS_unlink, "unlink", About::Path(0), Effect::Whole),
    call(libc::SYS_chmod, "chmod", About::Path(0), Effect::Whole),
    call(libc::SYS_fchmod, "fchmod", About::Descriptor, Effect::Whole),
    call(libc::SYS_copy_file_range, "copy_file_range", About::Descriptor, Effect::Whole),
    call(libc::SYS_mmap, "mmap", About::Map, Effect::Other),
    call(libc::SYS_mprotect, "mprotect", About::Address, Effect::Other),
    call(libc::SYS_madvise, "madvise", About::Address, Effect::Other),
    call(libc::SYS_msync, "msync", About::Address, Effect::Barrier),
    call(libc::SYS_userfaultfd, "userfaultfd", About::Itself, Effect::Other),
];

impl Call {
    /// `second`: the second argument, a mode in some.
    pub(crate) fn of(number: u64, second: u64) -> Option<&'static Call> {
        let punches = number == libc::SYS_fallocate as u64 && second & libc::FALLOC_FL_PUNCH_HOLE as u64 != 0;
        CALLS.iter().find(|call| call.number as u64 == number && punches == (call.name == PUNCH))
    }

    pub(crate) fn named(name: &str) -> Option<&'static Call> {
        CALLS.iter().find(|call| call.name == name)
    }

    pub(crate) fn is_change(&self) -> bool {
        match self.effect {
            Effect::Bytes | Effect::Pieces => self.name.contains("write"),
            Effect::Barrier => true,
            Effect::Report | Effect::Whole | Effect::Other => false,
        }
    }

    pub(crate) fn is_read(&self) -> bool {
        matches!(self.effect, Effect::Bytes | Effect::Pieces) && !self.is_change()
    }

    pub(crate) fn tells_of_loss(&self) -> bool {
        self.is_change() || self.effect == Effect::Report
    }

    pub(crate) fn faults(&self) -> Vec<Fault> {
        if self.effect == Effect::Whole {
            return vec![Fault::Kill];
        }
        let mut faults = [libc::EIO, libc::ENOSPC, libc::EINTR].map(Fault::Error).to_vec();
        match self.effect {
            Effect::Bytes => faults.extend([Fault::Short, Fault::Late(libc::EIO)]),
            Effect::Pieces => {
                faults.extend([Fault::Short, Fault::Late(libc::EIO), Fault::Late(libc::ENOSPC)])
            }
            Effect::Barrier | Effect::Report => {
                faults.extend([Fault::Late(libc::EIO), Fault::Late(libc::ENOSPC)])
            }
            Effect::Whole | Effect::Other => {}
        }
        if matches!(self.about, About::Map | About::Address | About::Control | About::Itself) {
            faults.push(Fault::Error(libc::ENOMEM));
        }
        faults.push(Fault::Kill);
        faults
    }
}
