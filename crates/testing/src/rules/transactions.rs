//! Transactions of two objects, told in any order, several in a batch, become durable as a prefix.
//!
//! State *n* is the result of the commits up to number *n*. A power cut leaves one from the last
//! acknowledged number to the last told.

use super::{CONFIG, KEY, LIMITS, Verdict, create, open};
use crate::for_each_crash;
use crate::pool::{Snapshot, agree, process, recover_all, snapshot};
use crate::scenario::{formatted, judge_medium, judge_state};
use crate::seed::Seeded;
use crate::sim::{Choice, Fault, OpKind, SimConfig, SimMedium};
use indelible_store::error::{ClassError, Result, StoreError};
use indelible_store::format::LINE;
use indelible_store::store::{ChangedLine, Commits, Identity, Store};
use indelible_store::table::{Class, CreateOptions};
use std::cell::RefCell;
use std::sync::Arc;

pub(super) const NAMES: [&str; 2] = ["a", "b"];
const SIZE: u64 = 9000;
const LINES: u64 = SIZE / LINE;

fn text(error: StoreError) -> String {
    error.to_string()
}

fn transactional(store: &Arc<Store>, name: &str) -> Result<()> {
    create_of(Class::Transactional, store, name)
}

fn create_of(class: Class, store: &Arc<Store>, name: &str) -> Result<()> {
    store.create(name, &CreateOptions { size: SIZE, class, ..CreateOptions::default() }).map(drop)
}

pub(super) struct Committing {
    medium: Arc<SimMedium>,
    store: Arc<Store>,
    commits: Commits,
    slots: [u64; 2],
    states: Vec<Snapshot>,
    progress: Vec<(usize, usize)>,
}

impl Committing {
    fn begin(medium: &SimMedium) -> Result<Committing> {
        let medium = Arc::new(medium.handle());
        let store = Store::open(medium.clone(), Identity { boot: [9; 16], ..process(2) })?;
        let states = vec![snapshot(&store)?];
        let commits = Commits::default();
        let mut slots = [0; 2];
        for (slot, name) in slots.iter_mut().zip(NAMES) {
            let writer = match Class::of(&store.find(name)?.entry) {
                Some(Class::OnDemand) => store.attach_on_demand_writer(name, KEY, 1)?,
                _ => store.attach_transactional_writer(name, KEY)?,
            };
            *slot = writer.object().offset;
            commits.join(writer)?;
        }
        Ok(Committing { medium, store, commits, slots, states, progress: vec![(0, 0)] })
    }

    fn last(&self) -> usize {
        self.states.len() - 1
    }

    fn commit(&mut self, lines: &[(usize, u64)], value: u8) -> (u64, Vec<ChangedLine>) {
        let mut state = self.states[self.last()].clone();
        let mut changed = Vec::new();
        for (object, line) in lines {
            let start = (line * LINE) as usize;
            if let Some((_, _, bytes)) = state.get_mut(NAMES[*object]) {
                let end = bytes.len().min(start + LINE as usize);
                bytes[start..end].fill(value);
            }
            let (object, offset) = (self.slots[*object], line * LINE);
            changed.push(ChangedLine { object, offset, bytes: [value; LINE as usize] });
        }
        self.states.push(state);
        (self.last() as u64, changed)
    }

    fn tell(&mut self, lines: &[(usize, u64)], value: u8) -> Result<u64> {
        let (number, changed) = self.commit(lines, value);
        self.commits.tell(number, changed)?;
        Ok(number)
    }

    fn acknowledged(&mut self, medium: &SimMedium, number: u64) {
        self.progress.push((number as usize, self.last()));
        medium.mark(self.progress.len() as u64 - 1);
    }

    fn wait(&mut self, medium: &SimMedium, number: u64) -> Result<()> {
        self.commits.wait(number)?;
        self.acknowledged(medium, number);
        Ok(())
    }

    fn end(&mut self, medium: &SimMedium) -> Result<()> {
        for slot in self.slots {
            let (writer, flushed) = self.commits.leave(slot);
            flushed?;
            if let Some(mut writer) = writer {
                writer.forget_memory();
                writer.detach()?;
            }
        }
        self.acknowledged(medium, self.last() as u64);
        Ok(())
    }
}

fn prefixes(config: SimConfig, program: impl FnOnce(&mut Committing, &SimMedium) -> Result<()>) -> Verdict {
    prefixes_of(Class::Transactional, config, program)
}

pub(super) fn prefixes_of(
    class: Class,
    config: SimConfig,
    program: impl FnOnce(&mut Committing, &SimMedium) -> Result<()>,
) -> Verdict {
    let medium = formatted(2 << 20, config);
    let store = open(&medium, 1);
    NAMES.iter().try_for_each(|name| create_of(class, &store, name)).map_err(text)?;
    drop(store);
    medium.settle();
    let made = RefCell::new((Vec::new(), Vec::new()));
    let record = |medium: &SimMedium| {
        let mut committing = Committing::begin(medium).unwrap();
        program(&mut committing, medium).unwrap();
        made.replace((committing.states, committing.progress));
    };
    let judge = |image: &crate::sim::CrashImage| {
        let (states, progress) = &*made.borrow();
        let done = image.last_mark().unwrap_or(0) as usize;
        let told = progress.get(done + 1).map_or(states.len() - 1, |(_, told)| *told);
        judge_medium(&image.medium(), &states[progress[done].0..=told]).map(drop)
    };
    for_each_crash(&medium, record, judge, &LIMITS).map(drop).map_err(|failure| failure.to_string())
}

pub(super) fn commits_are_a_prefix_after_a_power_cut() -> Verdict {
    prefixes(CONFIG, few)
}

pub(super) fn commits_in_memory_are_a_prefix_after_a_power_cut() -> Verdict {
    prefixes(SimConfig { disk: false, ..CONFIG }, few)
}

pub(super) fn few(run: &mut Committing, medium: &SimMedium) -> Result<()> {
    let first = run.tell(&[(0, 3)], 1)?;
    run.wait(medium, first)?;
    run.tell(&[(0, 3), (1, 70)], 2)?;
    run.tell(&[(1, 70), (1, 71), (0, 9)], 3)?;
    let (fourth, changed) = run.commit(&[(0, 3), (1, 0)], 4);
    let (fifth, then) = run.commit(&[(0, 4)], 5);
    run.commits.tell(fifth, then)?;
    run.commits.tell(fourth, changed)?;
    run.wait(medium, fifth)?;
    let both = run.tell(&[(0, 0), (1, LINES - 1)], 6)?;
    run.wait(medium, both)?;
    run.end(medium)
}

pub(super) fn random_commits_are_a_prefix_after_a_power_cut() -> Verdict {
    let mut rng = Seeded::new(19);
    [false, true].into_iter().try_for_each(|disk| {
        prefixes(SimConfig { disk, ..CONFIG }, |run, medium| {
            for _ in 0..6 {
                let mut waiting = Vec::new();
                for _ in 0..rng.usize(1..5) {
                    let lines: Vec<(usize, u64)> =
                        (0..rng.usize(0..40)).map(|_| (rng.usize(0..2), rng.u64(0..LINES))).collect();
                    waiting.push(run.commit(&lines, rng.u8(1..)));
                }
                rng.shuffle(&mut waiting);
                for (number, lines) in waiting {
                    if lines.is_empty() {
                        run.commits.skip(number)
                    } else {
                        run.commits.tell(number, lines)?
                    }
                }
                let all = run.last() as u64;
                if rng.u8(0..3) > 0 {
                    run.wait(medium, all)?;
                }
            }
            run.end(medium)
        })
    })
}

pub(super) fn large_commits_get_room_first() -> Verdict {
    let medium = formatted(2 << 20, CONFIG);
    let store = open(&medium, 1);
    let class = Class::Transactional;
    let how = CreateOptions { size: 400_000, class, ..CreateOptions::default() };
    store.create("large", &how).map_err(text)?;
    let writer = store.attach_transactional_writer("large", KEY).map_err(text)?;
    let (slot, commits) = (writer.object().offset, Commits::default());
    commits.join(writer).map_err(text)?;
    let lines = |count: u64| (0..count).map(move |line| (slot, line * LINE));
    if commits.shortage(4, || lines(4)) != 0 {
        return Err("no room for four lines".into());
    }
    let needed = commits.shortage(5000, || lines(5000));
    if needed < 5000 * LINE {
        return Err(format!("5000 lines are short of {needed} bytes"));
    }
    commits.make_room(needed).map_err(text)?;
    if commits.shortage(5000, || lines(5000)) != 0 {
        return Err("there is no room after room was made".into());
    }
    let bytes = [7; LINE as usize];
    let changed = lines(5000).map(|(object, offset)| ChangedLine { object, offset, bytes }).collect();
    commits.tell(1, changed).and_then(|()| commits.wait(1)).map_err(text)?;
    match commits.make_room(64 << 20) {
        Err(StoreError::NoRoom { .. }) => {}
        other => return Err(format!("64 MiB of room in a pool of 2 MiB: {other:?}")),
    }
    let changed = vec![ChangedLine { object: slot, offset: 0, bytes: [8; LINE as usize] }];
    commits.tell(2, changed).and_then(|()| commits.wait(2)).map_err(text)?;
    std::mem::forget(commits);
    let image = medium.power_cut(Choice::None).medium();
    let store = open(&image, 3);
    recover_all(&store).map_err(text)?;
    let bytes = snapshot(&store).map_err(text)?.remove("large").ok_or("it is gone")?.2;
    match bytes.iter().enumerate().all(|(at, byte)| *byte == if at < 64 { 8 } else { 7 } || at >= 5000 * 64) {
        true => Ok(()),
        false => Err("acknowledged lines are missing".into()),
    }
}

pub(super) fn nothing_is_acknowledged_after_a_failure() -> Verdict {
    failures(|run, number| {
        if run.commits.wait(number).is_ok() || run.commits.flush().is_ok() {
            return Err("a commit whose durable write failed was acknowledged when asked again".into());
        }
        Ok(())
    })
}

pub(super) fn nothing_is_committed_after_a_failure() -> Verdict {
    failures(|run, _| {
        if run.commits.check().is_ok() {
            return Err("transactions go on after a durable write that failed".into());
        }
        let (number, lines) = run.commit(&[(1, 1)], 9);
        if run.commits.tell(number, lines).is_ok() {
            return Err("a commit was taken after a durable write that failed".into());
        }
        run.commits.skip(number);
        match run.commits.wait(number) {
            Err(StoreError::Poisoned) => Ok(()),
            other => Err(format!("a wait after a failure: {other:?}")),
        }
    })
}

fn failures(then: impl Fn(&mut Committing, u64) -> Verdict) -> Verdict {
    let kinds = [OpKind::WriteDurable, OpKind::Barrier, OpKind::Write];
    for (disk, kind) in [false, true].into_iter().flat_map(|disk| kinds.map(|kind| (disk, kind))) {
        for (nth, fault) in
            (0..6).flat_map(|nth| [(nth, Fault::Io), (nth, Fault::After), (nth, Fault::Short)])
        {
            let medium = formatted(2 << 20, SimConfig { disk, ..CONFIG });
            let store = open(&medium, 1);
            NAMES.iter().try_for_each(|name| transactional(&store, name)).map_err(text)?;
            drop(store);
            medium.settle();
            let mut run = Committing::begin(&medium).map_err(text)?;
            let first = run.tell(&[(0, 3), (1, 3)], 1).map_err(text)?;
            run.wait(&medium, first).map_err(text)?;
            medium.fail_at(kind, nth, fault);
            let second = run.tell(&[(0, 3), (1, 5)], 2).map_err(text)?;
            let acknowledged = run.commits.wait(second);
            medium.clear_faults();
            let at = |why: String| format!("{kind:?} {nth}, {fault:?}, disk {disk}: {why}");
            if acknowledged.is_ok() {
                break;
            }
            then(&mut run, second).map_err(at)?;
            std::mem::forget(run.commits);
            for choice in [Choice::None, Choice::All] {
                let image = medium.power_cut(choice).medium();
                judge_state(&image, &run.states[1..3]).map_err(at)?;
            }
        }
    }
    Ok(())
}

pub(super) fn whoever_commits_may_die() -> Verdict {
    let kinds = [OpKind::WriteDurable, OpKind::Barrier, OpKind::Write];
    for (disk, kind) in [false, true].into_iter().flat_map(|disk| kinds.map(|kind| (disk, kind))) {
        for (nth, fault) in (0..40).flat_map(|nth| [(nth, Fault::Kill), (nth, Fault::KillLate)]) {
            let medium = formatted(2 << 20, SimConfig { disk, ..CONFIG });
            let store = open(&medium, 1);
            NAMES.iter().try_for_each(|name| transactional(&store, name)).map_err(text)?;
            drop(store);
            let mut run = Committing::begin(&medium).map_err(text)?;
            medium.fail_at(kind, nth, fault);
            let died = (0..8_u8).try_for_each(|round| {
                run.tell(&[(0, 3), (1, u64::from(round))], 2 * round + 1)?;
                let last = run.tell(&[(0, u64::from(round)), (1, 9)], 2 * round + 2)?;
                run.wait(&medium, last)
            });
            medium.clear_faults();
            run.medium.kill();
            let done = run.progress.last().map_or(0, |(acknowledged, _)| *acknowledged);
            std::mem::forget((run.commits, run.store));
            let store = open(&medium, 3);
            recover_all(&store).map_err(text)?;
            let found = snapshot(&store).map_err(text)?;
            if !run.states[done..].iter().any(|state| agree(state, &found)) {
                return Err(format!("{kind:?} {nth}, {fault:?}, disk {disk}: no prefix with {done} commits"));
            }
            if died.is_ok() {
                break;
            }
        }
    }
    Ok(())
}

pub(super) fn an_object_is_attached_by_its_class() -> Verdict {
    let medium = formatted(1 << 20, CONFIG);
    let store = open(&medium, 1);
    create(&store, "plain", SIZE);
    transactional(&store, "strict").map_err(text)?;
    let mismatch = |result: Result<_>| matches!(result, Err(StoreError::Class(ClassError::Mismatch { .. })));
    for round in 0..2 {
        let refused = [
            mismatch(store.attach_transactional_writer("plain", KEY).map(drop)),
            mismatch(store.attach_writer("strict", KEY).map(drop)),
        ];
        let taken = [
            store.attach_writer("plain", KEY).is_ok(),
            store.attach_transactional_writer("strict", KEY).is_ok(),
        ];
        if (refused, taken) != ([true; 2], [true; 2]) {
            return Err(format!("round {round}: refused {refused:?}, taken {taken:?}"));
        }
        let (plain, strict) = (Class::Transactional, Class::Psync);
        store
            .set_class("plain", KEY, plain)
            .and_then(|()| store.set_class("strict", KEY, strict))
            .map_err(text)?;
        let others = open(&medium, 2);
        others.rename("plain", "was plain", KEY).map_err(text)?;
        others
            .rename("strict", "plain", KEY)
            .and_then(|()| others.rename("was plain", "strict", KEY))
            .map_err(text)?;
    }
    Ok(())
}

pub(super) fn a_class_is_given_to_detached_objects_alone() -> Verdict {
    let medium = formatted(1 << 20, CONFIG);
    let store = open(&medium, 1);
    transactional(&store, "a").map_err(text)?;
    let writer = store.attach_transactional_writer("a", KEY).map_err(text)?;
    let other = open(&medium, 2);
    match other.set_class("a", KEY, Class::Psync) {
        Err(StoreError::Held { .. }) => {}
        done => return Err(format!("while it is attached: {done:?}")),
    }
    writer.detach().map_err(text)?;
    if store.attach_writer("a", KEY).is_ok() {
        return Err("it is attached as if it were of the other class".into());
    }
    crate::sealed::create(&store, "sealed", SIZE).map_err(text)?;
    let sparse = CreateOptions { size: SIZE, sparse: true, ..CreateOptions::default() };
    store.create("sparse", &sparse).map_err(text)?;
    for name in ["sealed", "sparse"] {
        match store.set_class(name, KEY, Class::Transactional) {
            Err(StoreError::Class(ClassError::Refused { .. })) => {}
            done => return Err(format!("{name}: {done:?}")),
        }
    }
    Ok(())
}
