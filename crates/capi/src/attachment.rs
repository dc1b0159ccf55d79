use crate::args::permission;
use crate::audit::flagged;
use crate::guard::Result;
use indelible::raw::{self, Audit};
use indelible::{AttachOptions, Pool};
use std::ffi::{c_int, c_void};

/// `PMO_SNAPSHOT`.
pub(crate) const SNAPSHOT: c_int = b's' as c_int;

/// The permission has flags of `PMO_AUDIT`.
pub(crate) fn attach(pool: &Pool, name: &str, wanted: c_int, how: &AttachOptions) -> Result<*mut c_void> {
    let (audit, wanted) = flagged(wanted)?;
    let base = match wanted {
        SNAPSHOT => raw::attach_snapshot_with(pool, name, how)?,
        _ => raw::attach_with(pool, name, permission(wanted)?, how)?,
    };
    let base = base.as_ptr();
    if audit != Audit::Off {
        // SAFETY: no other thread uses the object during pmo_detach.
        unsafe { raw::set_audit(base, audit) }?;
    }
    Ok(base.cast())
}
