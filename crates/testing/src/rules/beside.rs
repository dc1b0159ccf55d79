//! Snapshots of objects that another process has attached for writing.

use super::{CONFIG, KEY, Verdict, crash, create, open};
use crate::hooked::{Hook, Hooked};
use crate::pool::{contents, psync};
use crate::scenario::formatted;
use crate::sim::{Choice, Fault, OpKind, SimConfig, SimMedium};
use indelible_store::error::{Result, StoreError};
use indelible_store::medium::{Device, Fatal};
use indelible_store::store::{Followed, Reader, SnapshotOf, Store, Writer};
use indelible_store::table::{CreateOptions, Located};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

const SIZE: usize = 20_000;

fn keep(store: &Arc<Store>, of: &[(&str, &str)]) -> Result<Vec<Located>> {
    let of: Vec<_> = of.iter().map(|(object, name)| SnapshotOf { object, key: KEY, name }).collect();
    store.snapshot(&of)
}

/// A process that writes objects, psynced, and another one.
struct Beside {
    medium: SimMedium,
    writers: Vec<Writer>,
    store: Arc<Store>,
    other: Arc<Store>,
    /// Contents as the last psync of each object left them.
    expected: Vec<Vec<u8>>,
}

const NAMES: [&str; 2] = ["a", "b"];

impl Beside {
    fn begin(config: SimConfig) -> Result<Beside> {
        let medium = formatted(4 << 20, config);
        let (store, other) = (open(&medium, 1), open(&medium, 2));
        let mut writers = Vec::new();
        for name in NAMES {
            create(&store, name, SIZE as u64);
            writers.push(store.attach_writer(name, KEY)?);
        }
        for store in [&store, &other] {
            store.set_patience(Duration::ZERO);
        }
        let expected = vec![vec![0; SIZE]; NAMES.len()];
        let mut beside = Beside { medium, writers, store, other, expected };
        for object in 0..NAMES.len() {
            beside.psync(object, 0, 1, SIZE)?;
            // On a disk these lines wait in memory.
            beside.psync(object, 5000, 2, 100)?;
        }
        Ok(beside)
    }

    fn psync(&mut self, object: usize, at: usize, value: u8, len: usize) -> Result<()> {
        psync(&mut self.writers[object], &[(at as u64, &vec![value; len])])?;
        self.expected[object][at..at + len].fill(value);
        Ok(())
    }

    /// Compares what both processes, and whoever comes after a power cut, see of an object.
    fn shows(&self, name: &str, expected: &[u8]) -> Verdict {
        same(&self.other, name, expected)?;
        let cut = open(&self.medium.power_cut(Choice::None).medium(), 9);
        same(&cut, name, expected).map_err(|what| format!("after a power cut, {what}"))
    }

    /// The objects, once their writers have detached, and after a power cut before.
    fn ends(mut self) -> Verdict {
        let cut = self.medium.power_cut(Choice::None);
        self.writers.drain(..).try_for_each(Writer::detach).map_err(text)?;
        for (name, expected) in NAMES.iter().zip(&self.expected) {
            same(&open(&cut.medium(), 9), name, expected)
                .map_err(|what| format!("after a power cut, {what}"))?;
            same(&self.store, name, expected)?;
        }
        let report = Store::check(Arc::new(self.medium.handle()), &mut |_, _| {}).map_err(text)?;
        report.findings.first().map_or(Ok(()), |finding| Err(format!("{finding:?}")))
    }
}

fn text(error: StoreError) -> String {
    error.to_string()
}

fn same(store: &Arc<Store>, name: &str, expected: &[u8]) -> Verdict {
    let reader = store.attach_reader(name, KEY).map_err(|error| format!("{name}: {error}"))?;
    let found = contents(store, reader.object()).map_err(text)?;
    match found.iter().zip(expected).position(|(a, b)| a != b) {
        Some(at) => Err(format!("{name} shows {} at {at}, not {}", found[at], expected[at])),
        None => Ok(()),
    }
}

/// Runs it on a disk, with locks and page caches, and on memory, with words of the pool.
fn on_each(scenario: impl Fn(Beside) -> Verdict) -> Verdict {
    [true, false].into_iter().try_for_each(|disk| {
        let named = |what| format!("{}: {what}", if disk { "disk" } else { "memory" });
        Beside::begin(SimConfig { disk, ..CONFIG }).map_err(text).and_then(&scenario).map_err(named)
    })
}

/// Each snapshot holds what the psync before it left; the writer goes on, on pages of old and of new, and grows.
pub(super) fn a_writer_goes_on_beside_a_snapshot() -> Verdict {
    on_each(|mut beside| {
        let mut kept = Vec::new();
        for round in 0..4_u8 {
            let name = format!("s{round}");
            keep(&beside.other, &[("a", &name)]).map_err(text)?;
            kept.push((name, beside.expected[0].clone()));
            for (at, len) in [(5050, 20), (9000 + 100 * usize::from(round), 8), (64, 5000)] {
                beside.psync(0, at, 10 + round, len).map_err(text)?;
            }
            // The mark is a change of the entry that does not look at the rest of it.
            keep(&beside.other, &[("b", &format!("t{round}"))]).map_err(text)?;
            beside.writers[1].set_typed(round % 2 == 0).map_err(text)?;
            beside.psync(1, 7000, 20 + round, 30).map_err(text)?;
            if round == 2 {
                let pages = beside.writers[0].object().entry.pages.get();
                beside.writers[0].grow((pages + 1) * 4096).map_err(text)?;
                beside.expected[0].resize(SIZE + 4096, 0);
            }
            for (name, bytes) in &kept {
                beside.shows(name, bytes).map_err(|what| format!("round {round}: {what}"))?;
            }
        }
        beside.ends()
    })
}

/// Two objects with a lane of their own, or one between them.
pub(super) fn several_objects_are_kept_as_of_one_moment() -> Verdict {
    on_each(|mut beside| {
        let before = beside.expected.clone();
        keep(&beside.other, &[("a", "s"), ("b", "t")]).map_err(text)?;
        beside.psync(0, 100, 3, 300).map_err(text)?;
        beside.psync(1, 8000, 4, 300).map_err(text)?;
        beside.shows("s", &before[0])?;
        beside.shows("t", &before[1])?;
        // Neither is made if one of them cannot be.
        let refused = keep(&beside.other, &[("a", "u"), ("b", "t")]);
        if !matches!(refused, Err(StoreError::Exists)) {
            return Err(format!("{refused:?}"));
        }
        if beside.other.find("u").is_ok() {
            return Err("one of two was made".into());
        }
        beside.psync(0, 300, 5, 300).map_err(text)?;
        // One object twice is two snapshots.
        let now = beside.expected[0].clone();
        keep(&beside.other, &[("a", "v"), ("a", "w")]).map_err(text)?;
        beside.psync(0, 300, 6, 9000).map_err(text)?;
        beside.shows("v", &now)?;
        beside.shows("w", &now)?;
        beside.ends()
    })
}

/// The writer psyncs after the snapshot and dies: its psyncs are there.
pub(super) fn a_writer_that_dies_after_a_snapshot_is_recovered() -> Verdict {
    on_each(|mut beside| {
        let before = beside.expected[0].clone();
        keep(&beside.other, &[("a", "s")]).map_err(text)?;
        beside.psync(0, 5010, 6, 40).map_err(text)?;
        beside.psync(0, 12_000, 7, 4000).map_err(text)?;
        let image = beside.medium.power_cut(Choice::All);
        let next = open(&image.medium(), 9);
        same(&next, "a", &beside.expected[0])?;
        same(&next, "s", &before)?;
        beside.ends()
    })
}

/// Bytes that go straight to the primary are nobody's before a psync publishes them.
pub(super) fn a_snapshot_waits_for_a_direct_write() -> Verdict {
    on_each(|mut beside| {
        create(&beside.store, "c", SIZE as u64);
        let mut c = beside.store.attach_writer("c", KEY).map_err(text)?;
        let to = SIZE as u64;
        c.begin_direct(to).and_then(|()| c.write_direct(0, &[9; SIZE])).map_err(text)?;
        match keep(&beside.other, &[("c", "s")]) {
            Err(StoreError::Changing { .. }) => {}
            done => return Err(format!("beside a direct write: {done:?}")),
        }
        c.end_direct().and_then(|()| psync(&mut c, &[])).map_err(text)?;
        keep(&beside.other, &[("c", "s")]).map_err(text)?;
        psync(&mut c, &[(0, &[1; 10])]).map_err(text)?;
        beside.shows("s", &[9; SIZE])?;
        // From now on it rests on a base.
        if !matches!(c.begin_direct(to), Err(StoreError::HasBase)) {
            return Err("a direct write to a page of a base".into());
        }
        c.detach().map_err(text)?;
        beside.psync(0, 0, 3, 10).map_err(text)?;
        beside.ends()
    })
}

/// Bases that nobody needs any more are merged beneath a writer, and with the object once it has detached; named ones stay.
pub(super) fn bases_are_merged_beneath_a_writer() -> Verdict {
    on_each(|mut beside| {
        for round in 0..5_u8 {
            let name = format!("s{round}");
            keep(&beside.other, &[("a", &name)]).map_err(text)?;
            beside.psync(0, 4096 * usize::from(round % 4) + 50, 10 + round, 5000).map_err(text)?;
            if round == 2 {
                beside.psync(1, 0, 9, 9).map_err(text)?;
            }
        }
        // A snapshot that is made later would absorb them.
        for name in ["s0", "s1", "s3", "s4"] {
            beside.other.destroy(name, KEY).map_err(text)?;
        }
        let kept = {
            let reader = beside.other.attach_reader("s2", KEY).map_err(text)?;
            contents(&beside.other, reader.object()).map_err(text)?
        };
        let before = beside.other.info().map_err(text)?.free;
        if beside.other.merge("a").map_err(text)? == 0 {
            return Err("nothing was merged".into());
        }
        if beside.other.info().map_err(text)?.free < before + 2 * SIZE as u64 {
            return Err("too little was given back".into());
        }
        beside.psync(0, 9000, 30, 64).map_err(text)?;
        beside.shows("s2", &kept)?;
        // Pages that were merged are whole after a power cut at once.
        let cut = open(&beside.medium.power_cut(Choice::None).medium(), 9);
        same(&cut, "a", &beside.expected[0])?;
        let a = beside.writers.remove(0);
        a.detach().map_err(text)?;
        beside.other.merge("a").map_err(text)?;
        let cut = open(&beside.medium.power_cut(Choice::None).medium(), 9);
        same(&cut, "a", &beside.expected[0])?;
        same(&cut, "s2", &kept)?;
        beside.other.destroy("s2", KEY).map_err(text)?;
        beside.other.merge("a").map_err(text)?;
        let plain = beside.other.find("a").map_err(text)?;
        if plain.entry.base.get() != 0 {
            return Err("it rests on a base that nobody else needs".into());
        }
        beside.writers.insert(0, beside.store.attach_writer("a", KEY).map_err(text)?);
        beside.psync(0, 70, 31, 64).map_err(text)?;
        beside.ends()
    })
}

/// Readers follow an object of `size` bytes between changes of a few, whose chain is shortened, and the power is cut anywhere. With `merge`,
/// its bases are merged at the end.
fn followed(size: usize, changes: &[(usize, u8)], merge: bool) -> Verdict {
    crash(
        |store| {
            create(store, "a", size as u64);
            let mut a = store.attach_writer("a", KEY).unwrap();
            psync(&mut a, &[(0, &vec![1; size])]).unwrap();
            a.detach().unwrap();
        },
        |run| {
            let mut a = run.quiet(|store| store.attach_writer("a", KEY))?;
            for (at, value) in changes {
                let mut after = run.last();
                let (_, _, bytes) = after.get_mut("a").expect("it was created");
                bytes[*at..at + 8].fill(*value);
                run.step_to(after, |_| psync(&mut a, &[(*at as u64, &[*value; 8])]))?;
                let after = run.last();
                run.step_to(after, |store| {
                    let reader = store.attach_snapshot("a", KEY)?;
                    store.end_snapshot(reader)
                })?;
            }
            let after = run.last();
            run.step_to(after, |_| a.detach())?;
            let after = run.last();
            run.step_to(after, |store| if merge { store.merge("a").map(drop) } else { Ok(()) })
        },
    )
}

/// Of an object of few pages, whole bases are absorbed.
pub(super) fn bases_are_absorbed_whole() -> Verdict {
    followed(SIZE, &[(100, 2), (5000, 3), (9000, 4), (200, 5)], true)
}

/// Readers that come and go, of which one stays: what lies below the object is a few bases, and each shows what it should.
pub(super) fn the_chain_below_readers_stays_short() -> Verdict {
    const PAGES: usize = 40;
    on_each(|mut beside| {
        create(&beside.store, "c", PAGES as u64 * 4096);
        let mut c = beside.store.attach_writer("c", KEY).map_err(text)?;
        let mut bytes = vec![1; PAGES * 4096];
        psync(&mut c, &[(0, &bytes)]).map_err(text)?;
        let mut readers = Vec::new();
        for round in 0..30_u8 {
            let at = usize::from(round) * 7 % PAGES * 4096;
            bytes[at..at + 10].fill(round);
            psync(&mut c, &[(at as u64, &[round; 10])]).map_err(text)?;
            let reader = beside.other.attach_snapshot("c", KEY).map_err(text)?;
            let found = contents(&beside.other, reader.object()).map_err(text)?;
            if found != bytes {
                return Err(format!("round {round} is not what a reader sees"));
            }
            readers.push((reader, found));
            if readers.len() > 2 {
                let (reader, then) = readers.remove(1);
                if contents(&beside.other, reader.object()).map_err(text)? != then {
                    return Err(format!("in round {round} a reader sees something else than before"));
                }
                beside.other.end_snapshot(reader).map_err(text)?;
            }
        }
        let hidden = beside.other.info().map_err(text)?.objects;
        if hidden > 12 {
            return Err(format!("{hidden} objects and bases"));
        }
        c.detach().map_err(text)?;
        same(&beside.other, "c", &bytes)?;
        beside.psync(0, 0, 3, 10).map_err(text)?;
        beside.ends()
    })
}

/// A reader that follows by the writer's log: what it shows.
struct Following<'a> {
    store: &'a Arc<Store>,
    reader: Option<Reader>,
    shown: Vec<u8>,
    /// Bases that it took.
    bases: usize,
}

impl<'a> Following<'a> {
    fn begin(store: &'a Arc<Store>) -> Result<Following<'a>> {
        let mut following = Following { store, reader: None, shown: Vec::new(), bases: 0 };
        following.attach()?;
        Ok(following)
    }

    fn attach(&mut self) -> Result<()> {
        let reader = self.store.attach_snapshot("a", KEY)?;
        self.shown = contents(self.store, reader.object())?;
        self.bases += 1;
        self.reader.replace(reader).map_or(Ok(()), |before| self.store.end_snapshot(before))
    }

    /// Lays over what came since the last look, or takes a base where the log does not tell.
    fn look(&mut self) -> Result<&[u8]> {
        match self.reader.as_mut().map(|reader| self.store.follow(reader)) {
            Some(Followed::Newest) => {}
            Some(Followed::Newer(lines)) => {
                for (offset, bytes) in lines.iter() {
                    let from = offset as usize;
                    let len = bytes.len().min(self.shown.len() - from);
                    self.shown[from..from + len].copy_from_slice(&bytes[..len]);
                }
            }
            Some(Followed::Lost) | None => self.attach()?,
        }
        Ok(&self.shown)
    }

    fn expect(&mut self, what: &str, expected: &[u8]) -> Verdict {
        match self.look().map_err(text)? == expected {
            true => Ok(()),
            false => Err(format!("{what}: the reader shows something else than the last psync left")),
        }
    }

    fn end(mut self) -> Verdict {
        self.reader.take().map_or(Ok(()), |reader| self.store.end_snapshot(reader)).map_err(text)
    }
}

/// A reader follows by the writer's log, without another base, until a checkpoint hides psyncs from it, or the object is another.
pub(super) fn readers_follow_by_the_log() -> Verdict {
    on_each(|mut beside| {
        let other = beside.other.clone();
        let mut reader = Following::begin(&other).map_err(text)?;
        for round in 0..20_u8 {
            let at = usize::from(round) * 1777 % (SIZE - 200);
            beside.psync(0, at, 10 + round, 1 + usize::from(round) * 9).map_err(text)?;
            beside.psync(1, at, 40 + round, 30).map_err(text)?;
            if round % 3 != 1 {
                reader.expect(&format!("round {round}"), &beside.expected[0])?;
            }
            if round == 11 {
                // All of this generation was seen.
                beside.writers[0].checkpoint().map_err(text)?;
            }
        }
        if reader.bases != 1 {
            return Err(format!("{} bases, where the log tells", reader.bases));
        }
        // Psyncs that nobody saw are gone from the log once others are where they were: of another object, or of this one.
        for (object, at) in [(1, 0), (0, 6000)] {
            beside.psync(0, 64, 70 + object as u8, 500).map_err(text)?;
            beside.writers[0].checkpoint().map_err(text)?;
            for value in 100..160 {
                beside.psync(object, at, value, 700).map_err(text)?;
            }
            reader.expect(&format!("behind a checkpoint, and psyncs of {object}"), &beside.expected[0])?;
        }
        // Others keep it, it grows, its writer goes and comes, it is put in the place of its base.
        keep(&other, &[("a", "s")]).map_err(text)?;
        beside.psync(0, 100, 72, 5000).map_err(text)?;
        reader.expect("beside a snapshot", &beside.expected[0])?;
        beside.psync(0, 200, 73, 50).map_err(text)?;
        let pages = beside.writers[0].object().entry.pages.get();
        beside.writers[0].grow((pages + 1) * 4096).map_err(text)?;
        beside.expected[0].resize((pages as usize + 1) * 4096, 0);
        beside.psync(0, SIZE, 74, 4000).map_err(text)?;
        reader.expect("after growth", &beside.expected[0])?;
        beside.psync(0, 300, 75, 5).map_err(text)?;
        beside.writers.remove(0).detach().map_err(text)?;
        reader.expect("without a writer", &beside.expected[0])?;
        beside.writers.insert(0, beside.store.attach_writer("a", KEY).map_err(text)?);
        beside.psync(0, 400, 76, 5).map_err(text)?;
        reader.expect("with the next writer", &beside.expected[0])?;
        other.destroy("s", KEY).map_err(text)?;
        other.merge("a").map_err(text)?;
        beside.psync(0, 500, 77, 5).map_err(text)?;
        reader.expect("after a merge", &beside.expected[0])?;
        if reader.bases < 4 {
            return Err(format!("{} bases, where the log does not tell", reader.bases));
        }
        reader.end()?;
        beside.ends()
    })
}

/// The writer's process dies after a psync that nobody has seen, or detaches: the reader shows what the next one finds.
pub(super) fn readers_do_not_miss_the_last_psync() -> Verdict {
    on_each(|mut beside| {
        let other = beside.other.clone();
        let mut reader = Following::begin(&other).map_err(text)?;
        for round in 0..3_u8 {
            beside.psync(0, 9000, 10 + round, 64).map_err(text)?;
            reader.expect("beside its writer", &beside.expected[0])?;
            // Hidden by checkpoints, and written over.
            for value in 0..3_u8 {
                beside.psync(0, 70, 50 + 10 * round + value, 9000).map_err(text)?;
                beside.writers[0].checkpoint().map_err(text)?;
            }
            if round == 1 {
                beside.writers.remove(0).detach().map_err(text)?;
                beside.writers.insert(0, beside.store.attach_writer("a", KEY).map_err(text)?);
            }
            reader.expect(&format!("round {round}"), &beside.expected[0])?;
        }
        reader.end()?;
        beside.ends()
    })
}

/// Looks, as another process, while a durable write is under way whose bytes can be seen already.
struct Peek {
    store: Arc<Store>,
    reader: Mutex<Option<Reader>>,
    seen: AtomicBool,
}

impl Hook for Peek {
    fn write_durable(&self, under: &dyn Device, offset: u64, bytes: &[u8]) -> std::result::Result<(), Fatal> {
        if let Some(reader) = &mut *self.reader.lock().unwrap_or_else(PoisonError::into_inner) {
            under.write(offset, bytes)?;
            let newer = matches!(self.store.follow(reader), Followed::Newer(_));
            self.seen.fetch_or(newer, Ordering::Relaxed);
        }
        under.write_durable(offset, bytes)
    }
}

/// A psync that is being made durable is no reader's yet.
fn no_reader_sees_a_psync_early(disk: bool) -> Verdict {
    let medium = formatted(4 << 20, SimConfig { disk, ..CONFIG });
    let other = open(&medium, 2);
    other.set_patience(Duration::ZERO);
    let (reader, seen) = (Mutex::new(None), AtomicBool::new(false));
    let hooked = Hooked::new(Arc::new(medium.handle()), Peek { store: other.clone(), reader, seen });
    let store = Store::open(hooked.clone(), crate::pool::process(1)).map_err(text)?;
    create(&store, "a", SIZE as u64);
    let run = || -> Result<Vec<u8>> {
        let mut a = store.attach_writer("a", KEY)?;
        psync(&mut a, &[(0, &[1; SIZE])])?;
        let set = |reader| hooked.reader.lock().unwrap_or_else(PoisonError::into_inner).replace(reader);
        set(other.attach_snapshot("a", KEY)?);
        for value in 2..5_u8 {
            psync(&mut a, &[(100, &[value; 10])])?;
        }
        let reader = hooked.reader.lock().unwrap_or_else(PoisonError::into_inner).take();
        let mut reader = reader.ok_or(StoreError::NotFound)?;
        let Followed::Newer(lines) = other.follow(&mut reader) else { return Ok(Vec::new()) };
        let last = lines.iter().last().map_or(Vec::new(), |(_, bytes)| bytes.to_vec());
        other.end_snapshot(reader)?;
        a.detach()?;
        Ok(last)
    };
    let last = run().map_err(text)?;
    if last.get(36) != Some(&4) {
        return Err(format!("behind its last psync a reader sees {last:?}"));
    }
    match hooked.seen.load(Ordering::Relaxed) {
        true => Err("a reader sees a psync that is not durable".into()),
        false => Ok(()),
    }
}

pub(super) fn no_reader_sees_a_psync_of_a_disk_early() -> Verdict {
    no_reader_sees_a_psync_early(true)
}

pub(super) fn no_reader_sees_a_psync_of_memory_early() -> Verdict {
    no_reader_sees_a_psync_early(false)
}

/// So does that of an object that is attached, each of whose snapshots is destroyed before the next is made; one that is left shows what
/// it did.
pub(super) fn the_chain_of_destroyed_snapshots_stays_short() -> Verdict {
    on_each(|mut beside| {
        keep(&beside.other, &[("a", "first")]).map_err(text)?;
        let first = beside.expected[0].clone();
        for round in 0..40_u8 {
            beside.psync(0, usize::from(round) * 7 % 5 * 4096, round, 10).map_err(text)?;
            keep(&beside.other, &[("a", "snapshot")]).map_err(text)?;
            beside.shows("snapshot", &beside.expected[0])?;
            beside.shows("first", &first)?;
            beside.other.destroy("snapshot", KEY).map_err(text)?;
        }
        let objects = beside.other.info().map_err(text)?.objects;
        if objects > 12 {
            return Err(format!("{objects} objects and bases"));
        }
        beside.ends()
    })
}

/// The same of a copy, and of a reader that follows.
pub(super) fn copies_and_followers_wait_for_a_direct_write() -> Verdict {
    on_each(|mut beside| {
        create(&beside.store, "c", SIZE as u64);
        let mut c = beside.store.attach_writer("c", KEY).map_err(text)?;
        c.begin_direct(SIZE as u64).and_then(|()| c.write_direct(4096, &[9; 4096])).map_err(text)?;
        let copied = beside.other.create_from("c", KEY, "d", &CreateOptions::default()).map(drop);
        let followed = beside.other.attach_snapshot("c", KEY).map(drop);
        for done in [copied, followed] {
            if !matches!(done, Err(StoreError::Changing { .. })) {
                return Err(format!("beside a direct write: {done:?}"));
            }
        }
        c.end_direct().and_then(|()| psync(&mut c, &[])).map_err(text)?;
        c.detach().map_err(text)?;
        beside.psync(0, 0, 3, 10).map_err(text)?;
        beside.ends()
    })
}

/// Of a larger one, few pages are absorbed at a time.
pub(super) fn absorbed_pages_are_there_after_a_power_cut() -> Verdict {
    followed(20 * 4096, &[(100, 2), (50_000, 3), (70_000, 4)], false)
}

const NAMES_OF_KEPT: [&str; 3] = ["s0", "s1", "s2"];

/// An object whose bases nothing else needs takes their place, with the power cut everywhere.
pub(super) fn merges_are_whole_after_a_power_cut() -> Verdict {
    crash(
        |store| {
            create(store, "a", SIZE as u64);
            for (round, at) in [0, 100, 5000, 9000].into_iter().enumerate() {
                let mut a = store.attach_writer("a", KEY).unwrap();
                let len = if round == 0 { SIZE } else { 8 };
                psync(&mut a, &[(at, &vec![1 + round as u8; len])]).unwrap();
                a.detach().unwrap();
                if round < 3 {
                    keep(store, &[("a", NAMES_OF_KEPT[round])]).unwrap();
                }
            }
            // A snapshot that is made later would absorb them.
            NAMES_OF_KEPT.iter().for_each(|name| store.destroy(name, KEY).unwrap());
        },
        |run| {
            let after = run.last();
            run.step_to(after, |store| store.merge("a").map(drop))?;
            let mut a = run.quiet(|store| store.attach_writer("a", KEY))?;
            let mut after = run.last();
            let (_, _, bytes) = after.get_mut("a").expect("it was created");
            bytes[6000..6008].fill(9);
            run.step_to(after, |_| psync(&mut a, &[(6000, &[9; 8])]))?;
            run.quiet(|_| a.detach())
        },
    )
}

/// In any operation that it makes: the snapshot is there or not, whole, and the writer loses nothing, whether it goes on or dies next.
pub(super) fn whoever_makes_a_snapshot_may_die() -> Verdict {
    const KINDS: [OpKind; 4] = [OpKind::Write, OpKind::WriteDurable, OpKind::Barrier, OpKind::Zero];
    for (kind, late) in KINDS.into_iter().flat_map(|kind| [(kind, false), (kind, true)]) {
        for nth in 0.. {
            let mut died = false;
            for disk in [true, false] {
                let mut beside = Beside::begin(SimConfig { disk, ..CONFIG }).map_err(text)?;
                let before = beside.expected[0].clone();
                let medium = Arc::new(beside.medium.handle());
                let third = Store::open(medium.clone(), crate::pool::process(3)).map_err(text)?;
                beside.medium.fail_at(kind, nth, if late { Fault::KillLate } else { Fault::Kill });
                let made = keep(&third, &[("a", "s")]);
                let dead = medium.is_dead();
                beside.medium.clear_faults();
                died |= dead;
                let named = |what| format!("{kind:?} {nth}, late {late}, disk {disk}: {what}");
                if !dead {
                    made.map_err(text).map_err(named)?;
                    continue;
                }
                let there = beside.other.find("s").is_ok();
                let go_on = |beside: &mut Beside| {
                    beside.psync(0, 5020, 8, 4000)?;
                    beside.psync(1, 5020, 8, 40)
                };
                go_on(&mut beside).map_err(text).map_err(named)?;
                if there {
                    beside.shows("s", &before).map_err(named)?;
                }
                beside.ends().map_err(named)?;
            }
            if !died {
                break;
            }
        }
    }
    Ok(())
}
