//! Requests and completions under kills: a requester sends, a server completes in another order.
//! No request is completed twice or with wrong bytes, and none is forgotten but those whose
//! completions a killed requester had taken out.

use super::{KILLS, start_as};
use anyhow::{Context, Result, bail, ensure};
use indelible::{Class, CreateOptions, Exchange, ExchangeOptions, Pool, SharedObject};
use indelible_record::add;
use std::collections::BTreeMap;
use std::path::Path;
use std::process::Child;
use std::sync::atomic::Ordering;
use std::time::Duration;

const EXCHANGE: &str = "exchange";
/// A bit for each request whose completion was seen.
const SEEN: &str = "seen";
const SEEN_BYTES: u64 = 32 << 20;
const HOW: ExchangeOptions = ExchangeOptions { slots: 32, request: 200, completion: 208 };
const NOW: Option<Duration> = Some(Duration::ZERO);

/// A process of the exchange.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum Side {
    Server,
    Requester,
}

fn attach(pool: &Pool) -> Result<(Exchange, SharedObject)> {
    Ok((pool.attach_shared(EXCHANGE)?.exchange(0, &HOW)?, pool.attach_shared(SEEN)?))
}

fn sum(bytes: &[u8]) -> u64 {
    bytes.iter().fold(17, |sum: u64, byte| (sum ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3))
}

impl Side {
    pub(super) fn run(self, pool: &Pool) -> Result<()> {
        let (exchange, seen) = attach(pool)?;
        let mut rng = fastrand::Rng::new();
        match self {
            Side::Server => {
                let (mut server, mut open) = (exchange.server()?, Vec::new());
                let mut request = Vec::new();
                loop {
                    let wait = if open.is_empty() { None } else { NOW };
                    let number = server.receive(&mut request, wait)?;
                    open.extend(number.map(|number| (number, request.clone())));
                    if !open.is_empty() && (number.is_none() || open.len() > 8) {
                        let (number, request) = open.swap_remove(rng.usize(..open.len()));
                        let sum = sum(&request).to_le_bytes();
                        server.complete(number, &[&request[..], &sum].concat())?;
                    }
                }
            }
            Side::Requester => {
                let (mut requester, mut completion) = (exchange.requester()?, Vec::new());
                loop {
                    let request: Vec<u8> = (0..rng.usize(..HOW.request)).map(|_| rng.u8(..)).collect();
                    requester.send(&request, None)?;
                    while let Some(number) = requester.receive(&mut completion, NOW)? {
                        see(&seen, number, &completion)?;
                    }
                }
            }
        }
    }
}

fn see(seen: &SharedObject, number: u64, completion: &[u8]) -> Result<()> {
    let (request, said) = completion.split_last_chunk::<8>().context("a completion is too short")?;
    ensure!(sum(request) == u64::from_le_bytes(*said), "request {number} has a wrong completion");
    let word = seen.words().get((number / 64) as usize).context("there are too many requests")?;
    let before = word.fetch_or(1 << (number % 64), Ordering::Relaxed);
    ensure!(before >> (number % 64) & 1 == 0, "request {number} is completed twice");
    Ok(())
}

/// Kills one of the two again and again.
pub(super) fn kill_and_judge(
    path: &Path,
    kills: u64,
    rng: &mut fastrand::Rng,
    counts: &mut BTreeMap<String, u64>,
) -> Result<()> {
    let pool = Pool::open(path)?;
    for (name, size) in [(EXCHANGE, HOW.bytes()? as u64), (SEEN, SEEN_BYTES)] {
        pool.create_with(name, &CreateOptions::new(size).class(Class::Shared))?;
    }
    let (exchange, seen) = attach(&pool)?;
    let mut crew = Crew([start_as(path, Side::Server)?, start_as(path, Side::Requester)?]);
    let mut lost = 0;
    for _ in 0..kills.min(KILLS) {
        std::thread::sleep(Duration::from_micros(rng.u64(0..40_000)));
        for child in &mut crew.0 {
            if let Some(status) = child.try_wait()? {
                bail!("a process ended by itself: {status}");
            }
        }
        let side = [Side::Server, Side::Requester][rng.usize(..2)];
        let child = &mut crew.0[side as usize];
        child.kill()?;
        child.wait()?;
        *child = start_as(path, side)?;
        lost += if side == Side::Requester { HOW.slots as u64 } else { 0 };
        add(counts, &format!("SIGKILL of a {}", format!("{side:?}").to_lowercase()), 1);
    }
    drop(crew);
    // Complete what is left.
    let (mut requester, mut server) = (exchange.requester()?, exchange.server()?);
    let (mut request, mut completion) = (Vec::new(), Vec::new());
    while let Some(number) = server.receive(&mut request, NOW)? {
        server.complete(number, &[&request[..], &sum(&request).to_le_bytes()].concat())?;
    }
    while let Some(number) = requester.receive(&mut completion, NOW)? {
        see(&seen, number, &completion)?;
    }
    let sent = requester.send(b"last", NOW)?.context("there is no room after the last completion")?;
    let found: u64 =
        seen.words().iter().map(|word| u64::from(word.load(Ordering::Relaxed).count_ones())).sum();
    ensure!(found + lost >= sent, "of {sent} requests, {found} were completed");
    add(counts, "requests completed", found);
    drop((requester, server, exchange, seen));
    [EXCHANGE, SEEN].into_iter().try_for_each(|name| pool.destroy(name))?;
    Ok(())
}

struct Crew([Child; 2]);

impl Drop for Crew {
    fn drop(&mut self) {
        for child in &mut self.0 {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}
