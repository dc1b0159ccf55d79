//! Tests that end or change a process run this program again for one test.

#![allow(unsafe_code)]

use std::collections::BTreeSet;
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, ExitStatus};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};

use super::tests::{Rig, window};
use super::*;
use crate::sys::signal;

const CHILD: &str = "INDELIBLE_TEST_CHILD";

fn alone(test: &str, body: impl FnOnce()) -> ExitStatus {
    if std::env::var_os(CHILD).is_some() {
        body();
        // SAFETY: ends the process; nothing is left to be done.
        unsafe { libc::_exit(0) };
    }
    let own = std::env::current_exe().unwrap();
    let name = format!("dirty::handler_tests::{test}");
    let mut command = Command::new(own);
    command.args(["--exact", &name, "--test-threads=1", "--nocapture"]).env(CHILD, "1");
    command.output().unwrap().status
}

#[test]
fn lawful_stores_after_racing_ones_are_found() {
    for rung in [Rung::WpAsync, Rung::Mprotect] {
        if !rung.available() {
            indelible_testing::not_tested(format_args!("rung {rung}"));
            continue;
        }
        let pages = 2048;
        let mut rig = Rig::new(window(21), pages, rung);
        let base = rig.at(0).expose_provenance();
        let all: BTreeSet<usize> = (0..pages).collect();
        for round in 0..100_u64 {
            let (stop, started) = (AtomicBool::new(false), AtomicBool::new(false));
            std::thread::scope(|scope| {
                scope.spawn(|| {
                    let mut page = 0;
                    while !stop.load(Ordering::Relaxed) {
                        page = (page + 29) % pages;
                        let at = std::ptr::with_exposed_provenance_mut::<u64>(base + page * PAGE);
                        // SAFETY: a page of the mapping, which outlives this scope; volatile.
                        unsafe { at.write_volatile(round) };
                        started.store(true, Ordering::Relaxed);
                    }
                });
                while !started.load(Ordering::Relaxed) {
                    std::hint::spin_loop();
                }
                for _ in 0..4 {
                    let dirty = rig.collect();
                    rig.settle(&dirty, &BTreeSet::new());
                }
                stop.store(true, Ordering::Relaxed);
            });
            all.iter().for_each(|page| rig.store(*page, round));
            let dirty = rig.collect();
            assert_eq!(dirty, all, "{rung}, round {round}");
            rig.settle(&dirty, &all);
        }
    }
}

#[test]
fn another_handler_may_store_while_ours_runs() {
    static TARGET: AtomicUsize = AtomicUsize::new(0);
    extern "C" fn other(_: libc::c_int) {
        let at = std::ptr::with_exposed_provenance_mut::<u64>(TARGET.load(Ordering::Relaxed));
        // SAFETY: a page of the mapping, which outlives the thread that is interrupted.
        unsafe { at.write_volatile(2) };
    }
    let status = alone("another_handler_may_store_while_ours_runs", || {
        let mut rig = Rig::new(window(22), 4, Rung::Mprotect);
        TARGET.store(rig.at(2).expose_provenance(), Ordering::Relaxed);
        // SAFETY: a handler of this process's own, that stores to memory alone.
        unsafe { libc::signal(libc::SIGUSR1, other as *const () as usize) };
        rig.tracker.hold(false, Cut::Closed).unwrap();
        let (at, thread) = (rig.at(1).expose_provenance(), AtomicU32::new(0));
        std::thread::scope(|scope| {
            scope.spawn(|| {
                thread
                    .store(rustix::thread::gettid().as_raw_nonzero().get().unsigned_abs(), Ordering::Relaxed);
                // SAFETY: a page of the mapping; volatile.
                unsafe { std::ptr::with_exposed_provenance_mut::<u64>(at).write_volatile(1) };
            });
            let tid = loop {
                match thread.load(Ordering::Relaxed) {
                    0 => std::thread::yield_now(),
                    tid => break tid,
                }
            };
            // If the thread sleeps at all, it sleeps in the handler.
            let sleeps = || {
                let stat = std::fs::read_to_string(format!("/proc/self/task/{tid}/stat")).unwrap();
                stat.rsplit_once(") ").is_some_and(|(_, rest)| rest.starts_with('S'))
            };
            while !sleeps() {
                std::thread::yield_now();
            }
            // SAFETY: sends a signal to a thread of this process.
            unsafe { libc::syscall(libc::SYS_tgkill, libc::getpid(), tid, libc::SIGUSR1) };
            rig.tracker.release().unwrap();
        });
        assert_eq!((rig.load(1), rig.load(2)), (1, 2));
        assert_eq!(rig.collect(), BTreeSet::from([1, 2]));
    });
    assert!(status.success(), "{status}");
}

#[test]
fn a_jump_into_an_object_dies_as_without_us() {
    let status = alone("a_jump_into_an_object_dies_as_without_us", || {
        let rig = Rig::new(window(23), 4, Rung::Mprotect);
        rig.store(0, 1);
        // SAFETY: ends the process if it should hang.
        unsafe { libc::alarm(60) };
        // SAFETY: deliberately none.
        let jump: extern "C" fn() = unsafe { std::mem::transmute(rig.at(1)) };
        jump();
    });
    assert_eq!(status.signal(), Some(libc::SIGSEGV), "{status}");
}

#[test]
fn an_earlier_handler_gets_the_mask_it_asked_for() {
    extern "C" fn earlier(_: libc::c_int, _: *mut libc::siginfo_t, _: *mut libc::c_void) {
        let mut mask = std::mem::MaybeUninit::zeroed();
        // SAFETY: reads this thread's mask, and ends the process at once.
        unsafe {
            libc::pthread_sigmask(libc::SIG_BLOCK, std::ptr::null(), mask.as_mut_ptr());
            let blocked = |signal| libc::sigismember(mask.as_ptr(), signal) == 1;
            let right = blocked(libc::SIGSEGV) && blocked(libc::SIGUSR2) && !blocked(libc::SIGUSR1);
            libc::_exit(if right { 42 } else { 1 });
        }
    }
    let status = alone("an_earlier_handler_gets_the_mask_it_asked_for", || {
        // SAFETY: installs a handler in this process, and a fault on purpose.
        unsafe {
            let mut action: libc::sigaction = std::mem::zeroed();
            action.sa_sigaction = earlier as *const () as usize;
            action.sa_flags = libc::SA_SIGINFO;
            libc::sigaddset(&raw mut action.sa_mask, libc::SIGUSR2);
            libc::sigaction(libc::SIGSEGV, &raw const action, std::ptr::null_mut());
            signal::reinstall_for_tests();
            std::ptr::without_provenance_mut::<u8>(16).write_volatile(1);
        }
    });
    assert_eq!(status.code(), Some(42), "{status}");
}

#[test]
fn the_mapping_is_not_renewed_once_stores_to_pinned_pages_were_marked() {
    if !Rung::WpAsync.available() {
        return indelible_testing::not_tested(format_args!("rung {}", Rung::WpAsync));
    }
    let mut rig = Rig::new(window(24), 4096, Rung::WpAsync);
    rig.tracker.marks().mark_pinned(0..1);
    for round in 0..2_000 {
        rig.store(round * 7 % 4096, 1);
        let dirty = rig.collect();
        rig.settle(&dirty, &dirty.clone());
        assert!(!rig.tracker.renewal_due().unwrap());
    }
}
