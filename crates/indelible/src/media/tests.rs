use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use indelible_store::medium::{Fatal, LockKey, LockMode, MediumError, ReserveError};

use super::*;

fn places() -> Vec<tempfile::TempDir> {
    let mut places = vec![tempfile::tempdir().unwrap()];
    match tempfile::tempdir_in("/dev/shm") {
        Ok(dir) => places.push(dir),
        Err(e) => indelible_testing::not_tested(format_args!("/dev/shm ({e})")),
    }
    places
}

fn make(path: &Path, len: u64, choice: MediumChoice) -> Media {
    let options = CreateOptions { choice, ..CreateOptions::default() };
    let media = create(path, len, &options).unwrap();
    assert!(!path.exists(), "a pool has no name before it is one");
    media.publish(path).unwrap();
    media
}

fn each(mut test: impl FnMut(&Media, PathBuf)) {
    for dir in places() {
        for choice in [MediumChoice::Auto, MediumChoice::File, MediumChoice::Memory] {
            let path = dir.path().join(format!("{choice:?}"));
            eprintln!("{}", path.display());
            test(&make(&path, 3 << 20, choice), path);
        }
    }
}

#[test]
fn written_bytes_are_read_back() {
    each(|media, path| {
        let device = media.device();
        let bytes: Vec<u8> = (0..100_000_u32).map(|i| i as u8 ^ 0x5a).collect();
        for (offset, len) in [(0, 1), (4095, 2), (12_345, 100_000), ((3 << 20) - 7, 7), (8192, 4096)] {
            device.write(offset, &bytes[..len]).unwrap();
            device.write_durable(offset, &bytes[..len]).unwrap();
            let mut back = vec![0; len];
            device.read(offset, &mut back).unwrap();
            assert_eq!(back, bytes[..len]);
        }
        device.barrier().unwrap();
        let again = open(&path, &OpenOptions::default()).unwrap();
        let mut back = vec![0; 100_000];
        again.device().read(12_345, &mut back).unwrap();
        assert_eq!(back[..], bytes[..]);
        assert_eq!(std::fs::read(&path).unwrap()[12_345..112_345], bytes[..]);
        assert_eq!(again.identity(), media.identity());
    });
}

#[test]
fn zeroed_and_reserved_ranges_read_as_they_should() {
    each(|media, _| {
        let device = media.device();
        device.write(0, &vec![7; 2 << 20]).unwrap();
        for (offset, len) in [(100_u64, 1_u64), (4096, 8192), (10_000, 1 << 20), (0, 0)] {
            device.zero(offset, len).unwrap();
            let mut back = vec![1; len as usize + 1];
            device.read(offset, &mut back).unwrap();
            assert!(back[..len as usize].iter().all(|b| *b == 0) && (len == 0 || back[len as usize] == 7));
        }
        device.reserve(0, 3 << 20).unwrap();
        let mut back = [0];
        device.read((2 << 20) - 1, &mut back).unwrap();
        assert_eq!(back, [7], "reserving keeps contents");
        device.discard(1 << 20, 1 << 20);
        device.write(1 << 20, &[9; 5000]).unwrap();
        device.read((1 << 20) + 4999, &mut back).unwrap();
        assert_eq!(back, [9]);
    });
}

#[test]
fn accesses_beyond_the_end_are_refused() {
    each(|media, _| {
        let device = media.device();
        let size = device.len();
        for offset in [size, size - 1, u64::MAX, u64::MAX - 1] {
            assert!(matches!(device.read(offset, &mut [0; 2]), Err(MediumError::OutOfBounds { .. })));
            assert!(matches!(device.write(offset, &[0; 2]), Err(Fatal(MediumError::OutOfBounds { .. }))));
            assert!(matches!(
                device.write_durable(offset, &[0; 2]),
                Err(Fatal(MediumError::OutOfBounds { .. }))
            ));
            assert!(matches!(device.zero(offset, 2), Err(Fatal(MediumError::OutOfBounds { .. }))));
            assert!(matches!(
                device.reserve(offset, u64::MAX),
                Err(ReserveError::Fatal(Fatal(MediumError::OutOfBounds { .. })))
            ));
            device.discard(offset, u64::MAX);
        }
        device.read(size, &mut []).unwrap();
    });
}

#[test]
fn a_read_only_medium_is_not_written() {
    each(|_, path| {
        let options = OpenOptions { access: Access::ReadOnly, ..OpenOptions::default() };
        let media = open(&path, &options).unwrap();
        let device = media.device();
        assert!(device.read_only());
        assert!(matches!(device.write(0, &[1]), Err(Fatal(MediumError::ReadOnly))));
        assert!(matches!(device.write_durable(0, &[1]), Err(Fatal(MediumError::ReadOnly))));
        assert!(matches!(device.zero(0, 1), Err(Fatal(MediumError::ReadOnly))));
        assert!(matches!(device.zero(0, 1 << 20), Err(Fatal(MediumError::ReadOnly))));
        assert!(matches!(device.reserve(0, 1), Err(ReserveError::Fatal(Fatal(MediumError::ReadOnly)))));
        device.discard(0, 4096);
        device.read(0, &mut [0; 9]).unwrap();
        assert!(device.try_lock(LockKey::Table, LockMode::Shared).unwrap());
        assert!(matches!(device.try_lock(LockKey::Table, LockMode::Exclusive), Err(MediumError::ReadOnly)));
    });
}

#[test]
fn a_file_that_went_away_is_noticed() {
    each(|media, path| {
        media.device().verify().unwrap();
        let file = std::fs::File::options().write(true).open(&path).unwrap();
        file.set_len(1 << 20).unwrap();
        assert!(matches!(media.device().verify(), Err(MediumError::Gone { what: "truncated" })));
        file.set_len(3 << 20).unwrap();
        let other = path.with_extension("other");
        std::fs::write(&other, b"another file").unwrap();
        std::fs::rename(&other, &path).unwrap();
        assert!(matches!(media.device().verify(), Err(MediumError::Gone { what: "deleted" })));
    });
}

#[test]
fn kinds_are_what_they_seem_and_wrong_ones_are_refused() {
    for dir in places() {
        let path = dir.path().join("pool");
        let media = make(&path, 1 << 20, MediumChoice::Auto);
        let on_tmpfs = dir.path().starts_with("/dev/shm");
        eprintln!("{} is {}", path.display(), media.kind().name());
        assert_eq!(media.memory_base().is_some(), matches!(media.kind(), MediaKind::Memory | MediaKind::Dax));
        assert!(!on_tmpfs || media.kind() == MediaKind::Memory);
        assert!(media.mappable().is_some());
        let with = |path: &Path, choice| open(path, &OpenOptions { choice, ..OpenOptions::default() });
        assert!(matches!(with(&path, MediumChoice::DevDax), Err(MediaError::Unsuitable { .. })));
        if media.kind() != MediaKind::Dax {
            assert!(matches!(with(&path, MediumChoice::Dax), Err(MediaError::Unsuitable { .. })));
        }
        assert!(matches!(create(&path, 1, &CreateOptions::default()), Err(MediaError::Io { .. })));
        assert_eq!(std::fs::metadata(&path).unwrap().len(), 1 << 20);
        let empty = dir.path().join("empty");
        std::fs::write(&empty, b"").unwrap();
        assert!(matches!(with(&empty, MediumChoice::Auto), Err(MediaError::Empty { .. })));
        assert!(with(dir.path(), MediumChoice::Auto).is_err());
        assert!(matches!(with(Path::new("/dev/null"), MediumChoice::Auto), Err(MediaError::Kind { .. })));
        assert!(with(&dir.path().join("absent"), MediumChoice::Auto).is_err());
        let link = dir.path().join("link");
        symlink(&path, &link).unwrap();
        assert_eq!(with(&link, MediumChoice::Auto).unwrap().identity(), media.identity());
    }
}

#[test]
fn a_pool_in_use_is_not_replaced() {
    each(|media, path| {
        media.device().write(0, b"precious").unwrap();
        assert!(media.device().try_lock(LockKey::Table, LockMode::Shared).unwrap());
        let replace = CreateOptions { replace: true, ..CreateOptions::default() };
        assert!(matches!(create(&path, 1 << 20, &replace), Err(MediaError::Unsuitable { .. })));
        let mut back = [0; 8];
        media.device().read(0, &mut back).unwrap();
        assert_eq!(&back, b"precious");
        media.device().unlock(LockKey::Table);
        let fresh = create(&path, 1 << 20, &replace).unwrap();
        fresh.device().read(0, &mut back).unwrap();
        assert_eq!(back, [0; 8]);
    });
}

#[test]
fn locks_exclude_holders_and_nothing_else() {
    each(|first, path| {
        let second = open(&path, &OpenOptions::default()).unwrap();
        let (a, b) = (first.device(), second.device());
        use LockMode::{Exclusive, Shared};
        for key in [LockKey::Table, LockKey::Lane(0), LockKey::Lane(u32::MAX), LockKey::Object(4096)] {
            for (held, wanted, granted) in [
                (Shared, Shared, true),
                (Shared, Exclusive, false),
                (Exclusive, Shared, false),
                (Exclusive, Exclusive, false),
            ] {
                assert!(a.try_lock(key, held).unwrap());
                assert_eq!(a.probe(key).unwrap(), None, "own locks do not count");
                assert_eq!(b.probe(key).unwrap(), Some(held));
                assert_eq!(b.try_lock(key, wanted).unwrap(), granted, "{key:?} {held:?} {wanted:?}");
                a.unlock(key);
                b.unlock(key);
                a.unlock(key);
            }
            assert!(a.try_lock(key, Shared).unwrap() && b.try_lock(key, Shared).unwrap());
            assert!(!a.try_lock(key, Exclusive).unwrap());
            assert_eq!(b.probe(key).unwrap(), Some(Shared), "a conversion in vain keeps the mode");
            b.unlock(key);
            assert!(a.try_lock(key, Exclusive).unwrap() && a.try_lock(key, Shared).unwrap());
            assert!(b.try_lock(key, Shared).unwrap());
            a.unlock(key);
            b.unlock(key);
        }
        assert!(a.try_lock(LockKey::Lane(1), Exclusive).unwrap());
        assert!(b.try_lock(LockKey::Lane(2), Exclusive).unwrap(), "keys are independent");
    });
}

#[test]
#[allow(unsafe_code)]
fn a_forked_child_keeps_no_lock_and_gets_a_clear_error() {
    each(|first, path| {
        let held = open(&path, &OpenOptions::default()).unwrap();
        assert!(held.device().try_lock(LockKey::Object(8192), LockMode::Exclusive).unwrap());
        let (asks, answers) = (std::io::pipe().unwrap(), std::io::pipe().unwrap());
        // SAFETY: the child reads and writes pipes and checks errors that allocate nothing.
        let child = unsafe { libc::fork() };
        if child == 0 {
            let gone = |result| matches!(result, Err(MediumError::Gone { what: "left behind by a fork" }));
            let device = held.device();
            let ok = gone(device.read(0, &mut [0; 8]))
                && gone(device.write(0, &[0; 8]).map_err(|Fatal(error)| error))
                && gone(device.verify())
                && matches!(device.try_lock(LockKey::Table, LockMode::Shared), Err(MediumError::Gone { .. }));
            let _ = rustix::io::write(&answers.1, &[u8::from(ok)]);
            let _ = rustix::io::read(&asks.0, &mut [0; 1]);
            // SAFETY: ends the child without running the parent's destructors.
            unsafe { libc::_exit(0) };
        }
        let mut answer = [0];
        assert_eq!(rustix::io::read(&answers.0, &mut answer).unwrap(), 1);
        assert_eq!(answer, [1]);
        drop(held);
        assert_eq!(first.device().probe(LockKey::Object(8192)).unwrap(), None);
        rustix::io::write(&asks.1, &[0]).unwrap();
        // SAFETY: waits for the child made above.
        unsafe { libc::waitpid(child, std::ptr::null_mut(), 0) };
    });
}

#[test]
#[allow(unsafe_code)]
fn a_lock_dies_with_its_holder_though_a_child_lives_on() {
    each(|first, path| {
        let (ready, end) = (std::io::pipe().unwrap(), std::io::pipe().unwrap());
        // SAFETY: the child opens a file (glibc keeps its allocator usable after a fork), forks
        // once more and exits; it takes no lock of another thread.
        let holder = unsafe { libc::fork() };
        if holder == 0 {
            let held = open(&path, &OpenOptions::default()).unwrap();
            let locked = held.device().try_lock(LockKey::Lane(3), LockMode::Exclusive).unwrap();
            // SAFETY: the grandchild waits for a byte and exits.
            let orphan = unsafe { libc::fork() };
            if orphan == 0 {
                let _ = rustix::io::write(&ready.1, &[u8::from(locked)]);
            }
            let _ = rustix::io::read(&end.0, &mut [0; 1]);
            // SAFETY: ends the process without running destructors.
            unsafe { libc::_exit(0) };
        }
        let mut locked = [0];
        rustix::io::read(&ready.0, &mut locked).unwrap();
        assert_eq!(locked, [1]);
        assert_eq!(first.device().probe(LockKey::Lane(3)).unwrap(), Some(LockMode::Exclusive));
        // SAFETY: kills and awaits the child made above.
        unsafe {
            libc::kill(holder, libc::SIGKILL);
            libc::waitpid(holder, std::ptr::null_mut(), 0);
        }
        let left = first.device().probe(LockKey::Lane(3)).unwrap();
        rustix::io::write(&end.1, &[0]).unwrap();
        assert_eq!(left, None);
    });
}

#[test]
fn a_file_is_not_alone_beside_another_writer() {
    each(|_, path| {
        let options = OpenOptions { access: Access::ReadWrite, ..OpenOptions::default() };
        let (mut first, mut second) = (open(&path, &options).unwrap(), open(&path, &options).unwrap());
        first.claim(&path, false).unwrap();
        assert!(matches!(second.claim_alone(&path, false), Err(MediaError::InUse { .. })));
        drop(first);
        second.claim_alone(&path, false).unwrap();
        let mut third = open(&path, &options).unwrap();
        assert!(matches!(third.claim(&path, false), Err(MediaError::InUse { .. })));
    });
}
