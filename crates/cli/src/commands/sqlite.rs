use crate::bytes::human;
use crate::context::Context;
use crate::exit::Exit;
use crate::failure::{Failure, Result, object};
use crate::out::confirm;
use crate::values::pool;
use clap::{Args, Subcommand};
use indelible_sqlite::CopyError;
use serde::Serialize;
use std::io::ErrorKind;
use std::path::PathBuf;

/// Copy databases of SQLite between objects and plain files
///
/// A program uses a database in an object by SQLite's VFS pmo:
/// file:data.pmo?vfs=pmo&object=main.db.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  pmo sqlite import plain.db data.pmo
  pmo sqlite export data.pmo copy.db
  pmo sqlite import users.db data.pmo --object users.db

JSON:
  {\"object\":\"main.db\",\"file\":\"copy.db\",\"bytes\":1048576}")]
pub struct Sqlite {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Write a database into a new file, as its last commit left it; its writer goes on
    Export {
        /// The pool
        #[arg(value_parser = pool())]
        pool: PathBuf,

        /// A file to be made
        file: PathBuf,

        /// The object
        #[arg(long, default_value = "main.db")]
        object: String,
    },
    /// Make an object of a plain database that no program writes meanwhile
    Import {
        /// The database's file
        file: PathBuf,

        /// The pool
        #[arg(value_parser = pool())]
        pool: PathBuf,

        /// The object
        #[arg(long, default_value = "main.db")]
        object: String,
    },
}

#[derive(Serialize)]
struct Copied {
    object: String,
    file: PathBuf,
    bytes: u64,
}

pub fn run(context: &Context, args: &Sqlite) -> Result {
    let (name, file, copied) = match &args.action {
        Action::Export { pool, file, object } => {
            let pool = context.open_to_read(pool)?;
            (object, file, indelible_sqlite::export(&pool, object, file))
        }
        Action::Import { file, pool, object } => {
            let pool = context.open_to_fill(pool, object)?;
            (object, file, indelible_sqlite::import(file, &pool, object))
        }
    };
    let bytes = copied.map_err(Failure::from)?;
    let report = Copied { object: name.clone(), file: file.clone(), bytes };
    confirm(context.json, &report, |report, out| {
        let file = report.file.display();
        out.line(&match &args.action {
            Action::Export { .. } => format!("wrote {} to {file}", human(report.bytes)),
            Action::Import { .. } => format!("wrote {} to {}", human(report.bytes), object(&report.object)),
        })
    })
}

impl From<CopyError> for Failure {
    fn from(error: CopyError) -> Failure {
        let (text, remedy) = (error.to_string(), error.remedy());
        match error {
            CopyError::Pool(error) => error.into(),
            CopyError::File(_, error) if error.kind() == ErrorKind::AlreadyExists => {
                Failure::new(Exit::Exists, text, "choose another path, or remove the file first")
            }
            CopyError::File(path, error) => Failure::file("copy", &path, &error).with_help(remedy),
            CopyError::Exists(_) => Failure::new(Exit::Exists, text, remedy),
            CopyError::Refused(..) => Failure::new(Exit::Unsuitable, text, remedy),
        }
    }
}
