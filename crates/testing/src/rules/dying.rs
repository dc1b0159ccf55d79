//! A process that writes an object dies while another one works on the object's bases.

use super::beside::{NAMES, SIZE, text};
use super::{CONFIG, KEY, Verdict, create, open};
use crate::hooked::{Hook, Hooked};
use crate::pool::{Edits, contents, process, psync_many};
use crate::scenario::formatted;
use crate::sim::{Fault, OpKind, SimConfig, SimMedium};
use indelible_store::error::StoreError;
use indelible_store::medium::LockKey;
use indelible_store::store::{Store, Writer};
use std::sync::{Arc, Mutex, PoisonError};

struct Dying {
    writers: Vec<Writer>,
    process: Arc<SimMedium>,
    midst: Option<u64>,
}

struct Last {
    dying: Mutex<Option<Dying>>,
    psynced: Mutex<Option<Result<(), StoreError>>>,
}

const LAST: Edits<'_> = &[(12_288, &[4; 8])];

impl Hook for Last {
    fn unlocked(&self, key: LockKey) {
        let LockKey::ApplyGate(_) = key else { return };
        let dying = self.dying.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some(Dying { mut writers, process, midst }) = dying else { return };
        if let Some(nth) = midst {
            process.fail_at(OpKind::Write, nth, Fault::Kill);
        }
        let done = psync_many(&mut writers.iter_mut().map(|writer| (writer, LAST)).collect::<Vec<_>>());
        *self.psynced.lock().unwrap_or_else(PoisonError::into_inner) = Some(done);
        process.kill();
        process.clear_faults();
    }
}

/// A reader's base is about to absorb the one below: psyncs in the dead writer's lane count under
/// the object's former number. Returns which objects have the last psync, and whether the psync
/// returned.
fn last_psyncs(disk: bool, midst: Option<u64>) -> Result<([bool; 2], bool), String> {
    let medium = formatted(4 << 20, SimConfig { disk, ..CONFIG });
    let process_of_writer = Arc::new(medium.handle());
    let store = Store::open(process_of_writer.clone(), process(1)).map_err(text)?;
    let last = Last { dying: Mutex::default(), psynced: Mutex::default() };
    let hooked = Hooked::new(Arc::new(medium.handle()), last);
    let other = Store::open(hooked.clone(), process(2)).map_err(text)?;
    let mut writers = Vec::new();
    for name in NAMES {
        create(&store, name, SIZE as u64);
        writers.push(store.attach_writer(name, KEY).map_err(text)?);
    }
    let mut expected = vec![1; SIZE];
    for (at, value, len) in [(0_usize, 1, SIZE), (4096, 2, 8), (8192, 3, 8)] {
        if value > 1 {
            let reader = other.attach_snapshot("a", KEY).map_err(text)?;
            other.end_snapshot(reader).map_err(text)?;
        }
        let bytes = vec![value; len];
        let edits: Edits<'_> = &[(at as u64, &bytes)];
        psync_many(&mut writers.iter_mut().map(|writer| (writer, edits)).collect::<Vec<_>>())
            .map_err(text)?;
        expected[at..at + len].fill(value);
    }
    let dying = Dying { writers, process: process_of_writer, midst };
    *hooked.dying.lock().unwrap_or_else(PoisonError::into_inner) = Some(dying);
    let reader = other.attach_snapshot("a", KEY).map_err(text)?;
    let psynced = hooked.psynced.lock().unwrap_or_else(PoisonError::into_inner).take();
    let returned = psynced.ok_or("no process was held still")?.is_ok();
    other.end_snapshot(reader).map_err(text)?;
    let next = open(&medium, 3);
    let mut have = [false; 2];
    for (name, has) in NAMES.into_iter().zip(&mut have) {
        let reader = next.attach_reader(name, KEY).map_err(text)?;
        let found = contents(&next, reader.object()).map_err(text)?;
        *has = found[12_288] == 4;
        expected[12_288..12_296].fill(if *has { 4 } else { 1 });
        if found != expected {
            return Err(format!("{name} shows what no psync left"));
        }
    }
    Ok((have, returned))
}

pub(super) fn a_psync_stays_whose_writer_dies_before_a_base_absorbs() -> Verdict {
    match last_psyncs(true, None)? {
        ([true, true], true) => Ok(()),
        found => Err(format!("of the last psync: {found:?}")),
    }
}

pub(super) fn a_psync_is_whole_whose_writer_dies_before_a_base_absorbs() -> Verdict {
    let mut nth = 0;
    loop {
        match last_psyncs(false, Some(nth))? {
            ([true, true], true) => return Ok(()),
            ([a, b], false) if a == b => nth += 1,
            found => return Err(format!("of the last psync, which ended in write {nth}: {found:?}")),
        }
    }
}
