//! The kernel's log of this process's page faults (`perf_event_open`): one address per fault, in
//! rings that the kernel shares with the process, one per processor.
//!
//! The kernel fires these events where it counts the faults that `getrusage` reports: equal numbers
//! prove that no fault is missing. Existing threads get their own events, later threads inherit
//! them, forked children do not. The layouts are the kernel's (`include/uapi/linux/perf_event.h`),
//! asserted below.
//!
//! Invariants:
//! 1. `Ring::base` maps the control page and `size` bytes of data of a live event until the ring is
//!    dropped. In the control page only the kernel writes the head and only this process writes the
//!    tail; only the kernel writes the data.
//! 2. The bytes between tail and head are whole records. The kernel leaves them alone until the
//!    tail passes them.
//! 3. Each thread has at most one pair of events per processor: no fault is logged twice.
//! 4. A forked child has no mapping (`VM_DONTCOPY`) and no descriptor ([`ForkFd`]). The owner of
//!    [`Rings`] must not use them in a child.

#![allow(unsafe_code)]

use super::PAGE;
use super::fork::ForkFd;
use std::fs;
use std::io;
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering};

/// `struct perf_event_attr` of its first version.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
struct Attributes {
    kind: u32,
    size: u32,
    config: u64,
    sample_period: u64,
    sample_type: u64,
    read_format: u64,
    flags: u64,
    wakeup_events: u32,
    breakpoint: u32,
    config1: u64,
}

const _: () = assert!(size_of::<Attributes>() == 64);
const _: () = assert!(std::mem::offset_of!(Attributes, flags) == 40);

const SOFTWARE: u32 = 1;
/// `PAGE_FAULTS_MIN` and `PAGE_FAULTS_MAJ`. Not `PAGE_FAULTS`, which also fires for faults that
/// fail.
const FAULTS: [u64; 2] = [5, 6];
const SAMPLE_ADDRESS: u64 = 1 << 3;
const INHERIT: u64 = 1 << 1;
const EXCLUDE_KERNEL: u64 = 1 << 5;
const EXCLUDE_HYPERVISOR: u64 = 1 << 6;
const INHERIT_THREAD: u64 = 1 << 35;

const CLOSE_ON_EXEC: libc::c_ulong = 1 << 3;
const ENABLE: libc::Ioctl = 0x2400;
const DISABLE: libc::Ioctl = 0x2401;
const SET_OUTPUT: libc::Ioctl = 0x2405;

/// Offsets in the control page.
const HEAD: usize = 1024;
const TAIL: usize = 1032;
const RECORD_SAMPLE: u32 = 9;

/// Pages of ring data to try, largest first: locked memory is limited. A record takes 16 bytes.
const SIZES: [usize; 4] = [16, 8, 4, 2];
/// Upper bound of events, and so of descriptors, per process.
const MOST: usize = 512;
/// Attempts to list the threads while new ones start.
const ATTEMPTS: usize = 3;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Seen {
    /// Of user code and of system calls.
    All,
    /// Of user code only.
    User,
}

fn open(thread: i32, processor: u32, config: u64, seen: Seen) -> io::Result<OwnedFd> {
    let kernel = if seen == Seen::All { 0 } else { EXCLUDE_KERNEL };
    let attributes = Attributes {
        kind: SOFTWARE,
        size: size_of::<Attributes>() as u32,
        config,
        sample_period: 1,
        sample_type: SAMPLE_ADDRESS,
        flags: INHERIT | INHERIT_THREAD | EXCLUDE_HYPERVISOR | kernel,
        ..Attributes::default()
    };
    // SAFETY: the struct has the kernel's layout (asserted above), and the call only reads it.
    let fd = unsafe {
        libc::syscall(
            libc::SYS_perf_event_open,
            &raw const attributes,
            thread,
            processor as i32,
            -1,
            CLOSE_ON_EXEC,
        )
    };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the call made the descriptor for this caller.
    Ok(unsafe { OwnedFd::from_raw_fd(fd as i32) })
}

fn control(fd: &impl AsFd, request: libc::Ioctl, argument: i32) -> io::Result<()> {
    // SAFETY: the requests take a number.
    if unsafe { libc::ioctl(fd.as_fd().as_raw_fd(), request, argument) } != 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}

#[derive(Debug)]
struct Ring {
    base: NonNull<u8>,
    /// Bytes of data, a power of two.
    size: usize,
    tail: u64,
}

// SAFETY: the mapping is the process's; `&mut` keeps others from the tail.
unsafe impl Send for Ring {}

impl Ring {
    fn map(event: &impl AsFd) -> io::Result<Ring> {
        use rustix::mm::{MapFlags, ProtFlags, mmap};
        let mut refused = io::Error::from(io::ErrorKind::OutOfMemory);
        for pages in SIZES {
            let (len, protection) = (PAGE * (1 + pages), ProtFlags::READ | ProtFlags::WRITE);
            // SAFETY: a new mapping where the kernel has room.
            match unsafe { mmap(std::ptr::null_mut(), len, protection, MapFlags::SHARED, event, 0) } {
                Ok(base) => {
                    let base = NonNull::new(base.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
                    return Ok(Ring { base, size: PAGE * pages, tail: 0 });
                }
                Err(error) => refused = error.into(),
            }
        }
        Err(refused)
    }

    fn word(&self, at: usize) -> &AtomicU64 {
        // SAFETY: a word of the mapping (1), which lives as long as `self`, used as an atomic.
        unsafe { self.base.add(at).cast::<AtomicU64>().as_ref() }
    }

    fn head(&self) -> u64 {
        self.word(HEAD).load(Ordering::Acquire)
    }

    /// The data word at a log position.
    fn data(&self, place: u64) -> u64 {
        self.word(PAGE + place as usize % self.size).load(Ordering::Relaxed)
    }

    fn drain(&mut self, each: &mut impl FnMut(usize)) -> u64 {
        let (head, mut taken) = (self.head(), 0);
        while head.wrapping_sub(self.tail) >= 8 {
            let header = self.data(self.tail).to_ne_bytes();
            let [a, b, c, d, _, _, e, f] = header;
            let size = u64::from(u16::from_ne_bytes([e, f]));
            if size < 8 || size > head.wrapping_sub(self.tail) {
                // Malformed: the rest is not counted, so the sums will differ.
                break;
            }
            if u32::from_ne_bytes([a, b, c, d]) == RECORD_SAMPLE && size >= 16 {
                each(self.data(self.tail + 8) as usize);
                taken += 1;
            }
            self.tail += size;
        }
        self.tail = head;
        self.word(TAIL).store(head, Ordering::Release);
        taken
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        // SAFETY: the mapping of this ring (1); no other value has its address.
        let unmapped = unsafe { rustix::mm::munmap(self.base.as_ptr().cast(), PAGE + self.size) };
        debug_assert!(unmapped.is_ok());
    }
}

/// The rings of all processors, fed by the events of all threads.
#[derive(Debug)]
pub(crate) struct Rings {
    rings: Vec<Ring>,
    events: Vec<ForkFd>,
}

impl Rings {
    pub(crate) fn open() -> io::Result<Rings> {
        let processors = processors();
        for _ in 0..ATTEMPTS {
            let before = threads()?;
            if before.len() * processors.len() * FAULTS.len() > MOST {
                break;
            }
            let rings = Rings::of(&before, &processors)?;
            // A thread that started meanwhile may have inherited events or not: start again.
            if threads()?.iter().all(|thread| before.contains(thread)) {
                return Ok(rings);
            }
        }
        Err(io::Error::new(io::ErrorKind::ResourceBusy, "too many threads, or too many processors"))
    }

    fn of(threads: &[i32], processors: &[u32]) -> io::Result<Rings> {
        let seen = seen()?;
        let mut rings = Rings { rings: Vec::new(), events: Vec::new() };
        for processor in processors {
            let mut first = None;
            for (thread, config) in threads.iter().flat_map(|thread| FAULTS.map(|config| (*thread, config))) {
                let event = match open(thread, *processor, config, seen) {
                    Ok(event) => ForkFd::new(event)?,
                    // The thread has ended, or the processor is offline.
                    Err(error) if matches!(error.raw_os_error(), Some(libc::ESRCH | libc::ENODEV)) => {
                        continue;
                    }
                    Err(error) => return Err(error),
                };
                match first {
                    None => {
                        rings.rings.push(Ring::map(&event)?);
                        first = Some(rings.events.len());
                    }
                    Some(first) => {
                        let first: &ForkFd = &rings.events[first];
                        control(&event, SET_OUTPUT, first.as_fd().as_raw_fd())?;
                    }
                }
                rings.events.push(event);
            }
        }
        Ok(rings)
    }

    pub(crate) fn drain(&mut self, mut each: impl FnMut(usize)) -> u64 {
        self.rings.iter_mut().map(|ring| ring.drain(&mut each)).sum()
    }

    pub(crate) fn is_drained(&self) -> bool {
        self.rings.iter().all(|ring| ring.head() == ring.tail)
    }

    pub(crate) fn enable(&self, on: bool) -> io::Result<()> {
        let request = if on { ENABLE } else { DISABLE };
        self.events.iter().try_for_each(|event| control(event, request, 0))
    }
}

pub(crate) fn seen() -> io::Result<Seen> {
    let may = |seen| {
        let event = open(0, 0, FAULTS[0], seen)?;
        Ring::map(&event).map(|_| seen)
    };
    may(Seen::All).or_else(|_| may(Seen::User))
}

fn processors() -> Vec<u32> {
    let text = fs::read_to_string("/sys/devices/system/cpu/online").unwrap_or_default();
    let listed: Vec<u32> = text.trim().split(',').filter_map(run).flatten().collect();
    if listed.is_empty() {
        let count = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        return (0..count as u32).collect();
    }
    listed
}

/// `4` or `4-7`, as the kernel writes lists.
fn run(text: &str) -> Option<std::ops::RangeInclusive<u32>> {
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    Some(first.parse().ok()?..=last.parse().ok()?)
}

fn threads() -> io::Result<Vec<i32>> {
    let names = fs::read_dir("/proc/self/task")?.map(|entry| Ok(entry?.file_name()));
    let names = names.collect::<io::Result<Vec<_>>>()?;
    Ok(names.iter().filter_map(|name| name.to_str()?.parse().ok()).collect())
}
