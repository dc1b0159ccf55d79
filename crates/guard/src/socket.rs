//! The guard's socket, and the lock that excludes other guards. A killed guard leaves both files,
//! but no lock.

use crate::error::GuardError;
use rustix::fs::{FlockOperation, Mode, OFlags};
use rustix::io::Errno;
use std::fs::{self, File, Permissions};
use std::io;
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};

/// The socket of this user's guard; root's is the machine's.
#[must_use]
pub fn default_socket() -> PathBuf {
    let mut sockets = indelible::guard_sockets();
    let of_machine = sockets.pop().unwrap_or_default();
    if rustix::process::geteuid().is_root() {
        of_machine
    } else {
        sockets.into_iter().next().unwrap_or(of_machine)
    }
}

#[derive(Debug)]
pub(crate) struct Socket {
    pub(crate) listener: UnixListener,
    path: PathBuf,
    lock: File,
}

impl Socket {
    pub(crate) fn listen(path: &Path) -> Result<Socket, GuardError> {
        let failed = |what, path: &Path| {
            let path = path.to_owned();
            move |source: io::Error| GuardError::File { what, path, source }
        };
        if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
            fs::create_dir_all(folder).map_err(failed("make the folder", folder))?;
        }
        let mut beside = path.as_os_str().to_owned();
        beside.push(".lock");
        let beside = Path::new(&beside);
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let lock: File = rustix::fs::open(beside, flags, Mode::RUSR | Mode::WUSR)
            .map_err(|error| failed("open the lock", beside)(error.into()))?
            .into();
        match rustix::fs::flock(&lock, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {}
            Err(Errno::WOULDBLOCK) => return Err(GuardError::Taken(path.to_owned())),
            Err(error) => return Err(failed("lock", beside)(error.into())),
        }
        match fs::symlink_metadata(path) {
            Ok(there) if there.file_type().is_socket() => {
                fs::remove_file(path).map_err(failed("remove the old socket", path))?;
            }
            Ok(_) => return Err(GuardError::NoSocket(path.to_owned())),
            Err(_) => {}
        }
        let listener = UnixListener::bind(path).map_err(failed("listen at", path))?;
        fs::set_permissions(path, Permissions::from_mode(0o666))
            .map_err(failed("open to all users", path))?;
        listener.set_nonblocking(true).map_err(failed("listen at", path))?;
        Ok(Socket { listener, path: path.to_owned(), lock })
    }
}

impl Drop for Socket {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path);
        // A child of this process that has yet to `exec` holds the descriptor too.
        let _ = rustix::fs::flock(&self.lock, FlockOperation::Unlock);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::net::UnixStream;

    #[test]
    fn one_guard_has_a_socket_and_a_dead_ones_is_taken_over() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("pmo/guard.sock");
        let first = Socket::listen(&path).unwrap();
        assert!(matches!(Socket::listen(&path), Err(GuardError::Taken(_))));
        UnixStream::connect(&path).expect("the first one listens still");
        drop(first);
        assert!(!path.exists());
        let killed = UnixListener::bind(&path).unwrap();
        drop(killed);
        assert!(path.exists());
        drop(Socket::listen(&path).unwrap());
        fs::write(&path, b"mine").unwrap();
        assert!(matches!(Socket::listen(&path), Err(GuardError::NoSocket(_))));
        assert_eq!(fs::read(&path).unwrap(), b"mine");
    }
}
