//! System calls probe a thread's access; the kernel returns `EFAULT` where it has none.

#[cfg(target_arch = "x86_64")]
mod jump;

use std::mem::ManuallyDrop;
use std::os::fd::AsRawFd;
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, ExitStatus};
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::rights::MOST;
use super::*;
use crate::sys::PAGE;
use crate::sys::mmap::{self, Place, Protection};

const CHILD: &str = "INDELIBLE_TEST_CHILD";

fn turn() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}

fn all_means() -> Vec<Means> {
    if let Err(lack) = pkey::available() {
        indelible_testing::not_tested(format_args!("protection keys: {}", lack.why()));
        return vec![Means::Mprotect];
    }
    vec![Means::Keys, Means::Mprotect]
}

fn alone(test: &str, means: Means, body: impl FnOnce(Means)) -> ExitStatus {
    if let Ok(word) = std::env::var(CHILD) {
        body(if word == format!("{:?}", Means::Keys) { Means::Keys } else { Means::Mprotect });
        // SAFETY: ends the process; nothing is left to be done.
        unsafe { libc::_exit(0) };
    }
    let name = format!("protection::tests::{test}");
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", &name, "--test-threads=1", "--nocapture"]).env(CHILD, format!("{means:?}"));
    command.output().unwrap().status
}

struct Memory {
    addr: usize,
    len: usize,
}

impl Memory {
    fn new(pages: usize) -> Memory {
        static NEXT: AtomicUsize = AtomicUsize::new(0x5300_0000_0000);
        let memory = Memory { addr: NEXT.fetch_add(1 << 30, Ordering::Relaxed), len: pages * PAGE };
        memory.map(0, Place::Free);
        memory
    }

    fn map(&self, first: usize, place: Place) {
        let skip = first * PAGE;
        // SAFETY: unowned, or this test's own; no reference to its bytes is made.
        unsafe { mmap::private(self.addr + skip, self.len - skip, Protection::ReadWrite, None, place) }
            .unwrap();
    }

    fn add(&self, domain: &Arc<Domain>) -> Range {
        // SAFETY: mapped until this is dropped, which tests do last; no references.
        unsafe { domain.add(self.addr, self.len, Protection::ReadWrite) }.unwrap()
    }

    fn access(&self) -> Protection {
        access(self.addr)
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        // SAFETY: our own mapping, of which there are no references.
        let _ = unsafe { mmap::unmap(self.addr, self.len) };
    }
}

fn access(addr: usize) -> Protection {
    let at = std::ptr::with_exposed_provenance_mut::<libc::c_void>(addr);
    let mut pipe = [0; 2];
    // SAFETY: calls of the kernel, which checks the address and copies one byte, to the pipe and
    // back.
    unsafe {
        assert_eq!(libc::pipe(pipe.as_mut_ptr()), 0);
        let read = libc::write(pipe[1], at, 1) == 1;
        assert!(read || *libc::__errno_location() == libc::EFAULT);
        if !read {
            let other = [0_u8];
            assert_eq!(libc::write(pipe[1], other.as_ptr().cast(), 1), 1);
        }
        let stored = libc::read(pipe[0], at, 1) == 1;
        assert!(stored || *libc::__errno_location() == libc::EFAULT);
        libc::close(pipe[0]);
        libc::close(pipe[1]);
        match (read, stored) {
            (true, true) => Protection::ReadWrite,
            (true, false) => Protection::Read,
            (false, false) => Protection::None,
            (false, true) => panic!("pages that can be stored to and not be read"),
        }
    }
}

fn skip(open: Open) {
    let domain = Arc::as_ptr(&open.domain);
    std::mem::forget(open);
    // SAFETY: the guard had it.
    unsafe { Arc::decrement_strong_count(domain) };
}

#[test]
fn pages_are_closed_until_their_domain_is_opened() {
    let _turn = turn();
    for means in all_means() {
        let (memory, other) = (Memory::new(3), Memory::new(1));
        let (domain, stranger) = (Domain::new(means).unwrap(), Domain::new(means).unwrap());
        let range = memory.add(&domain);
        let _other = other.add(&stranger);
        assert_eq!(memory.access(), Protection::None, "{means:?}");
        {
            let _all = domain.open(Protection::ReadWrite).unwrap();
            assert_eq!(
                (memory.access(), other.access()),
                (Protection::ReadWrite, Protection::None),
                "{means:?}"
            );
            let inner = domain.open(Protection::Read).unwrap();
            assert_eq!(memory.access(), Protection::ReadWrite, "{means:?}");
            drop(inner);
            assert_eq!(memory.access(), Protection::ReadWrite, "{means:?}");
        }
        assert_eq!(memory.access(), Protection::None, "{means:?}");
        {
            let _some = domain.open(Protection::Read).unwrap();
            assert_eq!(memory.access(), Protection::Read, "{means:?}");
            let inner = domain.open(Protection::ReadWrite).unwrap();
            assert_eq!(memory.access(), Protection::ReadWrite, "{means:?}");
            drop(inner);
            assert_eq!(memory.access(), Protection::Read, "{means:?}");
        }
        drop(range);
        assert_eq!(memory.access(), Protection::ReadWrite, "{means:?}: ordinary again");
    }
}

#[test]
fn pages_for_reading_are_never_stored_to() {
    let _turn = turn();
    for means in all_means() {
        let (memory, domain) = (Memory::new(1), Domain::new(means).unwrap());
        // SAFETY: mapped until the end of this test; no references.
        let _range = unsafe { domain.add(memory.addr, memory.len, Protection::Read) }.unwrap();
        let _open = domain.open(Protection::ReadWrite).unwrap();
        assert_eq!(memory.access(), Protection::Read, "{means:?}");
    }
}

#[test]
fn an_access_to_closed_pages_is_a_fault() {
    let _turn = turn();
    for means in all_means() {
        let status = alone("an_access_to_closed_pages_is_a_fault", means, |means| {
            let (memory, domain) = (Memory::new(1), Domain::new(means).unwrap());
            let _range = memory.add(&domain);
            let at = std::ptr::with_exposed_provenance_mut::<u64>(memory.addr);
            {
                let _open = domain.open(Protection::ReadWrite).unwrap();
                // SAFETY: mapped, and open.
                unsafe { at.write_volatile(1) };
            }
            // SAFETY: mapped; the fault ends this process.
            unsafe { at.write_volatile(2) };
        });
        assert_eq!(status.signal(), Some(libc::SIGSEGV), "{means:?}: {status:?}");
    }
}

#[test]
fn rights_are_those_of_a_thread() {
    let _turn = turn();
    for means in all_means() {
        let (memory, domain) = (Memory::new(1), Domain::new(means).unwrap());
        let _range = memory.add(&domain);
        let (opened, seen) = (AtomicBool::new(false), AtomicBool::new(false));
        std::thread::scope(|scope| {
            let other = scope.spawn(|| {
                while !opened.load(Ordering::Acquire) {
                    std::thread::yield_now();
                }
                let beside = memory.access();
                let own = domain.open(Protection::ReadWrite).unwrap();
                let open = memory.access();
                drop(own);
                seen.store(true, Ordering::Release);
                (beside, open)
            });
            let held = domain.open(Protection::Read).unwrap();
            opened.store(true, Ordering::Release);
            while !seen.load(Ordering::Acquire) {
                std::thread::yield_now();
            }
            assert_eq!(memory.access(), Protection::Read, "{means:?}");
            drop(held);
            let expected = if means == Means::Keys { Protection::None } else { Protection::Read };
            assert_eq!(other.join().unwrap(), (expected, Protection::ReadWrite), "{means:?}");
        });
        assert_eq!(memory.access(), Protection::None, "{means:?}");
    }
}

#[test]
fn a_thread_inherits_what_is_open_until_it_closes_all() {
    let _turn = turn();
    for means in all_means() {
        let (memory, domain) = (Memory::new(1), Domain::new(means).unwrap());
        let _range = memory.add(&domain);
        let closed = AtomicBool::new(false);
        let (inherited, after) = std::thread::scope(|scope| {
            let open = domain.open(Protection::ReadWrite).unwrap();
            let child = scope.spawn(|| {
                while !closed.load(Ordering::Acquire) {
                    std::thread::yield_now();
                }
                let inherited = memory.access();
                close_all().unwrap();
                (inherited, memory.access())
            });
            drop(open);
            closed.store(true, Ordering::Release);
            child.join().unwrap()
        });
        let expected = if means == Means::Keys { Protection::ReadWrite } else { Protection::None };
        assert_eq!((inherited, after), (expected, Protection::None), "{means:?}");
    }
}

#[test]
fn a_skipped_guard_is_made_up_for_by_closing_all() {
    let _turn = turn();
    for means in all_means() {
        let (memory, outer) = (Memory::new(1), Memory::new(1));
        let (domain, entered) = (Domain::new(means).unwrap(), Domain::new(means).unwrap());
        let (_range, _outer) = (memory.add(&domain), outer.add(&entered));
        skip(domain.open(Protection::ReadWrite).unwrap());
        skip(entered.open(Protection::Read).unwrap());
        assert_eq!((memory.access(), outer.access()), (Protection::ReadWrite, Protection::Read), "{means:?}");
        close_all().unwrap();
        assert_eq!((memory.access(), outer.access()), (Protection::None, Protection::None), "{means:?}");
    }
}

#[test]
fn the_keys_of_the_program_are_left_alone() {
    let _turn = turn();
    if !all_means().contains(&Means::Keys) {
        return;
    }
    let (memory, key) = (Memory::new(1), pkey::allocate().unwrap());
    let domain = Domain::new(Means::Keys).unwrap();
    // SAFETY: this test's memory and key; no references.
    unsafe {
        pkey::protect(memory.addr, memory.len, Protection::ReadWrite, Some(key)).unwrap();
        pkey::write(rights::with(pkey::read(), key.index(), Protection::Read));
    }
    // SAFETY: as above.
    unsafe { pkey::write(rights::with(pkey::read(), key.index(), Protection::ReadWrite)) };
    drop(domain.open(Protection::ReadWrite).unwrap());
    close_all().unwrap();
    assert_eq!(memory.access(), Protection::ReadWrite);
    drop(memory);
    // SAFETY: its pages are gone.
    unsafe { pkey::free(key) };
}

#[test]
fn memory_mapped_anew_is_closed_again_by_reapplying() {
    let _turn = turn();
    for means in all_means() {
        let (memory, domain) = (Memory::new(4), Domain::new(means).unwrap());
        // SAFETY: mapped until the end of this test; no references.
        let mut range = unsafe { domain.add(memory.addr, 2 * PAGE, Protection::ReadWrite) }.unwrap();
        memory.map(0, Place::Over);
        assert_eq!(memory.access(), Protection::ReadWrite, "{means:?}: a new mapping knows nothing");
        // SAFETY: as above.
        unsafe { range.reapply(memory.len) }.unwrap();
        for page in 0..4 {
            assert_eq!(access(memory.addr + page * PAGE), Protection::None, "{means:?}, page {page}");
        }
        let open = domain.open(Protection::Read).unwrap();
        memory.map(1, Place::Over);
        // SAFETY: as above.
        unsafe { range.reapply(memory.len) }.unwrap();
        assert_eq!(access(memory.addr + PAGE), Protection::Read, "{means:?}");
        drop(open);
        assert_eq!(access(memory.addr + PAGE), Protection::None, "{means:?}");
    }
}

#[test]
fn the_sixteenth_domain_is_an_error() {
    let _turn = turn();
    for means in all_means() {
        let mut domains = Vec::new();
        let error = loop {
            match Domain::new(means) {
                Ok(domain) => domains.push(domain),
                Err(error) => break error,
            }
            assert!(domains.len() <= MOST, "{means:?}");
        };
        let ours = domains.len() as u32;
        assert!(
            matches!(error, ProtectionError::NoKeys { ours: said } if said == ours),
            "{means:?}: {error}"
        );
        assert!(error.to_string().contains(&format!("this library has {ours} of them")), "{error}");
        assert!(means == Means::Keys || domains.len() == MOST);
        drop(domains.pop());
        Domain::new(means).unwrap();
    }
}

#[test]
fn keys_without_a_processor_are_an_error() {
    let _turn = turn();
    if let Some(lack) = pkey::lack() {
        let error = Domain::new(Means::Keys).unwrap_err();
        assert!(matches!(error, ProtectionError::Lacking(why) if why == lack), "{error}");
        assert_eq!(means(), Means::Mprotect);
    } else {
        assert_eq!(means() == Means::Keys, Domain::new(Means::Keys).is_ok());
    }
}

#[test]
fn a_key_that_pages_may_still_have_is_not_given_again() {
    let _turn = turn();
    if !all_means().contains(&Means::Keys) {
        return;
    }
    let memory = Memory::new(3);
    let domain = Domain::new(Means::Keys).unwrap();
    let range = memory.add(&domain);
    // SAFETY: the middle of our own memory. This breaks the rule that ranges are dropped before.
    unsafe { mmap::unmap(memory.addr + PAGE, PAGE) }.unwrap();
    drop((range, domain));
    let next = Domain::new(Means::Keys).unwrap();
    let _open = next.open(Protection::ReadWrite).unwrap();
    assert_eq!(access(memory.addr + 2 * PAGE), Protection::None);
}

#[test]
fn a_slot_that_a_thread_has_open_is_not_given_again() {
    let _turn = turn();
    let (memory, domain) = (Memory::new(1), Domain::new(Means::Mprotect).unwrap());
    skip(domain.open(Protection::ReadWrite).unwrap());
    drop(domain);
    let next = Domain::new(Means::Mprotect).unwrap();
    let _range = memory.add(&next);
    assert_eq!(memory.access(), Protection::None);
    close_all().unwrap();
}

#[test]
fn pages_that_cannot_be_opened_are_an_error_and_stay_closed() {
    let _turn = turn();
    let (memory, domain) = (Memory::new(4), Domain::new(Means::Mprotect).unwrap());
    let (first, second) = (memory.addr, memory.addr + 2 * PAGE);
    // SAFETY: mapped until the end of this test; no references.
    let ranges = unsafe {
        [
            domain.add(first, 2 * PAGE, Protection::ReadWrite).unwrap(),
            domain.add(second, 2 * PAGE, Protection::ReadWrite).unwrap(),
        ]
    };
    // SAFETY: our own memory; it breaks the rule, so that the kernel refuses.
    unsafe { mmap::unmap(second + PAGE, PAGE) }.unwrap();
    let error = domain.open(Protection::ReadWrite).unwrap_err();
    assert!(matches!(error, ProtectionError::Open(_)), "{error}");
    assert_eq!(access(first), Protection::None);
    drop(ranges);
}

static PROBED: AtomicUsize = AtomicUsize::new(0);
static DOMAIN: AtomicPtr<Domain> = AtomicPtr::new(std::ptr::null_mut());
static FOUND: [AtomicUsize; 3] = [const { AtomicUsize::new(9) }; 3];

extern "C" fn opens_for_itself(_: libc::c_int) {
    let addr = PROBED.load(Ordering::Relaxed);
    // SAFETY: the test keeps the domain while its handler can run.
    let domain = unsafe { ManuallyDrop::new(Arc::from_raw(DOMAIN.load(Ordering::Relaxed))) };
    FOUND[0].store(access(addr) as usize, Ordering::Relaxed);
    let open = domain.open(Protection::ReadWrite).unwrap();
    FOUND[1].store(access(addr) as usize, Ordering::Relaxed);
    drop(open);
    FOUND[2].store(access(addr) as usize, Ordering::Relaxed);
}

#[test]
fn a_handler_begins_closed_and_opens_what_it_needs() {
    let _turn = turn();
    for means in all_means() {
        let (memory, domain) = (Memory::new(1), Domain::new(means).unwrap());
        let _range = memory.add(&domain);
        PROBED.store(memory.addr, Ordering::Relaxed);
        DOMAIN.store(Arc::as_ptr(&domain).cast_mut(), Ordering::Relaxed);
        let found = || FOUND.each_ref().map(|found| found.load(Ordering::Relaxed));
        // SAFETY: a handler of this test's alone, for this thread's signal.
        unsafe { libc::signal(libc::SIGUSR2, opens_for_itself as *const () as usize) };
        let none = Protection::None as usize;
        for outside in [Protection::None, Protection::Read, Protection::ReadWrite] {
            let open = (outside > Protection::None).then(|| domain.open(outside).unwrap());
            // SAFETY: handled on this thread before the call returns.
            unsafe { libc::raise(libc::SIGUSR2) };
            // Without keys the pages are as open as the process has them.
            let inside = if means == Means::Keys { none } else { outside as usize };
            assert_eq!(found(), [inside, Protection::ReadWrite as usize, inside], "{means:?}, {outside:?}");
            assert_eq!(memory.access(), outside, "{means:?}: as before the signal");
            drop(open);
        }
        // SAFETY: as above.
        unsafe { libc::signal(libc::SIGUSR2, libc::SIG_DFL) };
    }
}

#[test]
fn a_handler_may_come_at_any_time() {
    extern "C" fn opens(_: libc::c_int) {
        // SAFETY: the test keeps the domain while its handler can run.
        let domain = unsafe { ManuallyDrop::new(Arc::from_raw(DOMAIN.load(Ordering::Relaxed))) };
        drop(domain.open(Protection::ReadWrite).unwrap());
    }
    let _turn = turn();
    let status = alone("a_handler_may_come_at_any_time", Means::Mprotect, |means| {
        // SAFETY: ends this process if it waits for ever.
        unsafe { libc::alarm(60) };
        let (memory, domain) = (Memory::new(1), Domain::new(means).unwrap());
        let _range = memory.add(&domain);
        DOMAIN.store(Arc::as_ptr(&domain).cast_mut(), Ordering::Relaxed);
        // SAFETY: a handler of this process's own.
        unsafe { libc::signal(libc::SIGUSR2, opens as *const () as usize) };
        let (thread, done) = (AtomicU32::new(0), AtomicBool::new(false));
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let own = rustix::thread::gettid().as_raw_nonzero().get().unsigned_abs();
                thread.store(own, Ordering::Release);
                for _ in 0..50_000 {
                    drop(domain.open(Protection::Read).unwrap());
                }
                done.store(true, Ordering::Release);
            });
            while !done.load(Ordering::Acquire) {
                let thread = thread.load(Ordering::Acquire);
                if thread != 0 {
                    // SAFETY: a signal for a thread of this process, which may have ended.
                    unsafe { libc::syscall(libc::SYS_tgkill, std::process::id(), thread, libc::SIGUSR2) };
                }
            }
        });
        assert_eq!(memory.access(), Protection::None);
    });
    assert!(status.success(), "{status:?}");
}

#[test]
fn a_fork_has_no_domain() {
    let _turn = turn();
    for means in all_means() {
        let (memory, domain) = (Memory::new(1), Domain::new(means).unwrap());
        let range = memory.add(&domain);
        let open = domain.open(Protection::ReadWrite).unwrap();
        // SAFETY: the child calls functions that are async-signal-safe, and ends.
        let child = unsafe { libc::fork() };
        if child == 0 {
            let forked = matches!(domain.open(Protection::Read), Err(ProtectionError::Forked));
            drop(open);
            let unchanged = memory.access() == Protection::ReadWrite;
            // SAFETY: ends the child.
            unsafe { libc::_exit(i32::from(!(forked && unchanged))) };
        }
        let mut status = 0;
        // SAFETY: waits for the child made above.
        assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
        assert_eq!(status, 0, "{means:?}");
        drop((open, range));
    }
}

#[test]
fn system_calls_into_closed_pages_fail_with_efault() {
    let _turn = turn();
    for means in all_means() {
        let (memory, domain) = (Memory::new(1), Domain::new(means).unwrap());
        let _range = memory.add(&domain);
        let zero = std::fs::File::open("/dev/zero").unwrap();
        let read = || {
            let at = std::ptr::with_exposed_provenance_mut::<libc::c_void>(memory.addr);
            // SAFETY: the kernel stores to this test's memory, or refuses.
            match unsafe { libc::read(zero.as_raw_fd(), at, 8) } {
                8 => None,
                _ => std::io::Error::last_os_error().raw_os_error(),
            }
        };
        assert_eq!(read(), Some(libc::EFAULT), "{means:?}");
        let open = domain.open(Protection::ReadWrite).unwrap();
        assert_eq!(read(), None, "{means:?}");
        drop(open);
        assert_eq!(read(), Some(libc::EFAULT), "{means:?}");
    }
}
