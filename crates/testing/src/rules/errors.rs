//! Media errors, and their consequences for processes that were not told.

use super::{KEY, Verdict, of};
use crate::hooked::{Hook, Hooked};
use crate::pool::{check_tiling, process, psync, recover_all, snapshot};
use crate::scenario::{formatted, media};
use crate::sim::{Choice, Fault, OpKind, SimConfig, SimMedium};
use indelible_store::error::StoreError;
use indelible_store::format::{TABLE_LANE, TABLE_LANE_LEN};
use indelible_store::medium::{Device, Fatal, Medium};
use indelible_store::store::Store;
use indelible_store::table::CreateOptions;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

/// The visible part of a failing durable write.
#[derive(Clone, Copy, Debug)]
pub enum Visible {
    None,
    Half,
    All,
}

/// A file whose durable writes may fail: all pages of any writer are then clean and perhaps lost.
pub struct WritebackFile {
    pub sim: Arc<SimMedium>,
    pub durable: AtomicU64,
    plan: Mutex<Option<(u64, Visible)>>,
    untold: AtomicBool,
}

impl WritebackFile {
    #[must_use]
    pub fn over(sim: &SimMedium) -> Arc<Hooked<WritebackFile>> {
        let (durable, plan, untold) = (AtomicU64::new(0), Mutex::new(None), AtomicBool::new(false));
        let sim = Arc::new(sim.handle());
        Hooked::new(sim.clone(), WritebackFile { sim, durable, plan, untold })
    }

    pub fn fail(&self, nth: u64, visible: Visible) {
        *self.plan.lock().unwrap() = Some((self.durable.load(Ordering::Relaxed) + nth, visible));
    }
}

impl Hook for WritebackFile {
    fn check_writeback(&self, under: &dyn Device) -> Result<(), Fatal> {
        match self.untold.swap(false, Ordering::Relaxed) {
            true => Err(std::io::Error::from_raw_os_error(5).into()),
            false => under.check_writeback(),
        }
    }
    fn write_durable(&self, under: &dyn Device, offset: u64, bytes: &[u8]) -> Result<(), Fatal> {
        if self.untold.load(Ordering::Relaxed) {
            under.write(offset, bytes)?;
            return self.check_writeback(under);
        }
        let now = self.durable.fetch_add(1, Ordering::Relaxed);
        let visible = match *self.plan.lock().unwrap() {
            Some((nth, Visible::None)) if nth == now => 0,
            Some((nth, Visible::Half)) if nth == now => bytes.len() / 128 * 64,
            Some((nth, Visible::All)) if nth == now => bytes.len(),
            _ => return under.write_durable(offset, bytes),
        };
        under.write(offset, &bytes[..visible])?;
        self.sim.fail_at(OpKind::Barrier, 0, Fault::NoSpace);
        under.barrier()
    }
}

pub type State = BTreeMap<String, Vec<u8>>;

#[must_use]
pub fn state(store: &Arc<Store>) -> State {
    snapshot(store).unwrap().into_iter().map(|(name, (_, _, bytes))| (name, bytes)).collect()
}

/// Contents that recovery finds after a power cut or a death.
pub fn recovered(medium: &SimMedium) -> Result<State, String> {
    let store = Store::open(Arc::new(medium.handle()), process(9)).map_err(|error| error.to_string())?;
    recover_all(&store).map_err(|error| error.to_string())?;
    check_tiling(&store)?;
    Ok(state(&store))
}

pub(super) fn an_error_told_to_one_lane_poisons_the_table_lane() -> Verdict {
    for config in media() {
        for cut in 0..20 {
            let sim = formatted(1 << 20, config);
            let file = WritebackFile::over(&sim);
            let store = Store::open(file.clone(), process(1)).unwrap();
            for name in ["a", "other", "old"] {
                store.create(name, &of(100)).unwrap();
            }
            let mut a = store.attach_writer("a", KEY).unwrap();
            sim.settle();
            store.rename("old", "new", KEY).unwrap();
            file.fail(0, Visible::All);
            psync(&mut a, &[(0, &[1])]).unwrap_err();
            let barriers = sim.count(OpKind::Barrier);
            let mut names = ["other", "another"];
            while sim.count(OpKind::Barrier) == barriers {
                store.rename(names[0], names[1], KEY).unwrap();
                names.swap(0, 1);
            }
            drop(a);
            let found = recovered(&sim.power_cut(Choice::Random(cut)).medium()).unwrap();
            assert!(
                found.contains_key("new") && found.contains_key(names[0]),
                "{config:?}, cut {cut}: {found:?}"
            );
        }
    }
    Ok(())
}

pub(super) fn an_error_told_to_one_lane_poisons_every_other() -> Verdict {
    for cut in 0..20 {
        let sim = formatted(1 << 20, SimConfig::default());
        let file = WritebackFile::over(&sim);
        let store = Store::open(file.clone(), process(1)).unwrap();
        for name in ["a", "b"] {
            store.create(name, &of(9000)).unwrap();
        }
        let (mut a, mut b) = (store.attach_writer("a", KEY).unwrap(), store.attach_writer("b", KEY).unwrap());
        sim.settle();
        psync(&mut b, &[(0, &[7; 9000])]).unwrap();
        file.fail(0, Visible::None);
        psync(&mut a, &[(0, &[1])]).unwrap_err();
        assert!(matches!(b.checkpoint(), Err(StoreError::Poisoned)));
        assert!(matches!(psync(&mut b, &[(0, &[8])]), Err(StoreError::Poisoned)));
        if cut % 2 == 0 {
            b.detach().unwrap_err();
            drop(a);
            let b = store.attach_writer("b", KEY).unwrap();
            b.checkpoint().unwrap();
            std::mem::forget(b);
        }
        let found = recovered(&sim.power_cut(Choice::Random(cut)).medium()).unwrap();
        assert_eq!(found["b"], [7; 9000], "cut {cut}");
    }
    Ok(())
}

pub(super) fn a_direct_write_without_proof_is_not_published() -> Verdict {
    for config in media() {
        let sim = formatted(2 << 20, config);
        let store = Store::open(Arc::new(sim.handle()), process(1)).unwrap();
        store.create("a", &CreateOptions { sparse: true, ..of(300_000) }).unwrap();
        let mut a = store.attach_writer("a", KEY).unwrap();
        psync(&mut a, &[(0, &[1; 100])]).unwrap();
        sim.settle();
        a.begin_direct(300_000).unwrap();
        a.write_direct(4096, &[2; 60_000]).unwrap();
        sim.fail_at(OpKind::Reserve, 0, Fault::NoSpace);
        assert!(matches!(a.write_direct(200_000, &[2; 100]), Err(StoreError::NoSpace)));
        psync(&mut a, &[(4096, &[2; 60_000]), (200_000, &[2; 100])]).unwrap();
        let expected = state(&store);
        for choice in [Choice::None, Choice::Random(1), Choice::All] {
            let found = recovered(&sim.power_cut(choice.clone()).medium()).unwrap();
            assert!(found == expected && found["a"][4096] == 2, "{config:?}, {choice:?}");
        }
        assert!(matches!(a.write_direct(8192, &[3]), Err(StoreError::NotAnnounced { .. })), "it is over");
    }
    Ok(())
}

/// The system may read old bytes of lost pages. Others would redo a change made from such a
/// mixture.
pub(super) fn a_change_made_from_dropped_pages_is_not_published() -> Verdict {
    for config in media() {
        for half in 0..2 {
            let sim = formatted(1 << 20, config);
            let file = WritebackFile::over(&sim);
            let store = Store::open(file.clone(), process(1)).unwrap();
            for nth in 0..20 {
                store.create(&format!("{nth}"), &of(100)).unwrap();
            }
            sim.settle();
            let before = sim.to_bytes();
            store.rename("0", "new", KEY).unwrap();
            (1..10).for_each(|nth| store.destroy(&format!("{nth}"), KEY).unwrap());
            let expected = state(&store);
            let lane = TABLE_LANE as usize..(TABLE_LANE + TABLE_LANE_LEN) as usize;
            for (page, old) in
                before.chunks(4096).enumerate().filter(|(page, _)| !lane.contains(&(page * 4096)))
            {
                if page % 2 == half {
                    sim.write(page as u64 * 4096, old).unwrap();
                }
            }
            file.untold.store(true, Ordering::Relaxed);
            let result = store.create("more", &of(5000));
            assert!(result.is_err(), "{config:?}, {half}");
            let other = Store::open(Arc::new(sim.handle()), process(2)).unwrap();
            assert_eq!(state(&other), expected, "{config:?}, {half}: {result:?}");
            check_tiling(&other).unwrap();
            store.create("more", &of(5000)).unwrap();
            check_tiling(&store).unwrap();
        }
    }
    Ok(())
}

/// The psync takes the rest of its lines from a primary in an earlier state: its batch would undo
/// the psync before.
pub(super) fn a_psync_made_from_dropped_pages_is_not_published() -> Verdict {
    for config in media() {
        let sim = formatted(1 << 20, config);
        let file = WritebackFile::over(&sim);
        let store = Store::open(file.clone(), process(1)).unwrap();
        store.create("a", &of(5000)).unwrap();
        let mut a = store.attach_writer("a", KEY).unwrap();
        psync(&mut a, &[(0, &[5; 5000])]).unwrap();
        let start = a.object().entry.primary_offset();
        sim.write(start, &[0; 4096]).unwrap();
        file.untold.store(true, Ordering::Relaxed);
        if psync(&mut a, &[(8, &[6])]).is_ok() {
            return Err(format!("{config:?}: the psync was acknowledged"));
        }
        drop((a, store));
        let store = Store::open(Arc::new(sim.handle()), process(2)).unwrap();
        recover_all(&store).unwrap();
        let bytes = snapshot(&store).unwrap()["a"].2.clone();
        if bytes.iter().enumerate().any(|(at, byte)| *byte != 5 && (at, *byte) != (8, 6)) {
            return Err(format!("{config:?}: an acknowledged psync was undone"));
        }
    }
    Ok(())
}

pub(super) fn an_error_is_told_once() -> Verdict {
    for config in media() {
        for kind in [OpKind::WriteDurable, OpKind::Barrier] {
            let sim = formatted(1 << 20, config);
            let store = Store::open(Arc::new(sim.handle()), process(1)).unwrap();
            store.create("a", &of(9000)).unwrap();
            let mut a = store.attach_writer("a", KEY).unwrap();
            psync(&mut a, &[(0, &[1; 100])]).unwrap();
            sim.fail_from(kind, 0, Fault::Io);
            let failed = psync(&mut a, &[(0, &[2; 100])]).and_then(|()| a.checkpoint());
            sim.clear_faults();
            failed.err().ok_or("nothing failed")?;
            drop(a);
            let text = |error: StoreError| format!("{config:?}, {kind:?}: told again: {error}");
            let mut a = store.attach_writer("a", KEY).map_err(text)?;
            psync(&mut a, &[(0, &[3; 100])]).map_err(text)?;
            a.checkpoint().map_err(text)?;
            a.detach().map_err(text)?;
        }
    }
    Ok(())
}

pub(super) fn a_change_is_not_made_from_pages_dropped_meanwhile() -> Verdict {
    super::dropped::whenever_pages_are_dropped(&["more"], |store| store.create("more", &of(5000)).map(drop))
}

pub(super) fn a_failed_barrier_poisons_every_lane() -> Verdict {
    for seed in 0..16 {
        let sim = formatted(1 << 20, SimConfig { seed, ..SimConfig::default() });
        let store = Store::open(Arc::new(sim.handle()), process(1)).unwrap();
        for name in ["a", "b"] {
            store.create(name, &of(9000)).unwrap();
        }
        let mut writers = ["a", "b"].map(|name| store.attach_writer(name, KEY).unwrap());
        sim.settle();
        for (value, writer) in (1..).zip(&mut writers) {
            psync(writer, &[(0, &[value; 9000])]).unwrap();
        }
        sim.fail_at(OpKind::Barrier, 0, Fault::Io);
        writers[0].checkpoint().unwrap_err();
        let _ = writers[1].checkpoint();
        std::mem::forget(writers);
        for choice in [Choice::None, Choice::Random(seed), Choice::All] {
            let found = recovered(&sim.power_cut(choice.clone()).medium())?;
            if found["b"] != [2; 9000] {
                return Err(format!("seed {seed}, {choice:?}: a psync is lost on the other lane"));
            }
        }
    }
    Ok(())
}

pub(super) fn a_failed_write_back_is_told_to_one_call() -> Verdict {
    for config in media() {
        let sim = formatted(1 << 20, config);
        let store = Store::open(Arc::new(sim.handle()), process(1)).unwrap();
        store.create("a", &of(9000)).unwrap();
        sim.evict_by_itself(false);
        sim.fail_writeback(false);
        store.create("b", &of(100)).err().ok_or("no process was told")?;
        let text = |error: StoreError| format!("{config:?}: told again: {error}");
        let mut a = store.attach_writer("a", KEY).map_err(text)?;
        psync(&mut a, &[(0, &[3; 9000])]).map_err(text)?;
        a.checkpoint().map_err(text)?;
        a.detach().map_err(text)?;
    }
    Ok(())
}
