use super::{fault_ring, flush, pagemap::Pagemap, pkey, process, uffd};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum UffdAccess {
    Full,
    UserModeOnly,
    None,
}

#[derive(Clone, Debug)]
pub(crate) struct Facilities {
    pub(crate) kernel: String,
    pub(crate) uffd: UffdAccess,
    pub(crate) refusal: Option<i32>,
    pub(crate) proc: bool,
    pub(crate) wp_async: bool,
    pub(crate) pagemap_scan: bool,
    /// The faults of this process that it may have logged, or the kernel's error.
    pub(crate) fault_log: Result<fault_ring::Seen, i32>,
    pub(crate) protection_keys: Result<(), pkey::Lack>,
    pub(crate) instructions: &'static [&'static str],
    pub(crate) max_map_count: usize,
    pub(crate) open_files: Option<u64>,
    pub(crate) pid_namespace: u64,
    pub(crate) page_size: usize,
    pub(crate) va_bits: u32,
}

impl Facilities {
    pub(crate) fn version(&self) -> (u32, u32) {
        let mut numbers =
            self.kernel.split(|c: char| !c.is_ascii_digit()).map(|text| text.parse().unwrap_or(0));
        (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0))
    }

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
            fault_log: fault_ring::seen().map_err(|error| error.raw_os_error().unwrap_or(0)),
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

pub(crate) fn max_map_count() -> usize {
    std::fs::read_to_string("/proc/sys/vm/max_map_count")
        .ok()
        .and_then(|text| text.trim().parse().ok())
        .unwrap_or(0)
}

/// Told from the first thread's stack, which is at the top.
pub(crate) fn va_bits() -> u32 {
    if cfg!(miri) {
        return 47;
    }
    usize::BITS - rustix::param::linux_execfn().as_ptr().addr().leading_zeros()
}
