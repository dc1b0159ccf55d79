//! A file or pipe to which a script or service writes `failing` and `fine`.

use super::{Detector, Watch};
use crate::condition::Condition;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{Access, AtFlags, CWD, OFlags, accessat};
use std::fs::{File, Metadata};
use std::io::{self, Read};
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

const EVERY: Duration = Duration::from_millis(50);
const SHORT: usize = 64;

/// See the module. 20 times a second the detector looks at the path. It reads a file; an absent or
/// empty one means that the power is on. It reads a pipe line by line, and opens one that was made
/// anew.
#[derive(Clone, Debug)]
pub struct FileDetector(PathBuf);

impl FileDetector {
    /// Watches the file or pipe at `path`.
    #[must_use]
    pub fn new(path: impl Into<PathBuf>) -> FileDetector {
        FileDetector(path.into())
    }
}

fn meaning(text: &str) -> Condition {
    match text.split_whitespace().next() {
        None | Some("fine") => Condition::Fine,
        Some("failing") => Condition::Failing,
        Some(_) => Condition::Blind("it has neither of the words fine and failing".into()),
    }
}

fn is_pipe(metadata: &Metadata) -> bool {
    metadata.file_type().is_fifo()
}

fn read(path: &Path) -> io::Result<Condition> {
    // A pipe that takes the place of a file would hold the open up.
    let file = File::options().read(true).custom_flags(OFlags::NONBLOCK.bits() as i32).open(path)?;
    if !file.metadata()?.is_file() {
        return Ok(Condition::Blind("it is neither a file nor a pipe".into()));
    }
    let mut text = String::new();
    file.take(SHORT as u64).read_to_string(&mut text)?;
    Ok(meaning(&text))
}

struct Pipe {
    file: File,
    place: (u64, u64),
    begun: Vec<u8>,
}

impl Pipe {
    /// `None`: no pipe is there any more.
    fn open(path: &Path) -> io::Result<Option<Pipe>> {
        let mut options = File::options();
        // Also open for writing: the pipe does not end with the last writer.
        options.read(true).write(true).custom_flags(OFlags::NONBLOCK.bits() as i32);
        let file = options.open(path)?;
        let metadata = file.metadata()?;
        let place = (metadata.dev(), metadata.ino());
        Ok(is_pipe(&metadata).then_some(Pipe { file, place, begun: Vec::new() }))
    }

    fn wait(&self, time: Duration) -> io::Result<()> {
        let time = Timespec::try_from(time).map_err(io::Error::other)?;
        match poll(&mut [PollFd::new(&self.file, PollFlags::IN)], Some(&time)) {
            Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    fn lines(&mut self) -> io::Result<Vec<Condition>> {
        let mut bytes = [0; 4096];
        match self.file.read(&mut bytes) {
            Ok(count) => self.begun.extend_from_slice(&bytes[..count]),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) => return Err(error),
        }
        let mut found = Vec::new();
        loop {
            let end = self.begun.iter().take(SHORT).position(|byte| *byte == b'\n').map(|end| end + 1);
            let Some(end) = end.or_else(|| (self.begun.len() >= SHORT).then_some(SHORT)) else {
                return Ok(found);
            };
            let line: Vec<u8> = self.begun.drain(..end).collect();
            found.push(meaning(&String::from_utf8_lossy(&line)));
        }
    }
}

struct Eye<'p> {
    path: &'p Path,
    pipe: Option<Pipe>,
    known: Condition,
}

impl Eye<'_> {
    /// The conditions since the last turn, at least one.
    fn turn(&mut self) -> io::Result<Vec<Condition>> {
        let metadata = match self.path.metadata() {
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            metadata => Some(metadata?),
        };
        let place = metadata.as_ref().filter(|found| is_pipe(found)).map(|found| (found.dev(), found.ino()));
        let mut found = Vec::new();
        if self.pipe.as_ref().map(|pipe| pipe.place) != place {
            // Lines that were written before another pipe or file took its place.
            if let Some(mut pipe) = self.pipe.take() {
                found = pipe.lines()?;
            }
            self.pipe = if place.is_some() { Pipe::open(self.path)? } else { None };
        }
        match (&mut self.pipe, metadata) {
            (Some(pipe), _) => {
                pipe.wait(EVERY)?;
                found.extend(pipe.lines()?);
            }
            (None, None) => found.push(Condition::Fine),
            // Else a pipe that went away between two looks.
            (None, Some(_)) if place.is_none() => found.push(read(self.path)?),
            (None, Some(_)) => {}
        }
        if let Some(last) = found.last() {
            self.known = last.clone();
        } else {
            found.push(self.known.clone());
        }
        Ok(found)
    }
}

impl Detector for FileDetector {
    fn name(&self) -> String {
        format!("file {}", self.0.display())
    }

    fn latency(&self) -> Duration {
        EVERY
    }

    fn look(&mut self) -> io::Result<Condition> {
        let looked = match self.0.metadata() {
            // Opened, it would swallow lines of another reader.
            Ok(metadata) if is_pipe(&metadata) => {
                let access = Access::READ_OK | Access::WRITE_OK;
                accessat(CWD, &self.0, access, AtFlags::EACCESS)
                    .map_err(io::Error::from)
                    .map(|()| Condition::Fine)
            }
            Ok(_) => read(&self.0),
            Err(error) => Err(error),
        };
        match looked {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Condition::Fine),
            Err(error) => Ok(Condition::Blind(error.to_string())),
            looked => looked,
        }
    }

    fn watch(&mut self, watch: &Watch) -> io::Result<()> {
        let mut eye = Eye { path: &self.0, pipe: None, known: Condition::Fine };
        loop {
            let found = eye.turn().unwrap_or_else(|error| {
                eye.pipe = None;
                vec![Condition::Blind(error.to_string())]
            });
            if !found.into_iter().all(|condition| watch.tell(condition)) {
                return Ok(());
            }
            // A pipe has waited.
            if eye.pipe.is_none() {
                std::thread::sleep(EVERY);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn s1_10_a_file_says_that_the_power_fails_by_a_word() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("power");
        let mut detector = FileDetector::new(&path);
        assert_eq!(detector.look().unwrap(), Condition::Fine, "absent");
        for (text, fine) in [("", true), ("fine\n", true), ("failing", false), (" failing since noon", false)]
        {
            std::fs::write(&path, text).unwrap();
            let expected = if fine { Condition::Fine } else { Condition::Failing };
            assert_eq!(detector.look().unwrap(), expected, "{text}");
        }
        for text in [&b"maybe"[..], b"\xff\xfe", b"failings"] {
            std::fs::write(&path, text).unwrap();
            assert!(matches!(detector.look().unwrap(), Condition::Blind(_)));
        }
    }

    fn write(path: &Path, line: &str) {
        let options = OFlags::NONBLOCK.bits() as i32;
        let mut pipe = File::options().write(true).custom_flags(options).open(path).expect("it is read");
        std::io::Write::write_all(&mut pipe, line.as_bytes()).unwrap();
    }

    fn make_pipe(path: &Path) {
        let _ = std::fs::remove_file(path);
        rustix::fs::mknodat(CWD, path, rustix::fs::FileType::Fifo, 0o600.into(), 0).unwrap();
    }

    #[test]
    fn s1_10_each_look_decides_by_what_is_at_the_path() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("power");
        let mut eye = Eye { path: &path, pipe: None, known: Condition::Fine };
        assert_eq!(eye.turn().unwrap(), [Condition::Fine], "absent");
        make_pipe(&path);
        assert_eq!(eye.turn().unwrap(), [Condition::Fine], "opened");
        write(&path, "fail");
        assert_eq!(eye.turn().unwrap(), [Condition::Fine], "a line begins");
        write(&path, "ing\nfine\nfailing\n");
        let found = [Condition::Failing, Condition::Fine, Condition::Failing];
        assert_eq!(eye.turn().unwrap(), found);
        assert_eq!(eye.turn().unwrap(), [Condition::Failing], "no later line");
        // Made anew: lines of both count.
        write(&path, "fine\n");
        make_pipe(&path);
        assert_eq!(eye.turn().unwrap(), [Condition::Fine]);
        write(&path, "failing\n");
        assert_eq!(eye.turn().unwrap(), [Condition::Failing]);
        std::fs::remove_file(&path).unwrap();
        assert_eq!(eye.turn().unwrap(), [Condition::Fine], "absent again");
        std::fs::write(&path, "failing").unwrap();
        assert_eq!(eye.turn().unwrap(), [Condition::Failing], "a file");
        std::fs::remove_file(&path).unwrap();
        std::fs::create_dir(&path).unwrap();
        assert!(matches!(eye.turn().unwrap()[..], [Condition::Blind(_)]), "a folder");
        assert!(matches!(FileDetector::new(&path).look().unwrap(), Condition::Blind(_)));
        let below = path.join("x");
        std::fs::remove_dir(&path).unwrap();
        std::fs::write(&path, "").unwrap();
        assert!(Eye { path: &below, pipe: None, known: Condition::Fine }.turn().is_err(), "no path");
    }
}
