use super::queue::options;
use super::{Rig, Working, at_work};
use indelible::{Queue, QueueKind, QueueOptions, SharedObject};
use indelible_testing::Seeded;
use std::time::Duration;

const NOW: Option<Duration> = Some(Duration::ZERO);
const LONG: Option<Duration> = Some(Duration::from_secs(60));

fn how() -> QueueOptions {
    options(QueueKind::ManyProducers, 64, 64)
}

fn queue_of(object: &SharedObject) -> Queue {
    object.queue(0, &how()).unwrap()
}

#[test]
#[ignore = "run by the other test as a process of its own"]
fn stays_in_a_message() {
    let Some(object) = at_work() else { return };
    let mut producer = queue_of(&object).producer().unwrap();
    producer.send(b"whole", None).unwrap();
    let parts = (0..2).map(|part| {
        if part == 1 {
            println!("CLAIMED");
            let _ = object.wait_end(object.life(), None);
        }
        &b"part"[..]
    });
    producer.send_parts(parts, None).unwrap();
}

fn in_a_message(rig: &Rig) -> Working {
    let mut child = rig.child("deaths::stays_in_a_message");
    child.said("CLAIMED").unwrap();
    child
}

fn take(rig: &Rig) -> Option<Vec<u8>> {
    let mut message = Vec::new();
    let mut consumer = queue_of(&rig.attach()).consumer().unwrap();
    consumer.receive(&mut message, NOW).unwrap().then_some(message)
}

#[test]
pub fn s2_27_a_message_whose_producer_died_in_it_is_left_out() {
    let rig = Rig::new();
    let queue = queue_of(&rig.attach());
    let mut child = in_a_message(&rig);
    let mut producer = queue.producer().unwrap();
    producer.send(b"behind", None).unwrap();
    assert_eq!(take(&rig), Some(b"whole".to_vec()));
    assert_eq!(take(&rig), None, "it lives, and may go on");
    child.kill();
    assert_eq!(take(&rig), Some(b"behind".to_vec()));
    assert_eq!(queue.skipped(), 1);
    assert_eq!(take(&rig), None);
}

#[test]
pub fn a_queue_that_dead_producers_filled_is_free_again() {
    let rig = Rig::new();
    let queue = queue_of(&rig.attach());
    let mut children: Vec<Working> = (0..4).map(|_| in_a_message(&rig)).collect();
    let mut producer = queue.producer().unwrap();
    let mut sent = 8;
    while producer.send(b"more", NOW).unwrap().is_some() {
        sent += 1;
    }
    assert_eq!(sent, how().slots);
    children.iter_mut().for_each(Working::kill);
    let received = std::iter::from_fn(|| take(&rig)).count();
    assert_eq!((received, queue.skipped()), (how().slots - 4, 4));
    for _ in 0..3 * how().slots {
        assert!(producer.send(b"again", NOW).unwrap().is_some());
        assert_eq!(take(&rig), Some(b"again".to_vec()));
    }
}

#[test]
#[ignore = "run by the other test as a process of its own"]
fn counts() {
    let Some(object) = at_work() else { return };
    let mut producer = queue_of(&object).producer().unwrap();
    let life = u64::from(object.life());
    println!("LIFE {life}");
    for n in 0_u64.. {
        let number = producer.send_value(&[life, n], None).unwrap().unwrap();
        if n.is_multiple_of(16) {
            println!("SENT {n}");
        }
        if n.is_multiple_of(97) {
            assert!(producer.wait_taken(number, LONG).unwrap());
        }
    }
}

#[test]
fn s2_21_producers_are_killed_and_nothing_that_they_had_sent_is_lost() {
    let mut seeded = Seeded::new(2127);
    let rig = Rig::new();
    let queue = queue_of(&rig.attach());
    let mut consumer = queue.consumer().unwrap();
    let mut next = std::collections::HashMap::<u64, u64>::new();
    for _ in 0..30 {
        let mut children: Vec<(Working, u64)> = (0..2)
            .map(|_| {
                let mut child = rig.child("deaths::counts");
                let life = child.said("LIFE").unwrap().parse().unwrap();
                (child, life)
            })
            .collect();
        let until = seeded.usize(1..2000);
        let mut receive = |timeout| match consumer.receive_value::<[u64; 2]>(timeout).unwrap() {
            Some([life, n]) => {
                let next = next.entry(life).or_default();
                assert_eq!(n, *next, "in order, each once");
                *next += 1;
                true
            }
            None => false,
        };
        (0..until).for_each(|_| assert!(receive(LONG)));
        let said: Vec<(u64, u64)> = children
            .iter_mut()
            .map(|(child, life)| {
                child.kill();
                let said = std::iter::from_fn(|| child.said("SENT")).last();
                (*life, said.map_or(0, |said| said.parse::<u64>().unwrap() + 1))
            })
            .collect();
        while receive(NOW) {}
        for (life, said) in said {
            assert!(next.get(&life).copied().unwrap_or(0) >= said, "{life}: said {said}");
        }
    }
    println!("skipped {}", queue.skipped());
}

#[test]
#[ignore = "run by the other test as a process of its own"]
fn consumes() {
    let Some(object) = at_work() else { return };
    let mut consumer = queue_of(&object).consumer().unwrap();
    let mut message = Vec::new();
    loop {
        for _ in 0..2 {
            consumer.look(&mut message, None).unwrap();
            println!("GOT {}", u64::from_le_bytes(message[..].try_into().unwrap()));
        }
        consumer.release().unwrap();
    }
}

#[test]
fn the_next_consumer_goes_on_where_the_dead_one_was() {
    let mut seeded = Seeded::new(5);
    let rig = Rig::new();
    let queue = queue_of(&rig.attach());
    let mut producer = queue.producer().unwrap();
    let (mut sent, mut expected) = (0_u64, 0_u64);
    for _ in 0..20 {
        let mut child = rig.child("deaths::consumes");
        for turn in 0..seeded.usize(1..200) {
            while producer.send_value(&sent, NOW).unwrap().is_some() {
                sent += 1;
            }
            let got: u64 = child.said("GOT").unwrap().parse().unwrap();
            let again = turn == 0 && (expected.saturating_sub(2)..=expected).contains(&got);
            assert!(again || got == expected, "{got} after {expected}");
            expected = got + 1;
        }
        child.kill();
        if let Some(got) = std::iter::from_fn(|| child.said("GOT")).last() {
            expected = got.parse::<u64>().unwrap() + 1;
        }
    }
}
