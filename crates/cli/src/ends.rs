//! The object that a command is about, in a pool, with its key.

use crate::alike;
use crate::failure::Failure;
use crate::keys::KeyArgs;
use crate::values::pool;
use clap::Args;
use indelible::{Error, Pool};
use std::path::PathBuf;

/// See the module.
#[derive(Debug, Args)]
pub struct Ends {
    /// The pool
    #[arg(value_parser = pool())]
    pub pool: PathBuf,

    /// Name of the object
    pub name: String,

    #[command(flatten)]
    pub key: KeyArgs,
}

impl Ends {
    /// Names that look alike are mentioned.
    pub fn explain(&self, pool: &Pool, error: Error) -> Failure {
        alike::explain(pool, &self.name, error)
    }
}
