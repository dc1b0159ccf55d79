use super::exchange::Side;
use anyhow::{Result, ensure};
use clap::Args;
use indelible::{Pool, PoolOptions, QueueOptions};
use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::time::Duration;

pub(super) const QUEUE: &str = "queue";
pub(super) const ACKNOWLEDGED: &str = "acknowledged";
pub(super) const LOG: &str = "log";
const AHEAD: u64 = 7;

pub(super) fn how() -> QueueOptions {
    QueueOptions { slots: 32, most: 200, ..QueueOptions::default() }
}

#[derive(Args)]
pub(crate) struct Child {
    pool: PathBuf,
    /// For a producer: the place for the number of its acknowledged messages
    #[arg(long)]
    place: Option<usize>,
    /// For a process of an exchange
    #[arg(long, value_enum)]
    side: Option<Side>,
}

impl Child {
    pub(crate) fn run(&self) -> Result<()> {
        let pool = PoolOptions::new().wait(Duration::from_secs(60)).open(&self.pool)?;
        match (self.place, self.side) {
            (_, Some(side)) => side.run(&pool),
            (Some(place), None) => produce(&pool, place),
            (None, None) => collect(&pool),
        }
    }
}

fn produce(pool: &Pool, place: usize) -> Result<()> {
    let acknowledged = pool.attach_shared(ACKNOWLEDGED)?;
    let mut producer = pool.attach_shared(QUEUE)?.queue(0, &how())?.producer()?;
    for number in 0_u64.. {
        let message = message(place, number);
        let sent = producer.send_parts(message.chunks(16), None)?;
        if number % AHEAD == 0
            && let Some(sent) = sent
            && producer.wait_taken(sent, None)?
        {
            acknowledged.words()[place].store(number + 1, Ordering::Release);
        }
    }
    Ok(())
}

fn collect(pool: &Pool) -> Result<()> {
    let mut log = pool.open_log(LOG, b"")?;
    let mut consumer = pool.attach_shared(QUEUE)?.queue(0, &how())?.consumer()?;
    loop {
        log.collect(&mut consumer, 16, None)?;
    }
}

fn message(place: usize, number: u64) -> Vec<u8> {
    let mut rng = fastrand::Rng::with_seed(place as u64 ^ number << 20);
    let mut message = [(place as u64).to_le_bytes(), number.to_le_bytes()].concat();
    message.extend((0..rng.usize(..180)).map(|_| rng.u8(..)));
    message
}

pub(super) fn parse(bytes: &[u8]) -> Result<(usize, u64)> {
    let words = bytes.as_chunks::<8>().0;
    ensure!(words.len() >= 2, "a record of {} bytes is no message", bytes.len());
    let (place, number) = (u64::from_le_bytes(words[0]) as usize, u64::from_le_bytes(words[1]));
    ensure!(bytes == message(place, number), "message {number} of producer {place} is not whole");
    Ok((place, number))
}
