#![allow(unsafe_code)]

pub mod beside;
pub mod queries;
pub mod ycsb;

use crate::Result;
use rusqlite::{Connection, ffi};
use std::path::Path;
use std::sync::Once;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    Object,
    Tickets,
    /// With a WAL file, synced at each commit.
    Wal,
    /// With a WAL file synced at checkpoints alone: a power cut loses commits.
    WalNormal,
    JournalMapped,
    Journal,
}

impl Mode {
    pub const ALL: [Mode; 6] =
        [Mode::Object, Mode::Tickets, Mode::Wal, Mode::WalNormal, Mode::JournalMapped, Mode::Journal];

    pub fn word(self) -> &'static str {
        match self {
            Mode::Object => "indelible",
            Mode::Tickets => "indelible, tickets",
            Mode::Wal => "WAL, FULL",
            Mode::WalNormal => "WAL, NORMAL (not durable)",
            Mode::JournalMapped => "default journal, mmap",
            Mode::Journal => "default journal",
        }
    }

    pub fn is_own(self) -> bool {
        matches!(self, Mode::Object | Mode::Tickets)
    }

    pub fn open(self, folder: &Path, name: &str) -> Result<Connection> {
        register();
        let connection = match self {
            Mode::Object | Mode::Tickets => {
                let pool = folder.join("pool.pmo");
                Connection::open(format!("file:{}?vfs=pmo&object={name}&size=4G", pool.display()))?
            }
            _ => Connection::open(folder.join(name))?,
        };
        let settings = match self {
            // The extension sets the same.
            Mode::Object => "PRAGMA journal_mode=MEMORY; PRAGMA mmap_size=1099511627776",
            Mode::Tickets => {
                "PRAGMA journal_mode=MEMORY; PRAGMA mmap_size=1099511627776; SELECT pmo_commit('ticket')"
            }
            Mode::Wal => "PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL",
            Mode::WalNormal => "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL",
            Mode::JournalMapped => "PRAGMA mmap_size=1099511627776",
            Mode::Journal => "",
        };
        connection.execute_batch(settings)?;
        Ok(connection)
    }

    pub fn settle(self, connection: &Connection) -> Result<()> {
        if self == Mode::Tickets {
            connection.query_row("SELECT pmo_wait()", [], |row| row.get::<_, i64>(0))?;
        }
        Ok(())
    }
}

fn register() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        // SAFETY: functions of the one SQLite that is linked.
        let registered = unsafe {
            indelible_sqlite::register(
                ffi::sqlite3_vfs_find,
                ffi::sqlite3_vfs_register,
                ffi::sqlite3_uri_parameter,
                ffi::sqlite3_log,
                ffi::sqlite3_auto_extension,
            )
        };
        registered.expect("SQLite takes the VFS");
    });
}
