use crate::slots::{Bell, Claim, Front, NO_MESSAGE, Seen, Slots};
use loom::sync::Arc;
use loom::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use loom::thread;

#[derive(Default)]
struct Queue {
    states: [AtomicU64; 2],
    tail: AtomicU64,
    head: AtomicU64,
    messages: [AtomicU64; 2],
    filled: AtomicU32,
    taken: AtomicU32,
    dead: [AtomicBool; 3],
}

fn sleep(bell: &AtomicU32) {
    while bell.load(Ordering::Acquire) == Bell::ARMED {
        thread::yield_now();
    }
}

impl Queue {
    fn slots(&self) -> Slots<'_> {
        Slots { states: &self.states, tail: &self.tail, head: &self.head }
    }

    fn claim(&self, owner: u32) -> u64 {
        let attempt = || match self.slots().claim(owner) {
            Claim::At(number) => Some(number),
            Claim::Full => None,
            Claim::Damaged => panic!("no process has scribbled"),
        };
        loop {
            if let Some(number) = attempt() {
                return number;
            }
            Bell(&self.taken).arm();
            if let Some(number) = attempt() {
                return number;
            }
            sleep(&self.taken);
        }
    }

    fn send(&self, owner: u32, message: u64) {
        let number = self.claim(owner);
        self.messages[self.slots().index(number)].store(message, Ordering::Relaxed);
        self.slots().publish(number, 8);
        let _ = Bell(&self.filled).ring();
    }

    fn take(&self, number: u64) -> u64 {
        let message = self.messages[self.slots().index(number)].load(Ordering::Relaxed);
        self.slots().free(number);
        self.head.store(number + 1, Ordering::Release);
        let _ = Bell(&self.taken).ring();
        message
    }

    fn receive(&self, number: u64) -> u64 {
        let attempt = || match self.slots().front(number) {
            Front::Ready(8) => Some(self.take(number)),
            Front::Empty | Front::Writing(..) => None,
            other => panic!("{other:?}"),
        };
        loop {
            if let Some(message) = attempt() {
                return message;
            }
            Bell(&self.filled).arm();
            if let Some(message) = attempt() {
                return message;
            }
            sleep(&self.filled);
        }
    }
}

/// Each message comes once, whole, in its producer's order, and no thread sleeps for ever.
fn messages_come(all: &[(u32, &'static [u64])]) {
    let queue = Arc::new(Queue::default());
    let producers: Vec<_> = all
        .iter()
        .map(|(owner, messages)| {
            let (queue, owner, messages) = (queue.clone(), *owner, *messages);
            thread::spawn(move || messages.iter().for_each(|message| queue.send(owner, *message)))
        })
        .collect();
    let count = all.iter().map(|(_, messages)| messages.len() as u64).sum();
    let received: Vec<u64> = (0..count).map(|number| queue.receive(number)).collect();
    producers.into_iter().for_each(|producer| producer.join().unwrap());
    for (_, messages) in all {
        let own: Vec<_> = received.iter().filter(|message| messages.contains(message)).copied().collect();
        assert_eq!(own, *messages);
    }
}

pub(crate) fn messages_come_once_and_sleepers_are_woken() {
    messages_come(&[(1, &[11]), (2, &[21])]);
}

pub(crate) fn a_full_queue_has_room_again() {
    messages_come(&[(1, &[11, 12, 13])]);
}

/// At once or before publication: the consumer skips the slot and gets the other's message once.
pub(crate) fn a_slot_of_a_dead_producer_is_left_out() {
    let queue = Arc::new(Queue::default());
    let (dying, living) = (queue.clone(), queue.clone());
    let threads = [
        thread::spawn(move || {
            dying.claim(1);
            dying.dead[1].store(true, Ordering::Release);
        }),
        thread::spawn(move || living.send(2, 21)),
    ];
    let (mut number, mut received, mut left_out) = (0, Vec::new(), 0);
    while number < 2 {
        match queue.slots().front(number) {
            Front::Ready(NO_MESSAGE) => {
                queue.take(number);
                (number, left_out) = (number + 1, left_out + 1);
            }
            Front::Ready(_) => {
                received.push(queue.take(number));
                number += 1;
            }
            Front::Writing(owner, word) if queue.dead[owner as usize].load(Ordering::Acquire) => {
                assert!(queue.slots().skip(number, word), "no other thread touches it");
            }
            Front::Empty | Front::Writing(..) => thread::yield_now(),
            other => panic!("{other:?}"),
        }
    }
    threads.into_iter().for_each(|thread| thread.join().unwrap());
    assert_eq!((received, left_out), (vec![21], 1));
}

pub(crate) fn messages_of_one_producer_come_in_order() {
    let queue = Arc::new(Queue::default());
    let producing = queue.clone();
    let producer = thread::spawn(move || {
        let mut head = Seen::default();
        for number in 0..3 {
            while producing.slots().has_room(number, &mut head) != Some(true) {
                thread::yield_now();
            }
            producing.messages[producing.slots().index(number)].store(10 + number, Ordering::Relaxed);
            producing.slots().put(number, 8);
        }
    });
    let mut tail = Seen::default();
    for number in 0..3 {
        while queue.slots().next(number, &mut tail) == Front::Empty {
            thread::yield_now();
        }
        assert_eq!(queue.slots().next(number, &mut tail), Front::Ready(8));
        let message = queue.messages[queue.slots().index(number)].load(Ordering::Relaxed);
        assert_eq!(message, 10 + number);
        queue.head.store(number + 1, Ordering::Release);
    }
    producer.join().unwrap();
}
