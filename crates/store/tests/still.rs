use indelible_store::error::StoreError;
use indelible_store::format::PAGE;
use indelible_store::medium::MediumError;
use indelible_store::store::{StillObject, Store, Writer};
use indelible_store::table::{CreateOptions, Key};
use indelible_testing::pool::{process, psync, psync_copied};
use indelible_testing::scenario::formatted;
use indelible_testing::{Fault, OpKind, SimConfig, SimMedium, sealed};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

const KEY: Key<'static> = Key(&[]);
const SIZE: u64 = 3 * PAGE;

/// On memory a word names changer and holder, on a disk locks do.
fn pool(disk: bool) -> SimMedium {
    let medium = formatted(2 << 20, SimConfig { disk, ..SimConfig::default() });
    let store = open(&medium, 1);
    for name in ["a", "b"] {
        store.create(name, &CreateOptions { size: SIZE, ..CreateOptions::default() }).unwrap();
    }
    medium
}

fn open(medium: &SimMedium, pid: u32) -> Arc<Store> {
    Store::open(Arc::new(medium.handle()), process(pid)).unwrap()
}

fn hold(store: &Arc<Store>) -> StillObject {
    store.hold_still("a", KEY).unwrap().expect("it has a writer")
}

fn byte(still: &StillObject, offset: u64) -> u8 {
    let mut byte = [0];
    still.read(offset, &mut byte).unwrap();
    byte[0]
}

fn waits_in_vain<T>(result: Result<T, StoreError>) -> bool {
    matches!(result, Err(StoreError::HeldStill { .. }))
}

#[test]
fn an_object_without_a_writer_need_not_be_held() {
    for disk in [true, false] {
        let medium = pool(disk);
        assert!(open(&medium, 2).hold_still("a", KEY).unwrap().is_none());
        assert!(matches!(open(&medium, 2).hold_still("none", KEY), Err(StoreError::NotFound)));
    }
}

#[test]
fn a_process_that_may_only_read_keeps_no_writer_waiting() {
    for disk in [true, false] {
        let medium = pool(disk);
        let _writer = open(&medium, 1).attach_writer("a", KEY).unwrap();
        let reader = Store::open(Arc::new(medium.read_only_handle()), process(2)).unwrap();
        let refused = reader.hold_still("a", KEY).map(|_| ()).unwrap_err();
        assert!(matches!(refused, StoreError::Medium(MediumError::ReadOnly)), "{refused:?}");
    }
}

#[test]
fn a_direct_write_under_way_is_not_seen() {
    for disk in [true, false] {
        let medium = pool(disk);
        let mut writer = open(&medium, 1).attach_writer("a", KEY).unwrap();
        psync(&mut writer, &[(0, &[1; 64])]).unwrap();
        writer.begin_direct(SIZE).unwrap();
        writer.write_direct(PAGE, &[9; PAGE as usize]).unwrap();
        let reader = open(&medium, 2);
        let still = hold(&reader);
        assert_eq!([byte(&still, 0), byte(&still, PAGE + 5)], [1, 0]);
        drop(still);
        writer.end_direct().unwrap();
        psync(&mut writer, &[]).unwrap();
        assert_eq!(byte(&hold(&reader), PAGE + 5), 9);
    }
}

#[test]
fn a_holder_that_dies_lets_go() {
    for disk in [true, false] {
        let medium = pool(disk);
        let mut writer = open(&medium, 1).attach_writer("a", KEY).unwrap();
        let device = Arc::new(medium.handle());
        let dies = Store::open(device.clone(), process(2)).unwrap();
        let still = hold(&dies);
        writer.store().set_patience(Duration::ZERO);
        assert!(waits_in_vain(psync(&mut writer, &[(0, &[1; 64])])), "{disk}");
        device.kill();
        std::mem::forget(still);
        psync(&mut writer, &[(0, &[2; 64])]).unwrap();
        let reader = open(&medium, 3);
        let still = hold(&reader);
        assert_eq!(byte(&still, 0), 2);
        assert!(waits_in_vain(psync(&mut writer, &[(0, &[3; 64])])), "{disk}");
    }
}

#[test]
fn a_writer_that_dies_in_a_change_is_recovered_and_then_held() {
    for disk in [true, false] {
        let medium = pool(disk);
        let device = Arc::new(medium.handle());
        let store = Store::open(device.clone(), process(1)).unwrap();
        let mut writer = store.attach_writer("a", KEY).unwrap();
        psync(&mut writer, &[(0, &[1; 64])]).unwrap();
        // On memory between batch and primary, else right after the batch.
        let dies = if disk { (OpKind::WriteDurable, Fault::KillLate) } else { (OpKind::Write, Fault::Kill) };
        medium.fail_at(dies.0, 0, dies.1);
        psync_copied(&mut [(&mut writer, &[(0, &[2; 64])])]).unwrap_err();
        medium.clear_faults();
        std::mem::forget(writer);
        let reader = open(&medium, 2);
        reader.set_patience(Duration::ZERO);
        assert!(reader.hold_still("a", KEY).unwrap().is_none(), "{disk}: it has no writer any more");
        let mut writer = open(&medium, 3).attach_writer("a", KEY).unwrap();
        assert_eq!(byte(&hold(&reader), 0), 2, "{disk}");
        psync(&mut writer, &[(0, &[3; 64])]).unwrap();
        assert_eq!(byte(&hold(&reader), 0), 3, "{disk}");
    }
}

#[test]
fn recovery_waits_for_who_holds_still() {
    for disk in [true, false] {
        let medium = pool(disk);
        let device = Arc::new(medium.handle());
        let mut writer = Store::open(device.clone(), process(1)).unwrap().attach_writer("a", KEY).unwrap();
        psync(&mut writer, &[(0, &[1; 64])]).unwrap();
        let reader = open(&medium, 2);
        let still = hold(&reader);
        device.kill();
        std::mem::forget(writer);
        let next = open(&medium, 3);
        next.set_patience(Duration::ZERO);
        assert!(waits_in_vain(next.attach_writer("a", KEY)), "{disk}");
        assert!(waits_in_vain(next.attach_reader("a", KEY)), "{disk}");
        next.attach_writer("b", KEY).unwrap().detach().unwrap();
        assert_eq!(byte(&still, 0), 1);
        drop(still);
        next.attach_writer("a", KEY).unwrap();
    }
}

#[test]
fn one_process_at_a_time_holds_an_object() {
    for disk in [true, false] {
        let medium = pool(disk);
        let writer = open(&medium, 1).attach_writer("a", KEY).unwrap();
        let [one, two] = [2, 3].map(|pid| open(&medium, pid));
        for store in [&one, &two, writer.store()] {
            store.set_patience(Duration::ZERO);
        }
        for first in [&one, writer.store()] {
            let still = hold(first);
            assert!([&one, &two, writer.store()].into_iter().all(|s| waits_in_vain(s.hold_still("a", KEY))));
            drop(still);
        }
        hold(&two);
    }
}

struct OnDrop<F: Fn()>(F);

impl<F: Fn()> Drop for OnDrop<F> {
    fn drop(&mut self) {
        (self.0)();
    }
}

#[test]
fn every_hold_sees_a_whole_psync() {
    const PSYNCS: u64 = 100;
    fn write(mut writer: Writer, done: &AtomicBool) -> u64 {
        let mut number = 0_u64;
        while !done.load(Ordering::Relaxed) {
            number += 1;
            let line = number.to_le_bytes().repeat(8);
            psync(&mut writer, &[(0, &line), (PAGE, &line), (SIZE - 64, &line)]).unwrap();
        }
        number
    }
    for disk in [true, false] {
        let medium = pool(disk);
        let mut writer = open(&medium, 1).attach_writer("a", KEY).unwrap();
        psync(&mut writer, &[(0, &[0; 64])]).unwrap();
        let (reader, done) = (open(&medium, 2), AtomicBool::new(false));
        std::thread::scope(|scope| {
            let thread = scope.spawn(|| write(writer, &done));
            let end = OnDrop(|| done.store(true, Ordering::Relaxed));
            let mut last = 0;
            while last < PSYNCS {
                let still = hold(&reader);
                let words = [0, PAGE, SIZE - 64, SIZE - 8].map(|offset| {
                    let mut word = [0; 8];
                    still.read(offset, &mut word).unwrap();
                    u64::from_le_bytes(word)
                });
                assert!(words == [words[0]; 4] && words[0] >= last, "{disk}: {words:?} after {last}");
                last = words[0];
            }
            drop(end);
            assert!(thread.join().unwrap() >= PSYNCS);
        });
    }
}

#[test]
fn a_change_of_a_sealed_object_that_is_refused_leaves_others_alone() {
    for disk in [true, false] {
        let medium = pool(disk);
        let store = open(&medium, 1);
        sealed::create(&store, "sealed", 9000).unwrap();
        let mut writer = store.attach_writer("a", KEY).unwrap();
        psync(&mut writer, &[(0, &[1; 64])]).unwrap();
        let reader = open(&medium, 2);
        let still = hold(&reader);
        store.set_patience(Duration::ZERO);
        assert!(waits_in_vain(sealed::resize(&store, "sealed", 64)), "{disk}");
        drop(still);
        psync(&mut writer, &[(0, &[2; 64])]).unwrap();
        assert_eq!(sealed::resize(&store, "sealed", 64).unwrap().entry.size.get(), 64);
    }
}
