//! Failures as SQLite knows them: a result code, and the library's message for SQLite's log.

use indelible::ErrorKind;
use std::fmt;

pub(crate) mod code {
    pub(crate) const OK: i32 = 0;
    pub(crate) const ERROR: i32 = 1;
    pub(crate) const BUSY: i32 = 5;
    pub(crate) const READONLY: i32 = 8;
    pub(crate) const IOERR: i32 = 10;
    pub(crate) const CORRUPT: i32 = 11;
    pub(crate) const NOTFOUND: i32 = 12;
    pub(crate) const FULL: i32 = 13;
    pub(crate) const CANTOPEN: i32 = 14;
    pub(crate) const MISUSE: i32 = 21;
    pub(crate) const NOTADB: i32 = 26;
    pub(crate) const IOERR_SHORT_READ: i32 = IOERR | 2 << 8;
    pub(crate) const IOERR_FSYNC: i32 = IOERR | 4 << 8;
    pub(crate) const BUSY_SNAPSHOT: i32 = BUSY | 2 << 8;
    pub(crate) const OK_LOAD_PERMANENTLY: i32 = 1 << 8;
}

#[derive(Debug, Clone)]
pub(crate) struct Failure {
    pub(crate) code: i32,
    pub(crate) text: String,
}

pub(crate) type Result<T> = std::result::Result<T, Failure>;

impl Failure {
    pub(crate) fn new(code: i32, text: impl Into<String>) -> Failure {
        Failure { code, text: text.into() }
    }

    /// Another connection or process is in the way. SQLite's busy handler decides; the log is
    /// spared.
    pub(crate) fn busy() -> Failure {
        Failure::new(code::BUSY, "")
    }

    pub(crate) fn is_busy(&self) -> bool {
        self.code & 0xff == code::BUSY
    }

    pub(crate) fn opening(mut self) -> Failure {
        if ![code::BUSY, code::NOTADB, code::FULL, code::CORRUPT].contains(&self.code) {
            self.code = code::CANTOPEN;
        }
        self
    }
}

impl From<indelible::Error> for Failure {
    fn from(error: indelible::Error) -> Failure {
        use ErrorKind as Kind;
        let code = match error.kind() {
            Kind::NoRoom | Kind::NoSpace | Kind::NoAddresses => code::FULL,
            Kind::Held | Kind::Busy => code::BUSY,
            Kind::ReadOnly | Kind::ObjectReadOnly => code::READONLY,
            Kind::Damaged => code::CORRUPT,
            Kind::NotAPool => code::NOTADB,
            Kind::NoPool | Kind::NotFound | Kind::Version => code::CANTOPEN,
            Kind::Forked => code::MISUSE,
            Kind::Io | Kind::Poisoned | Kind::Gone => code::IOERR_FSYNC,
            _ => code::IOERR,
        };
        Failure::new(code, error.to_string())
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}
