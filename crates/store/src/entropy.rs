//! Random identities and the time. With the feature `__replay`, for tests, a seed determines both.

use crate::error::Result;
use crate::medium::MediumError;

pub(crate) fn random_id() -> Result<[u8; 16]> {
    random()
}

/// Random bytes; `N` is a multiple of eight.
pub(crate) fn random<const N: usize>() -> Result<[u8; N]> {
    let mut bytes = [0; N];
    fill(&mut bytes)?;
    Ok(bytes)
}

/// `bytes.len()` is a multiple of eight.
pub(crate) fn fill(bytes: &mut [u8]) -> Result<()> {
    #[cfg(feature = "__replay")]
    if replay::fill(bytes) {
        return Ok(());
    }
    getrandom::fill(bytes)
        .map_err(|error| MediumError::Io(std::io::Error::other(format!("no random bytes: {error}"))))?;
    Ok(())
}

pub(crate) fn now() -> u64 {
    #[cfg(feature = "__replay")]
    if replay::is_on() {
        return 1 << 30;
    }
    std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

#[cfg(feature = "__replay")]
mod replay {
    use std::cell::Cell;

    thread_local!(static STATE: Cell<Option<u64>> = const { Cell::new(None) });

    /// Runs `f` on this thread with identities from `seed` and a fixed time.
    pub fn with_seed<R>(seed: u64, f: impl FnOnce() -> R) -> R {
        struct Restore(Option<u64>);
        impl Drop for Restore {
            fn drop(&mut self) {
                STATE.set(self.0);
            }
        }
        let _restore = Restore(STATE.replace(Some(seed)));
        f()
    }

    pub(super) fn is_on() -> bool {
        STATE.get().is_some()
    }

    pub(super) fn fill(bytes: &mut [u8]) -> bool {
        let Some(mut state) = STATE.get() else { return false };
        for half in bytes.chunks_exact_mut(8) {
            state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mut word = state;
            word = (word ^ word >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            word = (word ^ word >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
            half.copy_from_slice(&(word ^ word >> 31).to_le_bytes());
        }
        STATE.set(Some(state));
        true
    }
}

#[cfg(feature = "__replay")]
pub use replay::with_seed;
