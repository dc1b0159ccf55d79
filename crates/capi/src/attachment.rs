use crate::args::permission;
use crate::audit::flagged;
use crate::guard::{Failure, Result};
use indelible::raw::{self, Audit};
use indelible::{AttachOptions, Pool};
use std::ffi::{c_int, c_void};

pub(crate) const SNAPSHOT: c_int = b's' as c_int;
pub(crate) const ANYWHERE: c_int = 1024;

/// The permission has flags of `PMO_AUDIT` and `PMO_ANYWHERE`.
pub(crate) fn attach(pool: &Pool, name: &str, wanted: c_int, how: &AttachOptions) -> Result<*mut c_void> {
    let (audit, wanted) = flagged(wanted)?;
    let (anywhere, wanted) = (wanted & ANYWHERE != 0, wanted & !ANYWHERE);
    let base = if wanted == SNAPSHOT {
        raw::attach_snapshot_with(pool, name, &how.clone().anywhere(anywhere))?
    } else {
        let permission = permission(wanted)?;
        if anywhere {
            return Err(Failure::argument("PMO_ANYWHERE is for PMO_SNAPSHOT alone"));
        }
        raw::attach_with(pool, name, permission, how)?
    };
    let base = base.as_ptr();
    if audit != Audit::Off {
        // SAFETY: no other thread uses the object during pmo_detach.
        unsafe { raw::set_audit(base, audit) }?;
    }
    Ok(base.cast())
}
