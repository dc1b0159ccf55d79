use super::old::OldPool;
use super::{expect_no_errors, reserve_slots};
use crate::error::Result;
use crate::format::entry::{NO_LANE, STATE_D, Slot};
use crate::format::{PAGE, v1};
use crate::medium::{Device, LockKey, LockMode, not_kept, read_struct};
use crate::store::pool::{Identity, Store};
use crate::store::repair::held;
use std::sync::Arc;
use zerocopy::IntoBytes;
use zerocopy::little_endian::U32;

pub(super) struct Drained {
    pub(super) objects: u64,
    pub(super) recovered: u64,
}

pub(super) fn drain(
    device: &Arc<dyn Device>,
    identity: Identity,
    old: &v1::Superblock,
    progress: &mut dyn FnMut(u64, u64),
) -> Result<Drained> {
    let pool = OldPool::read(device, old)?;
    for slot in &pool.slots {
        let key = LockKey::Object(*slot);
        if let Some(mode) = device.probe(key)? {
            return Err(held(&**device, key, mode == LockMode::Exclusive));
        }
    }
    expect_no_errors(pool.overlay.clone(), progress)?;
    let recovered = recover(&pool, identity)?;
    put_in_place(&**device, &pool)?;
    Ok(Drained { objects: pool.slots.len() as u64, recovered })
}

fn recover(pool: &OldPool, identity: Identity) -> Result<u64> {
    let store = Store::open(pool.overlay.clone(), identity)?;
    let mut recovered = 0;
    for slot in &pool.slots {
        recovered += store.update(|table| {
            let mut object = table.entry(*slot)?;
            if !object.is_bound() {
                return Ok(0);
            }
            let _lane = store.recover(table, &object)?;
            object.entry.state = STATE_D;
            object.entry.lane = U32::new(NO_LANE);
            table.put_entry(&object)?;
            Ok(1)
        })?;
    }
    Ok(recovered)
}

fn put_in_place(device: &dyn Device, pool: &OldPool) -> Result<()> {
    let changed = pool.overlay.changed();
    let mut extents = Vec::new();
    let mut lines = Vec::new();
    for offset in &pool.slots {
        let slot: Slot = read_struct(&*pool.overlay, *offset)?;
        extents.push(slot.entry.primary_offset()..slot.entry.primary_offset() + slot.entry.extent_len());
        if slot.progress.id == slot.entry.id {
            lines.push((offset + v1::PROGRESS, v1::Progress::of(&slot.progress, pool.seed)));
        }
    }
    extents.sort_unstable_by_key(|extent| extent.start);
    let of_object = |page: u64| {
        let next = extents.partition_point(|extent| extent.start <= page);
        next > 0 && page < extents[next - 1].end
    };
    let pages: Vec<_> = changed.iter().filter(|(page, _)| of_object(*page)).collect();
    reserve_slots(device, &pool.slots)?;
    for (page, bytes) in pool.table.iter().chain(pages.iter().copied()) {
        device.reserve(*page, bytes.len() as u64)?;
    }
    for (page, bytes) in pool.table.iter().chain(pages.iter().copied()) {
        device.write(*page, bytes)?;
    }
    for (at, line) in lines {
        device.write(at, line.as_bytes())?;
    }
    device.barrier()?;
    for (page, _) in pages {
        if let Some(lost) = device.unwritten(*page, PAGE.min(pool.len - page))?.first() {
            return Err(not_kept(lost.start).into());
        }
    }
    Ok(())
}
