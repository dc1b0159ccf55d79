//! The guard of the machine, as far as a pool is concerned: its sockets.

use super::{Inner, Pool};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

/// The socket of the machine's guard.
const SYSTEM: &str = "/run/pmo/guard.sock";

/// Sockets at which processes of this user look for a guard (`pmo guard`), in this order: the one
/// that the environment variable `PMO_GUARD` names, or else that of the user's own guard,
/// `$XDG_RUNTIME_DIR/pmo/guard.sock`, and that of the machine's, `/run/pmo/guard.sock`.
#[must_use]
pub fn guard_sockets() -> Vec<PathBuf> {
    let given = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    if let Some(named) = given("PMO_GUARD") {
        return vec![named];
    }
    let own = given("XDG_RUNTIME_DIR").map(|folder| folder.join("pmo/guard.sock"));
    own.into_iter().chain([SYSTEM.into()]).collect()
}

/// The choice of a pool's user.
#[derive(Debug, Default)]
pub(crate) struct Guards(Mutex<Option<PathBuf>>);

impl Guards {
    /// The sockets at which a guard may listen.
    pub(crate) fn sockets(&self) -> Vec<PathBuf> {
        match &*self.0.lock().unwrap_or_else(PoisonError::into_inner) {
            Some(named) => vec![named.clone()],
            None => guard_sockets(),
        }
    }
}

impl Pool {
    /// Names the socket of the guard that publishes commits on demand of this process when the
    /// power fails, in the place of [`guard_sockets`]. A process registers by itself as long as it
    /// has objects on demand attached, and looks for a guard once a second; without one, commits
    /// become durable as [`set_epochs`](Pool::set_epochs) says.
    ///
    /// Only a guard of root or of this process's user is listened to. It can have commits become
    /// durable earlier, and never later.
    pub fn set_guard(&self, socket: impl AsRef<Path>) {
        let mut named = self.inner.guards.0.lock().unwrap_or_else(PoisonError::into_inner);
        *named = Some(socket.as_ref().to_owned());
    }
}

impl Inner {
    /// The sockets at which its guard may listen.
    pub(crate) fn guards(&self) -> &Arc<Guards> {
        &self.guards
    }
}
