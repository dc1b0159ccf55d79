use super::{CONFIG, KEY, Verdict, crash, create, open};
use crate::pool::{check_tiling, contents, process, psync};
use crate::scenario::formatted;
use crate::sim::{Choice, Fault, OpKind, SimMedium};
use indelible_store::error::{Result, StoreError};
use indelible_store::store::{Identity, SnapshotOf, Store, Writer};
use indelible_store::table::CreateOptions;
use std::sync::Arc;

const SIZE: usize = 9000;

fn text(error: StoreError) -> String {
    error.to_string()
}

struct Deleted {
    medium: SimMedium,
    writer: Option<Writer>,
    id: [u8; 16],
    other: Arc<Store>,
    free: u64,
}

impl Deleted {
    fn begin() -> Result<Deleted> {
        let medium = formatted(2 << 20, CONFIG);
        let (store, other) = (open(&medium, 2), open(&medium, 3));
        let mut lanes = Vec::new();
        for (store, name) in [(&store, "b"), (&other, "c")] {
            create(store, name, SIZE as u64);
            lanes.push(store.attach_writer(name, KEY)?);
        }
        lanes.into_iter().try_for_each(Writer::detach)?;
        let free = other.info()?.free;
        create(&store, "a", SIZE as u64);
        let mut writer = store.attach_writer("a", KEY)?;
        psync(&mut writer, &[(0, &[1; SIZE])])?;
        Ok(Deleted { medium, id: writer.object().entry.id, writer: Some(writer), other, free })
    }

    fn goes_on(&mut self) -> Verdict {
        for name in ["d", "e"] {
            create(&self.other, name, SIZE as u64);
            let mut writer = self.other.attach_writer(name, KEY).map_err(text)?;
            psync(&mut writer, &[(0, &[3; SIZE])]).map_err(text)?;
            writer.detach().map_err(text)?;
        }
        if let Some(writer) = &mut self.writer {
            psync(writer, &[(5000, &[2; 100])]).map_err(text)?;
            writer.checkpoint().map_err(text)?;
            let mut expected = vec![1; SIZE];
            expected[5000..5100].fill(2);
            if contents(&self.other, writer.object()).map_err(text)? != expected {
                return Err("the writer has not what it psynced".into());
            }
        }
        for name in ["d", "e"] {
            let object = self.other.find(name).map_err(text)?;
            if contents(&self.other, &object).map_err(text)? != [3; SIZE] {
                return Err(format!("{name} has not what was psynced"));
            }
            self.other.destroy(name, KEY).map_err(text)?;
        }
        Ok(())
    }

    fn is_gone(&self) -> Verdict {
        if self.other.find_id(&self.id).is_ok() {
            return Err("it is still there".into());
        }
        let free = self.other.info().map_err(text)?.free;
        if free != self.free {
            return Err(format!("{free} bytes are free, not {}", self.free));
        }
        check_tiling(&self.other)?;
        let report = Store::check(Arc::new(self.medium.handle()), &mut |_, _| {}).map_err(text)?;
        report.findings.first().map_or(Ok(()), |finding| Err(format!("{finding:?}")))
    }
}

pub(super) fn a_deleted_object_stays_with_its_writer() -> Verdict {
    let mut deleted = Deleted::begin().map_err(text)?;
    let other = deleted.other.clone();
    other.delete("a", KEY).map_err(text)?;
    for result in [
        other.attach_reader("a", KEY).map(drop),
        other.attach_writer("a", KEY).map(drop),
        other.delete("a", KEY),
        other.destroy("a", KEY),
        other.resize("a", KEY, 100).map(drop),
    ] {
        if !matches!(result, Err(StoreError::NotFound)) {
            return Err(format!("after it was deleted: {result:?}"));
        }
    }
    other.reap().map_err(text)?;
    deleted.goes_on()?;
    create(&other, "a", 100);
    other.destroy("a", KEY).map_err(text)?;
    let Some(writer) = &mut deleted.writer else { return Ok(()) };
    let grown = writer.object().entry.extent_len() + 4096;
    writer.grow(grown).map_err(text)?;
    psync(writer, &[(grown - 8, &[4; 8])]).map_err(text)?;
    deleted.writer.take().map_or(Ok(()), Writer::detach).map_err(text)?;
    deleted.is_gone()
}

pub(super) fn a_deleted_object_goes_with_the_last_that_has_it() -> Verdict {
    let mut deleted = Deleted::begin().map_err(text)?;
    deleted.writer.take().map_or(Ok(()), Writer::detach).map_err(text)?;
    let third = open(&deleted.medium, 4);
    let readers = [&deleted.other, &third].map(|store| store.attach_reader("a", KEY));
    deleted.other.delete("a", KEY).map_err(text)?;
    for reader in readers {
        let reader = reader.map_err(text)?;
        deleted.goes_on()?;
        if contents(&deleted.other, reader.object()).map_err(text)? != [1; SIZE] {
            return Err("a reader does not see what was psynced".into());
        }
        reader.detach().map_err(text)?;
    }
    deleted.is_gone()?;

    let mut deleted = Deleted::begin().map_err(text)?;
    let dying = Arc::new(deleted.medium.handle());
    deleted.writer.take().map_or(Ok(()), Writer::detach).map_err(text)?;
    let store = Store::open(dying.clone(), process(5)).map_err(text)?;
    deleted.writer = Some(store.attach_writer("a", KEY).map_err(text)?);
    deleted.other.delete("a", KEY).map_err(text)?;
    deleted.goes_on()?;
    dying.kill();
    if deleted.other.reap().map_err(text)? != 1 {
        return Err("it is not removed once its writer is dead".into());
    }
    if deleted.other.find_id(&deleted.id).is_ok() {
        return Err("it is still there".into());
    }
    check_tiling(&deleted.other)
}

pub(super) fn deleted_and_psynced_with_a_power_cut_everywhere() -> Verdict {
    crash(
        |store| {
            create(store, "a", SIZE as u64);
            create(store, "b", 100);
        },
        |run| {
            let mut a = run.quiet(|store| store.attach_writer("a", KEY))?;
            run.step(|store| store.delete("a", KEY))?;
            run.quiet(|_| psync(&mut a, &[(0, &[1; SIZE])]))?;
            run.step(|store| store.create("c", &super::of(SIZE as u64)).map(drop))?;
            run.quiet(|_| psync(&mut a, &[(0, &[2; SIZE])]))?;
            run.quiet(|_| a.detach())?;
            run.step(|store| store.create("d", &super::of(SIZE as u64)).map(drop))
        },
    )
}

pub(super) fn whoever_deletes_may_die() -> Verdict {
    const KINDS: [OpKind; 3] = [OpKind::Write, OpKind::WriteDurable, OpKind::Lock];
    for (kind, late) in KINDS.into_iter().flat_map(|kind| [(kind, false), (kind, true)]) {
        for nth in 0.. {
            let named = |what| format!("{kind:?} {nth}, late {late}: {what}");
            let mut deleted = Deleted::begin().map_err(text)?;
            let medium = Arc::new(deleted.medium.handle());
            let third = Store::open(medium.clone(), process(4)).map_err(text)?;
            deleted.medium.fail_at(kind, nth, if late { Fault::KillLate } else { Fault::Kill });
            let done = third.delete("a", KEY);
            let dead = medium.is_dead();
            deleted.medium.clear_faults();
            if !dead {
                done.map_err(text).map_err(named)?;
            }
            let there = deleted.other.find("a").is_ok();
            deleted.goes_on().map_err(named)?;
            deleted.writer.take().map_or(Ok(()), Writer::detach).map_err(text).map_err(named)?;
            if there {
                deleted.other.destroy("a", KEY).map_err(text).map_err(named)?;
            }
            deleted.is_gone().map_err(named)?;
            if !dead {
                break;
            }
        }
    }
    Ok(())
}

const REBOOTED: Identity = Identity { pid: 7, boot: [2; 16], namespace: 0 };

fn volatile() -> CreateOptions<'static> {
    CreateOptions { volatile: Some(process(1).boot), ..super::of(SIZE as u64) }
}

fn with_volatile(store: &Arc<Store>) -> Result<()> {
    store.create("a", &volatile())?;
    let mut a = store.attach_writer("a", KEY)?;
    psync(&mut a, &[(0, &[1; SIZE])])?;
    a.detach()?;
    store.snapshot(&[SnapshotOf { object: "a", key: KEY, name: "kept" }]).map(drop)
}

fn gone(medium: &SimMedium) -> Verdict {
    let store = Store::open(Arc::new(medium.handle()), REBOOTED).map_err(text)?;
    let copied = store.create_from("a", KEY, "copy", &CreateOptions::default()).map(drop);
    for result in [
        store.attach_reader("a", KEY).map(drop),
        store.attach_writer("a", KEY).map(drop),
        store.attach_snapshot("a", KEY).map(drop),
        store.resize("a", KEY, 100).map(drop),
        store.snapshot(&[SnapshotOf { object: "a", key: KEY, name: "now" }]).map(drop),
        copied,
    ] {
        if !matches!(result, Err(StoreError::VolatileGone)) {
            return Err(format!("in another boot: {result:?}"));
        }
    }
    let kept = store.find("kept").and_then(|kept| contents(&store, &kept)).map_err(text)?;
    if kept != [1; SIZE] {
        return Err("its snapshot has something else".into());
    }
    let made = store.create("a", &super::of(100)).map_err(text)?;
    if contents(&store, &made).map_err(text)? != [0; 100] {
        return Err("its successor is not blank".into());
    }
    check_tiling(&store)
}

pub(super) fn a_volatile_object_is_gone_in_another_boot() -> Verdict {
    let medium = formatted(2 << 20, CONFIG);
    let store = open(&medium, 2);
    with_volatile(&store).map_err(text)?;
    for name in ["b", "c"] {
        store.create(name, &volatile()).map_err(text)?;
    }
    store.create_from("a", KEY, "d", &CreateOptions::default()).map_err(text)?;
    store.attach_writer("a", KEY).and_then(Writer::detach).map_err(text)?;
    if store.remove_gone().map_err(text)? != 0 {
        return Err("objects of this boot are gone".into());
    }
    gone(&medium)?;
    let later = Store::open(Arc::new(medium.handle()), REBOOTED).map_err(text)?;
    if (later.remove_gone().map_err(text)?, later.remove_gone().map_err(text)?) != (2, 0) {
        return Err("not all that is gone was removed".into());
    }
    later.attach_writer("d", KEY).and_then(Writer::detach).map_err(text)?;
    let (mut names, size) = (0.., 100_000);
    let full = loop {
        let name = format!("fill {}", names.next().unwrap_or(0));
        match later.create(&name, &CreateOptions { volatile: Some([3; 16]), ..super::of(size) }) {
            Ok(made) if names.start > 100 => break Ok(made),
            Ok(_) => {}
            Err(error) => break Err(error),
        }
    };
    full.map_err(text)?;
    check_tiling(&later)
}

pub(super) fn volatile_objects_of_a_machine_that_failed_are_gone() -> Verdict {
    let medium = formatted(2 << 20, CONFIG);
    let store = open(&medium, 2);
    with_volatile(&store).map_err(text)?;
    let mut a = store.attach_writer("a", KEY).map_err(text)?;
    psync(&mut a, &[(100, &[2; 5000])]).map_err(text)?;
    [Choice::None, Choice::All].into_iter().try_for_each(|choice| gone(&medium.power_cut(choice).medium()))
}
