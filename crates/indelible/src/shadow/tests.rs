#![allow(unsafe_code)]

use std::fs::File;
use std::os::fd::AsFd;
use std::os::unix::fs::FileExt;

use indelible_store::medium::{
    Capabilities, Fatal, LockKey, LockMode, Locks, Medium, MediumError, ReserveError,
};

use super::*;
use crate::fault::Primary;
use crate::sys::uffd::Reach;

fn window(n: usize) -> usize {
    0x5700_0000_0000 + (n << 37)
}

struct Pattern {
    len: u64,
    broken: u64,
}

fn pattern(at: u64) -> u8 {
    (at.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8
}

impl Medium for Pattern {
    fn len(&self) -> u64 {
        self.len
    }
    fn read_only(&self) -> bool {
        true
    }
    fn read(&self, offset: u64, buf: &mut [u8]) -> Result<(), MediumError> {
        if (offset + buf.len() as u64 - 1) / PAGE as u64 >= self.broken {
            return Err(MediumError::Gone { what: "taken away" });
        }
        for (at, byte) in buf.iter_mut().enumerate() {
            *byte = pattern(offset + at as u64);
        }
        Ok(())
    }
    fn write(&self, _: u64, _: &[u8]) -> Result<(), Fatal> {
        Err(MediumError::ReadOnly.into())
    }
    fn write_durable(&self, _: u64, _: &[u8]) -> Result<(), Fatal> {
        Err(MediumError::ReadOnly.into())
    }
    fn barrier(&self) -> Result<(), Fatal> {
        Ok(())
    }
    fn zero(&self, _: u64, _: u64) -> Result<(), Fatal> {
        Err(MediumError::ReadOnly.into())
    }
    fn reserve(&self, _: u64, _: u64) -> Result<(), ReserveError> {
        Err(MediumError::ReadOnly.into())
    }
    fn discard(&self, _: u64, _: u64) {}
    fn capabilities(&self) -> Capabilities {
        Capabilities::MEMORY
    }
    fn verify(&self) -> Result<(), MediumError> {
        Ok(())
    }
}

impl Locks for Pattern {
    fn try_lock(&self, _: LockKey, _: LockMode) -> Result<bool, MediumError> {
        Ok(true)
    }
    fn unlock(&self, _: LockKey) {}
    fn probe(&self, _: LockKey) -> Result<Option<LockMode>, MediumError> {
        Ok(None)
    }
}

fn rungs() -> Vec<Rung> {
    let (here, absent): (Vec<_>, Vec<_>) = Rung::ALL.into_iter().partition(|rung| rung.available());
    for rung in absent {
        indelible_testing::not_tested(format_args!("rung {rung}"));
    }
    here
}

fn ways() -> Vec<bool> {
    if fault::reach() == Some(Reach::Full) {
        return vec![false, true];
    }
    indelible_testing::not_tested(format_args!(
        "fault-in (userfaultfd for system calls, or its poison, is absent)"
    ));
    vec![false]
}

fn over_device(
    addr: usize,
    pages: usize,
    rung: Option<Rung>,
    fault_in: bool,
    broken: u64,
) -> Params<'static> {
    let device = Arc::new(Pattern { len: 1 << 40, broken });
    Params {
        name: String::new(),
        addr: Some(addr),
        len: pages * PAGE,
        room: 0,
        source: Source::Pages(Arc::new(Primary { device, offset: 8 * PAGE as u64 })),
        writable: rung.is_some(),
        rung,
        advice: Advice::Measured,
        fault_in: Some(fault_in),
        ahead: 3,
        budget: usize::MAX,
        secret: false,
        limit: None,
        prediction: None,
        pending: false,
    }
}

fn over_file(addr: usize, len: usize, (file, offset): (&File, u64), rung: Rung) -> Params<'_> {
    Params {
        len,
        source: Source::PrivateFile { fd: file.as_fd(), offset },
        fault_in: None,
        ahead: 0,
        budget: 0,
        ..over_device(addr, 0, Some(rung), false, 0)
    }
}

fn store(shadow: &Shadow, page: usize, value: u8) {
    shadow.stored(page * PAGE..(page + 1) * PAGE);
    // SAFETY: a page of the shadow, which only the test's thread uses.
    unsafe { shadow.base().as_ptr().add(page * PAGE).write_volatile(value) };
}

fn load(shadow: &Shadow, at: usize) -> u8 {
    // SAFETY: as above.
    unsafe { shadow.base().as_ptr().add(at).read_volatile() }
}

fn dirty(shadow: &mut Shadow) -> Vec<u64> {
    let mut out = Vec::new();
    shadow.collect(&mut out).unwrap();
    shadow.settle(&out, &[]).unwrap();
    out.iter().flat_map(|run| run.start..run.end()).collect()
}

#[test]
fn a_device_is_read_right_and_tracked_on_every_rung() {
    for fault_in in ways() {
        for rung in rungs() {
            let mut shadow =
                Shadow::attach(over_device(window(0) + PAGE, 1500, Some(rung), fault_in, u64::MAX)).unwrap();
            for at in (0..1500 * PAGE).step_by(12_345) {
                assert_eq!(load(&shadow, at), pattern((8 * PAGE + at) as u64), "{rung} {fault_in} at {at}");
            }
            assert_eq!(dirty(&mut shadow), [0_u64; 0], "{rung} {fault_in}: reading is not storing");
            store(&shadow, 3, 1);
            store(&shadow, 1400, 1);
            assert_eq!(dirty(&mut shadow), [3, 1400], "{rung} {fault_in}");
            assert_eq!(load(&shadow, 3 * PAGE + 1), pattern(11 * PAGE as u64 + 1));
            shadow.grow(1700 * PAGE, Some(8 * PAGE as u64)).unwrap();
            store(&shadow, 1699, 1);
            assert_eq!(load(&shadow, 1650 * PAGE), pattern(1658 * PAGE as u64));
            assert!(dirty(&mut shadow).contains(&1699), "{rung} {fault_in}");
        }
        let shadow = Shadow::attach(over_device(window(0), 10, None, fault_in, u64::MAX)).unwrap();
        assert_eq!((shadow.rung(), load(&shadow, 5)), (None, pattern(8 * PAGE as u64 + 5)));
    }
}

#[test]
fn a_system_call_finds_pages_that_were_never_touched() {
    for fault_in in ways() {
        let shadow = Shadow::attach(over_device(window(1), 600, None, fault_in, u64::MAX)).unwrap();
        let file = tempfile::tempfile().unwrap();
        // SAFETY: the shadow's bytes, to which no thread stores.
        let bytes = unsafe { std::slice::from_raw_parts(shadow.base().as_ptr().add(500 * PAGE), 2 * PAGE) };
        file.write_all_at(bytes, 0).unwrap();
        let mut back = [0; 1];
        file.read_exact_at(&mut back, PAGE as u64).unwrap();
        assert_eq!(back[0], pattern(509 * PAGE as u64));
    }
}

#[test]
fn a_page_that_cannot_be_read_ends_in_sigbus_and_a_clear_error() {
    assert!(matches!(
        Shadow::attach(over_device(window(2), 600, None, false, 100)),
        Err(ShadowError::Page(error)) if error.page == 92
    ));
    if !ways().contains(&true) {
        return;
    }
    let mut shadow = Shadow::attach(over_device(window(2), 600, Some(Rung::best()), true, 100)).unwrap();
    assert_eq!(load(&shadow, 0), pattern(8 * PAGE as u64));
    let file = tempfile::tempfile().unwrap();
    // SAFETY: the shadow's bytes; the kernel reports what cannot be read.
    let bytes = unsafe { std::slice::from_raw_parts(shadow.base().as_ptr().add(300 * PAGE), PAGE) };
    assert!(file.write_all_at(bytes, 0).is_err());
    let error = shadow.collect(&mut Vec::new()).unwrap_err();
    assert_eq!(
        error.to_string(),
        "cannot read page 300 of the object: the pool's file was taken away while in use"
    );
}

#[test]
fn a_file_is_shadowed_from_its_offset_and_never_written() {
    let file = tempfile::tempfile().unwrap();
    file.set_len(3000 * PAGE as u64).unwrap();
    file.write_all_at(b"abc", 5 * PAGE as u64).unwrap();
    for rung in rungs() {
        let mut shadow =
            Shadow::attach(over_file(window(3), 600 * PAGE, (&file, 5 * PAGE as u64), rung)).unwrap();
        assert_eq!([load(&shadow, 0), load(&shadow, 2)], *b"ac");
        store(&shadow, 0, b'x');
        shadow.grow(2900 * PAGE, Some(5 * PAGE as u64)).unwrap();
        store(&shadow, 2899, b'y');
        assert_eq!(dirty(&mut shadow), [0, 2899], "{rung}");
        let mut back = [0; 3];
        file.read_exact_at(&mut back, 5 * PAGE as u64).unwrap();
        assert_eq!(&back, b"abc");
    }
}

#[test]
fn stores_on_both_sides_of_a_change_of_the_rung_are_found() {
    for rung in [Rung::WpAsync, Rung::Mprotect] {
        if !rung.available() {
            indelible_testing::not_tested(format_args!("rung {rung}"));
            continue;
        }
        let file = tempfile::tempfile().unwrap();
        file.set_len(8 * PAGE as u64).unwrap();
        let mut shadow = Shadow::attach(over_file(window(5), 8 * PAGE, (&file, 0), Rung::Explicit)).unwrap();
        let marks = shadow.marks().unwrap();
        let mark = |page: usize| marks.mark(std::iter::once(page * PAGE..page * PAGE + 1));
        store(&shadow, 1, 1);
        mark(1);
        shadow.collect(&mut Vec::new()).unwrap();
        store(&shadow, 3, 1);
        mark(3);
        shadow.find_stores(rung, Advice::Measured).unwrap();
        store(&shadow, 5, 1);
        mark(7);
        let mut found = Vec::new();
        shadow.collect(&mut found).unwrap();
        let found: Vec<u64> = found.iter().flat_map(|run| run.start..run.end()).collect();
        assert_eq!(found, [1, 3, 5, 7], "{rung}");
        assert_eq!(shadow.rung(), Some(rung));
    }
}

#[test]
fn renewal_loses_neither_bytes_nor_tracking() {
    if !Rung::WpAsync.available() {
        indelible_testing::not_tested(format_args!("rung {}", Rung::WpAsync));
        return;
    }
    let file = tempfile::tempfile().unwrap();
    let pages = 4 << 18;
    file.set_len((pages * PAGE) as u64).unwrap();
    let mut shadow = Shadow::attach(over_file(window(4), pages * PAGE, (&file, 0), Rung::WpAsync)).unwrap();
    let mut renewed = 0;
    for round in 0..100_000_usize {
        let page = if round < 300 { round * 3001 % pages } else { 7 };
        store(&shadow, page, round as u8);
        let found = dirty(&mut shadow);
        assert!(found.contains(&(page as u64)), "round {round}, renewed {renewed} times");
        for page in found {
            file.write_all_at(&[load(&shadow, page as usize * PAGE)], page * PAGE as u64).unwrap();
        }
        if shadow.renewal_due().unwrap() {
            // SAFETY: over a file, everything collected has been applied; one thread.
            unsafe { shadow.renew(0) }.unwrap();
            renewed += 1;
        }
        if renewed > 0 && round > 5000 {
            break;
        }
    }
    assert!(renewed > 0, "300 page tables and 100,000 scans were not worth a renewal");
    for round in (0..300_usize).filter(|round| round * 3001 % pages != 7) {
        assert_eq!(load(&shadow, round * 3001 % pages * PAGE), round as u8);
    }
}
