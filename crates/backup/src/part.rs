//! A file that becomes a backup; its durable part is kept if it fails.
//!
//! Invariant: the first `durable` bytes were in the file at a successful sync, and no sync failed
//! before. After a failure later bytes are not trusted, even if readable: the file is cut.

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::AsFd;

/// Bytes between syncs: the most that is written again after a failure of the disk.
const EACH: u64 = 64 << 20;
/// Bytes between starts of writeback, which shorten a later sync.
const AHEAD: u64 = 8 << 20;

pub(crate) trait Sink: Write {
    fn make_durable(&mut self) -> io::Result<()>;
    fn cut(&mut self, len: u64) -> io::Result<()>;
    /// Starts writeback.
    fn begin(&mut self, _from: u64, _len: u64) {}
}

impl Sink for File {
    fn make_durable(&mut self) -> io::Result<()> {
        self.sync_all()
    }

    fn cut(&mut self, len: u64) -> io::Result<()> {
        self.set_len(len)
    }

    fn begin(&mut self, from: u64, len: u64) {
        indelible::begin_writeback(self.as_fd(), from, len);
    }
}

pub(crate) struct Part<S> {
    sink: S,
    written: u64,
    durable: u64,
    /// Writeback of the bytes before has started.
    begun: u64,
    lost: bool,
}

impl<S: Sink> Part<S> {
    pub(crate) fn new(sink: S) -> Part<S> {
        Part { sink, written: 0, durable: 0, begun: 0, lost: false }
    }

    pub(crate) fn finish(&mut self) -> io::Result<()> {
        self.sink.make_durable().inspect_err(|_| self.lost = true)?;
        self.durable = self.written;
        Ok(())
    }

    /// Cuts the part that is not durable after a failure; returns the number of durable bytes.
    pub(crate) fn keep(&mut self) -> io::Result<u64> {
        if self.lost || self.finish().is_err() {
            self.sink.cut(self.durable)?;
            self.sink.make_durable()?;
        }
        Ok(self.durable)
    }
}

impl<S: Sink> Write for Part<S> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.sink.write(bytes)?;
        self.written += written as u64;
        if self.written - self.begun >= AHEAD {
            self.sink.begin(self.begun, self.written - self.begun);
            self.begun = self.written;
        }
        if self.written - self.durable >= EACH {
            self.finish()?;
        }
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.sink.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A disk that fails from a byte on, or at a sync, which loses all writes since the last.
    #[derive(Default)]
    struct Disk {
        bytes: Vec<u8>,
        durable: usize,
        full_at: Option<usize>,
        fails: Option<usize>,
        calls: usize,
    }

    impl Write for Disk {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let room = self.full_at.map_or(usize::MAX, |end| end - self.bytes.len());
            if room == 0 {
                return Err(io::ErrorKind::StorageFull.into());
            }
            let len = bytes.len().min(room);
            self.bytes.extend_from_slice(&bytes[..len]);
            Ok(len)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    impl Sink for Disk {
        fn make_durable(&mut self) -> io::Result<()> {
            self.calls += 1;
            if self.fails == Some(self.calls) {
                // Linux reports that once.
                self.bytes[self.durable..].fill(0);
                return Err(io::Error::other("the disk fails"));
            }
            self.durable = self.bytes.len();
            Ok(())
        }

        fn cut(&mut self, len: u64) -> io::Result<()> {
            self.bytes.truncate(len as usize);
            Ok(())
        }
    }

    fn written(disk: Disk, pieces: usize) -> (Vec<u8>, Part<Disk>, bool) {
        let piece: Vec<u8> = (0..1 << 20).map(|at| (at % 251) as u8 + 1).collect();
        let mut part = Part::new(disk);
        let all = piece.repeat(pieces);
        let done = (0..pieces).try_for_each(|_| part.write_all(&piece)).and_then(|()| part.finish());
        (all, part, done.is_ok())
    }

    #[test]
    fn a_full_disk_keeps_all_that_fitted() {
        for end in [0, 100, 70 << 20] {
            let (all, mut part, done) = written(Disk { full_at: Some(end), ..Disk::default() }, 71);
            assert!(!done);
            assert_eq!(part.keep().unwrap(), end as u64);
            assert!(part.sink.bytes == all[..end]);
        }
    }

    #[test]
    fn nothing_is_kept_that_a_failing_disk_may_have_lost() {
        for (fails, kept) in [(1, 0), (2, EACH), (3, 2 * EACH)] {
            let (all, mut part, done) = written(Disk { fails: Some(fails), ..Disk::default() }, 130);
            assert!(!done, "{fails}");
            assert_eq!(part.keep().unwrap(), kept);
            assert!(part.sink.bytes == all[..kept as usize]);
            assert_eq!(part.sink.durable as u64, kept);
        }
    }

    #[test]
    fn a_disk_that_fails_last_keeps_what_was_durable() {
        let disk = Disk { full_at: Some(70 << 20), fails: Some(2), ..Disk::default() };
        let (all, mut part, done) = written(disk, 71);
        assert!(!done);
        assert_eq!(part.keep().unwrap(), EACH);
        assert!(part.sink.bytes == all[..EACH as usize]);
    }
}
