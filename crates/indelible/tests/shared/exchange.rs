use super::{Rig, SIZE, at_work, kind};
use indelible::{ErrorKind, Exchange, ExchangeOptions, QueueKind, QueueOptions, SharedObject};
use indelible_testing::Seeded;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

const NOW: Option<Duration> = Some(Duration::ZERO);
const LONG: Option<Duration> = Some(Duration::from_secs(60));
const HOW: ExchangeOptions = ExchangeOptions { slots: 16, request: 24, completion: 40 };

fn exchange_of(object: &SharedObject) -> Exchange {
    object.exchange(0, &HOW).unwrap()
}

/// As the completions lie behind the requests.
fn completions_of(object: &SharedObject) -> indelible::Queue {
    let how = |most| QueueOptions { kind: QueueKind::OneProducer, slots: HOW.slots, most };
    let first = how(HOW.request).bytes().unwrap().next_multiple_of(64);
    object.queue(first, &how(HOW.completion + 8)).unwrap()
}

fn answer(request: &[u8]) -> Vec<u8> {
    let mut answer: Vec<u8> = request.iter().rev().map(|byte| byte ^ 0x55).collect();
    answer.push(request.len() as u8);
    answer
}

#[test]
fn s2_21_random_requests_are_completed_once_in_any_order() {
    let mut seeded = Seeded::new(0xe8c);
    let rig = Rig::new();
    let exchange = exchange_of(&rig.attach());
    let (mut requester, mut server) = (exchange.requester().unwrap(), exchange.server().unwrap());
    let mut sent = BTreeMap::<u64, Vec<u8>>::new();
    let (mut open, mut unread) = (BTreeMap::<u64, Vec<u8>>::new(), BTreeSet::new());
    let (mut next, mut bytes) = (0, Vec::new());
    for round in 0..20_000 {
        match seeded.usize(..9) {
            0..3 => {
                let request: Vec<u8> = (0..seeded.usize(..HOW.request + 1)).map(|_| seeded.u8(..)).collect();
                // Room ends with the oldest open request, or with as many without completion.
                let oldest = sent.keys().find(|number| !unread.contains(*number)).unwrap_or(&next);
                let has_room = next - oldest < HOW.slots as u64;
                let number = requester.send(&request, NOW).unwrap();
                assert_eq!(number, has_room.then_some(next), "round {round}");
                if let Some(number) = number {
                    sent.insert(number, request);
                    next += 1;
                }
            }
            3..5 => {
                if let Some(number) = server.receive(&mut bytes, NOW).unwrap() {
                    assert_eq!(sent[&number], bytes, "round {round}");
                    assert!(!unread.contains(&number) && open.insert(number, bytes.clone()).is_none());
                }
            }
            5..7 if !open.is_empty() => {
                let number = *open.keys().nth(seeded.usize(..open.len())).unwrap();
                let request = open.remove(&number).unwrap();
                server.complete(number, &answer(&request)).unwrap();
                assert_eq!(kind(server.complete(number, b"")), ErrorKind::NotFound);
                unread.insert(number);
            }
            7 => {
                let number = *sent.keys().nth(seeded.usize(..sent.len().max(1))).unwrap_or(&next);
                if number == next {
                    assert_eq!(kind(requester.wait(number, &mut bytes, NOW)), ErrorKind::NotFound);
                    continue;
                }
                let is_there = requester.wait(number, &mut bytes, NOW).unwrap();
                assert_eq!(is_there, unread.remove(&number), "round {round}");
                if is_there {
                    assert_eq!(bytes, answer(&sent.remove(&number).unwrap()), "round {round}");
                    assert_eq!(kind(requester.wait(number, &mut bytes, NOW)), ErrorKind::NotFound);
                }
            }
            8 if seeded.usize(..20) == 0 => {
                // Another server: it receives what was open.
                drop(server);
                assert!(!exchange.has_server().unwrap());
                server = exchange.server().unwrap();
                assert!(exchange.has_server().unwrap());
                open.clear();
            }
            _ => {
                let found = requester.receive(&mut bytes, NOW).unwrap();
                assert_eq!(found, unread.pop_first(), "round {round}");
                if let Some(number) = found {
                    assert_eq!(bytes, answer(&sent.remove(&number).unwrap()), "round {round}");
                }
            }
        }
    }
    assert!(next > 1000, "{next}");
}

#[test]
fn wrong_calls_of_exchanges_are_errors() {
    let rig = Rig::new();
    let object = rig.attach();
    let exchange = exchange_of(&object);
    let (mut requester, mut server) = (exchange.requester().unwrap(), exchange.server().unwrap());
    assert!(exchange.has_server().unwrap() && exchange.has_requester().unwrap());
    assert_eq!(kind(exchange.requester()), ErrorKind::Held);
    assert_eq!(kind(exchange.server()), ErrorKind::Held);
    assert_eq!(kind(requester.send(&[0; 25], NOW)), ErrorKind::BadSize);
    assert_eq!(kind(server.complete(0, b"")), ErrorKind::NotFound);
    let number = requester.send(&[1; 24], NOW).unwrap().unwrap();
    assert_eq!(kind(server.complete(number, b"")), ErrorKind::NotFound);
    let mut bytes = Vec::new();
    assert_eq!(server.receive(&mut bytes, NOW).unwrap(), Some(number));
    assert_eq!(kind(server.complete(number, &[0; 41])), ErrorKind::BadSize);
    server.complete(number, &[2; 40]).unwrap();
    assert!(requester.wait(number, &mut bytes, NOW).unwrap());
    assert_eq!(bytes, [2; 40]);
    let other = ExchangeOptions { slots: 32, ..HOW };
    assert_eq!(kind(object.exchange(0, &other)), ErrorKind::RootType);
    assert_eq!(kind(object.exchange(8, &HOW)), ErrorKind::BadSize);
    assert_eq!(kind(object.exchange(SIZE as usize - 64, &HOW)), ErrorKind::BadSize);
    assert_eq!(
        kind(object.exchange(0, &ExchangeOptions { completion: usize::MAX, ..HOW })),
        ErrorKind::BadSize
    );
    drop((requester, server));
    assert!(!exchange.has_server().unwrap() && !exchange.has_requester().unwrap());
    // Words that cannot be.
    let words = object.words();
    let mut requester = exchange.requester().unwrap();
    requester.send(b"x", NOW).unwrap().unwrap();
    words[8].store(1 << 40, std::sync::atomic::Ordering::Relaxed);
    assert_eq!(
        kind(exchange.server().and_then(|mut server| server.receive(&mut bytes, NOW))),
        ErrorKind::Damaged
    );
}

/// As if it died between the completion and its mark.
fn dies_behind(object: &SharedObject, number: u64, completion: &[u8]) {
    let mut producer = completions_of(object).producer().unwrap();
    producer.send_parts([&number.to_le_bytes()[..], completion], NOW).unwrap().unwrap();
}

#[test]
pub fn a_request_whose_server_died_behind_its_completion_is_completed_once() {
    let rig = Rig::new();
    let object = rig.attach();
    let exchange = exchange_of(&object);
    let mut requester = exchange.requester().unwrap();
    let numbers: Vec<u64> = (0..3).map(|n| requester.send(&[n], NOW).unwrap().unwrap()).collect();
    let mut bytes = Vec::new();
    let mut server = exchange.server().unwrap();
    while server.receive(&mut bytes, NOW).unwrap().is_some() {}
    drop(server);
    dies_behind(&object, numbers[1], b"first server");
    assert!(requester.wait(numbers[1], &mut bytes, NOW).unwrap() && bytes == b"first server");
    let mut server = exchange.server().unwrap();
    for number in [numbers[0], numbers[2]] {
        assert_eq!(server.receive(&mut bytes, NOW).unwrap(), Some(number));
        server.complete(number, b"second server").unwrap();
    }
    assert_eq!(server.receive(&mut bytes, NOW).unwrap(), None);
    for number in [numbers[0], numbers[2]] {
        assert_eq!(requester.receive(&mut bytes, NOW).unwrap(), Some(number));
    }
    assert_eq!(requester.receive(&mut bytes, NOW).unwrap(), None);
}

#[test]
pub fn an_exchange_that_dead_servers_filled_goes_on() {
    let rig = Rig::new();
    let object = rig.attach();
    let exchange = exchange_of(&object);
    let (mut requester, mut bytes) = (exchange.requester().unwrap(), Vec::new());
    for lap in 0..5 * HOW.slots as u64 {
        let number = requester.send(&lap.to_le_bytes(), NOW).unwrap().expect("there is room");
        let mut server = exchange.server().unwrap();
        assert_eq!(server.receive(&mut bytes, NOW).unwrap(), Some(number));
        drop(server);
        dies_behind(&object, number, &bytes);
        let mut server = exchange.server().unwrap();
        assert_eq!(server.receive(&mut bytes, NOW).unwrap(), None, "lap {lap}");
        assert!(requester.wait(number, &mut bytes, NOW).unwrap() && bytes == lap.to_le_bytes());
    }
}

#[test]
#[ignore = "run by the other test as a process of its own"]
fn serves() {
    let Some(object) = at_work() else { return };
    let mut server = exchange_of(&object).server().unwrap();
    let (mut open, mut request) = (Vec::new(), Vec::new());
    println!("SERVES");
    // Some wait, and are completed behind later ones.
    while let Ok(number) = server.receive(&mut request, if open.is_empty() { LONG } else { NOW }) {
        open.extend(number.map(|number| (number, request.clone())));
        if open.len() > 4 || number.is_none() && !open.is_empty() {
            let (number, request) = open.swap_remove(open.len() / 2);
            server.complete(number, &answer(&request)).unwrap();
        }
    }
}

#[test]
fn s2_21_servers_are_killed_and_each_request_is_completed_once() {
    let mut seeded = Seeded::new(0x51);
    let rig = Rig::new();
    let exchange = exchange_of(&rig.attach());
    let mut requester = exchange.requester().unwrap();
    let (mut sent, mut bytes, mut next) = (BTreeMap::new(), Vec::new(), 0_u64);
    for _ in 0..25 {
        let mut child = rig.child("exchange::serves");
        child.said("SERVES").unwrap();
        for _ in 0..seeded.usize(1..1500) {
            let request = [next.to_le_bytes(), (next * 7).to_le_bytes()].concat();
            let number = requester.send(&request, LONG).unwrap().unwrap();
            assert_eq!(number, next);
            sent.insert(number, request);
            next += 1;
            if seeded.usize(..2) == 0 {
                let number = *sent.keys().nth(seeded.usize(..sent.len())).unwrap();
                assert!(requester.wait(number, &mut bytes, LONG).unwrap());
                assert_eq!(bytes, answer(&sent.remove(&number).unwrap()));
            }
            while sent.len() > 8 {
                let number = requester.receive(&mut bytes, LONG).unwrap().unwrap();
                assert_eq!(bytes, answer(&sent.remove(&number).expect("it is completed once")));
            }
        }
        child.kill();
        if seeded.usize(..2) == 0 {
            // The requester goes as well; the next one gets what it has not taken out.
            while let Some(number) = requester.receive(&mut bytes, NOW).unwrap() {
                assert_eq!(bytes, answer(&sent.remove(&number).expect("it is completed once")));
            }
            drop(requester);
            requester = exchange.requester().unwrap();
        }
    }
    let mut child = rig.child("exchange::serves");
    while !sent.is_empty() {
        let number = requester.receive(&mut bytes, LONG).unwrap().unwrap();
        assert_eq!(bytes, answer(&sent.remove(&number).expect("it is completed once")));
    }
    assert_eq!(requester.receive(&mut bytes, NOW).unwrap(), None);
    child.kill();
}
