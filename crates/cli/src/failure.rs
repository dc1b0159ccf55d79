//! Failures of commands: cause and advice.

use crate::exit::Exit;
use crate::terminal::{self, Label};
use crate::text::{json, quoted};
use indelible::{Error, ErrorKind};
use indelible_backup::BackupError;
use indelible_store::error::StoreError;
use indelible_store::medium::MediumError;
use serde::Serialize;
use std::io::{self, Write};
use std::path::Path;

pub type Result<T = ()> = std::result::Result<T, Failure>;

#[derive(Debug)]
pub enum Failure {
    /// Reported already.
    Quiet(Exit),
    /// The status of a program that the command ran.
    Program(u8),
    Said(Box<Report>),
}

/// One line, and one of help; with --json an object of these fields.
#[derive(Debug, Serialize)]
pub struct Report {
    #[serde(rename = "error")]
    message: String,
    help: Option<String>,
    exit: u8,
    /// The library's kind.
    kind: Option<String>,
    pool: Option<String>,
    object: Option<String>,
    #[serde(skip)]
    code: Exit,
}

impl Failure {
    pub fn new(exit: Exit, message: impl Into<String>, help: impl Into<String>) -> Self {
        Failure::said(exit, message.into(), Some(help.into()))
    }

    fn said(exit: Exit, message: String, help: Option<String>) -> Self {
        let (kind, pool, object) = (None, None, None);
        Failure::Said(Box::new(Report { message, help, exit: exit as u8, kind, pool, object, code: exit }))
    }

    /// A wrong command line, in its parser's words.
    pub fn usage(text: &str) -> Self {
        let text = text.trim_end();
        Failure::said(Exit::Usage, text.strip_prefix("error: ").unwrap_or(text).to_owned(), None)
    }

    /// A file other than the pool.
    pub fn file(action: &str, path: &Path, error: &io::Error) -> Self {
        let exit = match error.kind() {
            io::ErrorKind::NotFound => Exit::NotFound,
            io::ErrorKind::PermissionDenied => Exit::Denied,
            _ if is_full(error) => Exit::Full,
            io::ErrorKind::IsADirectory => Exit::Usage,
            _ => Exit::Failed,
        };
        Failure::said(exit, format!("cannot {action} {}: {error}", path.display()), None)
    }

    /// A missing or unreadable key file is reported as any file.
    pub fn key_file(what: &str, path: &Path, error: Error) -> Self {
        match std::error::Error::source(&error).and_then(|source| source.downcast_ref::<io::Error>()) {
            Some(system) => Failure::file(&format!("read the {what} from"), path, system),
            None => error.into(),
        }
    }

    pub fn with_help(mut self, help: impl Into<String>) -> Self {
        if let Failure::Said(report) = &mut self {
            report.help = Some(help.into());
        }
        self
    }

    pub fn exit(&self) -> Exit {
        match self {
            Failure::Quiet(exit) => *exit,
            Failure::Program(_) => Exit::Failed,
            Failure::Said(report) => report.code,
        }
    }

    pub fn status(&self) -> u8 {
        match self {
            Failure::Program(status) => *status,
            other => other.exit() as u8,
        }
    }

    /// Writes it to standard error, ignoring errors.
    pub fn report(&self) {
        let Failure::Said(report) = self else { return };
        if terminal::is_json() {
            if let Ok(line) = json(report) {
                let _ = writeln!(io::stderr(), "{line}");
            }
            return;
        }
        terminal::labelled(Label::Error, &report.message);
        if let Some(help) = &report.help {
            terminal::labelled(Label::Help, help);
        }
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        let (text, remedy) = (error.to_string(), error.remedy());
        let message = text.strip_suffix(&format!(" ({remedy})")).unwrap_or(&text).to_owned();
        let full = error.raw_os_error().is_some_and(|number| is_full(&io::Error::from_raw_os_error(number)));
        let code = if full { Exit::Full } else { Exit::from(error.kind()) };
        Failure::Said(Box::new(Report {
            message,
            help: Some(remedy_here(&error).to_owned()),
            exit: code as u8,
            kind: Some(format!("{:?}", error.kind())),
            pool: error.pool_path().map(|path| path.to_string_lossy().into_owned()),
            object: error.object_name().map(str::to_owned),
            code,
        }))
    }
}

fn remedy_here(error: &Error) -> &'static str {
    match error.kind() {
        ErrorKind::NotAHeap => "check the name: there is something to look into where a program made a heap",
        ErrorKind::NoPool if error.operation() != "format" => {
            "check the path, or make a pool there with `pmo format`"
        }
        ErrorKind::ReadOnly if error.operation() == "clone" => {
            "a pool that can only be read is copied by `pmo backup` and `pmo restore`"
        }
        _ => error.remedy(),
    }
}

impl From<BackupError> for Failure {
    fn from(error: BackupError) -> Self {
        match error {
            BackupError::Pool(error) => error.into(),
            error => Failure::new(exit_of_backup(&error), error.to_string(), error.remedy()),
        }
    }
}

fn exit_of_backup(error: &BackupError) -> Exit {
    match error {
        BackupError::File { cause, .. } => match cause.kind() {
            io::ErrorKind::NotFound => Exit::NotFound,
            io::ErrorKind::PermissionDenied => Exit::Denied,
            _ if is_full(cause) => Exit::Full,
            _ => Exit::Failed,
        },
        BackupError::Pool(error) => Exit::from(error.kind()),
        BackupError::Kept { cause, .. } => exit_of_backup(cause),
        BackupError::SeveralPools { .. } => Exit::Usage,
        BackupError::NoBackupOf { .. } => Exit::NotFound,
        BackupError::NotABackup(_)
        | BackupError::NotReplaced { .. }
        | BackupError::Version { .. }
        | BackupError::NoFile(_) => Exit::Unsuitable,
        BackupError::Damaged { .. } | BackupError::BaseSwapped { .. } => Exit::Damaged,
        BackupError::BaseMissing { .. } | BackupError::NoObject(_) => Exit::NotFound,
        BackupError::FolderBusy(_)
        | BackupError::InUse { .. }
        | BackupError::Replaced(_)
        | BackupError::Changed => Exit::Busy,
        BackupError::Exists(_) => Exit::Exists,
        BackupError::NoRoomToKeep(_) => Exit::Full,
        BackupError::Object { cause, .. } | BackupError::Store(cause) => match cause {
            StoreError::WrongKey | StoreError::NeedsRecovery => Exit::Denied,
            StoreError::Held { .. } | StoreError::HeldStill { .. } | StoreError::Changing { .. } => {
                Exit::Busy
            }
            StoreError::Exists => Exit::Exists,
            StoreError::NotFound => Exit::NotFound,
            StoreError::NoRoom { .. } | StoreError::NoSpace | StoreError::AddressesTaken { .. } => Exit::Full,
            StoreError::Medium(MediumError::Io(error))
            | StoreError::Failed(MediumError::Io(error))
            | StoreError::NotApplied(MediumError::Io(error))
                if is_full(error) =>
            {
                Exit::Full
            }
            _ => Exit::Failed,
        },
        _ => Exit::Failed,
    }
}

fn is_full(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::FileTooLarge
    )
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::BrokenPipe => Failure::Quiet(Exit::Fine),
            _ => {
                let exit = if is_full(&error) { Exit::Full } else { Exit::Failed };
                Failure::said(exit, format!("cannot write to standard output: {error}"), None)
            }
        }
    }
}

impl From<serde_json::Error> for Failure {
    fn from(error: serde_json::Error) -> Self {
        io::Error::from(error).into()
    }
}

/// `object "name"`, for messages.
pub fn object(name: &str) -> String {
    format!("object {}", quoted(name))
}
