//! Damaged, truncated and forged backups: an error, or the same content; no panic, no unbounded
//! memory.

use crate::support::{Content, all, content, expect_same, noise, put, unseen};
use indelible::{Pool, PoolOptions};
use indelible_backup::{BackupError, RestoreOptions, backup_to, import_from, restore_stream, verify_stream};
use sha2::{Digest, Sha256};
use std::io::{self, Write};
use std::path::Path;

const HEADER: usize = 256;
const FRAME: usize = 48;

fn small(dir: &Path) -> (Vec<u8>, Content) {
    let pool = Pool::format(dir.join("a.pmo"), 1 << 20).unwrap();
    for name in ["a", "b"] {
        pool.create(name, 20_000).unwrap();
        put(&pool, name, 3000, &noise(name.len() as u64, 100));
    }
    let mut stream = Vec::new();
    backup_to(&pool, &all(), &mut stream, &mut unseen).unwrap();
    (stream, content(&pool))
}

/// Header and records, without their hashes.
pub fn records(bytes: &[u8]) -> (Vec<u8>, Vec<Vec<u8>>) {
    let (mut at, mut records) = (HEADER + 32, Vec::new());
    while at < bytes.len() {
        let len = FRAME + u32::from_le_bytes(bytes[at + 4..at + 8].try_into().unwrap()) as usize;
        records.push(bytes[at..at + len].to_vec());
        at += len + 32;
    }
    (bytes[..HEADER].to_vec(), records)
}

pub fn seal(header: &[u8], records: &[Vec<u8>]) -> Vec<u8> {
    let mut last = Sha256::digest(header);
    let mut bytes = [header, &last].concat();
    for record in records {
        let mut covered = record.len();
        if header[12] & 1 == 1 && record[..4] == [2, 0, 0, 0] {
            let held = u64::from_le_bytes(record[24..32].try_into().unwrap());
            covered = covered.min(FRAME + 32 * held.count_ones() as usize);
        }
        last = Sha256::new().chain_update(last).chain_update(&record[..covered]).finalize();
        bytes.extend_from_slice(record);
        bytes.extend_from_slice(&last);
    }
    bytes
}

/// Whether anything was restored, which must be correct.
fn attempt(bytes: &[u8], dir: &Path, wanted: &Content) -> bool {
    let to = dir.join("new.pmo");
    let done = restore_stream(
        &mut &bytes[..],
        Path::new("-"),
        &to,
        &RestoreOptions::default(),
        &PoolOptions::new(),
        &mut unseen,
    );
    if done.is_ok() {
        expect_same(&Pool::open(&to).unwrap(), wanted);
        std::fs::remove_file(&to).unwrap();
    }
    assert!(!to.exists());
    done.is_ok()
}

/// In memory if possible, for many pools.
fn fast() -> tempfile::TempDir {
    tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap()
}

#[test]
fn every_byte_flipped_and_every_length_is_noticed() {
    let dir = fast();
    let (bytes, wanted) = small(dir.path());
    assert!(attempt(&bytes, dir.path(), &wanted));
    for at in 0..bytes.len() {
        let mut flipped = bytes.clone();
        flipped[at] ^= 1 << (at % 8);
        let found = verify_stream(&mut &flipped[..], Path::new("-"), &mut unseen);
        assert!(found.map_or(true, |found| !found.damage.is_empty()), "byte {at}");
        let cut = verify_stream(&mut &bytes[..at], Path::new("-"), &mut unseen);
        assert!(cut.map_or(true, |found| !found.damage.is_empty()), "cut at {at}");
        if at % 11 == 0 {
            assert!(!attempt(&flipped, dir.path(), &wanted), "byte {at}");
            assert!(!attempt(&bytes[..at], dir.path(), &wanted), "cut at {at}");
        }
    }
    let more = [&bytes[..], b"x"].concat();
    assert!(!attempt(&more, dir.path(), &wanted));
}

#[test]
fn other_versions_are_named() {
    let dir = fast();
    let (bytes, _) = small(dir.path());
    for version in [0_u8, 2, 200] {
        let mut other = bytes.clone();
        other[8] = version;
        match verify_stream(&mut &other[..], Path::new("-"), &mut unseen) {
            Err(BackupError::Version { found, known: 1, .. }) => assert_eq!(found, u32::from(version)),
            other => panic!("{other:?}"),
        }
    }
    let none = verify_stream(&mut &b"a text that is no backup"[..], Path::new("-"), &mut unseen);
    assert!(matches!(none, Err(BackupError::NotABackup(_))));
}

/// There a record's hash covers the whole body.
#[test]
fn backups_of_earlier_releases_are_read() {
    let dir = fast();
    let (bytes, wanted) = small(dir.path());
    let (mut header, mut records) = records(&bytes);
    assert_eq!(header[12..16], [1, 0, 0, 0]);
    header[12] = 0;
    records.iter_mut().filter(|record| record[0] == 2).for_each(|record| record[40..FRAME].fill(0));
    let earlier = seal(&header, &records);
    assert_ne!(earlier[HEADER + 32..], bytes[HEADER + 32..]);
    assert!(attempt(&earlier, dir.path(), &wanted));
    let mixed = [&header[..], &Sha256::digest(&header), &bytes[HEADER + 32..]].concat();
    assert!(!attempt(&mixed, dir.path(), &wanted));
    // The last byte of the pages.
    let chunk = records.iter_mut().find(|record| record[0] == 2).unwrap();
    *chunk.last_mut().unwrap() ^= 1;
    assert!(!attempt(&seal(&header, &records), dir.path(), &wanted));
    header[12] = 3;
    let later = seal(&header, &records);
    let refused = verify_stream(&mut &later[..], Path::new("-"), &mut unseen);
    assert!(matches!(refused, Err(BackupError::Version { .. })), "{refused:?}");
}

/// Forged by a writer of valid hashes.
#[test]
fn hostile_numbers_under_right_hashes_are_refused_and_allocate_nothing() {
    let dir = fast();
    let (bytes, wanted) = small(dir.path());
    let (header, records) = records(&bytes);
    assert_eq!(seal(&header, &records), bytes);
    let mut refused = 0;
    // The header's counts and parents, and each record's fields of frame and attributes.
    let fields = (8..144)
        .step_by(4)
        .map(|at| (None, at))
        .chain((0..records.len()).flat_map(|n| (0..FRAME + 152).step_by(4).map(move |at| (Some(n), at))));
    for (record, at) in fields {
        for value in [0, 1, 0x7fff_ffff, u32::MAX, 1 << 20] {
            let (mut header, mut records) = (header.clone(), records.clone());
            let target = record.map_or(&mut header, |n| &mut records[n]);
            let Some(field) = target.get_mut(at..at + 4) else { continue };
            if field == u32::to_le_bytes(value) {
                continue;
            }
            field.copy_from_slice(&value.to_le_bytes());
            let hostile = seal(&header, &records);
            let _ = verify_stream(&mut &hostile[..], Path::new("-"), &mut unseen);
            let to = dir.path().join("new.pmo");
            let options = PoolOptions::new();
            let how = RestoreOptions { len: Some(1 << 20), ..RestoreOptions::default() };
            match restore_stream(&mut &hostile[..], Path::new("-"), &to, &how, &options, &mut unseen) {
                Ok(_) => {
                    // Valid attributes: times, keys, marks.
                    let pool = Pool::open(&to).unwrap();
                    let report = indelible::check(&to, &options, &mut |_, _| {}).unwrap();
                    // Flags of a later release are only warned of.
                    let damaged =
                        report.findings.iter().any(|found| found.severity == indelible::Severity::Error);
                    assert!(!damaged, "record {record:?}, {at}: {value:#x}: {report:?}");
                    drop(pool);
                    std::fs::remove_file(&to).unwrap();
                }
                Err(_) => refused += 1,
            }
            assert!(!to.exists());
        }
    }
    assert!(refused > 100, "{refused}");
    expect_same(&Pool::open(dir.path().join("a.pmo")).unwrap(), &wanted);
}

/// Takes some bytes, then fails, as a full disk or closed pipe.
struct Full(usize);

impl Write for Full {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.0 == 0 {
            return Err(io::ErrorKind::StorageFull.into());
        }
        let len = bytes.len().min(self.0);
        self.0 -= len;
        Ok(len)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_destination_that_fails_anywhere_is_an_error_and_leaves_the_pool_as_it_was() {
    let dir = fast();
    let (bytes, wanted) = small(dir.path());
    let pool = Pool::open(dir.path().join("a.pmo")).unwrap();
    // Some run beside a writer, for whose snapshots, kept as bases, a small pool has room.
    for room in (0..bytes.len()).step_by(37) {
        let writer = (room % (37 * 8) == 0).then(|| pool.attach("a").unwrap());
        let failed = backup_to(&pool, &all(), &mut Full(room), &mut unseen);
        assert!(matches!(failed, Err(BackupError::File { .. })), "{room}: {failed:?}");
        assert_eq!(pool.list().count(), 2);
        writer.map_or(Ok(()), |writer| writer.detach()).unwrap();
    }
    let now = content(&pool);
    assert!(now.iter().all(|(name, (_, bytes))| *bytes == wanted[name].1));
}

/// The next backup would take it for unchanged.
#[test]
fn a_page_that_its_hash_does_not_speak_of_is_refused() {
    let dir = fast();
    let (bytes, wanted) = small(dir.path());
    let (header, mut records) = records(&bytes);
    let chunk = records.iter_mut().find(|record| record[0] == 2).unwrap();
    chunk[FRAME] ^= 1;
    let forged = seal(&header, &records);
    let found = verify_stream(&mut &forged[..], Path::new("-"), &mut unseen).unwrap();
    assert!(found.damage[0].what.contains("object"), "{found:?}");
    assert!(!attempt(&forged, dir.path(), &wanted));
}

#[test]
fn a_record_that_is_too_long_is_refused_before_it_is_read() {
    let dir = fast();
    let (bytes, _) = small(dir.path());
    let (_, records) = records(&bytes);
    let objects: usize = records.iter().filter(|record| record[0] == 1).map(|record| record.len() + 32).sum();
    let start = HEADER + 32 + objects;
    let mut frame = bytes[start..start + FRAME].to_vec();
    frame[4..8].fill(0xff);
    let before = [&bytes[..start], &frame].concat();
    // Any byte behind the frame is one too many.
    let mut input = io::Read::chain(&before[..], io::Read::take(io::repeat(0), 1 << 20));
    let found = verify_stream(&mut input, Path::new("-"), &mut unseen).unwrap();
    assert!(found.damage[0].what.contains("start of a record"), "{found:?}");
    assert_eq!(input.into_inner().1.limit(), 1 << 20);
}

#[test]
fn names_that_no_object_can_have_are_refused_before_anything_is_made() {
    let dir = fast();
    let (bytes, _) = small(dir.path());
    let (header, records) = records(&bytes);
    let body = records[1].len() - 1;
    let pool = Pool::format(dir.path().join("to.pmo"), 1 << 20).unwrap();
    let before = pool.info().unwrap().free;
    for name in ["n".repeat(512), "n".repeat(600), "n".repeat(60_000), "a\nb".to_owned(), String::new()] {
        let mut forged = records.clone();
        assert_eq!(&forged[1][body..], b"b");
        forged[1].truncate(body);
        forged[1].extend_from_slice(name.as_bytes());
        let len = (forged[1].len() - FRAME) as u32;
        forged[1][4..8].copy_from_slice(&len.to_le_bytes());
        let forged = seal(&header, &forged);
        let refused = import_from(&mut &forged[..], Path::new("-"), &pool, false, &mut unseen);
        assert!(matches!(refused, Err(BackupError::Damaged { .. })), "{}: {refused:?}", name.len());
        assert_eq!((pool.info().unwrap().free, pool.list().count()), (before, 0));
    }
}
