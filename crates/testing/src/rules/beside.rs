use super::{CONFIG, KEY, Verdict, create, open};
use crate::pool::{contents, psync};
use crate::scenario::formatted;
use crate::sealed;
use crate::sim::{Choice, Fault, OpKind, SimConfig, SimMedium};
use indelible_store::error::{Result, StoreError};
use indelible_store::store::{SnapshotOf, Store, Writer};
use indelible_store::table::{CreateOptions, Located};
use std::sync::Arc;
use std::time::Duration;

pub(super) const SIZE: usize = 20_000;

pub(super) fn keep(store: &Arc<Store>, of: &[(&str, &str)]) -> Result<Vec<Located>> {
    let of: Vec<_> = of.iter().map(|(object, name)| SnapshotOf { object, key: KEY, name }).collect();
    store.snapshot(&of)
}

pub(super) struct Beside {
    pub(super) medium: SimMedium,
    pub(super) writers: Vec<Writer>,
    pub(super) store: Arc<Store>,
    pub(super) other: Arc<Store>,
    pub(super) expected: Vec<Vec<u8>>,
}

pub(super) const NAMES: [&str; 2] = ["a", "b"];

impl Beside {
    pub(super) fn begin(config: SimConfig) -> Result<Beside> {
        Beside::begin_with(config, false)
    }

    pub(super) fn begin_with(config: SimConfig, seal: bool) -> Result<Beside> {
        let medium = formatted(4 << 20, config);
        let (store, other) = (open(&medium, 1), open(&medium, 2));
        let mut writers = Vec::new();
        for name in NAMES {
            match seal && name == NAMES[0] {
                true => drop(sealed::create(&store, name, SIZE as u64)?),
                false => create(&store, name, SIZE as u64),
            }
            writers.push(sealed::writer(&store, name)?);
        }
        for store in [&store, &other] {
            store.set_patience(Duration::ZERO);
        }
        let expected = vec![vec![0; SIZE]; NAMES.len()];
        let mut beside = Beside { medium, writers, store, other, expected };
        for object in 0..NAMES.len() {
            beside.psync(object, 0, 1, SIZE)?;
            // On a disk they wait in memory.
            beside.psync(object, 5000, 2, 100)?;
        }
        Ok(beside)
    }

    pub(super) fn attach(&mut self) -> Verdict {
        self.writers.insert(0, sealed::writer(&self.store, NAMES[0]).map_err(text)?);
        Ok(())
    }

    pub(super) fn psync(&mut self, object: usize, at: usize, value: u8, len: usize) -> Result<()> {
        psync(&mut self.writers[object], &[(at as u64, &vec![value; len])])?;
        self.expected[object][at..at + len].fill(value);
        Ok(())
    }

    pub(super) fn shows(&self, name: &str, expected: &[u8]) -> Verdict {
        same(&self.other, name, expected)?;
        let cut = open(&self.medium.power_cut(Choice::None).medium(), 9);
        same(&cut, name, expected).map_err(|what| format!("after a power cut, {what}"))
    }

    pub(super) fn ends(mut self) -> Verdict {
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

pub(super) fn text(error: StoreError) -> String {
    error.to_string()
}

pub(super) fn same(store: &Arc<Store>, name: &str, expected: &[u8]) -> Verdict {
    let reader = sealed::reader(store, name).map_err(|error| format!("{name}: {error}"))?;
    let found = match reader.sealed_pages() {
        Some(pages) => sealed::bytes(&pages),
        None => contents(store, reader.object()),
    };
    let found = found.map_err(text)?;
    match found.iter().zip(expected).position(|(a, b)| a != b) {
        Some(at) => Err(format!("{name} shows {} at {at}, not {}", found[at], expected[at])),
        None => Ok(()),
    }
}

/// On a disk, with locks and page caches, and on memory.
pub(super) fn on_each(scenario: impl Fn(Beside) -> Verdict) -> Verdict {
    [true, false].into_iter().try_for_each(|disk| {
        let named = |what| format!("{}: {what}", if disk { "disk" } else { "memory" });
        Beside::begin(SimConfig { disk, ..CONFIG }).map_err(text).and_then(&scenario).map_err(named)
    })
}

pub(super) fn on_each_sealed(scenario: impl Fn(Beside) -> Verdict) -> Verdict {
    [true, false].into_iter().try_for_each(|disk| {
        let named = |what| format!("{}: {what}", if disk { "disk" } else { "memory" });
        let begun = Beside::begin_with(SimConfig { disk, ..CONFIG }, true);
        begun.map_err(text).and_then(&scenario).map_err(named)
    })
}

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

pub(super) fn several_objects_are_kept_as_of_one_moment() -> Verdict {
    on_each(several_are_kept)
}

pub(super) fn several_are_kept(mut beside: Beside) -> Verdict {
    let before = beside.expected.clone();
    keep(&beside.other, &[("a", "s"), ("b", "t")]).map_err(text)?;
    beside.psync(0, 100, 3, 300).map_err(text)?;
    beside.psync(1, 8000, 4, 300).map_err(text)?;
    beside.shows("s", &before[0])?;
    beside.shows("t", &before[1])?;
    let refused = keep(&beside.other, &[("a", "u"), ("b", "t")]);
    if !matches!(refused, Err(StoreError::Exists)) {
        return Err(format!("{refused:?}"));
    }
    if beside.other.find("u").is_ok() {
        return Err("one of two was made".into());
    }
    beside.psync(0, 300, 5, 300).map_err(text)?;
    let now = beside.expected[0].clone();
    keep(&beside.other, &[("a", "v"), ("a", "w")]).map_err(text)?;
    beside.psync(0, 300, 6, 9000).map_err(text)?;
    beside.shows("v", &now)?;
    beside.shows("w", &now)?;
    beside.ends()
}

pub(super) fn a_writer_that_dies_after_a_snapshot_is_recovered() -> Verdict {
    on_each(the_writer_dies)
}

pub(super) fn the_writer_dies(mut beside: Beside) -> Verdict {
    let before = beside.expected[0].clone();
    keep(&beside.other, &[("a", "s")]).map_err(text)?;
    beside.psync(0, 5010, 6, 40).map_err(text)?;
    beside.psync(0, 12_000, 7, 4000).map_err(text)?;
    let image = beside.medium.power_cut(Choice::All);
    let next = open(&image.medium(), 9);
    same(&next, "a", &beside.expected[0])?;
    same(&next, "s", &before)?;
    beside.ends()
}

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
        if !matches!(c.begin_direct(to), Err(StoreError::HasBase)) {
            return Err("a direct write to a page of a base".into());
        }
        c.detach().map_err(text)?;
        beside.psync(0, 0, 3, 10).map_err(text)?;
        beside.ends()
    })
}

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

pub(super) fn whoever_makes_a_snapshot_may_die() -> Verdict {
    keeper_dies(false)
}

pub(super) fn keeper_dies(seal: bool) -> Verdict {
    const KINDS: [OpKind; 4] = [OpKind::Write, OpKind::WriteDurable, OpKind::Barrier, OpKind::Zero];
    for (kind, late) in KINDS.into_iter().flat_map(|kind| [(kind, false), (kind, true)]) {
        for nth in 0.. {
            let mut died = false;
            for disk in [true, false] {
                let begun = Beside::begin_with(SimConfig { disk, ..CONFIG }, seal);
                let mut beside = begun.map_err(text)?;
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
