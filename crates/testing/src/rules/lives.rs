use super::{CONFIG, KEY, LIMITS, Verdict, create, open};
use crate::for_each_crash;
use crate::pool::{check_tiling, contents, process, psync};
use crate::scenario::formatted;
use crate::sim::{CrashImage, SimMedium};
use indelible_store::error::{Result, StoreError};
use indelible_store::store::{Life, Severity, Store};
use std::sync::Arc;

const SIZE: usize = 5000;
const LIFE: &str = "process 7";

fn text(error: StoreError) -> String {
    error.to_string()
}

fn is_sound(medium: &SimMedium, store: &Store) -> Verdict {
    check_tiling(store)?;
    let report = Store::check(Arc::new(medium.handle()), &mut |_, _| {}).map_err(text)?;
    match report.findings.iter().find(|finding| finding.severity > Severity::Note) {
        Some(finding) => Err(format!("{finding:?}")),
        None => Ok(()),
    }
}

struct Tied {
    medium: SimMedium,
    process: Arc<SimMedium>,
    other: Arc<Store>,
    id: [u8; 16],
    life: Life,
    free: u64,
}

impl Tied {
    fn begin() -> Result<Tied> {
        let medium = formatted(2 << 20, CONFIG);
        let own = Arc::new(medium.handle());
        let (store, other) = (Store::open(own.clone(), process(7))?, open(&medium, 3));
        create(&store, "b", SIZE as u64);
        store.attach_writer("b", KEY)?.detach()?;
        let free = other.info()?.free;
        create(&store, "a", SIZE as u64);
        let mut writer = store.attach_writer("a", KEY)?;
        psync(&mut writer, &[(0, &[1; SIZE])])?;
        let id = writer.object().entry.id;
        writer.detach()?;
        let life = store.begin_life(LIFE)?;
        life.keep("a", KEY)?;
        Ok(Tied { medium, process: own, other, id, life, free })
    }

    fn is_kept(&self) -> Verdict {
        let names: Vec<_> = self.other.ties("a").map_err(text)?.into_iter().map(|tie| tie.name).collect();
        if names != [LIFE] {
            return Err(format!("it is tied to {names:?}"));
        }
        self.other.delete("a", KEY).map_err(text)?;
        self.other.reap().map_err(text)?;
        let object =
            self.other.find_id(&self.id).map_err(|error| format!("it has gone too early: {error}"))?;
        match contents(&self.other, &object).map_err(text)? == [1; SIZE] {
            true => is_sound(&self.medium, &self.other),
            false => Err("it has something else".into()),
        }
    }

    fn is_gone(medium: &SimMedium, other: &Arc<Store>, id: &[u8; 16], free: u64) -> Verdict {
        if other.find_id(id).is_ok() {
            return Err("it is still there".into());
        }
        let left = other.info().map_err(text)?.free;
        if left != free {
            return Err(format!("{left} bytes are free, {free} before"));
        }
        is_sound(medium, other)
    }
}

pub(super) fn a_tied_object_goes_with_the_thread() -> Verdict {
    let tied = Tied::begin().map_err(text)?;
    tied.is_kept()?;
    drop(tied.life);
    Tied::is_gone(&tied.medium, &tied.other, &tied.id, tied.free)
}

pub(super) fn a_tied_object_goes_with_the_process() -> Verdict {
    let tied = Tied::begin().map_err(text)?;
    tied.is_kept()?;
    tied.process.kill();
    tied.other.reap().map_err(text)?;
    Tied::is_gone(&tied.medium, &tied.other, &tied.id, tied.free)?;
    drop(tied.life);
    is_sound(&tied.medium, &tied.other)
}

pub(super) fn lives_end_with_a_power_cut_everywhere() -> Verdict {
    let medium = formatted(2 << 20, CONFIG);
    create(&open(&medium, 1), "a", SIZE as u64);
    medium.settle();
    let record = |medium: &SimMedium| {
        let store = open(medium, 2);
        let run = || -> Result<()> {
            let life = store.begin_life(LIFE)?;
            life.keep("a", KEY)?;
            medium.mark(1);
            store.delete("a", KEY)?;
            medium.mark(2);
            drop(life);
            medium.mark(3);
            Ok(())
        };
        run().unwrap_or_else(|error| panic!("without a crash: {error}"));
    };
    let judge = |image: &CrashImage| -> Verdict {
        let (medium, mark) = (image.medium(), image.last_mark().unwrap_or(0));
        let store = open(&medium, 5);
        let named = store.find("a").is_ok();
        if mark == 0 && !named || mark >= 2 && named {
            return Err("it is deleted too early, or too late".into());
        }
        if mark == 1 && named && store.ties("a").map_err(text)?.is_empty() {
            return Err("its tie is gone".into());
        }
        store.reap().map_err(text)?;
        let objects = store.info().map_err(text)?.objects;
        if objects != u64::from(named) {
            return Err(format!("{objects} objects are left"));
        }
        is_sound(&medium, &store)
    };
    for_each_crash(&medium, record, judge, &LIMITS).map(drop).map_err(|failure| failure.to_string())
}
