//! A Unix-socket connection to a local process, which a forked child loses.

#![allow(unsafe_code)]

use super::fork::ForkFd;
use rustix::io::Errno;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

const LONGEST: usize = 512;

#[derive(Debug)]
pub(crate) struct Link {
    fd: ForkFd,
    rest: Vec<u8>,
}

impl Link {
    /// A socket of root or of this process's user. Waits end after `patience`.
    pub(crate) fn connect(path: &Path, patience: Duration) -> io::Result<Link> {
        let stream = UnixStream::connect(path)?;
        let own = rustix::process::geteuid().as_raw();
        let peer = user_of(&stream)?;
        if peer != 0 && peer != own {
            return Err(io::Error::other(format!("user {peer} listens there")));
        }
        stream.set_read_timeout(Some(patience))?;
        stream.set_write_timeout(Some(patience))?;
        Ok(Link { fd: ForkFd::new(OwnedFd::from(stream))?, rest: Vec::new() })
    }

    pub(crate) fn send(&self, text: &str) -> io::Result<()> {
        let mut left = text.as_bytes();
        while !left.is_empty() {
            match rustix::io::write(&self.fd, left) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(sent) => left = &left[sent..],
                Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    pub(crate) fn line(&mut self) -> io::Result<Option<String>> {
        loop {
            if let Some(end) = self.rest.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.rest.drain(..=end).collect();
                return String::from_utf8(line[..end].to_vec()).map(Some).map_err(io::Error::other);
            }
            if self.rest.len() > LONGEST {
                return Err(io::ErrorKind::InvalidData.into());
            }
            let mut bytes = [0; LONGEST];
            match rustix::io::read(&self.fd, &mut bytes) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(got) => self.rest.extend(&bytes[..got]),
                Err(Errno::AGAIN) => return Ok(None),
                Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }
}

fn user_of(stream: &UnixStream) -> io::Result<u32> {
    let mut peer = MaybeUninit::<libc::ucred>::zeroed();
    let mut len = size_of::<libc::ucred>() as libc::socklen_t;
    // SAFETY: the call fills at most `len` bytes of `peer`, any of which are valid.
    let peer = unsafe {
        let done = libc::getsockopt(
            stream.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_PEERCRED,
            peer.as_mut_ptr().cast(),
            &raw mut len,
        );
        if done != 0 {
            return Err(io::Error::last_os_error());
        }
        peer.assume_init()
    };
    Ok(peer.uid)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::net::Shutdown;
    use std::os::unix::net::UnixListener;

    #[test]
    fn lines_come_whole_and_not_without_end() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("s");
        let listener = UnixListener::bind(&path).unwrap();
        let mut link = Link::connect(&path, Duration::from_millis(20)).unwrap();
        let (mut other, _) = listener.accept().unwrap();
        other.write_all(b"one\ntwo\nth").unwrap();
        assert_eq!(link.line().unwrap().as_deref(), Some("one"));
        assert_eq!(link.line().unwrap().as_deref(), Some("two"));
        assert_eq!(link.line().unwrap(), None, "not whole");
        other.write_all(b"ree\n").unwrap();
        assert_eq!(link.line().unwrap().as_deref(), Some("three"));
        other.write_all(b"\xff\n").unwrap();
        link.line().unwrap_err();
        other.write_all(&[b'x'; 2 * LONGEST]).unwrap();
        assert_eq!(link.line().unwrap_err().kind(), io::ErrorKind::InvalidData);
        link.send("four\n").unwrap();
        drop(other);
        let mut link = Link::connect(&path, Duration::from_millis(20)).unwrap();
        // A process that another test starts may hold both sockets for a moment.
        listener.accept().unwrap().0.shutdown(Shutdown::Both).unwrap();
        assert_eq!(link.line().unwrap_err().kind(), io::ErrorKind::UnexpectedEof);
        std::fs::remove_file(&path).unwrap();
        assert!(Link::connect(&path, Duration::from_millis(20)).is_err());
    }
}
