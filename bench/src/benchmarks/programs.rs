//! Programs on far pointers, beside the same on mapped files with hand-made offsets (S2.24, S2.25,
//! S2.30).

use crate::Result;
use crate::environment::{Environment, Medium, discard, progress};
use crate::model::{Cell, Goal, Section, Table, Unit};
use crate::stats::{Samples, Spread};
use indelible::{CreateOptions, Space, Tracking};
use indelible_examples::kv::{FarStore, FileStore};
use indelible_examples::tree::{Descent, FarTree, FileNodes, Nodes, VolatileNodes, Walk, insert, remove};
use std::hint::black_box;
use std::time::Instant;

const VALUE: usize = 100;

#[derive(Default)]
struct Times([Samples; 4]);

impl Times {
    fn push(&mut self, took: [Option<f64>; 4]) {
        for (samples, took) in self.0.iter_mut().zip(took) {
            took.into_iter().for_each(|took| samples.push(took));
        }
    }
}

const COLUMNS: [(&str, Unit); 7] = [
    ("", Unit::Text),
    ("insert", Unit::Nanoseconds),
    ("to a mapped file", Unit::Ratio),
    ("look up", Unit::Nanoseconds),
    ("to a mapped file", Unit::Ratio),
    ("remove", Unit::Nanoseconds),
    ("to make all durable", Unit::Nanoseconds),
];

pub fn run(environment: &Environment, section: &mut Section) -> Result<()> {
    let (nodes, keys, rounds) = match (environment.smoke, environment.quick) {
        (true, _) => (2_000, 1_000, 1),
        (_, true) => (100_000, 50_000, 3),
        _ => (1_000_000, 500_000, 5),
    };
    trees(environment, nodes, rounds, section)?;
    stores(environment, keys, rounds, section)?;
    section.notes.push(
        "Everything lies in memory that is treated as persistent, or in a file there. Changes are found by explicit tracking; nothing is made durable until all is inserted: \
         by a psync of all objects as one step, or by msync, which leaves anything after a crash."
            .into(),
    );
    Ok(())
}

fn shuffled(count: u64) -> Vec<u64> {
    let (mut all, mut state): (Vec<u64>, u64) = ((0..count).collect(), 1);
    for left in (1..all.len()).rev() {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        all.swap(left, (state >> 33) as usize % (left + 1));
    }
    all
}

fn each(count: usize, work: impl FnOnce() -> Result<()>) -> Result<Option<f64>> {
    let start = Instant::now();
    work()?;
    Ok(Some(start.elapsed().as_nanos() as f64 / count as f64))
}

trait Program {
    fn insert(&mut self, keys: &[u64]) -> Result<()>;
    fn make_durable(&mut self) -> Result<bool>;
    fn look_up(&self, keys: &[u64]) -> Result<()>;
    fn remove(&mut self, keys: &[u64]) -> Result<()>;
}

fn measure(program: &mut dyn Program, keys: &[u64]) -> Result<[Option<f64>; 4]> {
    let backwards: Vec<u64> = keys.iter().rev().copied().collect();
    let inserted = each(keys.len(), || program.insert(keys))?;
    let (start, durable) = (Instant::now(), program.make_durable()?);
    let took = durable.then(|| start.elapsed().as_nanos() as f64);
    let found = each(keys.len(), || program.look_up(&backwards))?;
    let removed = each(keys.len(), || program.remove(keys))?;
    Ok([inserted, found, removed, took])
}

fn insert_all<N: Nodes<Key = u64, Sought = u64, Value = u64>>(nodes: &mut N, keys: &[u64]) -> Result<()> {
    keys.iter().try_for_each(|key| Ok(insert(nodes, key, *key, *key).map(drop)?))
}

fn look_up_all<W: Walk<Sought = u64>>(nodes: &W, keys: &[u64]) -> Result<()> {
    for key in keys {
        match black_box(nodes.descend(key)?) {
            Descent::Found(_) => {}
            Descent::Vacant(_) => return Err("a key is gone".into()),
        }
    }
    Ok(())
}

fn remove_all<N: Nodes<Sought = u64>>(nodes: &mut N, keys: &[u64]) -> Result<()> {
    keys.iter().try_for_each(|key| Ok(remove(nodes, key).map(drop)?))
}

impl Program for VolatileNodes {
    fn insert(&mut self, keys: &[u64]) -> Result<()> {
        insert_all(self, keys)
    }

    fn make_durable(&mut self) -> Result<bool> {
        Ok(false)
    }

    fn look_up(&self, keys: &[u64]) -> Result<()> {
        look_up_all(self, keys)
    }

    fn remove(&mut self, keys: &[u64]) -> Result<()> {
        remove_all(self, keys)
    }
}

impl Program for FileNodes {
    fn insert(&mut self, keys: &[u64]) -> Result<()> {
        insert_all(self, keys)
    }

    fn make_durable(&mut self) -> Result<bool> {
        self.sync()?;
        Ok(true)
    }

    fn look_up(&self, keys: &[u64]) -> Result<()> {
        look_up_all(self, keys)
    }

    fn remove(&mut self, keys: &[u64]) -> Result<()> {
        remove_all(self, keys)
    }
}

struct TreeInObjects {
    space: Space,
    tree: FarTree<u64, u64>,
}

impl Program for TreeInObjects {
    fn insert(&mut self, keys: &[u64]) -> Result<()> {
        insert_all(&mut self.tree.on(&mut self.space), keys)
    }

    fn make_durable(&mut self) -> Result<bool> {
        self.space.psync_all()?;
        Ok(true)
    }

    fn look_up(&self, keys: &[u64]) -> Result<()> {
        look_up_all(&self.tree.on(&self.space), keys)
    }

    fn remove(&mut self, keys: &[u64]) -> Result<()> {
        remove_all(&mut self.tree.on(&mut self.space), keys)
    }
}

fn entry(key: u64) -> ([u8; 16], [u8; VALUE]) {
    let mut bytes = *b"user............";
    bytes[8..].copy_from_slice(&key.to_be_bytes());
    (bytes, [key as u8; VALUE])
}

struct StoreInObjects {
    store: FarStore,
    data: Vec<[u8; 16]>,
}

impl Program for StoreInObjects {
    fn insert(&mut self, keys: &[u64]) -> Result<()> {
        for number in keys {
            let (key, value) = entry(*number);
            self.store.insert(&self.data[*number as usize % self.data.len()], &key, &value)?;
        }
        Ok(())
    }

    fn make_durable(&mut self) -> Result<bool> {
        self.store.psync()?;
        Ok(true)
    }

    fn look_up(&self, keys: &[u64]) -> Result<()> {
        for number in keys {
            black_box(self.store.get(&entry(*number).0)?.ok_or("a key is gone")?);
        }
        Ok(())
    }

    fn remove(&mut self, keys: &[u64]) -> Result<()> {
        keys.iter().try_for_each(|number| Ok(self.store.remove(&entry(*number).0).map(drop)?))
    }
}

struct StoreInFiles {
    store: FileStore,
    data: Vec<usize>,
}

impl Program for StoreInFiles {
    fn insert(&mut self, keys: &[u64]) -> Result<()> {
        for number in keys {
            let (key, value) = entry(*number);
            self.store.insert(self.data[*number as usize % self.data.len()], &key, &value)?;
        }
        Ok(())
    }

    fn make_durable(&mut self) -> Result<bool> {
        self.store.sync()?;
        Ok(true)
    }

    fn look_up(&self, keys: &[u64]) -> Result<()> {
        for number in keys {
            black_box(self.store.get(&entry(*number).0)?.ok_or("a key is gone")?);
        }
        Ok(())
    }

    fn remove(&mut self, keys: &[u64]) -> Result<()> {
        keys.iter().try_for_each(|number| Ok(self.store.remove(&entry(*number).0).map(drop)?))
    }
}

fn trees(environment: &Environment, count: usize, rounds: usize, section: &mut Section) -> Result<()> {
    let (keys, title) = (shuffled(count as u64), format!("A red-black tree of {count} numbers"));
    let bar = progress(rounds * 4, &title);
    let mut times: [Times; 4] = Default::default();
    for _ in 0..rounds {
        times[0].push(measure(&mut VolatileNodes::default(), &keys)?);
        bar.inc(1);
        let path = environment.path(Medium::Memory, "tree");
        times[1].push(measure(&mut FileNodes::open(&path)?, &keys)?);
        std::fs::remove_file(path)?;
        bar.inc(1);
        for (row, objects) in [(2, 1), (3, 3)] {
            let pool = pool(environment, count as u64 * 256)?;
            let mut space = Space::new();
            space.add(&pool);
            let mut ids = Vec::new();
            for object in 0..objects {
                let name = object.to_string();
                pool.create_with(&name, &CreateOptions::new(1 << 20).position_independent(true))?;
                ids.push(space.attach(&pool, &name)?);
            }
            let tree = FarTree::open(&mut space, &ids)?;
            let mut program = TreeInObjects { space, tree };
            times[row].push(measure(&mut program, &keys)?);
            drop(program);
            discard(pool);
            bar.inc(1);
        }
    }
    bar.finish_and_clear();
    let names = ["volatile memory", "mapped file", "one object", "three objects"];
    let goals = [(1.03, "insert"), (1.18, "look up")];
    report(section, &title, &names, &times, ("a red-black tree", goals));
    Ok(())
}

fn stores(environment: &Environment, count: usize, rounds: usize, section: &mut Section) -> Result<()> {
    let keys = shuffled(count as u64);
    let title = format!("A store of {count} keys of 16 bytes with values of {VALUE}, in two places for data");
    let bar = progress(rounds * 2, "a store of keys and values");
    let mut times: [Times; 2] = Default::default();
    for _ in 0..rounds {
        let paths = ["index", "data-0", "data-1"].map(|name| environment.path(Medium::Memory, name));
        let mut store = FileStore::open(&paths[0])?;
        let data = paths[1..].iter().map(|path| store.data(path)).collect::<std::result::Result<_, _>>()?;
        times[0].push(measure(&mut StoreInFiles { store, data }, &keys)?);
        paths.into_iter().try_for_each(std::fs::remove_file)?;
        bar.inc(1);
        let pool = pool(environment, count as u64 * 512)?;
        let mut store = FarStore::open(&pool, "kv", &[])?;
        let data = ["data-0", "data-1"].map(|name| store.data(&pool, name));
        let data = data.into_iter().collect::<std::result::Result<_, _>>()?;
        let mut program = StoreInObjects { store, data };
        times[1].push(measure(&mut program, &keys)?);
        drop(program);
        discard(pool);
        bar.inc(1);
    }
    bar.finish_and_clear();
    let goals = [(1.0, "insert"), (1.0, "look up")];
    report(section, &title, &["mapped files", "objects"], &times, ("a store of keys and values", goals));
    Ok(())
}

fn pool(environment: &Environment, len: u64) -> Result<indelible::Pool> {
    environment.pool_tracking(Medium::Memory, Tracking::Explicit, "programs", len + (64 << 20))
}

fn report(
    section: &mut Section,
    title: &str,
    names: &[&str],
    times: &[Times],
    (what, goals): (&str, [(f64, &str); 2]),
) {
    let is_file = |name: &&str| name.starts_with("mapped");
    let file = &times[names.iter().position(is_file).unwrap_or(0)];
    let mut table = Table::new(title, &COLUMNS);
    for (name, Times(of)) in names.iter().zip(times) {
        let cell = |samples: &Samples| samples.spread().map_or(Cell::Empty, Spread::into);
        let ratio = |at: usize| of[at].median() / file.0[at].median();
        table.row(vec![
            (*name).into(),
            cell(&of[0]),
            ratio(0).into(),
            cell(&of[1]),
            ratio(1).into(),
            cell(&of[2]),
            cell(&of[3]),
        ]);
        if !name.contains("object") {
            continue;
        }
        for (at, (goal, operation)) in goals.into_iter().enumerate() {
            let goal_name = format!("{what} in {name}, {operation}: to a mapped file");
            section.goals.push(Goal::at_most(goal_name, Unit::Ratio, goal, ratio(at)));
        }
    }
    section.tables.push(table);
}
