//! A lane's generation when header copies are damaged at rest, by a power cut in a checkpoint, or
//! both.

use super::sample::{check, create, format, open, try_repair};
use indelible_store::error::StoreError;
use indelible_store::format::LINE;
use indelible_store::format::lane::HEADERS;
use indelible_store::store::Store;
use indelible_store::table::Key;
use indelible_testing::pool::{Snapshot, objects, process, psync_copied, recover_all, snapshot};
use indelible_testing::{CrashImage, Limits, SimMedium, for_each_crash};
use std::cell::RefCell;
use std::sync::Arc;

const KEY: Key<'static> = Key(&[]);

type Damage = (&'static str, fn(&SimMedium, u64));

const DAMAGES: [Damage; 7] = [
    ("nothing", |_, _| {}),
    ("first copy", |m, lane| m.flip(lane + HEADERS[0] + 24, 0)),
    ("second copy", |m, lane| m.flip(lane + HEADERS[1] + 24, 0)),
    ("first copy erased", |m, lane| erase(m, lane + HEADERS[0])),
    ("second copy erased", |m, lane| erase(m, lane + HEADERS[1])),
    ("both copies", |m, lane| HEADERS.iter().for_each(|copy| m.scribble(lane + copy..lane + copy + LINE, 3))),
    ("both copies erased", |m, lane| HEADERS.iter().for_each(|copy| erase(m, lane + copy))),
];

fn erase(medium: &SimMedium, at: u64) {
    use indelible_store::medium::Medium;
    medium.write(at, &[0; LINE as usize]).unwrap();
    medium.barrier().unwrap();
}

const LIMITS: Limits = Limits { exhaustive: 16, singles: 4, random: 3, points: 60, seed: 7 };

fn allowed<'s>(image: &CrashImage, states: &'s [Snapshot]) -> &'s [Snapshot] {
    let done = image.last_mark().unwrap_or(0) as usize;
    &states[done..(done + 2).min(states.len())]
}

fn recovered(medium: &SimMedium) -> Result<Snapshot, StoreError> {
    let store = open(medium, 5)?;
    recover_all(&store)?;
    snapshot(&store)
}

#[test]
fn no_generation_is_lost_with_a_header_of_a_writers_lane() {
    let (medium, store) = format(2 << 20);
    create(&store, "a", 9000);
    drop(store);
    medium.settle();
    let states = RefCell::new(Vec::new());
    let lane = RefCell::new(0);
    let record = |medium: &SimMedium| {
        let store = Store::open(Arc::new(medium.handle()), process(2)).unwrap();
        let mut all = vec![snapshot(&store).unwrap()];
        let mut a = store.attach_writer("a", KEY).unwrap();
        let index = a.object().entry.lane.get();
        *lane.borrow_mut() =
            store.lanes().unwrap().into_iter().find(|lane| lane.index == Some(index)).unwrap().offset;
        for round in 1..6_u8 {
            psync_copied(&mut [(&mut a, &[(u64::from(round) * 320, &[round; 300])])]).unwrap();
            all.push(snapshot(&store).unwrap());
            medium.mark(all.len() as u64 - 1);
            if round % 2 == 0 {
                a.checkpoint().unwrap();
            }
        }
        std::mem::forget(a);
        states.replace(all);
    };
    let (mut found, mut refused) = (0, 0);
    let judge = |image: &CrashImage| {
        let states = states.borrow();
        for (name, damage) in DAMAGES {
            let medium = image.medium();
            damage(&medium, *lane.borrow());
            let text = |error: StoreError| format!("{name}: {error}");
            match recovered(&medium) {
                Ok(state) if allowed(image, &states).contains(&state) => found += 1,
                Ok(_) => return Err(format!("{name}: an acknowledged psync is gone")),
                Err(_) => {
                    refused += 1;
                    if !name.contains("both") && !name.contains("first") {
                        return Err(format!("{name}: refused, with a copy that serves"));
                    }
                    let actions = try_repair(&medium, false).map_err(text)?;
                    let kept = actions.iter().all(|action| action.done && action.lost.is_none());
                    match recovered(&medium) {
                        Ok(state) if allowed(image, &states).contains(&state) => {}
                        Ok(_) if !kept => {}
                        Ok(_) => return Err(format!("{name}: repair lost a psync: {actions:?}")),
                        Err(_) => {}
                    }
                }
            }
        }
        Ok(())
    };
    for_each_crash(&medium, record, judge, &LIMITS).unwrap();
    println!("{found} images recovered, {refused} refused");
    assert!(found > 10 * refused, "{found} recovered, {refused} refused");
}

#[test]
fn no_generation_is_lost_with_a_header_of_the_table_lane() {
    use indelible_store::format::TABLE_LANE;
    let (medium, store) = format(2 << 20);
    create(&store, "a", 100);
    drop(store);
    medium.settle();
    let (mut found, mut refused) = (0, 0);
    let states = RefCell::new(Vec::new());
    let record = |medium: &SimMedium| {
        let store = Store::open(Arc::new(medium.handle()), process(2)).unwrap();
        let names = |store: &Store| -> Vec<String> {
            objects(store).unwrap().iter().map(|object| object.entry.name()).collect()
        };
        let generation = |store: &Store| store.lanes().unwrap()[0].generation;
        let first = generation(&store);
        let mut count = 0;
        loop {
            count += 1;
            let (from, to) = if count % 2 == 1 { ("a", "b") } else { ("b", "a") };
            let fill = 256 * 1024
                - store.lanes().unwrap()[0].batches.iter().map(|b| b.lines * 64 + 256).sum::<u64>();
            if fill < 3000 {
                break;
            }
            store.rename(from, to, KEY).unwrap();
        }
        medium.settle();
        let mut all = vec![names(&store)];
        while generation(&store) < first + 2 {
            count += 1;
            let now = names(&store)[0].clone();
            store.rename(&now, &format!("{count}"), KEY).unwrap();
            all.push(names(&store));
            medium.mark(all.len() as u64 - 1);
            if all.len() > 12 {
                break;
            }
        }
        states.replace(all);
    };
    let judge = |image: &CrashImage| {
        let states = states.borrow();
        let done = image.last_mark().unwrap_or(0) as usize;
        let allowed = &states[done..(done + 2).min(states.len())];
        let listed = |medium: &SimMedium| -> Result<Vec<String>, StoreError> {
            let store = open(medium, 5)?;
            Ok(objects(&store)?.iter().map(|object| object.entry.name()).collect())
        };
        for (name, damage) in DAMAGES {
            let medium = image.medium();
            damage(&medium, TABLE_LANE);
            match listed(&medium) {
                Ok(state) if allowed.contains(&state) => found += 1,
                Ok(state) => return Err(format!("{name}: {state:?} instead of {allowed:?}")),
                Err(_) => {
                    refused += 1;
                    if name.contains("second") || *name == *"nothing" {
                        return Err(format!("{name}: refused, with a copy that serves"));
                    }
                    let actions = try_repair(&medium, false).map_err(|error| error.to_string())?;
                    let kept = actions.iter().all(|action| action.done && action.lost.is_none());
                    let state = listed(&medium).map_err(|error| error.to_string())?;
                    if kept && !allowed.contains(&state) {
                        return Err(format!(
                            "{name}: repair lost a change: {state:?}, {allowed:?} {actions:?}"
                        ));
                    }
                    let report = check(&medium);
                    if !report.is_clean() {
                        return Err(format!("{name}: {report:#?}"));
                    }
                }
            }
        }
        Ok(())
    };
    for_each_crash(&medium, record, judge, &Limits { points: 40, ..LIMITS }).unwrap();
    println!("{found} images read, {refused} refused");
    assert!(found > 5 * refused, "{found} read, {refused} refused");
}
