use super::beside::{Beside, SIZE, keep, on_each, text};
use super::{CONFIG, KEY, Verdict, create, open};
use crate::hooked::{Hook, Hooked};
use crate::pool::{Edits, contents, psync, psync_many};
use crate::scenario::formatted;
use crate::sealed;
use crate::sim::{Fault, OpKind, SimConfig};
use indelible_store::error::{Result, StoreError};
use indelible_store::medium::{Device, Fatal, LockKey};
use indelible_store::store::{Followed, Lines, Reader, Store};
use indelible_store::table::Layers;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

pub(super) struct Following<'a> {
    store: &'a Arc<Store>,
    reader: Option<Reader>,
    shown: Vec<u8>,
    bases: usize,
}

impl<'a> Following<'a> {
    pub(super) fn begin(store: &'a Arc<Store>) -> Result<Following<'a>> {
        let mut following = Following { store, reader: None, shown: Vec::new(), bases: 0 };
        following.attach()?;
        Ok(following)
    }

    fn attach(&mut self) -> Result<()> {
        if let Some(base) = self.store.attach_base("a", KEY)? {
            self.show(base)?;
            if self.follow() {
                return Ok(());
            }
        }
        self.bases += 1;
        self.show(self.store.attach_snapshot("a", KEY)?)
    }

    fn show(&mut self, mut reader: Reader) -> Result<()> {
        sealed::open(&mut reader)?;
        let changed = match &self.reader {
            Some(older) => reader.succeed(older)?,
            None => None,
        };
        match (reader.sealed_pages(), changed) {
            (_, Some(lines)) => self.lay(&lines),
            (Some(pages), None) => self.shown = sealed::bytes(&pages)?,
            (None, None) => self.shown = contents(self.store, reader.object())?,
        }
        self.reader.replace(reader).map_or(Ok(()), |before| self.store.end_snapshot(before))
    }

    /// `false`: the log does not have them.
    fn follow(&mut self) -> bool {
        match self.reader.as_mut().map(|reader| self.store.follow(reader)) {
            Some(Followed::Newest) => true,
            Some(Followed::Newer(lines)) => {
                self.lay(&lines);
                true
            }
            Some(Followed::Lost) | None => false,
        }
    }

    fn lay(&mut self, lines: &Lines) {
        for (offset, bytes) in lines.iter() {
            let Some(shown) = self.shown.get_mut(offset as usize..) else { continue };
            let len = bytes.len().min(shown.len());
            shown[..len].copy_from_slice(&bytes[..len]);
        }
    }

    pub(super) fn look(&mut self) -> Result<&[u8]> {
        if !self.follow() {
            self.attach()?;
        }
        Ok(&self.shown)
    }

    pub(super) fn expect(&mut self, what: &str, expected: &[u8]) -> Verdict {
        match self.look().map_err(text)? == expected {
            true => Ok(()),
            false => Err(format!("{what}: the reader shows something else than the last psync left")),
        }
    }

    fn end(mut self) -> Verdict {
        self.reader.take().map_or(Ok(()), |reader| self.store.end_snapshot(reader)).map_err(text)
    }
}

pub(super) fn readers_follow_by_the_log() -> Verdict {
    on_each(follow_by_the_log)
}

pub(super) fn follow_by_the_log(mut beside: Beside) -> Verdict {
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
            beside.writers[0].checkpoint().map_err(text)?;
        }
    }
    if reader.bases != 1 {
        return Err(format!("{} bases, where the log tells", reader.bases));
    }
    for (object, at) in [(1, 0), (0, 6000)] {
        beside.psync(0, 64, 70 + object as u8, 500).map_err(text)?;
        beside.writers[0].checkpoint().map_err(text)?;
        for value in 100..160 {
            beside.psync(object, at, value, 700).map_err(text)?;
        }
        reader.expect(&format!("behind a checkpoint, and psyncs of {object}"), &beside.expected[0])?;
    }
    keep(&other, &[("a", "s")]).map_err(text)?;
    beside.psync(0, 100, 72, 5000).map_err(text)?;
    reader.expect("beside a snapshot", &beside.expected[0])?;
    beside.psync(0, 200, 73, 50).map_err(text)?;
    let size = SIZE.next_multiple_of(4096) + 4096;
    beside.writers[0].grow(size as u64).map_err(text)?;
    beside.expected[0].resize(size, 0);
    beside.psync(0, SIZE, 74, 4000).map_err(text)?;
    reader.expect("after growth", &beside.expected[0])?;
    beside.psync(0, 300, 75, 5).map_err(text)?;
    beside.writers.remove(0).detach().map_err(text)?;
    reader.expect("without a writer", &beside.expected[0])?;
    beside.attach()?;
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
}

pub(super) fn readers_share_a_base() -> Verdict {
    on_each(|mut beside| {
        let stores = [2, 3, 4].map(|number| open(&beside.medium, number));
        let mut readers = Vec::new();
        for store in &stores {
            beside.psync(0, 300, 20, 40).map_err(text)?;
            readers.push(Following::begin(store).map_err(text)?);
        }
        for round in 0..12_u8 {
            beside.psync(0, 4096 * usize::from(round % 4) + 9, 100 + round, 700).map_err(text)?;
            if round % 4 == 3 {
                beside.writers[0].checkpoint().map_err(text)?;
                beside.psync(0, 64, 40 + round, 3000).map_err(text)?;
            }
            for (number, reader) in readers.iter_mut().enumerate() {
                reader.expect(&format!("round {round}, reader {number}"), &beside.expected[0])?;
            }
        }
        let bases: usize = readers.iter().map(|reader| reader.bases).sum();
        if bases > 4 {
            return Err(format!("{bases} bases of three readers that lost the log three times"));
        }
        readers.remove(0).end()?;
        beside.psync(0, 8000, 77, 5).map_err(text)?;
        readers[0].expect("once the one is gone that made the base", &beside.expected[0])?;
        beside.writers.remove(0).detach().map_err(text)?;
        readers[1].expect("without a writer", &beside.expected[0])?;
        beside.writers.insert(0, beside.store.attach_writer("a", KEY).map_err(text)?);
        readers.into_iter().try_for_each(Following::end)?;
        beside.ends()
    })
}

pub(super) fn a_writer_that_failed_is_not_followed() -> Verdict {
    on_each(|mut beside| {
        let reader = beside.other.attach_snapshot("a", KEY).map_err(text)?;
        beside.psync(0, 300, 20, 40).map_err(text)?;
        beside.medium.fail_at(OpKind::WriteDurable, 0, Fault::Io);
        if beside.psync(0, 400, 21, 40).is_ok() {
            return Err("its psync did not fail".into());
        }
        drop(beside.writers.remove(0));
        let next = open(&beside.medium, 3);
        if next.attach_base("a", KEY).map_err(text)?.is_some() {
            return Err("a reader follows it".into());
        }
        beside.other.end_snapshot(reader).map_err(text)
    })
}

pub(super) fn a_psync_that_was_reported_as_failed_is_not_followed() -> Verdict {
    on_each(|mut beside| {
        let reader = beside.other.attach_snapshot("b", KEY).map_err(text)?;
        let both = |beside: &mut Beside, value| {
            let bytes = [value; 40];
            let edits: Edits<'_> = &[(300, &bytes)];
            psync_many(&mut beside.writers.iter_mut().map(|writer| (writer, edits)).collect::<Vec<_>>())
        };
        both(&mut beside, 20).map_err(text)?;
        beside.medium.fail_at(OpKind::WriteDurable, 0, Fault::After);
        if both(&mut beside, 21).is_ok() {
            return Err("their psync did not fail".into());
        }
        beside.writers.clear();
        let next = open(&beside.medium, 3);
        if next.attach_base("b", KEY).map_err(text)?.is_some() {
            return Err("a reader follows it".into());
        }
        beside.other.end_snapshot(reader).map_err(text)
    })
}

struct Adopt {
    store: Arc<Store>,
    taken: Mutex<Vec<Reader>>,
    /// Psyncs of the awaited base; 0: none.
    awaited: AtomicU64,
}

impl Hook for Adopt {
    fn unlocked(&self, key: LockKey) {
        let awaited = self.awaited.load(Ordering::Relaxed);
        if key != LockKey::Table || awaited == 0 {
            return;
        }
        let Ok(Some(reader)) = self.store.attach_base("a", KEY) else { return };
        if reader.shown() == Some(awaited) {
            self.taken.lock().unwrap_or_else(PoisonError::into_inner).push(reader);
        } else {
            let _ = self.store.end_snapshot(reader);
        }
    }
}

const FILLERS: [&str; 4] = ["f0", "f1", "f2", "f3"];

fn a_base_that_absorbs_is_its_makers(config: SimConfig) -> Verdict {
    let mut beside = Beside::begin(config).map_err(text)?;
    let adopt = Adopt { store: open(&beside.medium, 3), taken: Mutex::default(), awaited: 0.into() };
    let hooked = Hooked::new(Arc::new(beside.medium.handle()), adopt);
    let maker = Store::open(hooked.clone(), crate::pool::process(2)).map_err(text)?;
    let taken = || std::mem::take(&mut *hooked.taken.lock().unwrap_or_else(PoisonError::into_inner));
    for round in 0..6_u8 {
        beside.psync(0, 4096 * usize::from(round % 4) + 50, 10 + round, 500).map_err(text)?;
        let (_, status) = beside.store.stat("a").map_err(text)?;
        hooked.awaited.store(status.psyncs, Ordering::Relaxed);
        let reader = maker.attach_snapshot("a", KEY).map_err(text)?;
        hooked.awaited.store(0, Ordering::Relaxed);
        let others = taken();
        for name in FILLERS {
            create(&beside.store, name, SIZE as u64);
            let mut filler = beside.store.attach_writer(name, KEY).map_err(text)?;
            psync(&mut filler, &[(0, &[0xee; SIZE])]).map_err(text)?;
            filler.detach().map_err(text)?;
        }
        for mut other in others {
            let layers = other.take_layers().unwrap_or_else(|| Layers::alone(other.object()));
            let mut bytes = vec![0; SIZE];
            layers.read(&**hooked.store.device(), 0, &mut bytes).map_err(|error| text(error.into()))?;
            if bytes != beside.expected[0] {
                return Err(format!("round {round}: another reader of the base shows something else"));
            }
            hooked.store.end_snapshot(other).map_err(text)?;
        }
        maker.end_snapshot(reader).map_err(text)?;
        FILLERS.iter().try_for_each(|name| beside.store.destroy(name, KEY)).map_err(text)?;
    }
    beside.ends()
}

pub(super) fn a_base_that_absorbs_is_its_makers_on_a_disk() -> Verdict {
    a_base_that_absorbs_is_its_makers(SimConfig { disk: true, ..CONFIG })
}

pub(super) fn a_base_that_absorbs_is_its_makers_in_memory() -> Verdict {
    a_base_that_absorbs_is_its_makers(SimConfig { disk: false, ..CONFIG })
}

pub(super) fn readers_do_not_miss_the_last_psync() -> Verdict {
    on_each(do_not_miss)
}

pub(super) fn do_not_miss(mut beside: Beside) -> Verdict {
    let other = beside.other.clone();
    let mut reader = Following::begin(&other).map_err(text)?;
    for round in 0..3_u8 {
        beside.psync(0, 9000, 10 + round, 64).map_err(text)?;
        reader.expect("beside its writer", &beside.expected[0])?;
        for value in 0..3_u8 {
            beside.psync(0, 70, 50 + 10 * round + value, 9000).map_err(text)?;
            beside.writers[0].checkpoint().map_err(text)?;
        }
        if round == 1 {
            beside.writers.remove(0).detach().map_err(text)?;
            beside.attach()?;
        }
        reader.expect(&format!("round {round}"), &beside.expected[0])?;
    }
    reader.end()?;
    beside.ends()
}

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
