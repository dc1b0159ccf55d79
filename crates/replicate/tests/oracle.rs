//! Random programs with a replica: each restored moment equals the shipped state.

use crate::support::LEASE;
use crate::support::{Memory, PAGE, Place, Random, Ticks, claim, restore_to};
use indelible::{CreateOptions, ErrorKind, Object, Pool, psync_all};
use indelible_replicate::{Position, Shipper, StoreAuthority};
use indelible_store::table::Key;
use std::collections::BTreeMap;

/// Psynced bytes by name.
type Model = BTreeMap<String, Vec<u8>>;

struct Program<'p> {
    pool: &'p Pool,
    random: Random,
    model: Model,
    open: BTreeMap<String, Object>,
    snapshots: Vec<(String, String)>,
    named: u64,
}

impl Program<'_> {
    fn chosen(&mut self, open: bool) -> Option<String> {
        let names: Vec<String> = match open {
            true => self.open.keys().cloned().collect(),
            false => {
                let closed = |name: &&String| !self.open.contains_key(*name);
                let snapshots: Vec<&String> = self.snapshots.iter().map(|(name, _)| name).collect();
                self.model.keys().filter(closed).filter(|name| !snapshots.contains(name)).cloned().collect()
            }
        };
        (!names.is_empty()).then(|| names[self.random.below(names.len() as u64) as usize].clone())
    }

    fn name(&mut self) -> String {
        self.named += 1;
        format!("object {}", self.named)
    }

    fn store(&mut self, name: &str) {
        let Some(object) = self.open.get_mut(name) else { return };
        for _ in 0..=self.random.below(4) {
            let len = object.len() as u64;
            let at = self.random.below(len);
            let run = 1 + self.random.below(300).min(len - at - 1);
            // Often zeros, and often what was there before.
            let byte = self.random.below(3) as u8;
            object.range_mut(at as usize..(at + run) as usize).fill(byte);
        }
    }

    fn psynced(&mut self, name: &str) {
        self.model.insert(name.into(), self.open[name].as_slice().to_vec());
    }

    fn step(&mut self) {
        match self.random.below(16) {
            0 if self.model.len() < 8 => {
                let (name, size) = (self.name(), 1 + self.random.below(5 * PAGE as u64));
                self.pool.create(&name, size).unwrap();
                self.model.insert(name, vec![0; size as usize]);
            }
            1 => {
                let Some(name) = self.chosen(false) else { return };
                if self.random.below(3) == 0 && !self.snapshots.iter().any(|(_, of)| *of == name) {
                    self.pool.destroy(&name).unwrap();
                    self.model.remove(&name);
                }
            }
            2..=4 => {
                let Some(name) = self.chosen(false) else { return };
                match self.pool.attach(&name) {
                    Ok(object) => drop(self.open.insert(name, object)),
                    // A copy of it is attached.
                    Err(error) => assert_eq!(error.kind(), ErrorKind::AddressTaken, "{error}"),
                }
            }
            5 => {
                let Some(name) = self.chosen(true) else { return };
                self.open.remove(&name).unwrap().detach().unwrap();
            }
            6 => {
                let Some(name) = self.chosen(true) else { return };
                let mut object = self.open.remove(&name).unwrap();
                object.grow(object.len() as u64 + self.random.below(2 * PAGE as u64)).unwrap();
                object.psync().unwrap();
                self.open.insert(name.clone(), object);
                self.psynced(&name);
            }
            7 => {
                let Some(name) = self.chosen(false) else { return };
                let size = 1 + self.random.below(6 * PAGE as u64);
                self.pool.store().resize(&name, Key(b""), size).unwrap();
                self.model.get_mut(&name).unwrap().resize(size as usize, 0);
            }
            8 => {
                let Some(name) = self.chosen(false) else { return };
                if self.snapshots.iter().any(|(_, of)| *of == name) {
                    return;
                }
                let new = self.name();
                self.pool.rename(&name, &new, b"").unwrap();
                let bytes = self.model.remove(&name).unwrap();
                self.model.insert(new, bytes);
            }
            9 if self.snapshots.len() < 3 => {
                let Some(name) = self.chosen(false) else { return };
                let snapshot = self.name();
                self.pool.snapshot(&name, &snapshot, b"").unwrap();
                let bytes = self.model[&name].clone();
                self.model.insert(snapshot.clone(), bytes);
                self.snapshots.push((snapshot, name));
            }
            10 if !self.snapshots.is_empty() && self.model.len() < 8 => {
                let (snapshot, name) = (self.snapshots[0].0.clone(), self.name());
                self.pool.create_from(&snapshot, &name, b"", &CreateOptions::new(0)).unwrap();
                let bytes = self.model[&snapshot].clone();
                self.model.insert(name, bytes);
            }
            11 if !self.snapshots.is_empty() => {
                let (snapshot, name) = self.snapshots.remove(0);
                if !self.open.contains_key(&name) && self.random.below(2) == 0 {
                    self.pool.rollback(&name, &snapshot, b"").unwrap();
                    self.model.insert(name, self.model[&snapshot].clone());
                }
                self.pool.destroy(&snapshot).unwrap();
                self.model.remove(&snapshot);
            }
            12 if self.open.len() > 1 => {
                let (one, two) = (self.chosen(true).unwrap(), self.chosen(true).unwrap());
                if one == two {
                    return;
                }
                self.store(&one);
                self.store(&two);
                let (mut a, mut b) = (self.open.remove(&one).unwrap(), self.open.remove(&two).unwrap());
                psync_all(&mut [&mut a, &mut b]).unwrap();
                self.open.insert(one.clone(), a);
                self.open.insert(two.clone(), b);
                self.psynced(&one);
                self.psynced(&two);
            }
            13 => {
                // Stored, and not psynced.
                let Some(name) = self.chosen(true) else { return };
                self.store(&name);
            }
            _ => {
                let Some(name) = self.chosen(true) else { return };
                self.store(&name);
                self.open.get_mut(&name).unwrap().psync().unwrap();
                self.psynced(&name);
            }
        }
    }
}

fn bytes(pool: &Pool) -> Model {
    crate::support::content(pool).into_iter().map(|(name, (_, bytes))| (name, bytes)).collect()
}

fn expect(found: &Model, wanted: &Model, what: &str) {
    let (names, others): (Vec<_>, Vec<_>) = (found.keys().collect(), wanted.keys().collect());
    assert_eq!(names, others, "{what}");
    for (name, bytes) in found {
        let wrong = bytes.iter().zip(&wanted[name]).position(|(a, b)| a != b);
        assert_eq!((wrong, bytes.len()), (None, wanted[name].len()), "{what}: {name}");
    }
}

/// Runs a program with a replica; returns the number of restores that were compared.
fn run(seed: u64, steps: usize) -> usize {
    let place = Place::new();
    let pool = Pool::format(&place.pool, 16 << 20).unwrap();
    let (bucket, clock) = (Memory::default(), Ticks::default());
    let mut program = Program {
        pool: &pool,
        random: Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1),
        model: Model::new(),
        open: BTreeMap::new(),
        snapshots: Vec::new(),
        named: 0,
    };
    let mut moments: Vec<(Position, Model)> = Vec::new();
    for life in 0..3 {
        let mut authority = StoreAuthority::new(&bucket, &clock, LEASE);
        let mut shipper = Shipper::begin(&pool, b"", &mut authority, &claim(&pool, "program")).unwrap();
        for step in 0..steps / 3 {
            if step > 0 {
                program.step();
            }
            if program.random.below(3) > 0 {
                continue;
            }
            if let Some(shipped) = shipper.tick().unwrap() {
                moments.push((shipped.position, program.model.clone()));
            }
            // Only changes are shipped, but an object that was rolled back is shipped once more.
            if program.random.below(4) == 0 {
                let again = shipper.tick().unwrap();
                moments.extend(again.map(|shipped| (shipped.position, program.model.clone())));
                assert_eq!(shipper.tick().unwrap(), None, "seed {seed}, life {life}, step {step}");
            }
            if let Some((_, last)) = moments.last() {
                expect(last, &program.model, &format!("seed {seed}, step {step}: unshipped changes"));
            }
        }
        // Half of the runs go on from the snapshots of the one before.
        match program.random.below(2) {
            0 => shipper.end(),
            _ => shipper.pause(),
        }
        if life < 2 {
            (0..program.random.below(5)).for_each(|_| program.step());
        }
    }
    program.open.clear();
    expect(&bytes(&pool), &program.model, &format!("seed {seed}: the model"));
    let target = place.path("restored.pmo");
    for (position, model) in &moments {
        restore_to(&bucket, &target, Some(*position)).unwrap();
        expect(&bytes(&Pool::open(&target).unwrap()), model, &format!("seed {seed}, moment {position}"));
    }
    restore_to(&bucket, &target, None).unwrap();
    expect(
        &bytes(&Pool::open(&target).unwrap()),
        &moments.last().unwrap().1,
        &format!("seed {seed}, newest"),
    );
    moments.len() + 1
}

#[test]
fn s2_23_a_restore_of_any_moment_is_the_state_that_was_shipped() {
    let seeds = match std::env::var("INDELIBLE_SEED") {
        Ok(seed) => seed.parse().unwrap()..seed.parse::<u64>().unwrap() + 1,
        Err(_) => 1..13,
    };
    let restores: usize = seeds.map(|seed| run(seed, 120)).sum();
    println!("{restores} restores");
}

#[test]
#[ignore = "minutes: by hand, with --ignored"]
fn s2_23_many_programs_with_a_replica() {
    let restores: usize = (1000..1400).map(|seed| run(seed, 120)).sum();
    println!("{restores} restores");
}

#[test]
fn s2_23_psyncs_of_several_objects_are_in_one_moment() {
    let place = Place::new();
    let pool = Pool::format(&place.pool, 16 << 20).unwrap();
    let names = ["a", "b", "c"];
    names.iter().for_each(|name| pool.create(name, 3 * PAGE as u64).unwrap());
    let (bucket, clock) = (Memory::default(), Ticks::default());
    let mut authority = StoreAuthority::new(&bucket, &clock, LEASE);
    let mut shipper = Shipper::begin(&pool, b"", &mut authority, &claim(&pool, "groups")).unwrap();
    let stop = std::sync::atomic::AtomicBool::new(false);
    let mut moments = Vec::new();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut count = 0_u64;
            while !stop.load(std::sync::atomic::Ordering::Acquire) {
                // Writers come and go.
                let mut objects = names.map(|name| pool.attach(name).unwrap());
                for _ in 0..20 {
                    count += 1;
                    for object in &mut objects {
                        let at = (count as usize * 8) % PAGE;
                        object.range_mut(at..at + 8).copy_from_slice(&count.to_le_bytes());
                        object.range_mut(2 * PAGE..2 * PAGE + 8).copy_from_slice(&count.to_le_bytes());
                    }
                    let [a, b, c] = &mut objects;
                    psync_all(&mut [a, b, c]).unwrap();
                }
            }
        });
        while moments.len() < 10 {
            match shipper.tick() {
                Ok(shipped) => moments.extend(shipped.map(|shipped| shipped.position)),
                // A writer came in the middle of each look.
                Err(error) => println!("{error}"),
            }
        }
        stop.store(true, std::sync::atomic::Ordering::Release);
    });
    let (target, mut last) = (place.path("restored.pmo"), 0);
    for position in moments {
        restore_to(&bucket, &target, Some(position)).unwrap();
        let all = bytes(&Pool::open(&target).unwrap());
        assert!(all["a"] == all["b"] && all["b"] == all["c"], "{position} splits a psync of three objects");
        let count = u64::from_le_bytes(all["a"][2 * PAGE..2 * PAGE + 8].try_into().unwrap());
        assert!(count >= last, "{position} goes back");
        last = count;
    }
}
