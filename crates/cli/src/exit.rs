//! Exit statuses; stable numbers.

use indelible::ErrorKind;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Exit {
    Fine = 0,
    Failed = 1,
    Usage = 2,
    Damaged = 3,
    Busy = 4,
    NotFound = 5,
    Denied = 6,
    Exists = 7,
    Full = 8,
    Unsuitable = 9,
}

const CODES: [(Exit, &str); 10] = [
    (Exit::Fine, "it was done"),
    (Exit::Failed, "the operating system, the device or the kernel failed"),
    (Exit::Usage, "the command line, a name or a size makes no sense"),
    (Exit::Damaged, "the pool is damaged, or check found that something is wrong"),
    (Exit::Busy, "the object or the pool is held by a process"),
    (Exit::NotFound, "there is no such pool, object, root or file"),
    (Exit::Denied, "wrong key, read-only, or no permission"),
    (Exit::Exists, "the pool or the object exists already"),
    (Exit::Full, "the pool or the file system has no room"),
    (Exit::Unsuitable, "no pool or no heap, of another version, or not usable on this machine"),
];

pub fn exit_codes() -> String {
    let mut text = "Exit codes:".to_owned();
    for (exit, meaning) in CODES {
        text += &format!("\n  {}  {meaning}", exit as u8);
    }
    text
}

impl From<ErrorKind> for Exit {
    fn from(kind: ErrorKind) -> Self {
        match kind {
            ErrorKind::BadName
            | ErrorKind::BadSize
            | ErrorKind::BadWindow
            | ErrorKind::DifferentPools
            | ErrorKind::ClassMismatch
            | ErrorKind::TieCycle => Exit::Usage,
            ErrorKind::Damaged | ErrorKind::Gone | ErrorKind::PoolBehind | ErrorKind::AnchorBehind => {
                Exit::Damaged
            }
            ErrorKind::Held | ErrorKind::Busy => Exit::Busy,
            ErrorKind::NoPool | ErrorKind::NotFound | ErrorKind::VolatileGone | ErrorKind::Dangling => {
                Exit::NotFound
            }
            ErrorKind::ReadOnly
            | ErrorKind::ObjectReadOnly
            | ErrorKind::WrongKey
            | ErrorKind::Sealed
            | ErrorKind::Denied
            | ErrorKind::NeedsRecovery => Exit::Denied,
            ErrorKind::PoolExists | ErrorKind::Exists => Exit::Exists,
            ErrorKind::NoSpace | ErrorKind::NoRoom | ErrorKind::NoAddresses | ErrorKind::TooManyTies => {
                Exit::Full
            }
            ErrorKind::NotAPool
            | ErrorKind::NotAHeap
            | ErrorKind::Version
            | ErrorKind::Unsuitable
            | ErrorKind::Unsupported => Exit::Unsuitable,
            _ => Exit::Failed,
        }
    }
}
