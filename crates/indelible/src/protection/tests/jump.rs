use super::*;
use std::ffi::c_void;

#[repr(C, align(16))]
struct Buffer([u64; 32]);

// In assembly: Rust has no functions that return twice. Returns 1 after a jump to the buffer.
std::arch::global_asm!(
    ".globl indelible_test_call",
    "indelible_test_call:",
    "push r12",
    "push r13",
    "sub rsp, 8",
    "mov r12, rsi",
    "mov r13, rdx",
    "call {setjmp}",
    "test eax, eax",
    "jnz 2f",
    "mov rdi, r13",
    "call r12",
    "xor eax, eax",
    "2:",
    "add rsp, 8",
    "pop r13",
    "pop r12",
    "ret",
    setjmp = sym _setjmp,
);

unsafe extern "C" {
    fn _setjmp(buffer: *mut Buffer) -> libc::c_int;
    fn longjmp(buffer: *mut Buffer, value: libc::c_int) -> !;
    fn indelible_test_call(
        buffer: *mut Buffer,
        body: extern "C" fn(*mut c_void),
        argument: *mut c_void,
    ) -> libc::c_int;
}

static BUFFER: AtomicPtr<Buffer> = AtomicPtr::new(std::ptr::null_mut());

fn jump() -> ! {
    // SAFETY: `is_left` is under way further up this stack, and no frame in between has anything to
    // drop.
    unsafe { longjmp(BUFFER.load(Ordering::Relaxed), 1) }
}

fn is_left(body: extern "C" fn(*mut c_void), domain: &Arc<Domain>) -> bool {
    let mut buffer = Buffer([0; 32]);
    BUFFER.store(&raw mut buffer, Ordering::Relaxed);
    // SAFETY: the buffer outlives the call; the body only reads the domain.
    unsafe { indelible_test_call(&raw mut buffer, body, std::ptr::from_ref(domain).cast_mut().cast()) == 1 }
}

fn open(domain: *mut c_void) {
    // SAFETY: `is_left` has given a reference.
    let domain = unsafe { &*domain.cast::<Arc<Domain>>() };
    skip(domain.open(Protection::ReadWrite).unwrap());
}

extern "C" fn opens_and_jumps(domain: *mut c_void) {
    open(domain);
    jump();
}

extern "C" fn opens_and_is_interrupted(domain: *mut c_void) {
    open(domain);
    // SAFETY: the test handles the signal, on this thread.
    unsafe { libc::raise(libc::SIGUSR2) };
}

extern "C" fn opens_and_returns(domain: *mut c_void) {
    open(domain);
}

extern "C" fn jumps_out_of_a_handler(_: libc::c_int) {
    jump();
}

#[test]
fn a_jump_is_made_up_for_by_closing_all() {
    let _turn = turn();
    for means in all_means() {
        let (memory, outer) = (Memory::new(1), Memory::new(1));
        let (domain, entered) = (Domain::new(means).unwrap(), Domain::new(means).unwrap());
        let (_range, _outer) = (memory.add(&domain), outer.add(&entered));
        // SAFETY: a handler of this test's alone, for this thread's signal.
        unsafe { libc::signal(libc::SIGUSR2, jumps_out_of_a_handler as *const () as usize) };
        // A jump out of a handler keeps its closed domains.
        let (closed, opened) = (Protection::None, Protection::ReadWrite);
        let interrupted = if means == Means::Keys { (closed, closed) } else { (opened, Protection::Read) };
        for (body, left, found) in [
            (opens_and_returns as extern "C" fn(*mut c_void), false, (opened, Protection::Read)),
            (opens_and_jumps, true, (opened, Protection::Read)),
            (opens_and_is_interrupted, true, interrupted),
            (opens_and_jumps, true, (opened, Protection::Read)),
        ] {
            let _open = entered.open(Protection::Read).unwrap();
            assert_eq!(is_left(body, &domain), left, "{means:?}");
            assert_eq!((memory.access(), outer.access()), found, "{means:?}");
            close_all().unwrap();
            assert_eq!((memory.access(), outer.access()), (closed, closed), "{means:?}");
            unblock(libc::SIGUSR2);
        }
        // SAFETY: as above.
        unsafe { libc::signal(libc::SIGUSR2, libc::SIG_DFL) };
        drop(domain.open(Protection::ReadWrite).unwrap());
        assert_eq!(memory.access(), Protection::None, "{means:?}");
    }
}

fn unblock(signal: libc::c_int) {
    // SAFETY: changes this thread's mask only.
    unsafe {
        let mut set = std::mem::zeroed();
        libc::sigemptyset(&raw mut set);
        libc::sigaddset(&raw mut set, signal);
        assert_eq!(libc::pthread_sigmask(libc::SIG_UNBLOCK, &raw const set, std::ptr::null_mut()), 0);
    }
}
