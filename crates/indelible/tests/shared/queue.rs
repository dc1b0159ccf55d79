use super::{Rig, SIZE, at_work, kind};
use indelible::{ErrorKind, Plain, QueueKind, QueueOptions, StreamReader, StreamWriter};
use indelible_testing::Seeded;
use rustix::thread::futex;
use std::collections::VecDeque;
use std::io::{Read, Write};
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::Release;
use std::time::Duration;

const NOW: Option<Duration> = Some(Duration::ZERO);
pub const KINDS: [QueueKind; 2] = [QueueKind::OneProducer, QueueKind::ManyProducers];

pub fn options(kind: QueueKind, slots: usize, most: usize) -> QueueOptions {
    QueueOptions { kind, slots, most }
}

#[test]
fn s2_21_random_programs_agree_with_a_model() {
    let mut seeded = Seeded::new(21);
    for (slots, most) in [(2, 64), (8, 1), (4, 200), (64, 24)] {
        for queue_kind in KINDS {
            let rig = Rig::new();
            let queue = rig.queue(&options(queue_kind, slots, most));
            let (mut producer, mut consumer) = (queue.producer().unwrap(), queue.consumer().unwrap());
            let (mut model, mut numbers) = (VecDeque::new(), 0);
            let (mut looked, mut message) = (0, Vec::new());
            for _ in 0..3000 {
                match seeded.usize(..6) {
                    0..3 => {
                        let bytes: Vec<u8> = (0..seeded.usize(..most + 1)).map(|_| seeded.u8(..)).collect();
                        let sent = match seeded.usize(..2) {
                            0 => producer.send(&bytes, NOW).unwrap(),
                            _ => producer.send_parts(bytes.chunks(5), NOW).unwrap(),
                        };
                        assert_eq!(sent, (model.len() < slots).then_some(numbers));
                        if sent.is_some() {
                            numbers += 1;
                            model.push_back(bytes);
                        }
                    }
                    3..5 => {
                        let number = consumer.look(&mut message, NOW).unwrap();
                        let expected = model.get(looked);
                        assert_eq!(number.is_some(), expected.is_some());
                        if let Some(expected) = expected {
                            assert_eq!(&message, expected);
                            assert_eq!(number, Some(numbers - (model.len() - looked) as u64));
                            looked += 1;
                        }
                    }
                    _ => {
                        consumer.release().unwrap();
                        model.drain(..looked);
                        looked = 0;
                        let last = numbers - model.len() as u64;
                        assert!(last == 0 || producer.wait_taken(last - 1, NOW).unwrap());
                        assert!(model.is_empty() || !producer.wait_taken(last, NOW).unwrap());
                    }
                }
            }
            assert_eq!(queue.skipped(), 0);
        }
    }
}

#[test]
fn queues_that_cannot_be_are_refused() {
    let rig = Rig::new();
    let object = rig.attach();
    let many = QueueKind::ManyProducers;
    for (offset, bad) in [
        (32, options(many, 8, 64)),
        (0, options(many, 0, 64)),
        (0, options(many, 1, 64)),
        (0, options(many, 48, 64)),
        (0, options(many, 8, 0)),
        (0, options(many, usize::MAX / 2 + 1, usize::MAX)),
        (0, options(many, 1 << 14, 64)),
        (SIZE as usize - 64, options(many, 8, 64)),
        (usize::MAX - 63, options(many, 8, 64)),
    ] {
        assert_eq!(kind(object.queue(offset, &bad)), ErrorKind::BadSize, "{offset}, {bad:?}");
    }
    let good = options(many, 8, 64);
    assert_eq!(good.bytes().unwrap(), 512 + 64 + 8 * 64);
    let queue = object.queue(0, &good).unwrap();
    assert_eq!(queue.options(), good);
    for other in [
        options(many, 16, 64),
        options(many, 1 << 14, 64),
        options(many, 8, 65),
        options(QueueKind::OneProducer, 8, 64),
    ] {
        let error = object.queue(0, &other).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::RootType, "{error}");
        let says = "it is one of 8 slots, messages of up to 64 bytes, and many producers";
        assert!(error.to_string().contains(says), "{error}");
    }
    let error = object.queue(8192, &options(many, 7, 64)).unwrap_err();
    assert!(error.to_string().contains("7 slots are no power of two"), "{error}");
    assert!(error.remedy().contains("power of two"), "{}", error.remedy());
    let error = object.queue(8192, &options(many, 1 << 14, 64)).unwrap_err();
    assert!(error.to_string().contains("takes 1180160 bytes"), "{error}");
    assert_eq!(object.queue(0, &good).unwrap().id(), queue.id());
    assert_ne!(object.queue(8192, &good).unwrap().id(), queue.id(), "another one");
    let mut producer = queue.producer().unwrap();
    assert_eq!(kind(producer.send(&[0; 65], NOW)), ErrorKind::BadSize);
    assert_eq!(kind(producer.send_parts([&[0; 40][..], &[0; 40]], NOW)), ErrorKind::BadSize);
    producer.send(b"after", NOW).unwrap();
    let mut consumer = queue.consumer().unwrap();
    let mut message = Vec::new();
    assert!(consumer.receive(&mut message, NOW).unwrap());
    assert_eq!(message, b"after", "the slot that was given up has none");
    assert!(!consumer.receive(&mut message, NOW).unwrap());
}

#[test]
fn a_panic_of_whoever_gives_the_parts_leaves_no_message() {
    let rig = Rig::new();
    for (nth, queue_kind) in KINDS.into_iter().enumerate() {
        let queue = rig.attach().queue(nth * 8192, &options(queue_kind, 8, 64)).unwrap();
        let (mut producer, mut consumer) = (queue.producer().unwrap(), queue.consumer().unwrap());
        let parts = (0..2_u8).map(|part| if part == 0 { &b"half"[..] } else { panic!("on purpose") });
        let sending = std::panic::AssertUnwindSafe(|| producer.send_parts(parts, NOW));
        assert!(std::panic::catch_unwind(sending).is_err());
        producer.send(b"whole", NOW).unwrap();
        let mut message = Vec::new();
        assert!(consumer.receive(&mut message, NOW).unwrap());
        assert_eq!(message, b"whole");
    }
}

#[test]
fn there_is_one_consumer_and_where_it_is_said_one_producer() {
    let rig = Rig::new();
    let queue = rig.queue(&options(QueueKind::OneProducer, 8, 64));
    let (producer, consumer) = (queue.producer().unwrap(), queue.consumer().unwrap());
    assert_eq!(kind(queue.producer()), ErrorKind::Held);
    assert_eq!(kind(queue.consumer()), ErrorKind::Held);
    drop(consumer);
    let mut child = rig.child("queue::consumes_and_stays");
    child.said("CONSUMES").unwrap();
    assert_eq!(kind(queue.consumer()), ErrorKind::Held, "the other process is it");
    child.kill();
    drop(queue.consumer().unwrap());
    drop(producer);
    drop(queue.producer().unwrap());
}

#[test]
#[ignore = "run by the other test as a process of its own"]
fn consumes_and_stays() {
    let Some(object) = at_work() else { return };
    let queue = object.queue(0, &options(QueueKind::OneProducer, 8, 64)).unwrap();
    let mut consumer = queue.consumer().unwrap();
    println!("CONSUMES");
    let _ = consumer.receive(&mut Vec::new(), None);
}

#[derive(Clone, Copy, Debug, PartialEq, Plain)]
#[repr(C)]
struct Sample {
    at: u64,
    value: f64,
    channel: [u8; 8],
}

#[test]
fn messages_are_values() {
    let rig = Rig::new();
    let queue = rig.queue(&QueueOptions::default());
    let (mut producer, mut consumer) = (queue.producer().unwrap(), queue.consumer().unwrap());
    let sample = Sample { at: 1, value: 2.5, channel: *b"pressure" };
    producer.send_value(&sample, None).unwrap();
    producer.send(b"no sample", None).unwrap();
    producer.send_value(&7_u32, None).unwrap();
    assert_eq!(consumer.receive_value(None).unwrap(), Some(sample));
    assert_eq!(kind(consumer.receive_value::<Sample>(None)), ErrorKind::BadSize);
    assert_eq!(consumer.receive_value::<u32>(None).unwrap(), Some(7));
    assert_eq!(consumer.receive_value::<u32>(NOW).unwrap(), None);
}

#[test]
fn s2_21_a_stream_comes_whole_and_in_order() {
    let rig = Rig::new();
    let queue = rig.queue(&options(QueueKind::OneProducer, 4, 100));
    let bytes: Vec<u8> = (0..50_000_u32).map(|n| (n * 7 % 251) as u8).collect();
    let minute = Some(Duration::from_secs(60));
    let (mut writer, mut read) = (StreamWriter::new(queue.producer().unwrap(), minute), Vec::new());
    std::thread::scope(|scope| {
        scope.spawn(|| {
            writer.write_all(&bytes).unwrap();
            writer.end().unwrap();
        });
        StreamReader::new(queue.consumer().unwrap(), minute).read_to_end(&mut read).unwrap();
    });
    assert!(read == bytes);
    let mut idle = StreamReader::new(queue.consumer().unwrap(), NOW);
    assert_eq!(idle.read(&mut [0; 4]).unwrap_err().kind(), std::io::ErrorKind::TimedOut);
}

#[test]
fn threads_send_and_sleep_while_the_queue_is_full() {
    const EACH: u64 = 20_000;
    let rig = Rig::new();
    let queue = rig.queue(&options(QueueKind::ManyProducers, 16, 16));
    std::thread::scope(|scope| {
        for thread in 0..3_u64 {
            let mut producer = queue.producer().unwrap();
            scope.spawn(move || {
                (0..EACH).for_each(|n| assert!(producer.send_value(&[thread, n], None).unwrap().is_some()));
            });
        }
        let (mut consumer, mut next) = (queue.consumer().unwrap(), [0; 3]);
        for _ in 0..3 * EACH {
            let [thread, n] = consumer.receive_value::<[u64; 2]>(None).unwrap().unwrap();
            assert_eq!(n, next[thread as usize], "each producer's in their order");
            next[thread as usize] += 1;
        }
        assert_eq!(next, [EACH; 3]);
    });
}

fn wakes(word: &AtomicU32, mut act: impl FnMut()) {
    let minute = rustix::event::Timespec { tv_sec: 5, tv_nsec: 0 };
    for attempt in 0..1000 {
        word.store(1, Release);
        let woken = std::thread::scope(|scope| {
            let sleeping = scope.spawn(|| futex::wait(word, futex::Flags::empty(), 1, Some(&minute)));
            (0..attempt).for_each(|_| std::thread::yield_now());
            act();
            sleeping.join().unwrap()
        });
        match woken {
            Ok(()) => return,
            Err(rustix::io::Errno::AGAIN | rustix::io::Errno::INTR) => {}
            Err(error) => panic!("no process woke it: {error}"),
        }
    }
    panic!("it never slept");
}

#[test]
pub fn a_message_wakes_the_consumer() {
    let rig = Rig::new();
    let object = rig.attach();
    let queue = object.queue(0, &QueueOptions::default()).unwrap();
    let (mut producer, mut consumer) = (queue.producer().unwrap(), queue.consumer().unwrap());
    wakes(&object.word(3 * 64).unwrap(), || {
        producer.send(b"wake up", None).unwrap().unwrap();
        assert!(consumer.receive(&mut Vec::new(), NOW).unwrap());
    });
}

#[test]
pub fn a_message_that_is_taken_wakes_producers() {
    let rig = Rig::new();
    let object = rig.attach();
    let queue = object.queue(0, &QueueOptions::default()).unwrap();
    let (mut producer, mut consumer) = (queue.producer().unwrap(), queue.consumer().unwrap());
    wakes(&object.word(4 * 64).unwrap(), || {
        producer.send(b"to be taken", None).unwrap().unwrap();
        assert!(consumer.receive(&mut Vec::new(), NOW).unwrap());
    });
}
