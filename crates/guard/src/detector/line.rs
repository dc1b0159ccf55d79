//! A modem-control line of a serial port: a power supply's PWR_OK, or a simple UPS's contact.
//!
//! The kernel reports changes (`TIOCMIWAIT`) if the driver can, only to waiting threads, and of
//! `ri` only the falling edge: so the line is also polled. Pseudo-terminals have no such lines.

use super::{Detector, Watch};
use crate::condition::Condition;
use crate::kernel;
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::time::Duration;

const EVERY: Duration = Duration::from_millis(20);

const LINES: [(&str, i32); 4] =
    [("cd", libc::TIOCM_CD), ("cts", libc::TIOCM_CTS), ("dsr", libc::TIOCM_DSR), ("ri", libc::TIOCM_RI)];

/// The lines of a port.
pub trait Port: Send + Sync + 'static {
    /// The active lines, as bits of `TIOCMGET`.
    fn lines(&self) -> io::Result<i32>;

    /// Waits until a line in `mask` changes. Changes without a waiting thread are lost.
    ///
    /// # Errors
    /// Those of the kernel: `ENOTTY`, `EINVAL` and the like without driver support.
    fn wait(&self, mask: i32) -> io::Result<()>;
}

/// A serial port of the machine.
#[derive(Debug)]
pub struct SerialPort(File);

impl SerialPort {
    /// Opens a device.
    ///
    /// # Errors
    /// The device cannot be opened.
    pub fn open(path: &Path) -> io::Result<SerialPort> {
        // Without waiting for a carrier or becoming the controlling terminal.
        let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::NONBLOCK | OFlags::CLOEXEC;
        Ok(SerialPort(rustix::fs::open(path, flags, Mode::empty())?.into()))
    }
}

impl Port for SerialPort {
    fn lines(&self) -> io::Result<i32> {
        kernel::lines(&self.0)
    }

    fn wait(&self, mask: i32) -> io::Result<()> {
        kernel::wait_for_lines(&self.0, mask)
    }
}

/// See the module.
#[derive(Debug)]
pub struct LineDetector<P> {
    path: PathBuf,
    port: Arc<P>,
    mask: i32,
    line: &'static str,
    fine_on: bool,
}

impl LineDetector<SerialPort> {
    /// Watches the line `cd`, `cts`, `dsr` or `ri` of the port at `path`. With a `!` before its
    /// name the power is on while the line is inactive.
    ///
    /// # Errors
    /// There is no such line or port, or the port has no lines.
    pub fn open(path: impl Into<PathBuf>, line: &str) -> io::Result<LineDetector<SerialPort>> {
        let path = path.into();
        let port = SerialPort::open(&path)?;
        LineDetector::of(path, port, line)
    }
}

impl<P: Port> LineDetector<P> {
    /// Watches a line of an open port: see [`open`](LineDetector::open).
    ///
    /// # Errors
    /// There is no such line, or the port has no lines.
    pub fn of(path: impl Into<PathBuf>, port: P, line: &str) -> io::Result<LineDetector<P>> {
        let (fine_on, name) = line.strip_prefix('!').map_or((true, line), |name| (false, name));
        let known = LINES.into_iter().find(|(known, _)| *known == name);
        let (line, mask) = known.ok_or_else(|| io::Error::other("the lines are cd, cts, dsr and ri"))?;
        port.lines()?;
        Ok(LineDetector { path: path.into(), port: Arc::new(port), mask, line, fine_on })
    }

    fn decide(&self, lines: i32) -> Condition {
        if (lines & self.mask != 0) == self.fine_on { Condition::Fine } else { Condition::Failing }
    }
}

/// Until the receiver is dropped or the driver fails.
fn changes(port: Arc<impl Port>, mask: i32) -> io::Result<Receiver<io::Result<()>>> {
    let (sender, changes) = sync_channel(1);
    let wait = move || {
        loop {
            let told = match port.wait(mask) {
                Err(error) if cannot_tell(&error) => return,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok(()),
                told => told,
            };
            let gone = told.is_err();
            if sender.send(told).is_err() || gone {
                return;
            }
        }
    };
    std::thread::Builder::new().name("line".into()).spawn(wait).map(|_| changes)
}

fn cannot_tell(error: &io::Error) -> bool {
    let found = Errno::from_io_error(error);
    [Errno::NOTTY, Errno::INVAL, Errno::OPNOTSUPP, Errno::NOSYS].into_iter().any(|errno| found == Some(errno))
}

impl<P: Port> Detector for LineDetector<P> {
    fn name(&self) -> String {
        let not = if self.fine_on { "" } else { "!" };
        format!("line {}:{not}{}", self.path.display(), self.line)
    }

    fn latency(&self) -> Duration {
        EVERY
    }

    fn look(&mut self) -> io::Result<Condition> {
        self.port.lines().map(|lines| self.decide(lines))
    }

    fn watch(&mut self, watch: &Watch) -> io::Result<()> {
        let changes = changes(self.port.clone(), self.mask)?;
        loop {
            let condition = self.look()?;
            if !watch.tell(condition) {
                return Ok(());
            }
            match changes.recv_timeout(EVERY) {
                Ok(told) => told?,
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => std::thread::sleep(EVERY),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::events::Sender;
    use std::sync::Mutex;

    struct Script {
        lines: Mutex<Vec<i32>>,
        waits: fn() -> io::Result<()>,
    }

    impl Port for Script {
        fn lines(&self) -> io::Result<i32> {
            let mut lines = self.lines.lock().unwrap();
            if lines.is_empty() { Err(io::Error::other("unplugged")) } else { Ok(lines.remove(0)) }
        }

        fn wait(&self, mask: i32) -> io::Result<()> {
            assert_eq!(mask, libc::TIOCM_CD);
            (self.waits)()
        }
    }

    const CD: i32 = libc::TIOCM_CD;

    fn told(line: &str, waits: fn() -> io::Result<()>) -> (Vec<Condition>, String) {
        told_of(vec![0, CD, CD | libc::TIOCM_CTS, libc::TIOCM_CTS, 0, CD], line, waits)
    }

    fn told_of(lines: Vec<i32>, line: &str, waits: fn() -> io::Result<()>) -> (Vec<Condition>, String) {
        let port = Script { lines: Mutex::new(lines), waits };
        let mut detector = LineDetector::of("/dev/ttyS9", port, line).unwrap();
        let (sender, events) = Sender::new().unwrap();
        let unplugged = detector.watch(&Watch { sender, nth: 3 }).unwrap_err();
        let conditions = std::iter::from_fn(|| events.condition()).map(|(nth, condition)| {
            assert_eq!(nth, 3);
            condition
        });
        (conditions.collect(), unplugged.to_string())
    }

    #[test]
    fn s1_10_a_line_is_decided_on_whether_or_not_the_kernel_tells_of_changes() {
        use Condition::{Failing, Fine};
        let cannot: fn() -> io::Result<()> = || Err(Errno::NOTTY.into());
        let interrupted: fn() -> io::Result<()> = || Err(Errno::INTR.into());
        for waits in [(|| Ok(())) as fn() -> io::Result<()>, cannot, interrupted] {
            let expected = vec![Fine, Fine, Failing, Failing, Fine];
            assert_eq!(told("cd", waits), (expected.clone(), "unplugged".into()));
            let opposite =
                expected.into_iter().map(|condition| if condition == Fine { Failing } else { Fine });
            assert_eq!(told("!cd", waits).0, opposite.collect::<Vec<_>>());
        }
        let missed: fn() -> io::Result<()> = || {
            loop {
                std::thread::park();
            }
        };
        assert_eq!(
            told("cd", missed).0,
            [Fine, Fine, Failing, Failing, Fine],
            "changes that no thread waited for"
        );
        let gone: fn() -> io::Result<()> = || Err(Errno::IO.into());
        let (conditions, why) = told_of(vec![CD; 10_000], "cd", gone);
        assert!(conditions.iter().all(|condition| *condition == Fine), "{conditions:?}");
        assert_eq!(why, io::Error::from(Errno::IO).to_string(), "a port that fails is no reason to look on");
    }

    #[test]
    fn ports_without_lines_and_unknown_lines_are_refused() {
        let dir = tempfile::tempdir().unwrap();
        let plain = dir.path().join("plain");
        std::fs::write(&plain, b"").unwrap();
        assert!(LineDetector::open(&plain, "cd").is_err(), "it is no port");
        assert!(LineDetector::open(dir.path().join("absent"), "cd").is_err());
        let port = Script { lines: Mutex::new(vec![0]), waits: || Ok(()) };
        assert!(LineDetector::of("/dev/ttyS9", port, "dtr").is_err(), "an output");
    }
}
