use indelible::{AttachOptions, MediumKind, Object, Pool, PoolOptions, Tracking};
use std::path::{Path, PathBuf};

const LEN: u64 = 1 << 20;

fn open(path: &Path, medium: MediumKind) -> Pool {
    PoolOptions::new().medium(medium).tracking(Tracking::Explicit).open(path).unwrap()
}

fn on_each_medium(test: impl Fn(&Path, MediumKind, Object)) {
    for (medium, folder) in [(MediumKind::Memory, "/dev/shm"), (MediumKind::File, "/var/tmp")] {
        let dir = tempfile::TempDir::new_in(folder).unwrap();
        let path: PathBuf = dir.path().join("pool");
        let pool =
            PoolOptions::new().medium(medium).tracking(Tracking::Explicit).format(&path, 16 << 20).unwrap();
        pool.create("object", LEN).unwrap();
        let mut object = pool.attach("object").unwrap();
        object.as_mut_slice().fill(0);
        object.psync().unwrap();
        test(&path, medium, object);
    }
}

fn store(object: &mut Object, at: usize, byte: u8) {
    assert!(at < object.len());
    // SAFETY: a byte of the object.
    unsafe { object.as_mut_ptr().add(at).write(byte) };
}

#[test]
fn the_lines_that_were_marked_are_durable_and_no_others_are_logged() {
    on_each_medium(|path, medium, mut object| {
        let before = object.stats().logged_bytes;
        for (at, marked) in
            [(127, 127..129), (128, 0..0), (8191, 8191..8193), (8192, 0..0), (LEN as usize - 1, 0..0)]
        {
            store(&mut object, at, 7);
            object.mark_dirty(marked);
        }
        object.mark_dirty(LEN as usize - 1..LEN as usize + 100);
        store(&mut object, 1000, 8);
        store(&mut object, 16384, 8);
        object.psync().unwrap();
        assert_eq!(object.stats().logged_bytes - before, 5 * 64, "{medium:?}");
        drop(object);
        let pool = open(path, medium);
        let object = pool.attach("object").unwrap();
        let stored =
            |byte| object.as_slice().iter().enumerate().filter(move |(_, b)| **b == byte).map(|(at, _)| at);
        assert!(stored(7).eq([127, 128, 8191, 8192, LEN as usize - 1]), "{medium:?}");
        assert_eq!(stored(8).next(), None, "{medium:?}");
    });
}

#[test]
fn a_mark_is_good_for_one_psync() {
    on_each_medium(|_, medium, mut object| {
        store(&mut object, 64, 1);
        object.mark_dirty(64..65);
        object.psync().unwrap();
        let before = object.stats().logged_bytes;
        store(&mut object, 64, 2);
        object.psync().unwrap();
        assert_eq!(object.stats().logged_bytes, before, "{medium:?}");
        object.mark_dirty(64..65);
        object.psync().unwrap();
        assert_eq!(object.stats().logged_bytes, before + 64, "{medium:?}");
    });
}

#[test]
fn many_explicit_pages_are_compared_line_by_line() {
    on_each_medium(|path, medium, mut object| {
        let before = object.stats().logged_bytes;
        let places: Vec<usize> =
            (0..LEN as usize / 4096).map(|page| page * 4096 + page * 64 % 4096).collect();
        for at in &places {
            store(&mut object, *at, 3);
            object.mark_dirty(*at..at + 1);
        }
        object.psync().unwrap();
        assert_eq!(object.stats().logged_bytes - before, places.len() as u64 * 64, "{medium:?}");
        drop(object);
        let pool = open(path, medium);
        let object = pool.attach("object").unwrap();
        assert!(places.iter().all(|at| object.as_slice()[*at] == 3), "{medium:?}");
    });
}

#[test]
fn an_attachment_has_its_own_tracking_and_keeps_it_when_the_object_moves() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("pool");
    let pool = PoolOptions::new().tracking(Tracking::Mprotect).format(&path, 16 << 20).unwrap();
    for name in ["marked", "behind", "found"] {
        pool.create(name, 4096).unwrap();
    }
    let explicit = AttachOptions::new().tracking(Tracking::Explicit);
    let mut marked = pool.attach_with("marked", &explicit).unwrap();
    let mut found = pool.attach_with("found", &AttachOptions::new()).unwrap();
    assert_eq!((marked.rung().as_str(), found.rung().as_str()), ("explicit", "mprotect"));
    assert!(marked.needs_marks() && !found.needs_marks());
    marked.grow(1 << 20).unwrap();
    for object in [&mut marked, &mut found] {
        store(object, 100, 7);
        store(object, 2000, 7);
    }
    marked.mark_dirty(100..101);
    marked.psync().unwrap();
    found.psync().unwrap();
    assert_eq!(marked.rung(), "explicit");
    drop((marked, found));
    let bytes = |name: &str| {
        let object = pool.attach(name).unwrap();
        (object.as_slice()[100], object.as_slice()[2000])
    };
    assert_eq!(bytes("marked"), (7, 0), "one store was marked");
    assert_eq!(bytes("found"), (7, 7), "stores are found");
}
