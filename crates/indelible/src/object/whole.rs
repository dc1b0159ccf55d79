//! Reads a small object's last psync, attached or not: for objects that describe others, such as
//! views.

#![allow(unsafe_code)]

use super::beside::{Addresses, Follows};
use super::reader::ReadCore;
use crate::error::Cause;
use crate::pool::Inner as PoolInner;
use crate::shadow::Shadow;
use indelible_store::error::StoreError;
use indelible_store::table::Key;
use std::sync::Arc;
use std::time::Instant;

pub(crate) fn read_whole(pool: &Arc<PoolInner>, name: &str, most: usize) -> Result<Option<Vec<u8>>, Cause> {
    pool.alive()?;
    let begin = Instant::now();
    loop {
        let mut reader = match pool.store.attach_reader(name, Key(b"")) {
            Ok(reader) => reader,
            Err(StoreError::Held { .. }) => return read_beside(pool, name, most),
            Err(error) => return Err(error.into()),
        };
        let size = reader.object().entry.size.get() as usize;
        if size > most {
            return Ok(None);
        }
        let (shadow, _) = ReadCore::map(pool, &mut reader, Addresses::Any)?;
        let bytes = copied(&shadow, size);
        drop(shadow);
        if reader.is_current()? {
            return Ok(Some(bytes));
        }
        if begin.elapsed() > pool.store.patience() {
            let seconds = pool.store.patience().as_secs_f64();
            return Err(StoreError::TableInMotion { seconds }.into());
        }
    }
}

fn read_beside(pool: &Arc<PoolInner>, name: &str, most: usize) -> Result<Option<Vec<u8>>, Cause> {
    let core = ReadCore::beside(pool.clone(), name, Follows::new(b"", Addresses::Any, None))?;
    let size = core.len();
    let shadow = core.shadow.as_ref().ok_or(Cause::Detached)?;
    Ok((size <= most).then(|| copied(shadow, size)))
}

fn copied(shadow: &Shadow, size: usize) -> Vec<u8> {
    // SAFETY: the shadow has at least as many bytes as the object, and is known here alone.
    unsafe { std::slice::from_raw_parts(shadow.base().as_ptr(), size.min(shadow.len())) }.to_vec()
}
