//! Values of arguments that many commands take.

use clap::builder::{OsStringValueParser, TypedValueParser};
use std::ffi::OsString;
use std::path::PathBuf;

/// The environment variable that names the pool where a command is given none.
const POOL: &str = "PMO_POOL";

/// Parses the path of a pool; `-` is the one that PMO_POOL names.
pub fn pool() -> impl TypedValueParser<Value = PathBuf> {
    OsStringValueParser::new().try_map(|given: OsString| match (given.to_str(), default_pool()) {
        (Some("-"), Some(path)) => Ok(path.into()),
        (Some("-"), None) => Err("it stands for the pool that PMO_POOL names, and that is not set"),
        _ => Ok(PathBuf::from(given)),
    })
}

/// The pool that PMO_POOL names.
pub fn default_pool() -> Option<OsString> {
    std::env::var_os(POOL).filter(|path| !path.is_empty())
}

/// Reads a size argument.
pub fn size(text: &str) -> Result<u64, String> {
    crate::bytes::parse(text)
}
