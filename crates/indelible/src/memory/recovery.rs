//! Recovery of a dead process's memory: unfinished commits are completed in their objects' memory,
//! then everything that the pool lacks goes there atomically.
//!
//! Each step can be repeated: logs stay until the pool has everything, and the pool's entries
//! change last.

use super::area::Area;
use super::figures::{HEAD, LOGS};
use super::log::{Log, Logged};
use super::place::MemoryLocation;
use super::{MemoryError, Words};
use crate::backing::sweep::{Kept, sweep, sweep_path};
use crate::backing::{Backing, BackingError, Identity, MEMORY, Origin};
use crate::sys::PAGE;
use indelible_store::Mutant;
use indelible_store::error::StoreError;
use indelible_store::format::LINE;
use indelible_store::store::{ChangedLine, Commits, LivePages, Store};
use indelible_store::table::{Class, Located};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;

const PIECE: usize = 256 << 10;

struct Member {
    object: Located,
    area: Area,
}

/// Brings all commits in this memory to the pool.
///
/// # Errors
/// `Lost`, `Damaged`; `InUse`: the process lives, or another recovers; those of attaching and
/// publishing: nothing is lost.
pub(crate) fn recover(store: &Arc<Store>, place: &MemoryLocation, number: u64) -> Result<(), MemoryError> {
    let lost = |what: &str| {
        let memory = place.folders().memory.to_owned();
        MemoryError::Lost { number, what: what.to_owned(), memory }
    };
    let Some(head) = Area::find(place, &place.part(number, 0), HEAD)? else {
        return if store.objects_in(number)?.is_empty() { Ok(()) } else { Err(lost("its head")) };
    };
    // Rule D8 of docs/protocol.md. No other process recovers it from now on.
    let mut members = Vec::new();
    for object in store.objects_in(number)? {
        let identity = place.object(number, object.entry.id);
        let area = Area::find(place, &identity, object.entry.content_len() as usize)?;
        let area = area.ok_or_else(|| lost(&format!("the memory of {:?}", object.entry.name())))?;
        members.push(Member { object, area });
    }
    let logs = logs_of(
        &head,
        number,
        |identity, len| {
            let found = Backing::find(place.folders(), identity, len)?;
            found.ok_or_else(|| lost("a log"))
        },
        place,
    )?;
    // Rule D3 of docs/protocol.md.
    if !Mutant::LogForgotten.is_on() {
        redo(&members, &logs, number)?;
    }
    // Rule D10 of docs/protocol.md.
    publish(store, &members, number)?;
    for member in members {
        member.area.remove()?;
    }
    if store.may_be_in(number)? {
        // An unreadable entry that a repair may restore needs the logs.
        return Ok(());
    }
    // A log that its process made but did not count in the head has no commit; if missed,
    // `remove_leftovers` takes it.
    let untold = Backing::find_longer(place.folders(), &place.part(number, logs.len() as u64 + 1), 0);
    let logs = logs.into_iter().map(|(_, backing)| backing).chain(untold.ok().flatten());
    logs.into_iter().try_for_each(Backing::remove)?;
    Ok(head.remove()?)
}

/// Removes files of earlier boots, and of this pool's groups without an entry. Returns their
/// number.
pub(crate) fn remove_leftovers(store: &Store, place: &MemoryLocation) -> Result<u64, MemoryError> {
    let folders = place.folders();
    let mut removed = 0;
    let wanted = |identity: &Identity, stated: Option<&Origin>| {
        identity.pool != place.pool
            || !stated.is_some_and(|stated| stated.is_file_of(&place.origin))
            || store.may_be_in(identity.binding).unwrap_or(true)
            || is_shared(store, identity)
    };
    let beside = Some(folders.beside).filter(|beside| *beside != folders.memory);
    for folder in [folders.memory].into_iter().chain(beside) {
        let swept = sweep(folder, place.boot, wanted)?;
        removed += swept.removed.len() as u64;
        for (_, kept) in swept.kept {
            if let Kept::Failed(error @ BackingError::Io { .. }) = kept {
                return Err(error.into());
            }
        }
    }
    Ok(removed)
}

fn is_shared(store: &Store, identity: &Identity) -> bool {
    match store.find_id(&identity.object) {
        Ok(found) => {
            found.entry.binding.get() == identity.binding && Class::of(&found.entry) == Some(Class::Shared)
        }
        Err(StoreError::NotFound) => false,
        Err(_) => true,
    }
}

/// Spares those `wanted` by an existing pool. Returns the numbers of removed and of used files.
pub(crate) fn remove_of_deleted(
    path: &Path,
    wanted: impl Fn(&Identity, &Origin) -> bool,
) -> Result<(u64, u64), MemoryError> {
    let (mut removed, mut used) = (0, 0);
    let memory = Path::new(MEMORY);
    let beside = path.parent().filter(|beside| *beside != memory && beside.is_dir());
    for folder in [memory].into_iter().chain(beside) {
        let swept = sweep_path(folder, path, &wanted)?;
        removed += swept.removed.len() as u64;
        for (_, kept) in swept.kept {
            match kept {
                Kept::InUse => used += 1,
                Kept::Failed(error) => return Err(error.into()),
                Kept::Wanted => {}
            }
        }
    }
    Ok((removed, used))
}

fn logs_of(
    head: &Area,
    number: u64,
    find: impl Fn(&Identity, usize) -> Result<Backing, MemoryError>,
    place: &MemoryLocation,
) -> Result<Vec<(Log, Backing)>, MemoryError> {
    let words = head.words().all();
    let count = words[0].load(Ordering::Acquire);
    let lengths = words[..LOGS].get(1..=usize::try_from(count).unwrap_or(LOGS));
    let lengths = lengths
        .ok_or(MemoryError::Damaged { number, why: "its head tells of more logs than there can be" })?;
    let find = |(part, length): (u64, &std::sync::atomic::AtomicU64)| {
        let length = length.load(Ordering::Relaxed) as usize;
        if length == 0 || !length.is_multiple_of(PAGE) {
            return Err(MemoryError::Damaged {
                number,
                why: "its head tells of a log that has no whole pages",
            });
        }
        let backing = find(&place.part(number, part), length)?;
        Ok((Log::new(Words::of(&backing)?), backing))
    };
    (1..).zip(lengths).map(find).collect()
}

fn redo(members: &[Member], logs: &[(Log, Backing)], number: u64) -> Result<(), MemoryError> {
    let damaged = |why| MemoryError::Damaged { number, why };
    let mut commits = Vec::new();
    for (log, _) in logs {
        commits.extend(log.read().map_err(damaged)?);
    }
    commits.sort_unstable_by_key(|(sequence, _)| *sequence);
    for line in commits.iter().flat_map(|(_, lines)| lines) {
        let Some(member) = members.iter().find(|member| member.object.offset == line.object) else {
            continue;
        };
        if !line.offset.is_multiple_of(LINE) || line.offset >= member.area.len() as u64 {
            return Err(damaged("it has a line that lies in no object"));
        }
        lay(&member.area, line);
    }
    Ok(())
}

fn lay(area: &Area, line: &Logged) {
    let at = line.offset as usize;
    let mut bytes = [0; LINE as usize];
    area.get(at, &mut bytes);
    let new = line.words.iter().flat_map(|word| word.to_le_bytes());
    for (nth, (byte, new)) in bytes.iter_mut().zip(new).enumerate() {
        if line.mask >> nth & 1 == 1 {
            *byte = new;
        }
    }
    area.put(at, &bytes);
}

fn publish(store: &Arc<Store>, members: &[Member], number: u64) -> Result<(), MemoryError> {
    // Rule D9 of docs/protocol.md.
    let (commits, mut lines) = (Commits::default(), Vec::new());
    for member in members {
        let writer = store.attach_left_writer(&member.object.entry.id, number)?;
        if member.area.is_filled() {
            compare(member, &writer.pages(), &mut lines)?;
        }
        commits.join(writer)?;
    }
    let places = || lines.iter().map(|line: &ChangedLine| (line.object, line.offset));
    let short = commits.shortage(lines.len(), places);
    if short > 0 {
        commits.make_room(short)?;
    }
    if !lines.is_empty() {
        commits.tell(1, lines)?;
        commits.wait(1)?;
    }
    for member in members {
        let (writer, flushed) = commits.leave(member.object.offset);
        flushed?;
        if let Some(mut writer) = writer {
            writer.forget_memory();
            writer.detach()?;
        }
    }
    Ok(())
}

fn compare(member: &Member, pages: &LivePages, lines: &mut Vec<ChangedLine>) -> Result<(), MemoryError> {
    let len = member.area.len();
    let (mut durable, mut newest) = (vec![0; PIECE.min(len)], vec![0; PIECE.min(len)]);
    for at in (0..len).step_by(PIECE) {
        let piece = PIECE.min(len - at);
        let (durable, newest) = (&mut durable[..piece], &mut newest[..piece]);
        pages.read(at as u64, durable)?;
        member.area.get(at, newest);
        let pairs = durable.as_chunks::<{ LINE as usize }>().0.iter().zip(newest.as_chunks().0);
        for (nth, (_, bytes)) in pairs.enumerate().filter(|(_, (durable, newest))| durable != newest) {
            let offset = at as u64 + nth as u64 * LINE;
            lines.push(ChangedLine { object: member.object.offset, offset, bytes: *bytes });
        }
    }
    Ok(())
}
