use super::{NAME, Rig, SIZE, at_work, folder, kind};
use indelible::{Class, CreateOptions, ErrorKind, Pool};
use indelible_store::table;
use std::sync::atomic::Ordering::Relaxed;

#[test]
#[ignore = "run by the other test as a process of its own"]
fn adds_one() {
    let Some(object) = at_work() else { return };
    object.words()[1].store(object.as_ptr() as u64, Relaxed);
    object.words()[0].fetch_add(1, Relaxed);
    println!("DONE");
}

#[test]
fn s2_06_processes_share_an_object_at_its_address() {
    let rig = Rig::new();
    let stat = rig.pool.stat(NAME).unwrap();
    assert_eq!((stat.class, stat.volatile, stat.gone), (Some(Class::Shared), true, false));
    let (object, again) = (rig.attach(), rig.attach());
    assert_eq!(object.as_ptr() as u64, stat.address);
    assert_eq!((object.as_ptr(), object.len()), (again.as_ptr(), SIZE as usize));
    object.words()[0].store(40, Relaxed);
    for _ in 0..2 {
        assert!(rig.child("class::adds_one").said("DONE").is_some());
    }
    assert_eq!(again.words()[0].load(Relaxed), 42);
    assert_eq!(again.words()[1].load(Relaxed), stat.address, "the same address in the other process");
    object.detach();
    again.detach();
    assert!(rig.child("class::adds_one").said("DONE").is_some());
    assert_eq!(rig.attach().words()[0].load(Relaxed), 43);
    assert!(rig.memory().is_some());
    rig.pool.destroy(NAME).unwrap();
    assert_eq!(rig.memory(), None);
    rig.pool.create_with(NAME, &CreateOptions::new(SIZE).class(Class::Shared)).unwrap();
    assert_eq!(rig.attach().words()[0].load(Relaxed), 0, "it is another object");
}

#[test]
fn calls_for_bytes_in_the_pool_are_refused() {
    let rig = Rig::new();
    let pool = &rig.pool;
    let before = pool.info().unwrap().free;
    let refusals = [
        kind(pool.attach(NAME)),
        kind(pool.attach_read(NAME)),
        kind(pool.attach_snapshot(NAME)),
        kind(pool.snapshot(NAME, "kept", b"")),
        kind(pool.create_from(NAME, "copy", b"", &CreateOptions::new(0))),
        kind(pool.resize(NAME, 2 * SIZE, b"")),
        kind(pool.create_attached_with("other", &CreateOptions::new(9).class(Class::Shared))),
    ];
    assert_eq!(refusals, [ErrorKind::ClassMismatch; 7]);
    let error = pool.attach_read(NAME).err().unwrap().to_string();
    assert!(error.contains("the pool has none of them"), "{error}");
    pool.create("plain", 4096).unwrap();
    assert_eq!(kind(pool.attach_shared("plain")), ErrorKind::ClassMismatch);
    assert_eq!(kind(pool.attach_shared("absent")), ErrorKind::NotFound);
    pool.destroy("plain").unwrap();
    let how = CreateOptions::new(4096).class(Class::Shared).write_key(b"k");
    pool.create_with("keyed", &how).unwrap();
    assert_eq!(kind(pool.attach_shared("keyed")), ErrorKind::WrongKey);
    pool.attach_shared_with_key("keyed", b"k").unwrap().detach();
    pool.destroy_with_key("keyed", b"k").unwrap();
    assert_eq!(pool.info().unwrap().free, before);
    let held = rig.attach();
    assert_eq!(kind(pool.destroy(NAME)), ErrorKind::Held);
    assert_eq!(kind(pool.set_class(NAME, b"", Class::Psync)), ErrorKind::Held);
    drop(held);
    let read_only = indelible::PoolOptions::new().read_only(true).open(pool.path()).unwrap();
    assert_eq!(kind(read_only.attach_shared(NAME)), ErrorKind::ReadOnly);
}

#[test]
fn s2_04_what_processes_shared_is_gone_after_a_reboot() {
    let rig = Rig::new();
    let how = table::CreateOptions {
        size: 4096,
        class: Class::Shared,
        volatile: Some([9; 16]),
        ..Default::default()
    };
    rig.pool.store().create("old", &how).unwrap();
    assert!(rig.pool.stat("old").unwrap().gone);
    assert_eq!(kind(rig.pool.attach_shared("old")), ErrorKind::VolatileGone);
    rig.pool.create_with("old", &CreateOptions::new(4096).class(Class::Shared)).unwrap();
    let anew = rig.pool.attach_shared("old").unwrap();
    assert!(anew.words().iter().all(|word| word.load(Relaxed) == 0));
    drop(anew);
    rig.pool.destroy("old").unwrap();
}

#[test]
fn a_volatile_object_gets_the_class_and_others() {
    let rig = Rig::new();
    let pool = &rig.pool;
    pool.create("durable", 4096).unwrap();
    assert_eq!(kind(pool.set_class("durable", b"", Class::Shared)), ErrorKind::ClassMismatch);
    rig.attach().words()[0].store(1, Relaxed);
    pool.set_class(NAME, b"", Class::Psync).unwrap();
    assert_eq!(rig.memory(), None);
    let mut object = pool.attach(NAME).unwrap();
    assert!(object.as_slice().iter().all(|byte| *byte == 0));
    object.as_mut_slice()[0] = 7;
    object.psync().unwrap();
    object.detach().unwrap();
    pool.set_class(NAME, b"", Class::Shared).unwrap();
    assert_eq!(rig.attach().words()[0].load(Relaxed), 0, "memory of its own");
    pool.set_class(NAME, b"", Class::Psync).unwrap();
    assert_eq!(pool.attach_read(NAME).unwrap().as_slice()[0], 7, "its bytes in the pool stay");
}

#[test]
fn memory_that_nobody_will_ask_for_is_collected() {
    let rig = Rig::new();
    let object = rig.attach();
    object.words()[0].store(5, Relaxed);
    rig.pool.delete(NAME, b"").unwrap();
    assert_eq!(rig.pool.collect(&mut |_, _| {}).unwrap().removed, 0, "a process has it");
    assert_eq!(object.words()[0].load(Relaxed), 5);
    object.check().unwrap();
    drop(object);
    assert_eq!(rig.pool.collect(&mut |_, _| {}).unwrap().removed, 1);
    assert_eq!(rig.memory(), None);
}

#[test]
fn memory_is_given_back_unless_a_process_has_it() {
    let rig = Rig::new();
    let mut child = rig.child("class::stores_and_stays");
    child.said("STORED").unwrap();
    assert!(!rig.pool.forget_shared(NAME, b"").unwrap());
    assert_eq!(rig.attach().words()[3].load(Relaxed), 33);
    child.kill();
    let object = rig.attach();
    assert!(!rig.pool.forget_shared(NAME, b"").unwrap());
    assert_eq!(object.words()[3].load(Relaxed), 33);
    drop(object);
    assert!(rig.pool.forget_shared(NAME, b"").unwrap());
    assert_eq!(rig.memory(), None);
    assert!(rig.pool.forget_shared(NAME, b"").unwrap(), "there is none");
    assert_eq!(rig.attach().words()[3].load(Relaxed), 0);
    rig.pool.create("plain", 4096).unwrap();
    assert_eq!(kind(rig.pool.forget_shared("plain", b"")), ErrorKind::ClassMismatch);
}

#[test]
fn memory_of_a_dead_process_is_there_for_the_next_one() {
    let rig = Rig::new();
    let mut child = rig.child("class::stores_and_stays");
    child.said("STORED").unwrap();
    child.kill();
    assert_eq!(rig.attach().words()[3].load(Relaxed), 33);
    assert_eq!(rig.pool.collect(&mut |_, _| {}).unwrap().removed, 0, "it may be asked for");
    assert_eq!(rig.attach().words()[3].load(Relaxed), 33);
}

#[test]
#[ignore = "run by the other test as a process of its own"]
fn stores_and_stays() {
    let Some(object) = at_work() else { return };
    object.words()[3].store(33, Relaxed);
    println!("STORED");
    let _ = object.wait_end(object.life(), None);
}

#[test]
fn an_unknown_file_in_the_place_of_the_memory_is_refused() {
    let rig = Rig::new();
    drop(rig.attach());
    let memory = rig.memory().unwrap();
    std::fs::File::options().write(true).open(&memory).unwrap().set_len(4096 + 10).unwrap();
    assert_eq!(kind(rig.pool.attach_shared(NAME)), ErrorKind::Damaged);
    std::fs::remove_file(&memory).unwrap();
    let target = folder();
    std::os::unix::fs::symlink(target.path(), &memory).unwrap();
    assert_eq!(kind(rig.pool.attach_shared(NAME)), ErrorKind::Io);
    std::fs::remove_file(&memory).unwrap();
    let (first, other) = (rig.attach(), Pool::open(rig.pool.path()).unwrap());
    std::fs::remove_file(&memory).unwrap();
    assert!(other.attach_shared(NAME).is_ok(), "this process has it");
    let mut child = rig.child("class::finds_no_memory");
    assert_eq!(child.said("REFUSED").as_deref(), Some("Gone"));
    drop(first);
}

#[test]
#[ignore = "run by the other test as a process of its own"]
fn finds_no_memory() {
    let Some(path) = std::env::var_os("WORK_POOL") else { return };
    println!("REFUSED {:?}", kind(Pool::open(path).unwrap().attach_shared(NAME)));
}
