use super::{Inner, Pool};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

const SYSTEM: &str = "/run/pmo/guard.sock";

/// Sockets where this user's processes look for a guard (`pmo guard`), in order: `PMO_GUARD`, else
/// `$XDG_RUNTIME_DIR/pmo/guard.sock`; then `/run/pmo/guard.sock`.
#[must_use]
pub fn guard_sockets() -> Vec<PathBuf> {
    let given = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    if let Some(named) = given("PMO_GUARD") {
        return vec![named];
    }
    let own = given("XDG_RUNTIME_DIR").map(|folder| folder.join("pmo/guard.sock"));
    own.into_iter().chain([SYSTEM.into()]).collect()
}

#[derive(Debug, Default)]
pub(crate) struct Guards(Mutex<Option<PathBuf>>);

impl Guards {
    pub(crate) fn sockets(&self) -> Vec<PathBuf> {
        match &*self.0.lock().unwrap_or_else(PoisonError::into_inner) {
            Some(named) => vec![named.clone()],
            None => guard_sockets(),
        }
    }
}

impl Pool {
    /// Names the guard's socket, instead of [`guard_sockets`]. The guard, of root or this process's
    /// user, publishes on-demand commits at a power failure; without one, see
    /// [`set_epochs`](Pool::set_epochs).
    pub fn set_guard(&self, socket: impl AsRef<Path>) {
        let mut named = self.inner.guards.0.lock().unwrap_or_else(PoisonError::into_inner);
        *named = Some(socket.as_ref().to_owned());
    }
}

impl Inner {
    pub(crate) fn guards(&self) -> &Arc<Guards> {
        &self.guards
    }
}
