use super::support::everywhere;
use indelible::{CreateOptions, ErrorKind, MediumKind, Pool, PoolOptions};
use indelible_store::table;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

const SIZE: u64 = 50_000;

fn kind<T>(result: indelible::Result<T>) -> ErrorKind {
    result.err().expect("it is refused").kind()
}

fn free(pool: &Pool) -> u64 {
    pool.collect(&mut |_, _| {}).unwrap();
    pool.info().unwrap().free
}

#[test]
fn s2_03_a_deleted_object_goes_with_the_last_that_has_it() {
    everywhere(|world| {
        let pool = world.format();
        let lanes = ["first", "second"].map(|name| pool.create_attached(name, SIZE).unwrap());
        for object in lanes {
            object.detach().unwrap();
        }
        let before = free(&pool);
        let mut object = pool.create_attached("a", SIZE).unwrap();
        let (id, address) = (pool.stat("a").unwrap().id, object.as_slice().as_ptr());
        object.range_mut(0..100).fill(1);
        object.psync().unwrap();
        pool.delete("a", b"").unwrap();
        assert_eq!(kind(pool.stat("a")), ErrorKind::NotFound);
        assert_eq!(kind(pool.attach("a")), ErrorKind::NotFound);
        assert_eq!(kind(pool.attach_read("a")), ErrorKind::NotFound);
        assert_eq!(kind(pool.delete("a", b"")), ErrorKind::NotFound);
        assert_eq!(kind(pool.snapshot("a", "b", b"")), ErrorKind::NotFound);
        let mut other = pool.create_attached("a", SIZE).unwrap();
        assert_ne!(other.as_slice().as_ptr(), address);
        let stats = [object.stat().unwrap(), other.stat().unwrap()];
        assert_eq!(stats.map(|stat| (stat.id == id, stat.deleted)), [(true, true), (false, false)]);
        other.as_mut_slice().fill(2);
        other.psync().unwrap();
        object.range_mut(50..40_000).fill(3);
        object.psync().unwrap();
        object.range_mut(0..10).fill(4);
        object.revert().unwrap();
        assert!(object.as_slice()[..50].iter().all(|byte| *byte == 1), "what was psynced comes back");
        assert!(object.as_slice()[50..40_000].iter().all(|byte| *byte == 3), "what was psynced comes back");
        object.grow(2 * SIZE).unwrap();
        object.psync().unwrap();
        assert!(other.as_slice().iter().all(|byte| *byte == 2), "the other one is untouched");
        object.detach().unwrap();
        other.detach().unwrap();
        pool.destroy("a").unwrap();
        assert!(pool.store().find_id(&id).is_err(), "it went with its detach");
        assert_eq!(pool.info().unwrap().free, before, "before anything is collected");
    });
}

#[test]
fn s2_03_deletes_race_with_attaches_snapshots_and_each_other() {
    const ROUNDS: u64 = 300;
    let dir = tempfile::tempdir().unwrap();
    let memory = PoolOptions::new().medium(MediumKind::Memory);
    let path = dir.path().join("pool.pmo");
    let pool = memory.format(&path, 64 << 20).unwrap();
    let over = AtomicBool::new(false);
    let refused = |result: indelible::Result<()>, allowed: &[ErrorKind]| match result {
        Err(error) if !allowed.contains(&error.kind()) => panic!("{error}"),
        result => result.is_ok(),
    };
    let deleted: u64 = std::thread::scope(|scope| {
        let deleters = [(); 2].map(|()| {
            scope.spawn(|| {
                let mut deleted = 0;
                while !over.load(Ordering::Relaxed) {
                    deleted += u64::from(refused(pool.delete("a", b""), &[ErrorKind::NotFound]));
                }
                deleted
            })
        });
        scope.spawn(|| {
            let busy = [ErrorKind::NotFound, ErrorKind::Held, ErrorKind::Busy];
            while !over.load(Ordering::Relaxed) {
                if refused(pool.snapshot("a", "s", b""), &busy) {
                    refused(pool.delete("s", b""), &[]);
                }
            }
        });
        for round in 1..=ROUNDS {
            let mut object = pool.create_attached("a", 20_000).unwrap();
            for step in 0..3 {
                object.as_mut_slice().fill((round + step) as u8);
                object.psync().unwrap();
            }
            object.as_mut_slice().fill(0);
            object.revert().unwrap();
            assert!(object.as_slice().iter().all(|byte| *byte == (round + 2) as u8), "round {round}");
            object.detach().unwrap();
            while pool.stat("a").is_ok() {
                std::thread::yield_now();
            }
        }
        over.store(true, Ordering::Relaxed);
        deleters.into_iter().map(|thread| thread.join().unwrap()).sum()
    });
    assert_eq!(deleted, ROUNDS, "each is deleted once");
    pool.collect(&mut |_, _| {}).unwrap();
    assert_eq!(pool.info().unwrap().objects, 0);
    drop(pool);
    let report = indelible::check(&path, &memory, &mut |_, _| {}).unwrap();
    assert!(report.findings.is_empty(), "{:?}", report.findings);
}

#[test]
fn s2_03_readers_keep_what_was_deleted() {
    everywhere(|world| {
        let pool = world.format();
        let mut object = pool.create_attached("a", SIZE).unwrap();
        object.as_mut_slice().fill(7);
        object.psync().unwrap();
        object.detach().unwrap();
        let id = pool.stat("a").unwrap().id;
        let readers = [pool.attach_read("a").unwrap(), pool.attach_read("a").unwrap()];
        assert_eq!(kind(pool.destroy("a")), ErrorKind::Held);
        pool.delete("a", b"").unwrap();
        assert_eq!(kind(pool.attach_read("a")), ErrorKind::NotFound);
        for reader in readers {
            assert_eq!(reader.stat().unwrap().id, id);
            assert!(pool.store().find_id(&id).is_ok(), "a reader has it");
            assert!(reader.as_slice().iter().all(|byte| *byte == 7), "a reader sees it");
        }
        assert!(pool.store().find_id(&id).is_err(), "it went with its last reader");
    });
}

#[test]
fn s2_03_deleting_asks_for_the_key_and_keeps_what_others_share() {
    everywhere(|world| {
        let pool = world.format();
        pool.create_with("a", &CreateOptions::new(SIZE).write_key(b"w")).unwrap();
        assert_eq!(kind(pool.delete("a", b"")), ErrorKind::WrongKey);
        assert_eq!(kind(pool.delete("b", b"w")), ErrorKind::NotFound);
        let mut object = pool.attach_with_key("a", b"w").unwrap();
        object.as_mut_slice().fill(1);
        object.psync().unwrap();
        pool.snapshot("a", "kept", b"w").unwrap();
        object.range_mut(0..10).fill(2);
        object.psync().unwrap();
        let kept = pool.attach_read_with_key("kept", b"w").ok();
        pool.delete("kept", b"w").unwrap();
        pool.delete("a", b"w").unwrap();
        object.range_mut(20_000..20_010).fill(3);
        object.psync().unwrap();
        assert_eq!(object.as_slice()[30_000], 1, "shared with the snapshot");
        drop(kept);
        object.detach().unwrap();
        assert_eq!(pool.info().unwrap().objects, 0);
    });
}

#[test]
fn s2_04_a_volatile_object_is_refused_after_a_reboot() {
    everywhere(|world| {
        let pool = world.format();
        pool.create_with("cache", &CreateOptions::new(SIZE).volatile(true)).unwrap();
        let stat = pool.stat("cache").unwrap();
        assert_eq!((stat.volatile, stat.gone), (true, false));
        let mut cache = pool.attach("cache").unwrap();
        cache.as_mut_slice().fill(1);
        cache.psync().unwrap();
        cache.detach().unwrap();
        assert!(pool.attach_read("cache").unwrap().as_slice().iter().all(|byte| *byte == 1));

        let volatile = table::CreateOptions { size: SIZE, volatile: Some([9; 16]), ..Default::default() };
        for name in ["old", "older"] {
            pool.store().create(name, &volatile).unwrap();
        }
        let stat = pool.stat("old").unwrap();
        assert_eq!((stat.volatile, stat.gone), (true, true));
        let refused = pool.attach("old").err().unwrap();
        assert_eq!(refused.kind(), ErrorKind::VolatileGone);
        assert!(refused.to_string().contains("started anew since it was made"), "{refused}");
        assert_eq!(kind(pool.attach_read("old")), ErrorKind::VolatileGone);
        assert_eq!(kind(pool.attach_snapshot("old")), ErrorKind::VolatileGone);
        assert_eq!(kind(pool.resize("old", 100, b"")), ErrorKind::VolatileGone);
        assert_eq!(kind(pool.snapshot("old", "new", b"")), ErrorKind::VolatileGone);
        assert_eq!(
            kind(pool.create_from("old", "new", b"", &CreateOptions::new(0))),
            ErrorKind::VolatileGone
        );
        let made = pool.create_attached("old", SIZE).unwrap();
        assert!(made.as_slice().iter().all(|byte| *byte == 0), "it is another object");
        assert_eq!(pool.collect(&mut |_, _| {}).unwrap().removed, 1, "the older one");
        assert_eq!(kind(pool.stat("older")), ErrorKind::NotFound);
        assert!(!pool.stat("cache").unwrap().gone);
    });
}

#[test]
fn s2_05_a_tied_object_outlives_the_others() {
    everywhere(|world| {
        let pool = world.format();
        for name in ["index", "part", "cache", "other"] {
            pool.create_with(name, &CreateOptions::new(SIZE).key(b"k")).unwrap();
        }
        let id = pool.stat("part").unwrap().id;
        assert_eq!(kind(pool.tie("part", "index", b"")), ErrorKind::WrongKey);
        for to in ["index", "other", "index"] {
            pool.tie("part", to, b"k").unwrap();
        }
        pool.tie("index", "other", b"k").unwrap();
        let refused = pool.tie("other", "part", b"k").unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::TieCycle);
        assert!(refused.to_string().contains("neither could ever go"), "{refused}");
        assert_eq!(kind(pool.tie("part", "part", b"k")), ErrorKind::TieCycle);
        let missing = pool.tie("part", "nothing", b"k").unwrap_err();
        assert!(missing.to_string().contains("tie objects to object \"nothing\""), "{missing}");
        let names =
            || pool.ties("part").unwrap().into_iter().map(|tie| (tie.name, tie.deleted)).collect::<Vec<_>>();
        assert_eq!(names(), [("index".to_owned(), false), ("other".to_owned(), false)]);

        pool.rename("other", "another", b"k").unwrap();
        assert_eq!(names()[1].0, "another");
        let mut index = pool.attach_with_key("index", b"k").unwrap();
        index.as_mut_slice().fill(3);
        index.psync().unwrap();
        pool.delete("index", b"k").unwrap();
        assert_eq!(names()[0], ("index".to_owned(), true));
        assert!(pool.untie("part", "index", b"k").unwrap());
        assert!(!pool.untie("part", "index", b"k").unwrap());
        index.psync().unwrap();
        index.detach().unwrap();

        pool.snapshot("part", "kept", b"k").unwrap();
        pool.create_from("part", "copy", b"k", &CreateOptions::new(0)).unwrap();
        assert_eq!((pool.ties("kept").unwrap(), pool.ties("copy").unwrap()), (Vec::new(), Vec::new()));
        assert_eq!(kind(pool.tie("another", "kept", b"k")), ErrorKind::ObjectReadOnly);
        for name in ["kept", "copy"] {
            pool.destroy_with_key(name, b"k").unwrap();
        }
        pool.resize("part", 2 * SIZE, b"k").unwrap();
        pool.destroy_with_key("part", b"k").unwrap();
        pool.collect(&mut |_, _| {}).unwrap();
        assert!(pool.store().find_id(&id).is_ok(), "what it is tied to is there");
        pool.destroy_with_key("another", b"k").unwrap();
        assert!(pool.store().find_id(&id).is_err(), "and gone");
        pool.collect(&mut |_, _| {}).unwrap();
        assert_eq!(pool.info().unwrap().objects, 1, "the cache, which is not tied");
    });
}

#[test]
fn s2_05_a_tied_object_goes_with_the_thread() {
    everywhere(|world| {
        let pool = world.format();
        let id = |name| pool.stat(name).unwrap().id;
        let there = |id: &[u8; 16]| pool.store().find_id(id).is_ok();
        for name in ["a", "b", "c"] {
            pool.create_with(name, &CreateOptions::new(SIZE).key(b"k")).unwrap();
        }
        let (a, b, c) = (id("a"), id("b"), id("c"));
        assert_eq!(kind(pool.tie_to_thread("a", b"")), ErrorKind::WrongKey);
        assert_eq!(kind(pool.tie_to_process("none", b"k")), ErrorKind::NotFound);
        pool.tie_to_process("c", b"k").unwrap();
        let names = |name| pool.ties(name).unwrap().into_iter().map(|tie| tie.name).collect::<Vec<_>>();
        thread::scope(|threads| {
            let own = threads.spawn(|| {
                for name in ["a", "b", "c", "a"] {
                    pool.tie_to_thread(name, b"k").unwrap();
                }
                assert_eq!((names("a"), names("c").len()), (names("b"), 2));
                assert!(names("a")[0].ends_with(&format!(" of process {}", std::process::id())));
                pool.destroy_with_key("a", b"k").unwrap();
                pool.delete("c", b"k").unwrap();
                pool.collect(&mut |_, _| {}).unwrap();
                assert!(there(&a) && there(&c), "the thread is not at its end");
            });
            own.join().unwrap();
        });
        assert!(!there(&a), "the thread has ended");
        assert!(there(&b) && there(&c), "one was not deleted, and the process goes on with the other");
        let (store, other) = (pool.store().clone(), pool.clone());
        drop(pool);
        assert!(store.find_id(&c).is_ok());
        drop(other);
        assert!(store.find_id(&c).is_err() && store.find_id(&b).is_ok());
    });
}

#[test]
fn an_object_is_tied_to_many_and_not_to_any_number() {
    let dir = tempfile::tempdir().unwrap();
    let memory = PoolOptions::new().medium(MediumKind::Memory);
    let pool = memory.format(dir.path().join("pool.pmo"), 128 << 20).unwrap();
    pool.create("a", 1).unwrap();
    let names: Vec<String> = (0..4097).map(|nth| format!("{nth}")).collect();
    let sparse = CreateOptions::new(1).sparse(true);
    for name in &names {
        pool.create_with(name, &sparse).unwrap();
    }
    for name in &names[..4096] {
        pool.tie("a", name, b"").unwrap();
    }
    assert_eq!(kind(pool.tie("a", &names[4096], b"")), ErrorKind::TooManyTies);
    assert_eq!(pool.ties("a").unwrap().len(), 4096);
    pool.destroy(&names[7]).unwrap();
    pool.tie("a", &names[4096], b"").unwrap();
    pool.destroy("a").unwrap();
    for name in &names[1..] {
        assert!(pool.destroy(name).is_ok() || *name == names[7]);
    }
    assert_eq!(pool.info().unwrap().objects, 2);
    pool.destroy(&names[0]).unwrap();
    assert_eq!(pool.info().unwrap().objects, 0);
}
