//! Processes that commit on demand, and a guard that watches a serial line for power failures.

use crate::board::{Shown, board};
use crate::commit::{self, PATIENCE, SOCKET, open};
use crate::port::{Mark, mark, say};
use crate::{check, expected, number};
use anyhow::{Context, Result, bail, ensure};
use indelible::{Class, CreateOptions};
use indelible_guard::detector::LineDetector;
use indelible_guard::{Budget, Config, Departed, Guard, Note, Outcome, RoundReport, status};
use indelible_rig::commits::{WORDS, WRITERS, fingerprint_of, names};
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::sleep;
use std::time::{Duration, Instant};

const PORT: &str = "/dev/ttyS1";
const LOOK: Duration = Duration::from_millis(1);

const AMPLE: Budget = Budget { hold_up: PATIENCE, safety: Duration::ZERO, bandwidth: Some(1 << 30) };

pub(crate) fn run(path: &Path) -> Result<()> {
    check(path, "before recovery")?;
    let numbers = found(path)?;
    check(path, "after recovery")?;
    say("state");
    if number("steps")? > 0 {
        write(path, &numbers)?;
    }
    say("end");
    Ok(())
}

fn found(path: &Path) -> Result<[u64; WRITERS]> {
    let pool = open(path)?;
    ensure!(pool.medium() == expected(), "the pool is taken for {:?}", pool.medium());
    let mut numbers = [0; WRITERS];
    for (writer, number) in numbers.iter_mut().enumerate() {
        let names = names(writer);
        for name in &names {
            if pool.stat(name).is_err() {
                let options = CreateOptions::new(8 * WORDS as u64).class(Class::OnDemand);
                pool.create_with(name, &options)?;
            }
            pool.attach_transactional::<commit::Cells>(name)?.detach()?;
        }
        let bytes = |name: &String| -> Result<Vec<u8>> {
            Ok(pool.attach_snapshot_anywhere(name, b"")?.as_slice().to_vec())
        };
        let bytes = [bytes(&names[0])?, bytes(&names[1])?];
        let found = fingerprint_of(writer, &bytes);
        let first =
            |bytes: &[u8]| bytes.first_chunk().map(|bytes| u64::from_le_bytes(*bytes)).context("no bytes");
        *number = first(&bytes[0])?;
        say(&format!("found {writer} {number} {} {found}", first(&bytes[1])?));
    }
    Ok(numbers)
}

fn write(path: &Path, numbers: &[u64; WRITERS]) -> Result<()> {
    let board = board()?;
    let (guarded, commits) = (number("guard")? == 1, number("commits")?);
    let durable = Arc::new(AtomicBool::new(false));
    if guarded {
        be_guard(path, durable.clone())?;
    }
    let mut writers = Vec::new();
    for (writer, number) in numbers.iter().enumerate() {
        writers.push(start(path, writer, number + commits)?);
    }
    let begin = Instant::now();
    let registered =
        || !guarded || status(Path::new(SOCKET), PATIENCE).is_ok_and(|found| found.writers.len() == WRITERS);
    let enough = || board.iter().zip(numbers).all(|(shown, number)| shown.numbers().0 >= number + commits);
    while !(enough() && registered()) {
        alive(&mut writers)?;
        ensure!(begin.elapsed() < PATIENCE, "the writers do not begin");
        sleep(LOOK);
    }
    mark(Mark::Go);
    let mut told = String::new();
    loop {
        // After the guard's report, transactions are durable when they return.
        let after = durable.load(Ordering::Acquire);
        let line = promise(&board.each_ref().map(Shown::numbers), after);
        if line != told {
            say(&line);
            told = line;
        }
        alive(&mut writers)?;
        sleep(LOOK);
    }
}

fn promise(shown: &[(u64, u64); WRITERS], durable: bool) -> String {
    let numbers = |number: fn(&(u64, u64), bool) -> u64| {
        let numbers: Vec<_> = shown.iter().map(|shown| number(shown, durable).to_string()).collect();
        numbers.join(" ")
    };
    let promised = numbers(|(acknowledged, awaited), durable| if durable { *acknowledged } else { *awaited });
    format!("promise {promised} of {}", numbers(|(acknowledged, _), _| *acknowledged))
}

fn alive(writers: &mut [Child]) -> Result<()> {
    for writer in writers {
        if let Some(status) = writer.try_wait()? {
            bail!("a writer ended: {status}");
        }
    }
    Ok(())
}

fn start(path: &Path, writer: usize, goal: u64) -> Result<Child> {
    let mut command = Command::new("/proc/self/exe");
    command.arg("commit").arg(path).arg(writer.to_string()).arg(goal.to_string());
    command.spawn().context("cannot start a writer")
}

/// Starts the guard. With its report that everything is durable, it reports the writers'
/// transactions at once.
fn be_guard(path: &Path, durable: Arc<AtomicBool>) -> Result<()> {
    let board = board()?;
    let detector = LineDetector::open(PORT, "cd").context("no detector")?;
    let note = move |note: &Note| match note {
        Note::Round(round) => {
            mark(Mark::Durable);
            let shown = board.each_ref().map(Shown::numbers);
            say(&promise(&shown, round.durable));
            say(&format!("round {}", summary(round)));
            mark(Mark::Promised);
            durable.store(round.durable, Ordering::Release);
        }
        Note::Lost { why, .. } | Note::Refused { why, .. } => say(&format!("error {why}")),
        _ => {}
    };
    let config = Config {
        socket: PathBuf::from(SOCKET),
        budget: AMPLE,
        detectors: vec![Box::new(detector)],
        recover: Arc::new(recover),
        note: Box::new(note),
    };
    let guard = Guard::start(config)?;
    let pool = path.to_owned();
    std::thread::spawn(move || {
        let ended = guard.run();
        say(&format!("error the guard of {} ended: {ended:?}", pool.display()));
    });
    Ok(())
}

fn summary(round: &RoundReport) -> String {
    let bytes: u64 = round.writers.iter().map(|writer| writer.bytes).sum();
    let published = round.writers.iter().filter(|writer| writer.outcome == Outcome::Published).count();
    format!("{} {published} {} {bytes}", round.durable, round.microseconds)
}

fn recover(departed: &Departed) -> Result<(), String> {
    let pool = open(&departed.pool).map_err(|error| error.to_string())?;
    pool.recover_memory(departed.number).map(drop).map_err(|error| error.to_string())
}
