//! A file or pipe to which a script or service writes `failing` and `fine`.

use super::{Detector, Watch, poll};
use crate::condition::Condition;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::os::unix::fs::FileTypeExt;
use std::path::PathBuf;
use std::time::Duration;

const EVERY: Duration = Duration::from_millis(50);
const SHORT: u64 = 64;

/// See the module. A file is read 20 times a second; an absent or empty one means that the power is
/// on. A pipe is read line by line.
#[derive(Clone, Debug)]
pub struct FileDetector(PathBuf);

impl FileDetector {
    /// Watches the file or pipe at `path`.
    #[must_use]
    pub fn new(path: impl Into<PathBuf>) -> FileDetector {
        FileDetector(path.into())
    }

    fn is_pipe(&self) -> bool {
        self.0.metadata().is_ok_and(|metadata| metadata.file_type().is_fifo())
    }
}

fn meaning(text: &str) -> Condition {
    match text.split_whitespace().next() {
        None | Some("fine") => Condition::Fine,
        Some("failing") => Condition::Failing,
        Some(_) => Condition::Blind("it has neither of the words fine and failing".into()),
    }
}

impl Detector for FileDetector {
    fn name(&self) -> String {
        format!("file {}", self.0.display())
    }

    fn latency(&self) -> Duration {
        if self.is_pipe() { Duration::ZERO } else { EVERY }
    }

    fn look(&mut self) -> io::Result<Condition> {
        if self.is_pipe() {
            return Ok(Condition::Fine);
        }
        let mut text = String::new();
        let read = File::open(&self.0).and_then(|file| file.take(SHORT).read_to_string(&mut text));
        match read {
            Ok(_) => Ok(meaning(&text)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Condition::Fine),
            Err(error) => Ok(Condition::Blind(error.to_string())),
        }
    }

    fn watch(&mut self, watch: &Watch) -> io::Result<()> {
        if !self.is_pipe() {
            return poll(self, EVERY, watch);
        }
        // Also open for writing: the pipe does not end with the last writer.
        let pipe = File::options().read(true).write(true).open(&self.0)?;
        let mut lines = BufReader::new(pipe);
        loop {
            let mut line = String::new();
            (&mut lines).take(SHORT).read_line(&mut line)?;
            if !watch.tell(meaning(&line)) {
                return Ok(());
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
}
