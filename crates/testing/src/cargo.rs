//! Tests that build something.

use std::process::Command;

/// A command of cargo as a person would type it, without the variables by which cargo tells a test
/// of its package. A dependency whose build script looks at them would be built again, with all
/// that rests on it, for each package whose tests run cargo.
#[must_use]
pub fn cargo() -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    let told = |name: &str| name.starts_with("CARGO_MANIFEST") || name.starts_with("CARGO_PKG_");
    for (name, _) in std::env::vars_os().filter(|(name, _)| name.to_str().is_some_and(told)) {
        command.env_remove(name);
    }
    command
}
