//! Anchors of sealed objects, of every kind: a complete older state is told from the newest (S3.5).
//! swtpm emulates the TPM, where installed.

use super::support::{Ground, World, everywhere, seal_key as key};
use indelible::{
    Anchor, CommandAnchor, Counter, CreateOptions, ErrorKind, FileAnchor, Object, Pool, SealKey, TpmAnchor,
    Tracking,
};
use indelible_testing::EmulatedTpm;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;
use tempfile::TempDir;

const LONG: Duration = Duration::from_secs(100);
const INDEX: u32 = 0x0180_0042;

struct Kind {
    folder: TempDir,
    tpm: Option<EmulatedTpm>,
    make: fn(&Kind, &Path) -> SealKey,
}

impl Kind {
    fn record(&self) -> PathBuf {
        self.folder.path().join("anchor")
    }

    fn key(&self) -> SealKey {
        self.at("anchor")
    }

    fn at(&self, name: &str) -> SealKey {
        (self.make)(self, &self.folder.path().join(name))
    }
}

fn keeper(path: &Path) -> String {
    let path = path.display();
    format!(
        "read -r what record; case $what in get) cat '{path}' 2>&- || true ;; \
         put) echo \"$record\" >'{path}' && echo stored ;; *) exit 9 ;; esac"
    )
}

fn kinds() -> Vec<Kind> {
    let kind = |make| Kind { folder: tempfile::tempdir().unwrap(), tpm: None, make };
    let file = kind(|_, path| key().anchored(FileAnchor::new(path)));
    let command = kind(|_, path| key().anchored(CommandAnchor::new(&keeper(path), LONG)));
    let mut tpm = kind(|kind, path| {
        let device = kind.tpm.as_ref().unwrap().socket();
        let index = INDEX + u32::from(path.file_name().unwrap().as_encoded_bytes()[0] - b'a');
        key().anchored(TpmAnchor::new(path, index, Some(device)))
    });
    tpm.tpm = EmulatedTpm::start(tpm.folder.path(), "anchors in a TPM");
    let mut all = vec![file, command];
    if tpm.tpm.is_some() {
        all.push(tpm);
    }
    all
}

fn anchored(pool: &Pool, with: &SealKey) {
    let mut a = pool.create_attached_with("a", &CreateOptions::new(9000).sealed(with, "test")).unwrap();
    a.range_mut(0..8).fill(1);
    a.psync().unwrap();
    a.detach().unwrap();
}

fn write(pool: &Pool, with: &SealKey, value: u8) {
    let mut a = pool.attach_sealed("a", b"", with).unwrap();
    a.range_mut(0..8).fill(value);
    a.psync().unwrap();
    a.detach().unwrap();
}

#[test]
fn a_complete_older_state_is_told_from_the_newest() {
    for kind in kinds() {
        let world = World::new(Ground::File, indelible::Tracking::Auto, false);
        let (pool, with) = (world.format(), kind.key());
        anchored(&pool, &with);
        let older = world.raw();
        write(&pool, &with, 2);
        drop(pool);
        let newest = world.raw();
        std::fs::write(world.path(), &older).unwrap();
        let pool = world.open();
        for error in [
            pool.attach_sealed("a", b"", &with).err().unwrap(),
            pool.attach_read_sealed("a", b"", &with).err().unwrap(),
            pool.resize_sealed("a", 5, b"", &with).unwrap_err(),
            pool.reencrypt("a", b"", &[&with], |_, _| {}).unwrap_err(),
        ] {
            assert_eq!(error.kind(), ErrorKind::PoolBehind, "{error}");
        }
        // Without the anchor nothing is told apart: so it is required.
        let error = pool.attach_sealed("a", b"", &key()).err().unwrap();
        assert!(error.kind() == ErrorKind::Sealed && error.to_string().contains("anchor"), "{error}");
        assert_eq!(pool.attach_read_sealed("a", b"", &key()).err().unwrap().kind(), ErrorKind::Sealed);
        drop(pool);
        std::fs::write(world.path(), &newest).unwrap();
        let pool = world.open();
        assert_eq!(pool.attach_read_sealed("a", b"", &with).unwrap().as_slice()[..8], [2; 8]);
        drop(pool);
        std::fs::write(world.path(), &older).unwrap();
        let pool = world.open();
        pool.set_anchor("a", b"", &with).unwrap();
        let a = pool.attach_sealed("a", b"", &with).unwrap();
        assert_eq!(a.as_slice()[..8], [1; 8]);
        a.detach().unwrap();
        drop(pool);
        std::fs::write(world.path(), &newest).unwrap();
        let pool = world.open();
        assert!(pool.attach_sealed("a", b"", &with).is_err());
    }
}

#[test]
fn an_anchor_that_is_behind_empty_or_of_another_object_is_named() {
    for kind in kinds() {
        let world = World::new(Ground::File, indelible::Tracking::Auto, false);
        let (pool, path, with) = (world.format(), kind.record(), kind.key());
        anchored(&pool, &with);
        let older = std::fs::read(&path).unwrap();
        write(&pool, &with, 2);
        let newest = std::fs::read(&path).unwrap();
        let refused = |with: &SealKey| pool.attach_sealed("a", b"", with).err().unwrap();
        std::fs::write(&path, &older).unwrap();
        assert_eq!(refused(&with).kind(), ErrorKind::AnchorBehind);
        std::fs::remove_file(&path).unwrap();
        assert!(refused(&with).to_string().contains("no record of it"));
        std::fs::write(&path, "something").unwrap();
        assert!(refused(&with).to_string().contains("no record of this release"));
        std::fs::write(&path, &newest).unwrap();
        let other = kind.at("other");
        pool.create_attached_with("b", &CreateOptions::new(9000).sealed(&other, ""))
            .unwrap()
            .detach()
            .unwrap();
        assert!(refused(&other).to_string().contains("another object"));
        let nowhere = kind.at("nowhere/anchor");
        let error = refused(&nowhere);
        assert!(error.to_string().contains("no record of it"), "{error}");
        assert_eq!(pool.set_anchor("a", b"", &nowhere).unwrap_err().kind(), ErrorKind::Io);
        pool.attach_sealed("a", b"", &with).unwrap().detach().unwrap();
        let third = kind.at("third");
        pool.set_anchor("a", b"", &third).unwrap();
        write(&pool, &third, 9);
        assert_eq!(refused(&with).kind(), ErrorKind::AnchorBehind);
        pool.set_anchor("a", b"", &key()).unwrap();
        pool.attach_sealed("a", b"", &key()).unwrap().detach().unwrap();
    }
}

// S3.5
#[test]
fn a_process_that_dies_leaves_what_was_psynced_since_the_anchor_was_told() {
    everywhere(|world| {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("anchor");
        let pool = world.format();
        let with = key().anchored(FileAnchor::new(&path));
        anchored(&pool, &with);
        let each = key().anchored(FileAnchor::new(&path).every(Duration::ZERO));
        let told = || std::fs::read_to_string(&path).unwrap();
        let mut a = pool.attach_sealed("a", b"", &with).unwrap();
        let begun = told();
        assert!(begun.contains(" open"));
        a.range_mut(0..8).fill(3);
        a.psync().unwrap();
        assert_eq!(told(), begun, "a psync tells it only now and then");
        a.checkpoint().unwrap();
        let checkpointed = told();
        assert!(checkpointed != begun && checkpointed.contains(" open"));
        a.detach().unwrap();
        assert!(told().contains(" left"));
        let mut a = pool.attach_sealed("a", b"", &each).unwrap();
        a.range_mut(0..8).fill(4);
        a.psync().unwrap();
        let psynced = told();
        a.range_mut(0..8).fill(5);
        a.psync().unwrap();
        a.grow(20_000).unwrap();
        assert_ne!(told(), psynced);
        a.detach().unwrap();
        std::fs::write(&path, psynced).unwrap();
        pool.reencrypt("a", b"", &[&with], |_, _| {}).unwrap();
        pool.resize_sealed("a", 10_000, b"", &with).unwrap();
        let a = pool.attach_sealed("a", b"", &with).unwrap();
        assert!(a.as_slice()[..8] == [5; 8] && a.len() == 10_000);
    });
}

#[test]
fn the_record_of_a_tpm_is_not_put_back_with_the_pool() {
    // The folder has the pool's record, as beside the pool; the TPM is elsewhere.
    let (folder, state, world) = (
        tempfile::tempdir().unwrap(),
        tempfile::tempdir().unwrap(),
        World::new(Ground::File, indelible::Tracking::Auto, false),
    );
    let start = |state: &Path| EmulatedTpm::start(state, "anchors in a TPM");
    let Some(tpm) = start(state.path()) else { return };
    let (path, socket) = (folder.path().join("anchor"), tpm.socket().to_owned());
    let anchor = TpmAnchor::new(&path, INDEX, Some(&socket));
    assert_eq!(anchor.interval(), Duration::from_secs(3600), "a TPM wears");
    let with = key().anchored(anchor);
    let pool = world.format();
    anchored(&pool, &with);
    // While a process writes, states since the last record are accepted. With a file that lasts,
    // once they are put back with the record.
    let mut a = pool.attach_sealed("a", b"", &with).unwrap();
    a.range_mut(0..8).fill(2);
    a.psync().unwrap();
    let (open, recorded) = (world.raw(), std::fs::read(&path).unwrap());
    a.detach().unwrap();
    let newest = (world.raw(), std::fs::read(&path).unwrap());
    drop(pool);
    let put = |pool: &[u8], record: &[u8]| {
        std::fs::write(world.path(), pool).unwrap();
        std::fs::write(&path, record).unwrap();
        world.open()
    };
    let refused = |pool: &Pool, with: &SealKey| pool.attach_sealed("a", b"", with).err().unwrap();
    let error = refused(&put(&open, &recorded), &with);
    assert!(
        error.kind() == ErrorKind::AnchorBehind
            && error.to_string().contains("the counter of the anchor is at"),
        "{error}"
    );
    // A record without a counter does not prove that it is the newest.
    let text = String::from_utf8(recorded.clone()).unwrap();
    let plain = text.split(' ').take(6).collect::<Vec<_>>().join(" ").replace(" 2 ", " 1 ");
    let error = refused(&put(&open, plain.as_bytes()), &with);
    assert!(error.to_string().contains("made without its counter"), "{error}");
    let error = refused(&put(&open, &recorded), &key().anchored(FileAnchor::new(&path)));
    assert!(error.to_string().contains("give the counter with it"), "{error}");
    let newer = String::from_utf8(newest.1.clone()).unwrap();
    let count = newer.split(' ').nth(6).unwrap();
    let mut fields: Vec<&str> = text.split(' ').collect();
    fields[6] = count;
    let error = refused(&put(&open, fields.join(" ").as_bytes()), &with);
    assert!(error.to_string().contains("not made with the object's key"), "{error}");
    drop(tpm);
    let error = refused(&put(&newest.0, &newest.1), &with);
    assert!(error.kind() == ErrorKind::Io && error.to_string().contains("TPM"), "{error}");
    let other = tempfile::tempdir().unwrap();
    let tpm = start(other.path()).unwrap();
    let elsewhere = key().anchored(TpmAnchor::new(&path, INDEX, Some(tpm.socket())));
    let error = refused(&world.open(), &elsewhere);
    assert!(
        error.kind() == ErrorKind::Io && error.to_string().contains("has no counter 0x1800042"),
        "{error}"
    );
    drop(tpm);
    let _tpm = start(state.path()).unwrap();
    let pool = world.open();
    let a = pool.attach_sealed("a", b"", &with).unwrap();
    assert_eq!(a.as_slice()[..8], [2; 8]);
    let left_behind = std::fs::read(&path).unwrap();
    a.detach().unwrap();
    drop(pool);
    let pool = put(&open, &left_behind);
    assert_eq!(refused(&pool, &with).kind(), ErrorKind::AnchorBehind);
    pool.set_anchor("a", b"", &with).unwrap();
    pool.attach_sealed("a", b"", &with).unwrap().detach().unwrap();
}

#[test]
fn a_command_that_keeps_no_record_is_no_anchor() {
    let world = World::new(Ground::File, indelible::Tracking::Auto, false);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("anchor");
    let (pool, right) = (world.format(), keeper(&path));
    let by = |command: &str, timeout| key().anchored(CommandAnchor::new(command, timeout));
    let with = by(&right, LONG);
    anchored(&pool, &with);
    for (command, words) in [
        ("exit 3", "exit status: 3"),
        ("echo out of reach >&2; exit 1", "said: out of reach"),
        ("printf '\\377\\376'", "utf-8"),
        ("exit 0", "no record of it"),
        ("yes", "no record of this release"),
        (&format!("read -r what record; cat '{}'", path.display()), "did not answer \"stored\""),
        (&format!("exec 0>&-; cat '{}'", path.display()), "did not answer \"stored\""),
    ] {
        let error = pool.attach_sealed("a", b"", &by(command, LONG)).err().unwrap();
        assert!(error.to_string().contains(words), "{command}: {error}");
        pool.attach_sealed("a", b"", &with).unwrap().detach().unwrap();
    }
    let error =
        pool.attach_sealed("a", b"", &by("exec sleep 1000", Duration::from_millis(30))).err().unwrap();
    assert!(error.kind() == ErrorKind::Io && error.to_string().contains("no end after 0.03 s"), "{error}");
    let each = key().anchored(CommandAnchor::new(&right, LONG).every(Duration::ZERO));
    let mut a = pool.attach_sealed("a", b"", &each).unwrap();
    let told = || std::fs::read_to_string(&path).unwrap();
    let begun = told();
    a.range_mut(0..8).fill(7);
    a.psync().unwrap();
    assert_ne!(told(), begun);
    a.detach().unwrap();
    assert!(told().contains(" left"));
}

/// The object's writer psyncs, and tells its own anchor, whenever this one is asked.
#[derive(Debug)]
struct Busy(FileAnchor, Mutex<Option<Object>>);

impl Anchor for Busy {
    fn read(&self) -> std::io::Result<Option<String>> {
        if let Some(object) = &mut *self.1.lock().unwrap() {
            object.range_mut(0..1)[0] += 1;
            object.psync().unwrap();
        }
        self.0.read()
    }

    fn write(&self, record: &str) -> std::io::Result<()> {
        self.0.write(record)
    }
}

#[test]
fn a_reader_beside_a_writer_is_not_refused_as_the_writer_goes_on() {
    everywhere(|world| {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("anchor");
        let file = || FileAnchor::new(&path).every(Duration::ZERO);
        let pool = world.format();
        anchored(&pool, &key().anchored(file()));
        let older = world.raw();
        let writer = pool.attach_sealed("a", b"", &key().anchored(file())).unwrap();
        let busy = key().anchored(Busy(file(), Mutex::new(Some(writer))));
        for _ in 0..3 {
            let mut reader = pool.attach_snapshot_sealed_anywhere("a", b"", &busy).unwrap();
            let shown = reader.as_slice()[0];
            assert!(shown > 1 && reader.refresh().unwrap() && reader.as_slice()[0] > shown);
        }
        drop(busy);
        drop(pool);
        if world.ground != Ground::File {
            return;
        }
        std::fs::write(world.path(), older).unwrap();
        let error = world.open().attach_snapshot_sealed("a", b"", &key().anchored(file())).err().unwrap();
        assert_eq!(error.kind(), ErrorKind::PoolBehind, "{error}");
    });
}

#[derive(Debug)]
struct Fickle {
    file: FileAnchor,
    counter: AtomicU64,
    reads: Option<AtomicU64>,
}

impl Anchor for Fickle {
    fn read(&self) -> std::io::Result<Option<String>> {
        let record = self.file.read()?;
        Ok(match &self.reads {
            Some(reads) if reads.fetch_add(1, Relaxed) % 2 == 1 => {
                record.map(|it| it.replace(" left", " open"))
            }
            _ => record,
        })
    }

    fn write(&self, record: &str) -> std::io::Result<()> {
        self.file.write(record)
    }

    fn counter(&self) -> Option<&dyn Counter> {
        Some(self)
    }
}

impl Counter for Fickle {
    fn define(&self) -> std::io::Result<()> {
        Ok(())
    }

    fn value(&self) -> std::io::Result<u64> {
        Ok(self.counter.load(Relaxed))
    }

    fn increment(&self) -> std::io::Result<()> {
        self.counter.fetch_add(1, Relaxed);
        Ok(())
    }
}

// S3.5
#[test]
fn an_anchor_that_never_says_the_same_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let world = World::new(Ground::Memory, Tracking::Auto, false);
    let pool = world.format();
    let fickle = |counter, reads| {
        let file = FileAnchor::new(folder.path().join("anchor"));
        key().anchored(Fickle { file, counter: AtomicU64::new(counter), reads })
    };
    anchored(&pool, &fickle(0, None));
    let record = std::fs::read_to_string(folder.path().join("anchor")).unwrap();
    let counter = record.split(' ').nth(6).unwrap().parse().unwrap();
    let error = pool.attach_sealed("a", b"", &fickle(counter, Some(AtomicU64::new(0)))).err().unwrap();
    assert!(error.to_string().contains("another one each time"), "{error}");
    pool.attach_sealed("a", b"", &fickle(counter, None)).unwrap().detach().unwrap();
}

#[test]
fn an_anchor_in_a_file_replaces_regular_files_alone() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let record = |path: &Path| std::fs::read_to_string(path).unwrap();
    // A symlink stays, and the file that it leads to has the record.
    std::fs::create_dir(at("elsewhere")).unwrap();
    std::fs::write(at("elsewhere/record"), "first\n").unwrap();
    std::os::unix::fs::symlink("elsewhere/record", at("link")).unwrap();
    let linked = FileAnchor::new(at("link"));
    assert_eq!(linked.read().unwrap().as_deref(), Some("first\n"));
    linked.write("second").unwrap();
    assert_eq!(record(&at("elsewhere/record")), "second\n");
    assert!(std::fs::symlink_metadata(at("link")).unwrap().is_symlink());
    std::fs::write(at("precious"), "precious").unwrap();
    std::os::unix::fs::symlink("precious", at("a.new")).unwrap();
    FileAnchor::new(at("a")).write("record").unwrap();
    assert_eq!((record(&at("precious")).as_str(), record(&at("a")).as_str()), ("precious", "record\n"));
    std::fs::create_dir(at("folder")).unwrap();
    std::os::unix::fs::symlink("nowhere", at("dangling")).unwrap();
    let fifo = std::process::Command::new("mkfifo").arg(at("fifo")).status().unwrap();
    assert!(fifo.success());
    for name in ["folder", "dangling", "fifo"] {
        let anchor = FileAnchor::new(at(name));
        assert!(anchor.read().is_err() && anchor.write("record").is_err(), "{name}");
    }
    let device = FileAnchor::new("/dev/null");
    assert!(device.read().is_err() && device.write("record").is_err());
    use std::os::unix::fs::FileTypeExt;
    assert!(std::fs::symlink_metadata(at("fifo")).unwrap().file_type().is_fifo());
    assert!(std::fs::symlink_metadata("/dev/null").unwrap().file_type().is_char_device());
    let left = std::fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name());
    assert_eq!(left.filter(|name| name.to_string_lossy().ends_with(".new")).count(), 1);
}
