#![allow(unsafe_code)]

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead, BufReader};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::LazyLock;

use rustix::fs::FileType;
use tempfile::TempDir;

use super::sweep::{Kept, sweep, sweep_path};
use super::*;

const CHILD: &str = "INDELIBLE_TEST_CHILD";
const LEN: usize = 8 * PAGE;
static ORIGIN: LazyLock<Origin> =
    LazyLock::new(|| Origin { file: Some((3, 4)), path: "/srv/a pool.pmo".into() });

struct Rig {
    memory: TempDir,
    beside: TempDir,
}

impl Rig {
    fn new() -> Rig {
        let memory = tempfile::tempdir_in(MEMORY).or_else(|_| tempfile::tempdir()).unwrap();
        Rig { memory, beside: tempfile::tempdir().unwrap() }
    }

    fn folders(&self) -> Folders<'_> {
        Folders { memory: self.memory.path(), beside: self.beside.path(), origin: &ORIGIN }
    }

    fn create(&self, identity: &Identity) -> Backing {
        Backing::create(self.folders(), identity, LEN).unwrap()
    }

    fn leave(&self, identity: &Identity) -> PathBuf {
        let backing = self.create(identity);
        store(&backing.map(None).unwrap(), 0, 7);
        backing.path().to_owned()
    }

    fn find(&self, identity: &Identity) -> Result<Option<Backing>, BackingError> {
        Backing::find(self.folders(), identity, LEN)
    }

    fn damage(&self, identity: &Identity) -> String {
        match self.find(identity) {
            Err(BackingError::Damaged { why, .. }) => why,
            other => panic!("{other:?}"),
        }
    }

    fn refusal(&self, identity: &Identity) -> String {
        match self.find(identity) {
            Err(BackingError::Foreign { why, .. }) => why,
            other => panic!("{other:?}"),
        }
    }

    fn files(&self) -> usize {
        [&self.memory, &self.beside].map(|folder| fs::read_dir(folder.path()).unwrap().count()).iter().sum()
    }
}

fn identity(binding: u64) -> Identity {
    Identity { pool: [1; 16], object: [2; 16], binding, boot: [3; 16] }
}

fn at(mapping: &Mapping, offset: usize) -> *mut u8 {
    assert!(offset < mapping.len());
    mapping.base().as_ptr().wrapping_add(offset)
}

fn store(mapping: &Mapping, offset: usize, byte: u8) {
    // SAFETY: a byte of the mapping; volatile.
    unsafe { at(mapping, offset).write_volatile(byte) };
}

fn load(mapping: &Mapping, offset: usize) -> u8 {
    // SAFETY: as above.
    unsafe { at(mapping, offset).read_volatile() }
}

struct Other(Child);

impl Other {
    fn output(&mut self) -> BufReader<ChildStdout> {
        BufReader::new(self.0.stdout.take().unwrap())
    }

    fn kill(&mut self) {
        let _ = self.0.kill();
        self.0.wait().unwrap();
    }
}

impl Drop for Other {
    fn drop(&mut self) {
        self.kill();
    }
}

fn child(test: &str, rig: &Rig) -> Other {
    let name = format!("backing::tests::{test}");
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", &name, "--test-threads=1", "--nocapture"]);
    command.env(CHILD, std::env::join_paths([rig.memory.path(), rig.beside.path()]).unwrap());
    Other(command.stdout(Stdio::piped()).spawn().unwrap())
}

fn given() -> Option<(PathBuf, PathBuf)> {
    let mut paths = std::env::split_paths(&std::env::var_os(CHILD)?).collect::<Vec<_>>().into_iter();
    Some((paths.next()?, paths.next()?))
}

fn said(output: &mut BufReader<ChildStdout>, word: &str) -> String {
    let mut line = String::new();
    while output.read_line(&mut line).unwrap() > 0 {
        if let Some((_, rest)) = line.split_once(word) {
            return rest.trim().to_owned();
        }
        line.clear();
    }
    panic!("the child ended without a word");
}

#[test]
fn a_successor_finds_the_bytes_of_a_killed_process() {
    if let Some((memory, beside)) = given() {
        let backing =
            Backing::create(Folders { memory: &memory, beside: &beside, origin: &ORIGIN }, &identity(1), LEN)
                .unwrap();
        let mapping = backing.map(None).unwrap();
        (0..LEN).for_each(|offset| store(&mapping, offset, offset as u8 ^ 0x5a));
        println!("\nready");
        loop {
            std::thread::park();
        }
    }
    let rig = Rig::new();
    let mut child = child("a_successor_finds_the_bytes_of_a_killed_process", &rig);
    said(&mut child.output(), "ready");
    match rig.find(&identity(1)) {
        Err(BackingError::InUse { holder, .. }) => {
            assert!(holder.to_string().starts_with(&format!("process {}", child.0.id())), "{holder}");
        }
        other => panic!("while it lives: {other:?}"),
    }
    child.kill();
    let backing = rig.find(&identity(1)).unwrap().expect("what it left");
    let mapping = backing.map(None).unwrap();
    assert!((0..LEN).all(|offset| load(&mapping, offset) == offset as u8 ^ 0x5a));
    drop(mapping);
    backing.remove().unwrap();
    assert_eq!(rig.files(), 0);
    assert!(rig.find(&identity(1)).unwrap().is_none());
}

#[test]
fn of_processes_that_race_one_makes_it() {
    const ROUNDS: u64 = 200;
    if let Some((memory, beside)) = given() {
        let folders = Folders { memory: &memory, beside: &beside, origin: &ORIGIN };
        let mut won = Vec::new();
        for round in 0..ROUNDS {
            match Backing::create(folders, &identity(round), PAGE) {
                Ok(backing) => won.push(backing),
                Err(BackingError::Exists { .. }) => {}
                Err(error) => panic!("{error}"),
            }
        }
        println!("\nwon {}", won.len());
        return;
    }
    let rig = Rig::new();
    let mut children: [Other; 3] =
        std::array::from_fn(|_| child("of_processes_that_race_one_makes_it", &rig));
    let mut won = 0;
    for child in &mut children {
        let mut output = child.output();
        won += said(&mut output, "won ").parse::<u64>().unwrap();
        child.0.wait().unwrap();
    }
    assert_eq!(won, ROUNDS);
    for round in 0..ROUNDS {
        Backing::find(rig.folders(), &identity(round), PAGE).unwrap().expect("made by one of them");
    }
}

#[test]
fn two_mappings_show_the_same_bytes() {
    let rig = Rig::new();
    let backing = rig.create(&identity(1));
    let fixed = backing.map(Some(0x5500_0000_0000)).unwrap();
    let other = backing.map(None).unwrap();
    assert!(fixed.addr() == 0x5500_0000_0000 && other.addr() != fixed.addr());
    for offset in (0..LEN).step_by(777) {
        assert_eq!(load(&fixed, offset), 0);
        store(&fixed, offset, 1);
        assert_eq!(load(&other, offset), 1);
        store(&other, offset, 2);
        assert_eq!(load(&fixed, offset), 2);
    }
    drop((fixed, other, backing));
    assert!(rig.find(&identity(1)).unwrap().is_some());
}

#[test]
fn another_boot_or_binding_finds_nothing_and_trusts_nothing() {
    let rig = Rig::new();
    let left = rig.leave(&identity(5));
    let rebooted = Identity { boot: [4; 16], ..identity(5) };
    for (other, why) in [(rebooted, "another boot"), (identity(6), "another attachment")] {
        assert!(rig.find(&other).unwrap().is_none());
        let renamed = left.with_file_name(other.name());
        fs::rename(&left, &renamed).unwrap();
        assert!(rig.damage(&other).contains(why), "{}", rig.damage(&other));
        fs::rename(&renamed, &left).unwrap();
    }
    assert!(rig.find(&identity(5)).unwrap().is_some());
    let unknown = Identity { boot: [0; 16], ..identity(5) };
    assert!(matches!(rig.find(&unknown), Err(BackingError::NoBoot)));
    assert!(matches!(Backing::create(rig.folders(), &unknown, LEN), Err(BackingError::NoBoot)));
}

#[test]
fn a_file_of_another_length_is_refused() {
    let rig = Rig::new();
    let left = rig.leave(&identity(1));
    let file = fs::File::options().write(true).open(&left).unwrap();
    let size = (PAGE + LEN) as u64;
    for wrong in [size - 1, size + 1, size - PAGE as u64, PAGE as u64, PAGE as u64 - 1, 0] {
        file.set_len(wrong).unwrap();
        let why = rig.damage(&identity(1));
        assert!(
            why.contains(&format!("it has {wrong} bytes")) || why.contains("no memory"),
            "{wrong}: {why}"
        );
    }
    fs::remove_file(&left).unwrap();
    rig.leave(&identity(1));
    let asked = Backing::find(rig.folders(), &identity(1), LEN + PAGE);
    assert!(matches!(asked, Err(BackingError::Damaged { why, .. }) if why.contains("another size")));
}

#[test]
fn a_file_that_got_longer_is_found_for_what_it_was_and_for_what_it_is() {
    let rig = Rig::new();
    let mut backing = rig.create(&identity(1));
    store(&backing.map(None).unwrap(), 0, 7);
    let longer = LEN + 3 * PAGE;
    backing.lengthen(longer).unwrap();
    backing.lengthen(LEN).unwrap();
    let whole = backing.map_part(None, 0, (longer, 0), Protection::ReadWrite).unwrap();
    assert_eq!((load(&whole, 0), load(&whole, LEN), load(&whole, longer - 1)), (7, 0, 0));
    let path = backing.path().to_owned();
    drop((backing, whole));
    let find = |len| Backing::find_longer(rig.folders(), &identity(1), len);
    for len in [LEN, LEN + PAGE, longer] {
        assert_eq!(load(&find(len).unwrap().unwrap().map(None).unwrap(), 0), 7);
    }
    assert!(
        matches!(find(longer + PAGE), Err(BackingError::Damaged { why, .. }) if why.contains("another size"))
    );
    assert!(rig.damage(&identity(1)).contains("another size"), "it is not what was made");
    // A death between the two changes: longer than stated. A shorter one was cut.
    let file = fs::File::options().write(true).open(&path).unwrap();
    file.set_len((2 * PAGE + longer) as u64).unwrap();
    assert!(find(longer).unwrap().is_some());
    file.set_len((PAGE + longer) as u64 - 1).unwrap();
    assert!(matches!(find(LEN), Err(BackingError::Damaged { why, .. }) if why.contains("bytes, not")));
}

#[test]
fn every_byte_of_the_header_counts() {
    let rig = Rig::new();
    let left = rig.leave(&identity(1));
    let file = fs::File::options().write(true).open(&left).unwrap();
    let good = header::encode(&identity(1), LEN, &ORIGIN);
    for byte in 0..PAGE {
        file.write_all_at(&[good[byte] ^ 1], byte as u64).unwrap();
        match rig.find(&identity(1)) {
            Err(BackingError::Version { found, known, .. }) if (16..24).contains(&byte) => {
                assert_ne!(found, known)
            }
            Err(BackingError::Damaged { .. }) if !(16..24).contains(&byte) => {}
            other => panic!("byte {byte}: {other:?}"),
        }
        file.write_all_at(&good[byte..=byte], byte as u64).unwrap();
    }
    assert!(rig.find(&identity(1)).unwrap().is_some());
}

#[test]
fn foreign_files_are_refused_and_left_alone() {
    let rig = Rig::new();
    let good = rig.leave(&identity(1));
    let planted = rig.memory.path().join(identity(2).name());
    let expect = |word: &str| {
        let why = rig.refusal(&identity(2));
        assert!(why.contains(word), "{word}: {why}");
        let made = Backing::create(rig.folders(), &identity(2), LEN);
        assert!(matches!(made, Err(BackingError::Exists { .. })), "{word}");
    };
    for target in [good.as_path(), Path::new("/nowhere"), Path::new("/etc/passwd")] {
        symlink(target, &planted).unwrap();
        expect("symbolic link");
        fs::remove_file(&planted).unwrap();
    }
    fs::create_dir(&planted).unwrap();
    expect("no regular file");
    fs::remove_dir(&planted).unwrap();
    rustix::fs::mknodat(rustix::fs::CWD, &planted, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
    expect("no regular file");
    fs::remove_file(&planted).unwrap();
    fs::hard_link(&good, &planted).unwrap();
    expect("another name");
    fs::remove_file(&planted).unwrap();
    for mode in [0o640, 0o602, 0o700, 0o4600] {
        fs::write(&planted, header::encode(&identity(2), LEN, &ORIGIN)).unwrap();
        fs::set_permissions(&planted, fs::Permissions::from_mode(mode)).unwrap();
        expect(&format!("permissions are {mode:o}"));
        fs::remove_file(&planted).unwrap();
    }
    assert!(rig.find(&identity(1)).unwrap().is_some());
}

#[test]
fn files_of_other_users_are_refused() {
    const NOBODY: u32 = 65534;
    let rig = Rig::new();
    if !rustix::process::geteuid().is_root() {
        return indelible_testing::not_tested("files of other users, which root alone can make");
    }
    let left = rig.leave(&identity(1));
    fs::set_permissions(rig.memory.path(), fs::Permissions::from_mode(0o1777)).unwrap();
    let refused = std::thread::scope(|scope| {
        let other = scope.spawn(|| {
            // SAFETY: the call changes this thread's credentials alone.
            unsafe { assert_eq!(libc::syscall(libc::SYS_setresuid, NOBODY, NOBODY, NOBODY), 0) };
            let swept = sweep(rig.memory.path(), [9; 16], |_, _| false).unwrap();
            assert!(
                matches!(&swept.kept[..], [(_, Kept::Failed(BackingError::Foreign { .. }))]),
                "{swept:?}"
            );
            rig.refusal(&identity(1))
        });
        other.join().unwrap()
    });
    assert_eq!(refused, "it belongs to user 0");
    std::os::unix::fs::chown(&left, Some(NOBODY), None).unwrap();
    assert_eq!(rig.refusal(&identity(1)), format!("it belongs to user {NOBODY}"));
}

#[test]
fn a_file_is_its_owners_alone_whatever_the_mask() {
    if let Some((memory, beside)) = given() {
        for mask in [0, 0o777] {
            rustix::process::umask(Mode::from_raw_mode(mask));
            let folders = Folders { memory: &memory, beside: &beside, origin: &ORIGIN };
            let backing = Backing::create(folders, &identity(1), LEN).unwrap();
            println!("\nmode {:o}", fs::metadata(backing.path()).unwrap().mode() & 0o7777);
            backing.remove().unwrap();
        }
        return;
    }
    let rig = Rig::new();
    let mut child = child("a_file_is_its_owners_alone_whatever_the_mask", &rig);
    let mut output = child.output();
    assert_eq!(
        (said(&mut output, "mode "), said(&mut output, "mode ")),
        ("600".to_owned(), "600".to_owned())
    );
    child.0.wait().unwrap();
}

struct Small(TempDir);

impl Small {
    fn mount() -> Option<Small> {
        let small = Small(tempfile::tempdir().unwrap());
        let mut command = Command::new("mount");
        command.args(["-t", "tmpfs", "-o", "size=256k", "tmpfs"]).arg(small.0.path()).stderr(Stdio::null());
        if command.status().is_ok_and(|status| status.success()) {
            return Some(small);
        }
        indelible_testing::not_tested("a full tmpfs, which needs the right to mount one");
        None
    }
}

impl Drop for Small {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(self.0.path()).stderr(Stdio::null()).status();
    }
}

#[test]
fn no_room_in_memory_means_beside_the_pool() {
    let rig = Rig::new();
    let missing = Folders { memory: &rig.memory.path().join("none"), ..rig.folders() };
    let backing = Backing::create(missing, &identity(1), LEN).unwrap();
    assert_eq!(backing.path().parent(), Some(rig.beside.path()));
    drop(backing);
    assert!(Backing::find(missing, &identity(1), LEN).unwrap().is_some());
    let Some(small) = Small::mount() else { return };
    let folders = Folders { memory: small.0.path(), ..rig.folders() };
    let backing = Backing::create(folders, &identity(2), 1 << 20).unwrap();
    assert_eq!(backing.path().parent(), Some(rig.beside.path()));
    assert_eq!(fs::read_dir(small.0.path()).unwrap().count(), 0);
    backing.remove().unwrap();
    let both = Folders { memory: small.0.path(), beside: small.0.path(), origin: &ORIGIN };
    let error = Backing::create(both, &identity(2), 1 << 20).unwrap_err();
    assert!(matches!(error, BackingError::NoRoom { .. }), "{error}");
    assert!(error.to_string().contains("No space left"), "{error}");
    assert_eq!(rustix::fs::statvfs(small.0.path()).map(|found| found.f_bfree).unwrap(), 64);
}

#[test]
fn a_backing_has_its_pages_however_full_the_file_system() {
    let Some(small) = Small::mount() else { return };
    let folders = Folders { memory: small.0.path(), beside: small.0.path(), origin: &ORIGIN };
    let backing = Backing::create(folders, &identity(1), 32 * PAGE).unwrap();
    fs::write(small.0.path().join("filler"), vec![1; 1 << 20]).unwrap_err();
    let mapping = backing.map(None).unwrap();
    let zero = fs::File::open("/dev/zero").unwrap();
    // Fails with EFAULT rather than SIGBUS. SAFETY: stores to all of this test's mapping, of which
    // there are no references.
    let stored = unsafe { libc::read(zero.as_raw_fd(), at(&mapping, 0).cast(), mapping.len()) };
    assert_eq!(stored, mapping.len() as isize, "{}", io::Error::last_os_error());
    drop(mapping);
    assert!(Backing::create(folders, &identity(2), PAGE).is_err());
    drop(backing);
    assert!(Backing::find(folders, &identity(1), 32 * PAGE).unwrap().is_some());
}

#[test]
fn removing_takes_the_own_file_and_no_other() {
    let rig = Rig::new();
    let backing = rig.create(&identity(1));
    fs::remove_file(backing.path()).unwrap();
    let other = rig.create(&identity(1));
    backing.remove().unwrap();
    assert!(other.path().exists());
    other.remove().unwrap();
    assert_eq!(rig.files(), 0);
}

#[test]
fn sweeping_takes_what_nobody_will_ask_for() {
    let rig = Rig::new();
    let boot = identity(0).boot;
    let earlier = Identity { boot: [9; 16], ..identity(1) };
    let paths = [
        rig.leave(&earlier),
        rig.leave(&identity(2)),
        rig.leave(&identity(3)),
        rig.memory.path().join("indelible-something"),
        rig.memory.path().join(identity(5).name()),
    ];
    fs::write(&paths[3], "not of this library").unwrap();
    symlink(&paths[3], &paths[4]).unwrap();
    let used = rig.create(&identity(4));
    // The earlier boot's is not wanted, even if the caller believes it attached.
    let swept = sweep(rig.memory.path(), boot, |identity, _| [1, 3].contains(&identity.binding)).unwrap();
    let removed: BTreeSet<_> = swept.removed.iter().cloned().collect();
    assert_eq!(removed, BTreeSet::from([paths[0].clone(), paths[1].clone()]));
    for (path, kept) in &swept.kept {
        match kept {
            Kept::Wanted => assert_eq!(path, &paths[2]),
            Kept::InUse => assert_eq!(path, used.path()),
            Kept::Failed(error) => {
                assert!(matches!(error, BackingError::Foreign { .. }), "{error}");
                assert_eq!(path, &paths[4]);
            }
        }
    }
    assert_eq!((swept.kept.len(), rig.files()), (3, 4));
    used.remove().unwrap();
    assert!(rig.find(&identity(3)).unwrap().is_some());
}

fn judged_before_the_lock() {
    let rig = Rig::new();
    let owner = RefCell::new(Some(rig.create(&identity(1))));
    let wanted = |_: &Identity, _: Option<&Origin>| owner.take().is_none();
    let swept = sweep(rig.memory.path(), identity(0).boot, wanted).unwrap();
    assert!(matches!(&swept.kept[..], [(_, Kept::Wanted)]), "{swept:?}");
    assert!(rig.find(&identity(1)).unwrap().is_some());
}

#[test]
fn a_sweep_judges_what_it_removes_under_the_lock() {
    judged_before_the_lock();
}

#[cfg(feature = "__mutants")]
#[test]
fn a_sweep_that_judges_before_the_lock_is_noticed() {
    use indelible_store::{Mutant, with_mutant};
    let judged = || std::panic::catch_unwind(judged_before_the_lock);
    assert!(with_mutant(Mutant::JudgedUnlocked, judged).is_err());
}

#[test]
fn a_copy_of_a_pool_has_no_memory_of_the_original() {
    let rig = Rig::new();
    let left = rig.leave(&identity(1));
    let found = |file, path: &str| {
        let origin = Origin { file: Some(file), path: path.into() };
        match Backing::find(Folders { origin: &origin, ..rig.folders() }, &identity(1), LEN) {
            Ok(found) => found.is_some(),
            Err(BackingError::OfOriginal { path, origin }) => {
                assert_eq!((path, origin), (left.clone(), ORIGIN.path.clone()));
                false
            }
            Err(error) => panic!("{error}"),
        }
    };
    assert!(found((3, 4), "/srv/moved.pmo"));
    assert!(!found((3, 5), "/srv/copy.pmo"));
    assert!(found((3, 5), "/srv/a pool.pmo"));
    let _used = rig.find(&identity(1)).unwrap();
    assert!(!found((3, 5), "/srv/copy.pmo"));
}

#[test]
fn files_of_a_pool_that_was_deleted_go_by_its_path() {
    let rig = Rig::new();
    let (left, used) = (rig.leave(&identity(1)), rig.create(&identity(2)));
    let another = Origin { path: "/srv/another".into(), ..ORIGIN.clone() };
    let elsewhere = Folders { origin: &another, ..rig.folders() };
    drop(Backing::create(elsewhere, &identity(3), LEN).unwrap());
    let damaged = rig.leave(&identity(4));
    fs::File::options().write(true).open(&damaged).unwrap().write_all_at(b"?", 150).unwrap();
    let sweep = |wanted: u64| {
        sweep_path(rig.memory.path(), &ORIGIN.path, |identity, _| identity.binding == wanted).unwrap()
    };
    assert!(sweep(1).removed.is_empty(), "the pool that is there now knows it");
    let swept = sweep(9);
    assert_eq!(swept.removed, [left]);
    assert!(matches!(&swept.kept[..], [(path, Kept::InUse)] if path == used.path()), "{swept:?}");
    assert!(rig.find(&identity(3)).unwrap().is_some() && damaged.exists());
    used.remove().unwrap();
}

#[test]
fn a_fork_removes_nothing() {
    let rig = Rig::new();
    let backing = rig.create(&identity(1));
    let path = backing.path().to_owned();
    // SAFETY: the child removes a file, which it must not, and ends.
    let child = unsafe { libc::fork() };
    if child == 0 {
        let done = backing.remove().is_ok();
        // SAFETY: ends the child.
        unsafe { libc::_exit(i32::from(!done)) };
    }
    let mut status = 0;
    // SAFETY: waits for the child made above.
    assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
    assert_eq!(status, 0);
    assert!(path.exists() && matches!(rig.find(&identity(1)), Err(BackingError::InUse { .. })));
    backing.remove().unwrap();
}
