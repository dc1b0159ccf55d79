//! Histories of threads on objects of both classes: each try's reads and stores must fit a serial
//! order. Tries that did not commit are included as readers (opacity).
//!
//! Each value is stored once, and a transaction reads a cell before it stores to it. So each cell's
//! order of values is known, and the order of transactions must agree with all of them: it has no
//! cycle.

use crate::support::{Ground, World};
use indelible::{Class, CreateOptions, Error, Pool, Tracking, TxCell, TxObject, transaction};
use indelible_testing::Seeded;
use std::collections::HashMap;

const CELLS: usize = 24;
type Cells = [TxCell<u64>; CELLS];

#[derive(Clone, Debug, Default)]
struct Try {
    read: Vec<(usize, u64)>,
    stored: Vec<(usize, u64)>,
}

fn serial(tries: &[Try], last: &[u64]) -> Result<(), String> {
    let (mut by, mut next) = (HashMap::new(), HashMap::new());
    for (number, one) in tries.iter().enumerate() {
        for (cell, value) in &one.stored {
            by.insert((*cell, *value), number);
            let before =
                one.read.iter().find(|(read, _)| read == cell).ok_or("a cell was stored to unread")?;
            if let Some(other) = next.insert(*before, number) {
                return Err(format!("{before:?} was replaced by {other} and by {number}: an update is lost"));
            }
        }
    }
    let mut after = vec![Vec::new(); tries.len()];
    for (number, one) in tries.iter().enumerate() {
        for read in &one.read {
            match by.get(read) {
                Some(by) if *by != number => after[*by].push(number),
                None if read.1 != 0 => {
                    return Err(format!("{number} read {read:?}, which no transaction committed"));
                }
                _ => {}
            }
            if let Some(next) = next.get(read).filter(|next| **next != number) {
                after[number].push(*next);
            }
        }
    }
    let mut waits = vec![0; tries.len()];
    after.iter().flatten().for_each(|number| waits[*number] += 1);
    let mut free: Vec<usize> = (0..tries.len()).filter(|number| waits[*number] == 0).collect();
    let mut placed = 0;
    while let Some(number) = free.pop() {
        placed += 1;
        for other in &after[number] {
            waits[*other] -= 1;
            if waits[*other] == 0 {
                free.push(*other);
            }
        }
    }
    if placed < tries.len() {
        let circle = (0..tries.len()).find(|number| waits[*number] > 0).map(|number| &tries[number]);
        return Err(format!("{} tries have no order, among them {circle:?}", tries.len() - placed));
    }
    for (cell, value) in last.iter().enumerate() {
        if next.contains_key(&(cell, *value)) || *value != 0 && !by.contains_key(&(cell, *value)) {
            return Err(format!("in the end cell {cell} has {value}, which is not the last that was stored"));
        }
    }
    Ok(())
}

fn tries(objects: &[TxObject<Cells>; 2], thread: u64, random: &mut Seeded, count: u64) -> Vec<Try> {
    let cell = |number: usize| &objects[number / CELLS][number % CELLS];
    let mut all = Vec::new();
    for nth in 0..count {
        let steps: Vec<(usize, bool)> =
            (0..random.usize(1..7)).map(|_| (random.usize(0..2 * CELLS), random.u8(0..2) == 0)).collect();
        let cancels = random.u8(0..8) == 0;
        let mut current = Try::default();
        let done = transaction(&[&objects[0], &objects[1]], |tx| {
            let mut before = std::mem::take(&mut current);
            before.stored.clear();
            all.push(before);
            for (step, (number, stores)) in (0..).zip(&steps) {
                if current.stored.iter().any(|(stored, _)| stored == number) {
                    continue;
                }
                let value = tx.read(cell(*number))?;
                current.read.push((*number, value));
                if *stores {
                    let value = 1 + step + 8 * (nth + count * thread);
                    tx.write(cell(*number), value)?;
                    current.stored.push((*number, value));
                }
                std::thread::yield_now();
            }
            if cancels { Err(None) } else { Ok(()) }
        });
        match done {
            Ok(()) => {}
            Err(None) => current.stored.clear(),
            Err::<(), Option<Error>>(Some(error)) => panic!("{error}"),
        }
        all.push(current);
    }
    all
}

fn values(objects: &[TxObject<Cells>; 2]) -> Vec<u64> {
    let [a, b] = objects;
    transaction(&[a, b], |tx| {
        a.iter().chain(b.iter()).map(|cell| tx.read(cell)).collect::<Result<Vec<u64>, Error>>()
    })
    .unwrap()
}

fn attached(pool: &Pool) -> [TxObject<Cells>; 2] {
    ["a", "b"].map(|name| pool.attach_transactional(name).unwrap())
}

#[test]
fn s1_03_histories_of_many_threads_are_serial_and_opaque() {
    let mut seeds = Seeded::new(3);
    for class in [Class::Transactional, Class::OnDemand] {
        for threads in 2..=8 {
            let world = World::new(Ground::Memory, Tracking::Explicit, false);
            let pool = world.format();
            for name in ["a", "b"] {
                pool.create_with(name, &CreateOptions::new(4096).class(class)).unwrap();
            }
            let (objects, seed) = (attached(&pool), seeds.u64(0..1 << 40));
            let all: Vec<Try> = std::thread::scope(|scope| {
                let run = |thread: u64| {
                    let objects = &objects;
                    move || tries(objects, thread, &mut Seeded::new(seed + thread), 100)
                };
                let running: Vec<_> = (0..threads).map(|thread| scope.spawn(run(thread))).collect();
                running.into_iter().flat_map(|thread| thread.join().expect("no panic")).collect()
            });
            let last = values(&objects);
            serial(&all, &last)
                .unwrap_or_else(|wrong| panic!("{class:?}, {threads} threads, seed {seed}: {wrong}"));
            drop((objects, pool));
            let pool = world.open();
            assert_eq!(values(&attached(&pool)), last, "{class:?}, {threads} threads: attached again");
        }
    }
}

#[test]
fn histories_that_are_not_serial_are_found() {
    let one =
        |read: &[(usize, u64)], stored: &[(usize, u64)]| Try { read: read.to_vec(), stored: stored.to_vec() };
    let both = one(&[(0, 0), (1, 0)], &[(0, 1), (1, 1)]);
    let right = [both.clone(), one(&[(0, 1), (1, 1)], &[(0, 2)]), one(&[(0, 0), (1, 0)], &[])];
    assert_eq!(serial(&right, &[2, 1]), Ok(()));
    let wrong: [(&[Try], [u64; 2]); 5] = [
        (&[one(&[(0, 0)], &[(0, 1)]), one(&[(0, 0)], &[(0, 2)])], [2, 0]),
        (&[both.clone(), one(&[(0, 1), (1, 0)], &[])], [1, 1]),
        (&[one(&[(0, 0), (1, 0)], &[(0, 1)]), one(&[(0, 0), (1, 0)], &[(1, 1)])], [1, 1]),
        (&[both.clone(), one(&[(0, 7)], &[])], [1, 1]),
        (&[both], [1, 0]),
    ];
    for (tries, last) in wrong {
        assert!(serial(tries, &last).is_err(), "{tries:?}");
    }
}
