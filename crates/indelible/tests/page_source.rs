use super::support::{Ground, World, everywhere, faults_in};
use indelible::{ErrorKind, MediumModel, Object, Pool, PoolOptions, Tracking};
use std::os::unix::fs::FileExt;
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, ExitStatus};
use std::time::{Duration, Instant};

const PAGE: usize = 4096;
const LEN: usize = 2 << 20;

fn byte(at: usize) -> u8 {
    (at / PAGE % 251) as u8 + 1
}

fn filled(world: &World) -> Pool {
    let pool = world.format();
    pool.create("a", LEN as u64).unwrap();
    let mut a = pool.attach("a").unwrap();
    a.as_mut_slice().chunks_mut(PAGE).enumerate().for_each(|(page, bytes)| bytes.fill(byte(page * PAGE)));
    a.psync().unwrap();
    a.detach().unwrap();
    pool
}

fn by_system_call(bytes: &[u8], page: usize) -> std::io::Result<()> {
    let file = tempfile::tempfile()?;
    file.write_all_at(&bytes[page * PAGE..][..PAGE], 0)?;
    let mut back = [0; PAGE];
    file.read_exact_at(&mut back, 0)?;
    assert!(back.iter().all(|found| *found == byte(page * PAGE)), "page {page}");
    Ok(())
}

fn spoil(world: &World, pool: &Pool, pages: std::ops::Range<usize>) {
    let (object, _) = pool.store().stat("a").unwrap();
    let at = |page: usize| object.entry.primary_offset() + (page * PAGE) as u64;
    world.sim().unwrap().spoil(at(pages.start)..at(pages.end));
}

fn way_pages_are_filled() -> String {
    let found = indelible::doctor(None);
    found.facilities.into_iter().find(|facility| facility.name == "fault-in").unwrap().found
}

#[test]
fn prefaulted_pages_are_as_psynced_and_clean() {
    everywhere(|world| {
        let pool = filled(world);
        let mut a = pool.attach("a").unwrap();
        assert_eq!(a.prefault(PAGE + 5..5 * PAGE + 6).unwrap(), 4 * PAGE + 1);
        assert_eq!(a.prefault(0..usize::MAX).unwrap(), LEN);
        assert_eq!((a.prefault(LEN..2 * LEN).unwrap(), a.prefault(9..9).unwrap()), (0, 0));
        (0..LEN).step_by(PAGE - 1).for_each(|at| assert_eq!(a.as_slice()[at], byte(at)));
        assert!(!a.is_unsynced().unwrap());
        a.range_mut(7 * PAGE..7 * PAGE + 8).fill(9);
        let before = a.stats().pages_changed;
        a.psync().unwrap();
        assert_eq!(a.stats().pages_changed - before, 1);
        a.grow(2 * LEN as u64).unwrap();
        assert_eq!(a.prefault(LEN..2 * LEN).unwrap(), LEN, "what it grew by");
        drop(a);
        let a = pool.attach_read("a").unwrap();
        assert_eq!(a.prefault(0..usize::MAX).unwrap(), 2 * LEN);
        assert_eq!((a.as_slice()[7 * PAGE], a.as_slice()[8 * PAGE]), (9, byte(8 * PAGE)));
        drop(a);
        let base = indelible::raw::attach(&pool, "a", indelible::raw::Permission::Read, b"").unwrap();
        // SAFETY: within the object.
        let last = unsafe { base.as_ptr().add(2 * LEN - 10) };
        assert_eq!(indelible::raw::prefault(last, usize::MAX).unwrap(), 10);
        indelible::raw::detach(base.as_ptr()).unwrap();
        assert_eq!(indelible::raw::prefault(last, 1).unwrap_err().kind(), ErrorKind::NotAttached);
    });
}

#[test]
fn a_page_that_cannot_be_read_is_named_with_its_object() {
    if !faults_in() {
        return indelible_testing::not_tested(format_args!("fault-in"));
    }
    let world = World::new(Ground::Simulated, Tracking::Auto, true);
    let pool = filled(&world);
    spoil(&world, &pool, 300..301);
    let mut a = pool.attach("a").unwrap();
    let error = a.prefault(290 * PAGE..LEN).unwrap_err();
    let named = |error: &indelible::Error, operation: &str| {
        let text = error.to_string();
        assert!(text.starts_with(&format!("cannot {operation} object \"a\"")), "{text}");
        assert!(text.contains("cannot read page 300 of the object"), "{text}");
        assert_eq!((error.kind(), error.object_name()), (ErrorKind::Io, Some("a")));
    };
    named(&error, "prefault");
    a.range_mut(299 * PAGE..300 * PAGE).fill(byte(299 * PAGE));
    a.range_mut(301 * PAGE..302 * PAGE).fill(8);
    a.psync().unwrap();
    by_system_call(a.as_slice(), 300).unwrap_err();
    named(&a.psync().unwrap_err(), "psync");
    named(&a.prefault(0..PAGE).unwrap_err(), "prefault");
    drop(a);
    let a = pool.attach_read("a").unwrap();
    named(&a.prefault(0..LEN).unwrap_err(), "prefault");
    assert_eq!(a.as_slice()[301 * PAGE], 8);
    drop(a);
    drop(pool);
    let world = World::new(Ground::Simulated, Tracking::Auto, false);
    let pool = world.format();
    pool.create("small", 4 * PAGE as u64).unwrap();
    let mut small = pool.attach("small").unwrap();
    small.as_mut_slice().fill(1);
    small.psync().unwrap();
    small.detach().unwrap();
    let (object, _) = pool.store().stat("small").unwrap();
    let at = object.entry.primary_offset() + 3 * PAGE as u64;
    world.sim().unwrap().spoil(at..at + PAGE as u64);
    let text = pool.attach("small").unwrap_err().to_string();
    assert!(text.starts_with("cannot attach object \"small\""), "{text}");
    assert!(text.contains("cannot read page 3 of the object"), "{text}");
}

#[test]
fn a_budget_bounds_what_is_filled_ahead() {
    if !faults_in() {
        return indelible_testing::not_tested(format_args!("fault-in"));
    }
    let world = World::new(Ground::Simulated, Tracking::Auto, true);
    drop(filled(&world));
    let device = std::sync::Arc::new(world.sim().unwrap().handle());
    let pool = world.options().ahead_limit(40 * PAGE as u64).on_device(device, false).unwrap();
    let a = pool.attach("a").unwrap();
    assert_eq!(a.prefault(10..LEN).unwrap(), 40 * PAGE - 10);
    assert_eq!(a.as_slice()[100 * PAGE], byte(100 * PAGE));
    assert_eq!(a.prefault(100 * PAGE..LEN).unwrap(), PAGE, "nothing was read ahead of the fault");
    assert!((0..LEN).step_by(PAGE).all(|at| a.as_slice()[at] == byte(at)));
}

fn slow() -> MediumModel {
    MediumModel {
        read: Duration::from_millis(1),
        read_rate: PAGE as u64 * 500,
        write: Duration::ZERO,
        write_rate: 1 << 40,
        buffer: 0,
        barrier: Duration::ZERO,
        durable: Duration::from_millis(10),
        unit: 64,
        cache: None,
    }
}

fn modelled(world: &World) -> Pool {
    let options = world.options().modelled(slow());
    let pool = match world.sim() {
        Some(sim) => options.on_device(std::sync::Arc::new(sim.handle()), false),
        None => options.open(world.path()),
    };
    pool.unwrap()
}

#[test]
fn a_modelled_medium_is_as_slow_as_it_says() {
    let (page, durable) = (Duration::from_millis(2), Duration::from_millis(10));
    for ground in [Ground::File, Ground::Memory, Ground::Simulated] {
        for tracking in [Tracking::WpAsync, Tracking::Mprotect].into_iter().filter(|how| how.is_available()) {
            let world = World::new(ground, tracking, false);
            drop(filled(&world));
            let pool = modelled(&world);
            let begin = Instant::now();
            let mut a = pool.attach("a").unwrap();
            assert_eq!(a.prefault(20 * PAGE..30 * PAGE).unwrap(), 10 * PAGE);
            assert!(begin.elapsed() >= 10 * page, "{ground:?}: {:?}", begin.elapsed());
            a.range_mut(25 * PAGE..26 * PAGE).fill(3);
            let begin = Instant::now();
            a.psync().unwrap();
            assert!(begin.elapsed() + page / 100 >= durable + page, "{ground:?}: {:?}", begin.elapsed());
            drop((a, pool));
            let a = world.open().attach("a").unwrap();
            assert_eq!(
                (a.as_slice()[25 * PAGE], a.as_slice()[24 * PAGE]),
                (3, byte(24 * PAGE)),
                "{ground:?}"
            );
        }
    }
}

#[test]
fn a_pool_that_is_open_is_not_taken_for_a_modelled_one() {
    let world = World::new(Ground::Memory, Tracking::Auto, false);
    drop(filled(&world));
    let (plain, slow) = (world.open(), modelled(&world));
    let seconds = |pool: &Pool| {
        let begin = Instant::now();
        assert_eq!(pool.attach_read("a").unwrap().prefault(0..20 * PAGE).unwrap(), 20 * PAGE);
        begin.elapsed()
    };
    let _ = seconds(&plain);
    assert!(seconds(&slow) >= Duration::from_millis(40));
}

fn read_in_a_fork(address: *const u8) -> ExitStatus {
    // SAFETY: the child loads, or dies of it, and ends.
    let pid = unsafe { libc::fork() };
    if pid == 0 {
        // SAFETY: as above.
        unsafe { libc::_exit(i32::from(address.read_volatile())) }
    }
    let mut status = 0;
    // SAFETY: a child of this process, and a place for its status.
    assert_eq!(unsafe { libc::waitpid(pid, &mut status, 0) }, pid);
    ExitStatus::from_raw(status)
}

#[test]
fn a_fork_reads_no_zeros_where_pages_are_missing() {
    if !faults_in() {
        return indelible_testing::not_tested(format_args!("fault-in"));
    }
    for ground in [Ground::File, Ground::Simulated] {
        let world = World::new(ground, Tracking::Auto, true);
        drop(filled(&world));
        let options = world.options().inherit_reads(true);
        let pool = match world.sim() {
            Some(sim) => options.on_device(std::sync::Arc::new(sim.handle()), false),
            None => options.open(world.path()),
        }
        .unwrap();
        let reader = pool.attach_read("a").unwrap();
        assert!(!reader.is_inherited());
        reader.prefault(0..PAGE).unwrap();
        // SAFETY: within the object.
        let missing = unsafe { reader.as_ptr().add(200 * PAGE) };
        for address in [reader.as_ptr(), missing] {
            assert_eq!(read_in_a_fork(address).signal(), Some(libc::SIGSEGV), "{ground:?}");
        }
        assert_eq!(reader.as_slice()[200 * PAGE], byte(200 * PAGE));
        drop(reader);
        let mut a = pool.attach("a").unwrap();
        a.prefault(0..PAGE).unwrap();
        a.grow(2 * LEN as u64).unwrap();
        for at in [0, 200 * PAGE, LEN + PAGE] {
            // SAFETY: within the object.
            let address = unsafe { a.as_ptr().add(at) };
            assert_eq!(read_in_a_fork(address).signal(), Some(libc::SIGSEGV), "{ground:?}");
        }
        assert_eq!(a.as_slice()[200 * PAGE], byte(200 * PAGE));
    }
}

fn alone(test: &str) {
    let status = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", &format!("page_source::{test}"), "--ignored", "--nocapture"])
        .status()
        .unwrap();
    assert!(status.success(), "{test}: {status}");
}

fn give_up_rights() {
    // SAFETY: numbers only; the process is this test's own.
    unsafe {
        if libc::getuid() == 0 {
            assert_eq!(libc::setresuid(65534, 65534, 65534), 0);
            // Else /proc/self is root's.
            assert_eq!(libc::prctl(libc::PR_SET_DUMPABLE, 1), 0);
        }
    }
}

fn forbid_userfaultfd() {
    let load = (libc::BPF_LD | libc::BPF_W | libc::BPF_ABS) as u16;
    let jump = (libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K) as u16;
    let back = (libc::BPF_RET | libc::BPF_K) as u16;
    let step = |code, jt, jf, k| libc::sock_filter { code, jt, jf, k };
    let mut steps = [
        step(load, 0, 0, 0),
        step(jump, 0, 1, libc::SYS_userfaultfd as u32),
        step(back, 0, 0, libc::SECCOMP_RET_ERRNO | libc::EPERM as u32),
        step(back, 0, 0, libc::SECCOMP_RET_ALLOW),
    ];
    let program = libc::sock_fprog { len: steps.len() as u16, filter: steps.as_mut_ptr() };
    // SAFETY: the kernel copies the filter, which looks at the number of the call alone.
    unsafe {
        assert_eq!(libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
        assert_eq!(libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &raw const program), 0);
    }
}

fn stores_and_keeps(pool: &Pool, mut a: Object) {
    a.range_mut(450 * PAGE..451 * PAGE).fill(77);
    a.psync().unwrap();
    a.detach().unwrap();
    assert_eq!(pool.attach("a").unwrap().as_slice()[450 * PAGE], 77);
}

#[test]
fn faults_of_user_code_alone_are_served_and_system_calls_need_prefault() {
    alone("with_faults_of_user_code_only");
}

#[test]
#[ignore = "run by faults_of_user_code_alone_are_served_and_system_calls_need_prefault"]
fn with_faults_of_user_code_only() {
    let with_rights = way_pages_are_filled();
    give_up_rights();
    let found = way_pages_are_filled();
    if found != "userfaultfd sees faults of user code only" {
        assert!(!found.contains("report") || found == with_rights, "{with_rights}, without rights: {found}");
        return indelible_testing::not_tested(format_args!("user faults only: {found}"));
    }
    for fault_in in [false, true] {
        let world = World::new(Ground::Simulated, Tracking::Auto, fault_in);
        let pool = filled(&world);
        let a = pool.attach("a").unwrap();
        let refused = by_system_call(a.as_slice(), 100).unwrap_err();
        assert_eq!(refused.raw_os_error(), Some(libc::EFAULT), "the page was there: attach filled it whole");
        assert_eq!(a.as_slice()[200 * PAGE], byte(200 * PAGE));
        by_system_call(a.as_slice(), 200).unwrap();
        assert_eq!(a.prefault(100 * PAGE..101 * PAGE).unwrap(), PAGE);
        by_system_call(a.as_slice(), 100).unwrap();
        stores_and_keeps(&pool, a);
        let reader = pool.attach_read("a").unwrap();
        reader.prefault(0..LEN).unwrap();
        by_system_call(reader.as_slice(), 300).unwrap();
    }
}

#[test]
fn without_userfaultfd_objects_are_filled_whole() {
    alone("without_userfaultfd");
}

#[test]
#[ignore = "run by without_userfaultfd_objects_are_filled_whole"]
fn without_userfaultfd() {
    give_up_rights();
    forbid_userfaultfd();
    assert_eq!(way_pages_are_filled(), "no userfaultfd");
    let world = World::new(Ground::Simulated, Tracking::Auto, false);
    let pool = filled(&world);
    let a = pool.attach("a").unwrap();
    (0..LEN / PAGE).for_each(|page| by_system_call(a.as_slice(), page).unwrap());
    assert_eq!(a.prefault(0..LEN).unwrap(), LEN);
    stores_and_keeps(&pool, a);
    spoil(&world, &pool, 400..401);
    let text = pool.attach("a").unwrap_err().to_string();
    assert!(text.starts_with("cannot attach object \"a\""), "{text}");
    assert!(text.contains("cannot read page 400 of the object"), "{text}");
    let key = indelible::SealKey::file(vec![7; 32]).unwrap();
    pool.create_with("sealed", &indelible::CreateOptions::new(LEN as u64).sealed(&key, "")).unwrap();
    let sealed = pool.attach_sealed("sealed", b"", &key).unwrap();
    assert_eq!(sealed.prediction(), None, "it is decrypted whole");
    assert!(sealed.as_slice().iter().all(|byte| *byte == 0));
    drop(sealed);
    let device = std::sync::Arc::new(world.sim().unwrap().handle());
    let asked = PoolOptions::new().fault_in(true).on_device(device, false);
    assert_eq!(asked.unwrap_err().kind(), ErrorKind::Unsupported);
}
