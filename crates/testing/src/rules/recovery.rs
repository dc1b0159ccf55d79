use super::{CONFIG, KEY, LIMITS, Verdict, create, of, open};
use crate::for_each_crash;
use crate::pool::{Snapshot, psync, psync_many, recover_all, snapshot};
use crate::scenario::{formatted, judge_medium};
use crate::sim::{Choice, Fault, OpKind, SimConfig, SimMedium};
use indelible_store::format::lane::{BODY, HEADERS};
use indelible_store::format::{LINE, TABLE_LANE, TABLE_LANE_LEN};
use indelible_store::lane::LaneLog;
use indelible_store::store::{LaneDump, Writer};

pub(super) fn pool() -> SimMedium {
    pool_on(SimConfig { disk: true, ..SimConfig::default() })
}

pub(super) fn pool_on(config: SimConfig) -> SimMedium {
    let medium = formatted(2 << 20, config);
    let store = open(&medium, 1);
    ["a", "b", "idle"].iter().for_each(|name| create(&store, name, 5000));
    drop(store);
    medium.settle();
    medium
}

/// Image, psynced state and lane after a writer of "a" and "b" died following `work`.
#[must_use]
pub fn dead(choice: Choice, work: impl Fn(&SimMedium, &mut [Writer; 2])) -> (SimMedium, Snapshot, LaneDump) {
    let medium = pool();
    let store = open(&medium, 2);
    let mut writers = ["a", "b"].map(|name| store.attach_writer(name, KEY).unwrap());
    work(&medium, &mut writers);
    medium.clear_faults();
    let index = writers[0].object().entry.lane.get();
    std::mem::forget(writers);
    drop(store);
    let image = medium.power_cut(choice).medium();
    let lane = open(&image, 3).lanes().unwrap().into_iter().find(|lane| lane.index == Some(index)).unwrap();
    let recovered = medium.power_cut(Choice::All).medium();
    recover_all(&open(&recovered, 3)).unwrap();
    let promised = snapshot(&open(&recovered, 3)).unwrap();
    void_table_lane(&image);
    (image, promised, lane)
}

/// Applies the table and voids its lane, which would repair damage.
pub fn void_table_lane(medium: &SimMedium) {
    let store = open(medium, 3);
    store.info().unwrap();
    medium.settle();
    let seed = store.superblock().seed.get();
    let mut log = LaneLog::read(medium, seed, TABLE_LANE, TABLE_LANE_LEN, 1).unwrap();
    log.next_generation(medium, seed).unwrap();
    medium.settle();
}

pub fn psync_both(_: &SimMedium, [a, b]: &mut [Writer; 2]) {
    for round in 1..4 {
        psync_many(&mut [(a, &[(0, &[round; 300])]), (b, &[(64, &[round; 300])])]).unwrap();
    }
}

/// Recovers and checks that the promised state is there.
pub fn found(medium: &SimMedium, promised: &Snapshot) -> Verdict {
    let store = open(medium, 5);
    recover_all(&store).map_err(|error| error.to_string())?;
    let found = snapshot(&store).map_err(|error| error.to_string())?;
    if found == *promised { Ok(()) } else { Err("a psync is lost".into()) }
}

pub(super) fn an_unreadable_entry_is_not_taken_for_destroyed() -> Verdict {
    for nth in 0..60 {
        let (medium, promised, _) = dead(Choice::None, psync_both);
        let store = open(&medium, 4);
        medium.fail_at(OpKind::Read, nth, Fault::Io);
        drop(store.attach_writer("a", KEY));
        medium.clear_faults();
        drop(store);
        found(&medium, &promised).map_err(|error| format!("read {nth} failed: {error}"))?;
    }
    Ok(())
}

pub(super) fn an_applied_psync_is_not_undone() -> Verdict {
    let (medium, _, lane) = dead(Choice::All, |medium, writers| {
        psync_both(medium, writers);
        medium.fail_at(OpKind::Barrier, 0, Fault::Kill);
        writers[0].checkpoint().unwrap_err();
    });
    let batch = |lines: u64| 64 + 64 * lines + (2 * 48 + 2 * 16_u64).next_multiple_of(LINE);
    let last = lane.offset + BODY + lane.batches[..2].iter().map(|dump| batch(dump.lines)).sum::<u64>();
    medium.scribble(last..last + batch(lane.batches[2].lines), 3);
    let attached = open(&medium, 4).attach_writer("a", KEY).map(drop);
    attached.err().map(drop).ok_or_else(|| "the last psync was undone without a word".into())
}

pub(super) fn one_wrong_bit_is_no_torn_batch() -> Verdict {
    let (medium, promised, lane) = dead(Choice::None, psync_both);
    let batch = |lines: u64| 64 + 64 * lines + (2 * 48 + 2 * 16_u64).next_multiple_of(LINE);
    let last = lane.offset + BODY + lane.batches[..2].iter().map(|dump| batch(dump.lines)).sum::<u64>();
    medium.flip(last + 100, 5);
    found(&medium, &promised)
}

pub(super) fn batches_say_which_generation_is_current() -> Verdict {
    let (medium, promised, lane) = dead(Choice::None, |medium, writers| {
        psync_both(medium, writers);
        writers[0].checkpoint().unwrap();
        psync(&mut writers[1], &[(2000, &[9; 700])]).unwrap();
    });
    medium.scribble(lane.offset + HEADERS[0]..lane.offset + HEADERS[0] + LINE, 1);
    found(&medium, &promised)
}

pub(super) fn a_refused_lane_blocks_nobody_else() -> Verdict {
    let (medium, _, lane) = dead(Choice::All, psync_both);
    medium.scribble(lane.offset + BODY + 80..lane.offset + BODY + 90, 3);
    let store = open(&medium, 4);
    store.attach_writer("a", KEY).err().ok_or("the damaged lane was redone")?;
    store.attach_writer("idle", KEY).map(drop).map_err(|error| error.to_string())
}

pub(super) fn recovery_voids_before_its_replay_is_durable() -> Verdict {
    let medium = formatted(1 << 20, CONFIG);
    let store = open(&medium, 1);
    store.create("a", &of(9000)).unwrap();
    let mut a = store.attach_writer("a", KEY).unwrap();
    psync(&mut a, &[(0, &[1; 9000])]).unwrap();
    let promised = snapshot(&store).unwrap();
    std::mem::forget(a);
    let image = medium.power_cut(Choice::None).medium();
    let recover = |medium: &SimMedium| {
        let store = open(medium, 2);
        recover_all(&store).unwrap();
    };
    for_each_crash(
        &image,
        recover,
        |image| judge_medium(&image.medium(), std::slice::from_ref(&promised)).map(drop),
        &LIMITS,
    )
    .map(drop)
    .map_err(|failure| failure.to_string())
}
