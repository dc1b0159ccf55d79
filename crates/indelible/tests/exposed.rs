//! Pages that a compiled block exposes, under failing system calls: uncommitted data stays
//! invisible.

use crate::support::{Ground, World};
use indelible::raw::{self, blocks};
use indelible::{Class, CreateOptions, Pool, Tracking};
use std::os::unix::process::ExitStatusExt;
use std::process::Command;

/// A system call that fails with `ENOMEM` where an argument has these bits.
struct Failing {
    call: libc::c_long,
    bits: (u32, libc::c_int, libc::c_int),
}

const CLOSING: Failing = Failing { call: libc::SYS_mprotect, bits: (2, !0, libc::PROT_NONE) };
const OPENING: Failing =
    Failing { call: libc::SYS_mprotect, bits: (2, !0, libc::PROT_READ | libc::PROT_WRITE) };
const MAPPING_OVER: Failing = Failing { call: libc::SYS_mmap, bits: (3, libc::MAP_FIXED, libc::MAP_FIXED) };

fn fail(calls: &[Failing]) -> bool {
    let step =
        |code: u32, yes: u8, no: u8, k: u32| libc::sock_filter { code: code as u16, jt: yes, jf: no, k };
    let load = |at: u32| step(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0, at);
    let mut steps = Vec::new();
    for Failing { call, bits: (nth, mask, value) } in calls {
        steps.push(load(0));
        steps.push(step(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, 0, 4, *call as u32));
        steps.push(load(16 + 8 * nth));
        steps.push(step(libc::BPF_ALU | libc::BPF_AND | libc::BPF_K, 0, 0, *mask as u32));
        steps.push(step(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, 0, 1, *value as u32));
        let error = libc::SECCOMP_RET_ERRNO | libc::ENOMEM as u32;
        steps.push(step(libc::BPF_RET | libc::BPF_K, 0, 0, error));
    }
    steps.push(step(libc::BPF_RET | libc::BPF_K, 0, 0, libc::SECCOMP_RET_ALLOW));
    let program = libc::sock_fprog { len: steps.len() as u16, filter: steps.as_mut_ptr() };
    // SAFETY: a program that outlives the call; it concerns this thread of a process that ends with
    // the test.
    unsafe {
        libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0
            && libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &raw const program) == 0
    }
}

const WENT_ON: i32 = 70;
const SAW: i32 = 71;
const FAULTED: i32 = 72;
const NO_FILTERS: i32 = 73;

extern "C" fn goes_on(_: libc::c_int) {
    // SAFETY: ends the process, where another program would jump out.
    unsafe { libc::_exit(WENT_ON) }
}

extern "C" fn faults(_: libc::c_int) {
    // SAFETY: ends the process.
    unsafe { libc::_exit(FAULTED) }
}

fn load(address: usize) -> u64 {
    // SAFETY: a word of the object, at its own address: one that the thread sees, or a signal.
    unsafe { std::ptr::with_exposed_provenance::<u64>(address).read_volatile() }
}

const PAGE: usize = 4096;

#[test]
#[ignore = "run by the other test as a process of its own"]
fn touches() {
    let (Some(path), Ok(how)) = (std::env::var_os("WORK_POOL"), std::env::var("WORK_WORLD")) else { return };
    // SAFETY: handlers of this process, which is there for this; the library's own comes before
    // that of SIGSEGV.
    unsafe {
        libc::signal(libc::SIGABRT, goes_on as *const () as usize);
        libc::signal(libc::SIGSEGV, faults as *const () as usize);
    }
    let pool = Pool::open(path).unwrap();
    let object = blocks::attach(&pool, "a", b"").unwrap();
    let fails = |calls: &[Failing]| {
        if !fail(calls) {
            std::process::exit(NO_FILTERS);
        }
    };
    blocks::expose();
    let last = object.address + 3 * PAGE;
    match &*how {
        "damaged" => {
            for at in [object.view, object.view + 8] {
                // SAFETY: a word and its check word, where blocks find them; no block uses them.
                unsafe { std::ptr::with_exposed_provenance_mut::<u64>(at).write(0x0123_4567_89ab_cdef) };
            }
            fails(&[CLOSING]);
            load(object.address);
        }
        "gap" => {
            load(last);
            fails(&[CLOSING, OPENING]);
            load(object.address);
        }
        "mapped" | "closed" => {
            load(last);
            fails(if how == "mapped" { &[MAPPING_OVER] } else { &[MAPPING_OVER, CLOSING] });
            let _ = blocks::close::<Nothing>(None);
            load(last);
        }
        _ => panic!("{how}"),
    }
    // SAFETY: ends the process.
    unsafe { libc::_exit(SAW) }
}

struct Nothing;

impl blocks::BlockWords for Nothing {
    fn load(&mut self, _: usize) -> Option<u64> {
        None
    }
    fn store(&mut self, _: usize, _: u64) -> Option<()> {
        None
    }
    fn store_byte(&mut self, _: usize, _: u8) -> Option<()> {
        None
    }
    fn peek(&self, _: usize) -> u64 {
        0
    }
}

#[test]
fn pages_that_a_block_exposed_are_closed_or_the_process_ends() {
    let world = World::new(Ground::File, Tracking::Explicit, false);
    let create = CreateOptions::new(4 * PAGE as u64).class(Class::Transactional).ecc(true);
    world.format().create_with("a", &create).unwrap();
    let dies = (None, Some(libc::SIGABRT));
    for (how, expected) in
        [("damaged", dies), ("gap", dies), ("mapped", (Some(FAULTED), None)), ("closed", dies)]
    {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["--exact", "exposed::touches", "--nocapture", "--ignored"]);
        let output = command.env("WORK_POOL", world.path()).env("WORK_WORLD", how).output().unwrap();
        let found = (output.status.code(), output.status.signal());
        if found.0 == Some(NO_FILTERS) {
            return indelible_testing::not_tested(
                "failing protection of exposed pages: seccomp is not allowed here",
            );
        }
        assert_eq!(found, expected, "{how}: {output:?}");
    }
    let object = blocks::attach(&world.open(), "a", b"").unwrap();
    raw::detach(std::ptr::without_provenance(object.address)).unwrap();
}
