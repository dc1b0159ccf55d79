use crate::support::{Ground, World};
use crate::{hold, with_view, writing};
use indelible::{AttachedView, ErrorKind, Rights, SecurityContext, SwitchedView, Tracking};
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, Output};

fn alone(test: &str) -> Output {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", &format!("faulting::{test}"), "--nocapture", "--ignored"])
        .output()
        .unwrap()
}

fn say(what: &str) {
    use std::io::Write;
    let mut out = std::io::stdout();
    out.write_all(format!("SAID {what}\n").as_bytes()).unwrap();
    out.flush().unwrap();
}

fn dies(test: &str, said: &str) {
    let output = alone(test);
    let out = String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.signal(), Some(libc::SIGSEGV), "{test}: {output:?}");
    assert!(out.contains(&format!("SAID {said}")), "{test}: {out}");
}

fn view_of(rights: Rights) -> (World, AttachedView, *mut u64) {
    let world = World::new(Ground::Memory, Tracking::Auto, false);
    let pool = with_view(&world, 2, rights);
    let view = AttachedView::attach(&pool, "v").unwrap();
    let address = view.slots()[0].address;
    (world, view, std::ptr::with_exposed_provenance_mut(address))
}

#[test]
fn s2_08_a_store_that_a_slot_does_not_ask_for_is_a_fault() {
    dies("stores_for_reading", "loaded 100");
}

#[test]
#[ignore = "run by another test as a process of its own"]
fn stores_for_reading() {
    let (_world, _view, at) = view_of(Rights::READ);
    // SAFETY: an object of the view; the store is the fault that the test is about.
    unsafe {
        say(&format!("loaded {}", at.read_volatile()));
        at.write_volatile(1);
    }
    say("stored");
}

#[test]
fn s2_08_a_store_is_a_fault_also_if_it_is_the_first_touch() {
    dies("stores_first", "attached");
}

#[test]
#[ignore = "run by another test as a process of its own"]
fn stores_first() {
    let (_world, _view, at) = view_of(Rights::READ);
    say("attached");
    // SAFETY: as above.
    unsafe { at.write_volatile(1) };
    say("stored");
}

fn limited() -> (World, AttachedView, [*mut u64; 2]) {
    let world = World::new(Ground::Memory, Tracking::Auto, false);
    let pool = with_view(&world, 2, writing());
    let mut context = SecurityContext::create(&pool, "c", 3).unwrap();
    context.allow("o0", Rights::READ).unwrap();
    context.psync().unwrap();
    let view = AttachedView::attach_in(&pool, "v", &["c"]).unwrap();
    let slots = view.slots();
    let addresses = [slots[0].address, slots[1].address].map(std::ptr::with_exposed_provenance_mut);
    (world, view, addresses)
}

#[test]
fn s2_15_a_store_that_no_context_allows_is_a_fault() {
    dies("stores_beyond_the_context", "loaded 100");
}

#[test]
#[ignore = "run by another test as a process of its own"]
fn stores_beyond_the_context() {
    let (_world, _view, at) = limited();
    // SAFETY: an object of the view; the store is the fault that the test is about.
    unsafe {
        say(&format!("loaded {}", at[0].read_volatile()));
        at[0].write_volatile(1);
    }
    say("stored");
}

#[test]
fn s2_15_a_load_that_no_context_allows_is_a_fault() {
    dies("loads_beyond_the_context", "attached");
}

#[test]
#[ignore = "run by another test as a process of its own"]
fn loads_beyond_the_context() {
    let (_world, _view, at) = limited();
    say("attached");
    // SAFETY: as above.
    let _ = unsafe { at[1].read_volatile() };
    say("loaded");
}

fn switched() -> (World, SwitchedView, *mut u64) {
    let world = World::new(Ground::Memory, Tracking::Explicit, false);
    let pool = with_view(&world, 1, writing());
    for (name, rights) in [("reader", Rights::READ), ("writer", writing())] {
        let mut context = SecurityContext::create(&pool, name, 3).unwrap();
        context.allow("o0", rights).unwrap();
        context.psync().unwrap();
    }
    let view = SwitchedView::attach(&pool, "v", &["reader", "writer"]).unwrap();
    let at = view.slots()[0].address;
    (world, view, std::ptr::with_exposed_provenance_mut(at))
}

#[test]
fn s2_16_an_access_outside_of_all_contexts_is_a_fault() {
    dies("loads_outside_of_contexts", "within 100");
}

#[test]
#[ignore = "run by another test as a process of its own"]
fn loads_outside_of_contexts() {
    let (_world, view, at) = switched();
    // SAFETY: an object of the view; the load outside is the fault that the test is about.
    unsafe {
        let inside = view.enter(&["writer"]).unwrap();
        at.write_volatile(at.read_volatile());
        say(&format!("within {}", at.read_volatile()));
        drop(inside);
        let _ = at.read_volatile();
    }
    say("loaded");
}

#[test]
fn s2_16_a_store_that_the_threads_contexts_do_not_allow_is_a_fault() {
    dies("stores_beyond_the_threads_context", "loaded 100");
}

#[test]
#[ignore = "run by another test as a process of its own"]
fn stores_beyond_the_threads_context() {
    let (_world, view, at) = switched();
    // SAFETY: as above.
    unsafe {
        let _inside = view.enter(&["reader"]).unwrap();
        say(&format!("loaded {}", at.read_volatile()));
        at.write_volatile(1);
    }
    say("stored");
}

#[test]
fn s2_16_a_fork_is_within_no_contexts() {
    dies("enters_in_a_fork", "the fork is refused");
}

#[test]
#[ignore = "run by another test as a process of its own"]
fn enters_in_a_fork() {
    let (_world, view, at) = switched();
    let inside = view.enter(&["writer"]).unwrap();
    // SAFETY: the child makes one call and an access; the parent waits for it.
    unsafe {
        at.write_volatile(1);
        let child = libc::fork();
        if child == 0 {
            let refused = view.enter(&["reader"]).is_err_and(|error| error.kind() == ErrorKind::Forked);
            drop(inside);
            let _ = refused && at.read_volatile() == 0;
            libc::_exit(1);
        }
        let mut status = 0;
        assert_eq!(libc::waitpid(child, &raw mut status, 0), child);
        assert!(libc::WIFSIGNALED(status) && libc::WTERMSIG(status) == libc::SIGSEGV, "{status:#x}");
        say("the fork is refused");
        assert_eq!(at.read_volatile(), 1);
        drop(inside);
        let _ = at.read_volatile();
    }
    say("loaded");
}

#[test]
fn s2_08_an_object_that_cannot_be_had_is_a_fault() {
    dies("touches_what_is_held", "held");
}

#[test]
#[ignore = "run by another test as a process of its own"]
fn touches_what_is_held() {
    let world = World::new(Ground::Simulated, Tracking::Auto, false);
    let pool = with_view(&world, 1, writing());
    let view = AttachedView::attach(&pool, "v").unwrap();
    let address = view.slots()[0].address;
    let _held = hold(&world, "o0");
    say("held");
    // SAFETY: as above.
    let _ = unsafe { std::ptr::with_exposed_provenance::<u64>(address).read_volatile() };
    say("loaded");
}

#[test]
fn s2_08_a_fork_has_no_object_of_the_view() {
    dies("touches_in_a_fork", "parent 100");
}

#[test]
#[ignore = "run by another test as a process of its own"]
fn touches_in_a_fork() {
    let (_world, view, at) = view_of(writing());
    // SAFETY: the child makes one access and system calls; the parent waits for it.
    unsafe {
        let child = libc::fork();
        if child == 0 {
            let _ = at.read_volatile();
            libc::_exit(1);
        }
        let mut status = 0;
        assert_eq!(libc::waitpid(child, &raw mut status, 0), child);
        assert!(libc::WIFSIGNALED(status) && libc::WTERMSIG(status) == libc::SIGSEGV, "{status:#x}");
        say(&format!("parent {}", at.read_volatile()));
    }
    drop(view);
    // A detached object is a fault again.
    // SAFETY: the fault that the test is about.
    let _ = unsafe { at.read_volatile() };
    say("loaded");
}

/// The program's earlier handler gets faults that the view does not answer, and may go on (S2.8:
/// fail or map on demand).
#[test]
fn s2_08_other_faults_go_to_the_programs_handler() {
    let output = alone("handles_its_own");
    let out = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{output:?}");
    assert!(out.contains("SAID 100 and 7"), "{out}");
}

#[test]
#[ignore = "run by another test as a process of its own"]
fn handles_its_own() {
    use std::sync::atomic::{AtomicUsize, Ordering};
    static AT: AtomicUsize = AtomicUsize::new(0);
    static CALLS: AtomicUsize = AtomicUsize::new(0);

    extern "C" fn maps(_: libc::c_int, info: *mut libc::siginfo_t, _: *mut libc::c_void) {
        let at = AT.load(Ordering::SeqCst);
        CALLS.fetch_add(1, Ordering::SeqCst);
        // SAFETY: the kernel's siginfo; a page of this test's own.
        unsafe {
            if (*info).si_addr() as usize == at {
                let page = std::ptr::with_exposed_provenance_mut::<libc::c_void>(at);
                libc::mprotect(page, 4096, libc::PROT_READ | libc::PROT_WRITE);
                *page.cast::<u64>() = 7;
            }
        }
    }

    // SAFETY: a handler of this process's, which is installed before any of the library's; a page
    // of its own.
    let page = unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = maps as *const () as usize;
        action.sa_flags = libc::SA_SIGINFO;
        assert_eq!(libc::sigaction(libc::SIGSEGV, &raw const action, std::ptr::null_mut()), 0);
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        libc::mmap(std::ptr::null_mut(), 4096, libc::PROT_NONE, flags, -1, 0)
    };
    AT.store(page as usize, Ordering::SeqCst);
    let (_world, _view, at) = view_of(writing());
    // SAFETY: an object of the view, and a page that the handler opens.
    let (object, own) = unsafe { (at.read_volatile(), page.cast::<u64>().read_volatile()) };
    assert_eq!(CALLS.load(Ordering::SeqCst), 1, "the view's fault is not the program's");
    say(&format!("{object} and {own}"));
}
