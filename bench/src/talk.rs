//! Both sides of processes that communicate through shared objects.

use crate::Result;
use crate::environment::Medium;
use indelible::{Pool, PoolOptions, Queue, QueueKind, QueueOptions, SharedObject};
use rustix::thread::futex;
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};

pub const BYTES: usize = 64;
pub const SLOTS: usize = 4096;
/// The words of the two players, on separate lines.
pub const PING: usize = 0;
pub const PONG: usize = 256;

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Talk {
    Bare,
    Words,
    One,
    Many,
}

impl Talk {
    pub fn word(self) -> &'static str {
        match self {
            Talk::Bare => "bare",
            Talk::Words => "words",
            Talk::One => "one",
            Talk::Many => "many",
        }
    }
}

pub fn play(
    words: &SharedObject,
    (own, other): (usize, usize),
    first: bool,
    bare: bool,
    count: u32,
) -> Result<()> {
    let (own, other) = (words.word(own)?, words.word(other)?);
    let raw: (&AtomicU32, &AtomicU32) = (&own, &other);
    for number in 1..=count {
        let answer = || -> Result<()> {
            raw.0.store(number, Ordering::Release);
            match bare {
                true => drop(futex::wake(raw.0, futex::Flags::empty(), 1)?),
                false => drop(own.wake(1)?),
            }
            Ok(())
        };
        if first {
            answer()?;
        }
        while raw.1.load(Ordering::Acquire) < number {
            match bare {
                // Interrupted, or changed before it slept: checked again.
                true => drop(futex::wait(raw.1, futex::Flags::empty(), number - 1, None)),
                false => drop(other.wait(number - 1, None)?),
            }
        }
        if !first {
            answer()?;
        }
    }
    Ok(())
}

pub fn send(queue: &Queue, count: usize) -> Result<()> {
    let mut producer = queue.producer()?;
    for number in 0..count as u64 {
        producer.send_value(&[number; 8], None)?;
    }
    Ok(())
}

pub fn queue_of(pool: &Pool, talk: Talk) -> Result<Queue> {
    let kind = if talk == Talk::One { QueueKind::OneProducer } else { QueueKind::ManyProducers };
    Ok(pool.attach_shared(talk.word())?.queue(0, &QueueOptions { kind, slots: SLOTS, most: BYTES })?)
}

pub fn take_part(path: &Path, role: Talk, count: usize) -> Result<()> {
    let pool = PoolOptions::new().medium(Medium::Memory.kind()).open(path)?;
    match role {
        Talk::Bare | Talk::Words => {
            let words = pool.attach_shared(Talk::Words.word())?;
            println!("ready");
            play(&words, (PONG, PING), false, role == Talk::Bare, count as u32)?;
        }
        Talk::One | Talk::Many => {
            let queue = queue_of(&pool, role)?;
            println!("ready");
            send(&queue, count)?;
        }
    }
    println!("done");
    Ok(())
}
