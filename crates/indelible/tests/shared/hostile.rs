//! A participant scribbles over a queue: others get errors or wrong messages, never a fault, a hang
//! or an index beyond the object.

use super::queue::{KINDS, options};
use super::{Rig, kind};
use indelible::{ErrorKind, QueueOptions, SharedObject};
use indelible_testing::Seeded;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

const NOW: Option<Duration> = Some(Duration::ZERO);

fn odd(seeded: &mut Seeded) -> u64 {
    match seeded.usize(..5) {
        0 => 0,
        1 => u64::MAX,
        2 => 1 << seeded.u32(..64),
        3 => seeded.u64(..) & 0xc000_000f_ffff_ffff,
        _ => seeded.u64(..),
    }
}

fn scribble(object: &SharedObject, words: usize, seeded: &mut Seeded) {
    object.words()[seeded.usize(..words)].store(odd(seeded), Relaxed);
}

fn judge<T>(result: indelible::Result<T>) {
    let kind = result.err().map(|error| error.kind());
    assert!(matches!(kind, None | Some(ErrorKind::Damaged)), "{kind:?}");
}

#[test]
fn scribbles_between_calls_are_errors() {
    let mut seeded = Seeded::new(666);
    for round in 0..600 {
        let how = options(KINDS[round % 2], 8, 64);
        let words = how.bytes().unwrap() / 8;
        thread_rig(|rig| {
            let object = rig.attach();
            object.words().iter().take(words).for_each(|word| word.store(0, Relaxed));
            let queue = object.queue(0, &how).unwrap();
            let (mut producer, mut consumer) = (queue.producer().unwrap(), queue.consumer().unwrap());
            let mut message = Vec::new();
            for _ in 0..50 {
                match seeded.usize(..5) {
                    0 => scribble(&object, words, &mut seeded),
                    1 => judge(producer.send(&[7; 64], NOW)),
                    2 => judge(consumer.look(&mut message, NOW)),
                    3 => judge(consumer.release()),
                    _ => judge(producer.wait_taken(3, NOW)),
                }
                assert!(message.len() <= 64);
            }
            drop((producer, consumer));
            judge(queue.consumer());
            judge(queue.producer());
            if let Err(error) = object.queue(0, &how) {
                assert_eq!(error.kind(), ErrorKind::RootType);
            }
        });
    }
}

fn thread_rig(work: impl FnOnce(&Rig)) {
    thread_local!(static RIG: Rig = Rig::new());
    RIG.with(work);
}

#[test]
fn scribbles_beside_calls_are_errors() {
    let rig = Rig::new();
    let mut seeded = Seeded::new(667);
    for queue_kind in KINDS {
        let object = rig.attach();
        let how = options(queue_kind, 4, 64);
        let words = how.bytes().unwrap() / 8;
        object.words().iter().take(words).for_each(|word| word.store(0, Relaxed));
        let queue = object.queue(0, &how).unwrap();
        let (mut producer, mut consumer) = (queue.producer().unwrap(), queue.consumer().unwrap());
        let over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let scribbles = scope.spawn(|| {
                while !over.load(Relaxed) {
                    scribble(&object, words, &mut seeded);
                }
            });
            let mut message = Vec::new();
            for _ in 0..3000 {
                judge(producer.send(&[7; 64], NOW));
                judge(consumer.look(&mut message, NOW));
                judge(consumer.release());
                assert!(message.len() <= 64);
            }
            over.store(true, Relaxed);
            scribbles.join().unwrap();
        });
    }
}

#[test]
fn something_else_in_the_place_of_a_queue_is_refused() {
    let rig = Rig::new();
    let object = rig.attach();
    object.words()[0].store(17, Relaxed);
    let error = object.queue(0, &QueueOptions::default()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::RootType);
    assert!(error.to_string().contains("something that is no queue"), "{error}");
    assert_eq!(kind(rig.attach().queue(0, &QueueOptions::default())), ErrorKind::RootType);
}
