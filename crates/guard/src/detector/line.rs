//! A modem-control line of a serial port: a power supply's PWR_OK, or the contact of a simple UPS.
//!
//! The kernel tells of changes (`TIOCMIWAIT`), or, where the port's driver cannot, the line is looked at again and again. Pseudo-terminals have no such lines.

use super::{Detector, Watch};
use crate::condition::Condition;
use crate::kernel;
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use std::fs::File;
use std::io;
use std::path::PathBuf;
use std::time::Duration;

/// Time between two looks at a line of which the kernel tells no changes.
const EVERY: Duration = Duration::from_millis(20);

/// The lines that a detector can watch: names, and bits of the kernel's.
const LINES: [(&str, i32); 4] =
    [("cd", libc::TIOCM_CD), ("cts", libc::TIOCM_CTS), ("dsr", libc::TIOCM_DSR), ("ri", libc::TIOCM_RI)];

/// The lines of a port.
pub trait Port: Send {
    /// The lines that are on, as bits of `TIOCMGET`.
    ///
    /// # Errors
    /// Those of the kernel.
    fn lines(&self) -> io::Result<i32>;

    /// Waits until one of the lines in `mask` changes.
    ///
    /// # Errors
    /// Those of the kernel: `ENOTTY`, `EINVAL` and the like where the driver cannot.
    fn wait(&self, mask: i32) -> io::Result<()>;
}

/// A serial port of the machine.
#[derive(Debug)]
pub struct SerialPort(File);

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
    port: P,
    mask: i32,
    line: &'static str,
    /// The power is there while the line is on.
    fine_on: bool,
    /// The kernel tells of changes, as far as is known.
    told: bool,
}

impl LineDetector<SerialPort> {
    /// Of the line `cd`, `cts`, `dsr` or `ri` of the port at `path`. A `!` in front of its name: the power is there while the line is off.
    ///
    /// # Errors
    /// There is no such line or port, or the port has no lines.
    pub fn open(path: impl Into<PathBuf>, line: &str) -> io::Result<LineDetector<SerialPort>> {
        let path = path.into();
        // Without waiting for a carrier, and without becoming the process's terminal.
        let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let port = SerialPort(rustix::fs::open(&path, flags, Mode::empty())?.into());
        LineDetector::of(path, port, line)
    }
}

impl<P: Port> LineDetector<P> {
    /// Of a port that is open: see [`open`](LineDetector::open).
    ///
    /// # Errors
    /// There is no such line, or the port has no lines.
    pub fn of(path: impl Into<PathBuf>, port: P, line: &str) -> io::Result<LineDetector<P>> {
        let (fine_on, name) = line.strip_prefix('!').map_or((true, line), |name| (false, name));
        let known = LINES.into_iter().find(|(known, _)| *known == name);
        let (line, mask) = known.ok_or_else(|| io::Error::other("the lines are cd, cts, dsr and ri"))?;
        port.lines()?;
        Ok(LineDetector { path: path.into(), port, mask, line, fine_on, told: true })
    }

    /// The power, by the lines that are on.
    fn decide(&self, lines: i32) -> Condition {
        if (lines & self.mask != 0) == self.fine_on { Condition::Fine } else { Condition::Failing }
    }

    /// Waits for a change, or for the time of the next look.
    fn wait(&mut self) -> io::Result<()> {
        if self.told {
            match self.port.wait(self.mask) {
                Err(error) if cannot_tell(&error) => self.told = false,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => return Ok(()),
                done => return done,
            }
        }
        std::thread::sleep(EVERY);
        Ok(())
    }
}

/// Whether a driver does not tell of changes.
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
        loop {
            let condition = self.look()?;
            if !watch.tell(condition) {
                return Ok(());
            }
            self.wait()?;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::events::Sender;
    use std::sync::Mutex;

    /// Lines as they are at one look after the other; then the port is gone.
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

    fn told(line: &str, waits: fn() -> io::Result<()>) -> (Vec<Condition>, String) {
        const CD: i32 = libc::TIOCM_CD;
        // The first look is that at the port itself.
        let lines = Mutex::new(vec![0, CD, CD | libc::TIOCM_CTS, libc::TIOCM_CTS, 0, CD]);
        let mut detector = LineDetector::of("/dev/ttyS9", Script { lines, waits }, line).unwrap();
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
        let gone: fn() -> io::Result<()> = || Err(Errno::IO.into());
        assert_eq!(told("cd", gone).0, [Fine], "a port that fails is no reason to poll it");
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
