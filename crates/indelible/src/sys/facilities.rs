//! The machine's facilities, gathered once for reports.

use super::{flush, pagemap::Pagemap, pkey, process, uffd};

/// How far userfaultfd is open to this process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum UffdAccess {
    /// Faults of system calls are seen, too.
    Full,
    /// Faults of user code only.
    UserModeOnly,
    /// Refused or absent.
    None,
}

/// The facilities of the running system, as far as Indelible uses them.
#[derive(Clone, Debug)]
pub(crate) struct Facilities {
    /// `uname -r`.
    pub(crate) kernel: String,
    pub(crate) uffd: UffdAccess,
    /// Error of the kernel where userfaultfd cannot be had.
    pub(crate) refusal: Option<i32>,
    /// Whether /proc shows this process.
    pub(crate) proc: bool,
    /// Asynchronous write protection (Linux 6.7).
    pub(crate) wp_async: bool,
    /// `PAGEMAP_SCAN` (Linux 6.7) on this process's own page map.
    pub(crate) pagemap_scan: bool,
    /// Protection keys of the processor, or why there are none.
    pub(crate) protection_keys: Result<(), pkey::Lack>,
    /// Cache and vector instructions in use.
    pub(crate) instructions: &'static [&'static str],
    /// Mappings that one process may have, 0 if unknown.
    pub(crate) max_map_count: usize,
    /// Files that this process may have open, `None` without a limit.
    pub(crate) open_files: Option<u64>,
    /// 0: the machine's first.
    pub(crate) pid_namespace: u64,
    /// Bytes.
    pub(crate) page_size: usize,
    /// Bits of a user-space address.
    pub(crate) va_bits: u32,
}

impl Facilities {
    /// The first two numbers of the kernel's version; 0 for a part that is no number.
    pub(crate) fn version(&self) -> (u32, u32) {
        let mut numbers =
            self.kernel.split(|c: char| !c.is_ascii_digit()).map(|text| text.parse().unwrap_or(0));
        (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0))
    }

    /// Asks the system anew.
    pub(crate) fn gather() -> Facilities {
        let reach = uffd::Uffd::open(uffd::Reach::UserMode, 0, 0).map(|uffd| uffd.reach());
        Facilities {
            kernel: rustix::system::uname().release().to_string_lossy().into_owned(),
            refusal: reach.as_ref().err().and_then(std::io::Error::raw_os_error),
            proc: std::path::Path::new("/proc/self/pagemap").exists(),
            uffd: match reach {
                Ok(uffd::Reach::Full) => UffdAccess::Full,
                Ok(uffd::Reach::UserMode) => UffdAccess::UserModeOnly,
                Err(_) => UffdAccess::None,
            },
            wp_async: uffd::Uffd::wp_async().is_ok(),
            pagemap_scan: Pagemap::supported(),
            protection_keys: pkey::available(),
            instructions: flush::instructions(),
            max_map_count: max_map_count(),
            open_files: rustix::process::getrlimit(rustix::process::Resource::Nofile).current,
            pid_namespace: process::namespace(),
            page_size: rustix::param::page_size(),
            va_bits: va_bits(),
        }
    }
}

/// Mappings that one process may have, 0 if unknown.
pub(crate) fn max_map_count() -> usize {
    std::fs::read_to_string("/proc/sys/vm/max_map_count")
        .ok()
        .and_then(|text| text.trim().parse().ok())
        .unwrap_or(0)
}

/// Bits of the addresses that user space gets without asking for more: taken from where the kernel
/// puts the stack of the first thread, which is at the top. Those of other threads may be anywhere:
/// in the middle where the kernel maps from the bottom up.
pub(crate) fn va_bits() -> u32 {
    if cfg!(miri) {
        return 47;
    }
    usize::BITS - rustix::param::linux_execfn().as_ptr().addr().leading_zeros()
}
