use super::{Rig, at_work, kind};
use indelible::{ErrorKind, wait_any};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::sync::atomic::Ordering::{Acquire, Release};
use std::time::Duration;

const LONG: Option<Duration> = Some(Duration::from_secs(60));

#[test]
#[ignore = "run by the other test as a process of its own"]
fn answers() {
    let Some(object) = at_work() else { return };
    let (asked, answered) = (object.word(0).unwrap(), object.word(64).unwrap());
    println!("LIFE {}", object.life());
    for number in 1.. {
        assert!(asked.wait(number - 1, LONG).unwrap());
        answered.store(number, Release);
        answered.wake(1).unwrap();
    }
}

#[test]
fn s2_19_processes_wait_for_each_other() {
    let rig = Rig::new();
    let object = rig.attach();
    let mut child = rig.child("wait::answers");
    let life: u32 = child.said("LIFE").unwrap().parse().unwrap();
    let (asked, answered) = (object.word(0).unwrap(), object.word(64).unwrap());
    let never = object.word(128).unwrap();
    for number in 1..500 {
        asked.store(number, Release);
        asked.wake(1).unwrap();
        let which = match number % 2 {
            0 => answered.wait(number - 1, LONG).unwrap().then_some(0),
            _ => wait_any(&[(never, 0), (answered, number - 1)], LONG).unwrap().map(|which| which - 1),
        };
        assert_eq!((which, answered.load(Acquire)), (Some(0), number));
    }
    // S2.20: its exit wakes the waiters.
    assert!(object.is_alive(life).unwrap());
    assert!(!object.wait_end(life, Some(Duration::from_millis(30))).unwrap());
    child.kill();
    assert!(object.wait_end(life, LONG).unwrap());
    assert!(!object.is_alive(life).unwrap());
    assert_eq!(answered.load(Acquire), 499);
}

#[test]
fn s2_20_the_life_of_a_thread_ends_with_it() {
    let rig = Rig::new();
    let object = rig.attach();
    let (life, other) = (object.begin_life().unwrap(), object.begin_life().unwrap());
    assert!(![0, object.life(), other.number()].contains(&life.number()));
    let number = life.number();
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| object.wait_end(number, LONG).unwrap());
        scope.spawn(move || drop(life)).join().unwrap();
        assert!(waiting.join().unwrap());
    });
    assert!(object.is_alive(other.number()).unwrap() && object.is_alive(object.life()).unwrap());
    assert!(object.wait_end(0, None).unwrap(), "it had no holder");
}

#[test]
fn waits_end_in_time_and_words_that_cannot_be_are_refused() {
    let rig = Rig::new();
    let object = rig.attach();
    let word = object.word(object.len() - 4).unwrap();
    assert!(!word.wait(0, Some(Duration::from_millis(20))).unwrap());
    assert!(word.wait(1, None).unwrap(), "it is another value already");
    let both = [(word, 0), (object.word(0).unwrap(), 0)];
    assert_eq!(wait_any(&both, Some(Duration::from_millis(20))).unwrap(), None);
    assert_eq!(word.wake(10).unwrap(), 0);
    for offset in [2, object.len(), usize::MAX - 3] {
        assert_eq!(kind(object.word(offset)), ErrorKind::BadSize, "{offset}");
        assert_eq!(kind(object.event(offset, 0)), ErrorKind::BadSize, "{offset}");
    }
    assert_eq!(kind(wait_any(&[], None)), ErrorKind::BadSize);
    assert_eq!(kind(wait_any(&vec![(word, 0); 129], None)), ErrorKind::BadSize);
    assert_eq!(wait_any(&vec![(word, 1); 128], None).unwrap(), Some(0));
}

#[test]
fn s2_19_a_descriptor_tells_of_a_word() {
    let rig = Rig::new();
    let object = rig.attach();
    let word = object.word(8).unwrap();
    let event = object.event(8, 0).unwrap();
    let is_readable = |wait: i64| {
        let mut polled = [PollFd::new(&event, PollFlags::IN)];
        let timeout = Timespec { tv_sec: wait, tv_nsec: 0 };
        poll(&mut polled, Some(&timeout)).unwrap() == 1
    };
    assert!(!is_readable(0));
    assert_eq!(event.take().unwrap(), 0);
    for value in 1..20 {
        word.store(value, Release);
        word.wake(u32::MAX).unwrap();
        assert!(is_readable(60));
        assert_eq!(event.take().unwrap(), 1);
        assert!(!is_readable(0));
    }
    let late = object.event(8, 0).unwrap();
    let mut polled = [PollFd::new(&late, PollFlags::IN)];
    assert_eq!(
        poll(&mut polled, Some(&Timespec { tv_sec: 60, tv_nsec: 0 })).unwrap(),
        1,
        "it was another value"
    );
}
