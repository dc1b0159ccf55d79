use super::common::{CONFIG, SEED, Verdict, two_writers};
use crate::crashes::{Pools, guarded};
use indelible_store::error::StoreError;
use indelible_store::format::LINE;
use indelible_store::format::batch::Header;
use indelible_store::format::entry::SIZE;
use indelible_store::format::lane::{BODY, HEADERS};
use indelible_store::medium::{Medium, read_struct};
use indelible_store::store::{Store, Writer};
use indelible_store::table::{CreateOptions, Key};
use indelible_testing::pool::{Snapshot, contents, process, psync, psync_many, recover_all, snapshot};
use indelible_testing::rules::void_table_lane;
use indelible_testing::scenario::{formatted, judge_medium};
use indelible_testing::{Choice, CrashImage, Fault, OpKind, SimConfig, SimMedium};
use std::ops::Range;
use std::sync::Arc;

const KEY: Key<'static> = Key(&[]);

fn text(error: StoreError) -> String {
    error.to_string()
}

pub(super) fn run(_: &Pools) -> Verdict {
    guarded(SEED, misdirected)?;
    for end in [End::Psync, End::Checkpoint] {
        for choice in [Choice::None, Choice::All] {
            guarded(SEED, || sweep(&left(end, choice)?).map_err(|cause| format!("{end:?}: {cause}")))?;
        }
    }
    Ok(())
}

fn misdirected() -> Verdict {
    let medium = formatted(1 << 20, CONFIG);
    let (store, mut writers) = two_writers(&medium)?;
    for value in 1..3 {
        psync(&mut writers[0], &[(0, &[value; 64])]).map_err(text)?;
    }
    let mine = writers[0].object().entry.lane.get();
    let lanes = store.lanes().map_err(text)?;
    let lane = lanes.iter().find(|lane| lane.index == Some(mine)).ok_or("no lane")?;
    let used = writers[0].lane_use();
    let mut batch = vec![0; (used.bytes / used.batches) as usize];
    let promised = contents(&store, writers[0].object()).map_err(text)?;
    let state = snapshot(&store).map_err(text)?;
    medium.read(lane.offset + BODY, &mut batch).map_err(|error| error.to_string())?;
    medium.write(lane.offset + BODY + used.bytes, &batch).map_err(|error| error.to_string())?;
    if promised[..64] != [2; 64] {
        return Err("the object is not as psynced".into());
    }
    judge_medium(&medium.power_cut(Choice::All).medium(), &[state]).map(drop)
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    Psync,
    /// It died in a checkpoint, with all psyncs counted in place.
    Checkpoint,
}

struct Left {
    image: CrashImage,
    promised: Snapshot,
    lane: u64,
    batches: Vec<Range<u64>>,
    slot: u64,
    counted: bool,
}

fn left(end: End, choice: Choice) -> Result<Left, String> {
    let medium = formatted(1 << 20, SimConfig { disk: true, ..CONFIG });
    let store = Store::open(Arc::new(medium.handle()), process(1)).map_err(text)?;
    for name in ["first", "second", "idle"] {
        store.create(name, &CreateOptions { size: 5000, ..CreateOptions::default() }).map_err(text)?;
    }
    let mut first = store.attach_writer("first", KEY).map_err(text)?;
    let mut second = store.attach_writer("second", KEY).map_err(text)?;
    let both = |first: &mut Writer, second: &mut Writer, value: u8| {
        psync_many(&mut [(first, &[(0, &[value; 150])]), (second, &[(4096, &[value; 70])])]).map_err(text)
    };
    (1..4).try_for_each(|value| both(&mut first, &mut second, value))?;
    first.checkpoint().map_err(text)?;
    (4..7).try_for_each(|value| both(&mut first, &mut second, value))?;
    let promised = snapshot(&store).map_err(text)?;
    if end == End::Checkpoint {
        medium.fail_at(OpKind::Barrier, 0, Fault::Kill);
        first.checkpoint().err().ok_or("the checkpoint survived")?;
        medium.clear_faults();
    }
    let (index, slot) = (first.object().entry.lane.get(), second.object().offset);
    std::mem::forget((first, second));
    drop(store);
    let counted = end == End::Checkpoint && choice == Choice::All;
    let cut = medium.power_cut(choice).medium();
    void_table_lane(&cut);
    let image = cut.power_cut(Choice::All);
    let (lane, batches) = batches(&image.medium(), Some(index))?;
    Ok(Left { image, promised, lane, batches, slot, counted })
}

pub(super) fn batches(medium: &SimMedium, index: Option<u32>) -> Result<(u64, Vec<Range<u64>>), String> {
    let store = Store::open(Arc::new(medium.read_only_handle()), process(3)).map_err(text)?;
    let lanes = store.lanes().map_err(text)?;
    let lane = lanes.iter().find(|lane| lane.index == index).ok_or("no lane")?;
    let (mut at, mut batches) = (lane.offset + BODY, Vec::new());
    for _ in &lane.batches {
        let header: Header = read_struct(medium, at).map_err(|error| error.to_string())?;
        batches.push(at..at + header.len.get());
        at += header.len.get();
    }
    Ok((lane.offset, batches))
}

#[derive(PartialEq, Eq)]
enum Found {
    Whole,
    Refused,
    Other,
}

impl Left {
    fn found(&self, medium: &SimMedium) -> Result<Found, String> {
        let store = Store::open(Arc::new(medium.handle()), process(5)).map_err(text)?;
        let recovered = recover_all(&store);
        let idle = store.attach_writer("idle", KEY).map(drop);
        idle.map_err(|error| format!("an object that is not concerned is refused: {error}"))?;
        if recovered.is_err() {
            return Ok(Found::Refused);
        }
        let found = snapshot(&store).map_err(text)?;
        Ok(if found == self.promised { Found::Whole } else { Found::Other })
    }
}

fn sweep(left: &Left) -> Verdict {
    if left.found(&left.image.medium())? != Found::Whole {
        return Err("undamaged, it is not recovered whole".into());
    }
    let headers = HEADERS.map(|copy| left.lane + copy..left.lane + copy + LINE);
    for range in headers {
        let medium = left.image.medium();
        medium.scribble(range.clone(), 7);
        if left.found(&medium)? != Found::Whole {
            return Err(format!("without the lane's header at {:#x} a psync is lost", range.start));
        }
    }
    let last = left.batches.len() - 1;
    for (nth, batch) in left.batches.iter().enumerate() {
        for at in batch.clone().step_by(LINE as usize) {
            let medium = left.image.medium();
            medium.flip(at + at / LINE % LINE, (at / LINE % 8) as u32);
            if left.found(&medium)? != Found::Whole {
                return Err(format!("a wrong bit in batch {nth}, at {at:#x}, is not put right"));
            }
            let medium = left.image.medium();
            medium.scribble(at..at + LINE, at);
            let found = left.found(&medium)?;
            let undone = nth == last && !left.counted;
            if found == Found::Other && !undone {
                return Err(format!("batch {nth}, damaged at {at:#x}, is undone without a word"));
            }
        }
    }
    unreadable(left)
}

fn unreadable(left: &Left) -> Verdict {
    let entry = left.slot..left.slot + SIZE / 2;
    let spoiled = left.image.medium();
    spoiled.spoil(entry.clone());
    let damaged = left.image.medium();
    damaged.scribble(entry, 9);
    for (medium, what) in [(spoiled, "unreadable"), (damaged, "damaged")] {
        let store = Store::open(Arc::new(medium.handle()), process(5)).map_err(text)?;
        if store.attach_writer("first", KEY).map(drop).is_ok() {
            return Err(format!("the second object's entry is {what}, and its half of a psync is given up"));
        }
    }
    Ok(())
}
