use super::{Rig, kind};
use indelible::{ErrorKind, QueueOptions};
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

fn cut(rig: &Rig) {
    let file = std::fs::File::options().write(true).open(rig.memory().unwrap()).unwrap();
    file.set_len(4096).unwrap();
}

#[test]
fn users_of_memory_that_is_cut_get_errors() {
    let rig = Rig::new();
    let object = rig.attach();
    let queue = object.queue(0, &QueueOptions::default()).unwrap();
    let (mut producer, mut consumer) = (queue.producer().unwrap(), queue.consumer().unwrap());
    producer.send(b"before", None).unwrap();
    object.words()[70_000].store(1, Relaxed);
    let life = object.begin_life().unwrap();
    object.check().unwrap();
    cut(&rig);
    assert_eq!(kind(object.check()), ErrorKind::Gone);
    // Pages in memory go with the file: each reads as zeros on first touch.
    assert!(object.words().iter().all(|word| word.load(Relaxed) == 0));
    object.words()[70_000].store(2, Relaxed);
    let word = object.word(0).unwrap();
    let mut message = Vec::new();
    let gone = [
        kind(producer.send(b"behind", Some(Duration::ZERO))),
        kind(producer.wait_taken(0, Some(Duration::ZERO))),
        kind(consumer.receive(&mut message, Some(Duration::ZERO))),
        kind(consumer.release()),
        kind(word.wait(0, Some(Duration::ZERO))),
        kind(word.wake(1)),
        kind(object.is_alive(life.number())),
        kind(object.queue(0, &QueueOptions::default())),
        kind(queue.producer()),
    ];
    assert_eq!(gone, [ErrorKind::Gone; 9]);
}

#[test]
fn a_sleeper_finds_out_that_the_memory_was_cut() {
    let rig = Rig::new();
    let object = rig.attach();
    let queue = object.queue(4096, &QueueOptions::default()).unwrap();
    let mut consumer = queue.consumer().unwrap();
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| kind(object.word(0).unwrap().wait(0, None)));
        let receiving = scope.spawn(move || kind(consumer.receive(&mut Vec::new(), None)));
        cut(&rig);
        assert_eq!(waiting.join().unwrap(), ErrorKind::Gone);
        assert_eq!(receiving.join().unwrap(), ErrorKind::Gone);
    });
}

#[test]
fn a_fault_elsewhere_is_still_the_earlier_handlers() {
    let rig = Rig::new();
    let _object = rig.attach();
    let mut child = rig.child("cut::touches_a_page_of_its_own_that_is_gone");
    child.said("TOUCHES").unwrap();
    let status = child.child.wait().unwrap();
    assert_eq!(std::os::unix::process::ExitStatusExt::signal(&status), Some(libc::SIGBUS));
}

#[test]
#[ignore = "run by the other test as a process of its own"]
fn touches_a_page_of_its_own_that_is_gone() {
    let Some(object) = super::at_work() else { return };
    let file = tempfile::tempfile().unwrap();
    file.set_len(4096).unwrap();
    let (access, how) = (rustix::mm::ProtFlags::READ, rustix::mm::MapFlags::SHARED);
    // SAFETY: no address is given, so the mapping replaces nothing.
    let page = unsafe { rustix::mm::mmap(std::ptr::null_mut(), 4096, access, how, &file, 0) }.unwrap();
    file.set_len(0).unwrap();
    println!("TOUCHES");
    // SAFETY: mapped for reading; the process dies of this.
    let byte = unsafe { page.cast::<u8>().read_volatile() };
    println!("READ {byte} {object:?}");
}
