//! Common values of arguments.

use clap::builder::{OsStringValueParser, TypedValueParser};
use std::ffi::OsString;
use std::path::PathBuf;

const POOL: &str = "PMO_POOL";

/// A pool's path; `-` is PMO_POOL's.
pub fn pool() -> impl TypedValueParser<Value = PathBuf> {
    OsStringValueParser::new().try_map(|given: OsString| match (given.to_str(), default_pool()) {
        (Some("-"), Some(path)) => Ok(path.into()),
        (Some("-"), None) => Err("it stands for the pool that PMO_POOL names, and that is not set"),
        _ => Ok(PathBuf::from(given)),
    })
}

pub fn default_pool() -> Option<OsString> {
    std::env::var_os(POOL).filter(|path| !path.is_empty())
}

pub fn size(text: &str) -> Result<u64, String> {
    crate::bytes::parse(text)
}
