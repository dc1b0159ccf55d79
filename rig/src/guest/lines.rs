//! The guard's detector of modem-control lines, which the rig's power supply changes from outside.

use crate::port::{say, set_lines};
use anyhow::{Context, Result, bail, ensure};
use indelible_guard::detector::{LineDetector, Port, SerialPort};
use indelible_guard::{Budget, Config, Departed, Detector, Guard, Note};
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

const LINES: [(&str, i32); 4] =
    [("cd", libc::TIOCM_CD), ("cts", libc::TIOCM_CTS), ("dsr", libc::TIOCM_DSR), ("ri", libc::TIOCM_RI)];
const PATIENCE: Duration = Duration::from_secs(30);
const QUIET: Duration = Duration::from_millis(300);

pub(crate) fn lines(path: &Path) -> Result<()> {
    set_lines(0);
    for (name, mask) in LINES {
        let changes = told(path, mask).with_context(|| format!("line {name}"))?;
        say(&format!("told {name} {changes}"));
    }
    let changes = detected(path)?;
    say(&format!("detected {changes}"));
    say("end");
    Ok(())
}

/// Unpolled, by the port's interrupts alone. Returns the number of changes until the first report,
/// as changes before the wait are lost.
fn told(path: &Path, mask: i32) -> Result<u32> {
    let port = Arc::new(SerialPort::open(path)?);
    let before = interrupts()?;
    let (sender, done) = channel();
    let waiting = port.clone();
    std::thread::spawn(move || {
        let _ = sender.send(waiting.wait(mask));
    });
    let mut changes = 0;
    while changes < 100 {
        changes += 1;
        set_lines(if changes % 2 == 1 { mask } else { 0 });
        match done.recv_timeout(Duration::from_millis(100)) {
            Ok(told) => {
                told?;
                set_lines(0);
                ensure!(interrupts()? > before, "it was told without an interrupt");
                return Ok(changes);
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => break,
        }
    }
    bail!("no change was told")
}

fn interrupts() -> Result<u64> {
    let all = std::fs::read_to_string("/proc/interrupts")?;
    let line = all.lines().find(|line| line.ends_with("ttyS1")).context("the port has no interrupt")?;
    line.split_whitespace().nth(1).and_then(|word| word.parse().ok()).context("no number of interrupts")
}

struct Untold(SerialPort);

impl Port for Untold {
    fn lines(&self) -> io::Result<i32> {
        self.0.lines()
    }

    fn wait(&self, _mask: i32) -> io::Result<()> {
        Err(io::Error::from_raw_os_error(libc::ENOTTY))
    }
}

/// In both polarities, with reports of changes and without: each line's change is reported by its
/// detectors alone. Returns the number of changes.
fn detected(path: &Path) -> Result<u32> {
    let mut detectors: Vec<Box<dyn Detector>> = Vec::new();
    for (name, _) in LINES {
        for name in [name.to_owned(), format!("!{name}")] {
            detectors.push(Box::new(LineDetector::open(path, &name)?));
            detectors.push(Box::new(LineDetector::of(path, Untold(SerialPort::open(path)?), &name)?));
        }
    }
    let (sender, notes) = channel();
    let config = Config {
        socket: "/guard.sock".into(),
        budget: Budget { hold_up: PATIENCE, safety: Duration::ZERO, bandwidth: None },
        detectors,
        recover: Arc::new(|_: &Departed| Err("no process has objects here".into())),
        note: Box::new(move |note: &Note| {
            if let Note::Detector(report) = note {
                let _ = sender.send((report.name.clone(), report.condition.clone()));
            }
        }),
    };
    let guard = Guard::start(config)?;
    let stop = guard.stop();
    let running = std::thread::spawn(move || guard.run());
    let changes = changes(path, &notes);
    stop.stop();
    running.join().map_err(|_| anyhow::anyhow!("the guard panicked"))??;
    changes
}

fn changes(path: &Path, notes: &Receiver<(String, String)>) -> Result<u32> {
    for _ in 0..2 * LINES.len() {
        notes.recv_timeout(PATIENCE).context("a detector says nothing of a line that is off")?;
    }
    let mut changes = 0;
    for (name, mask) in LINES {
        for (bits, on) in [(mask, true), (0, false), (mask, true), (0, false)] {
            set_lines(bits);
            changes += 1;
            let mut expected = Vec::new();
            for (name, fine) in [(name.to_owned(), on), (format!("!{name}"), !on)] {
                let told = (
                    format!("line {}:{name}", path.display()),
                    if fine { "fine" } else { "failing" }.to_owned(),
                );
                expected.extend([told.clone(), told]);
            }
            for _ in 0..4 {
                let told = notes
                    .recv_timeout(PATIENCE)
                    .with_context(|| format!("{name} {on}: not told: {expected:?}"))?;
                let at = expected.iter().position(|expected| *expected == told);
                expected.swap_remove(at.with_context(|| format!("{name} {on}: {told:?} is told"))?);
            }
        }
    }
    match notes.recv_timeout(QUIET) {
        Err(RecvTimeoutError::Timeout) => Ok(changes),
        more => bail!("told of no change: {more:?}"),
    }
}
