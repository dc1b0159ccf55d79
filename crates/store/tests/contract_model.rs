//! Random programs agree with a map of byte vectors, in one process or two, through reopenings and
//! power cuts (S0.8–S0.10, S0.18, S0.20).

use indelible_store::error::StoreError;
use indelible_store::store::{Store, Writer};
use indelible_store::table::{CreateOptions, Key};
use indelible_testing::pool::{Edits, check_tiling, process, psync, psync_many, snapshot};
use indelible_testing::scenario::{formatted, media};
use indelible_testing::{Choice, Seeded, SimConfig, SimMedium};
use std::collections::BTreeMap;
use std::sync::Arc;

const KEY: Key<'static> = Key(&[]);

struct Machine {
    medium: SimMedium,
    stores: Vec<Arc<Store>>,
    writers: BTreeMap<String, (usize, Writer)>,
    model: BTreeMap<String, Vec<u8>>,
}

fn boot(medium: SimMedium) -> (SimMedium, Vec<Arc<Store>>) {
    let stores = (1..3).map(|pid| Store::open(Arc::new(medium.handle()), process(pid)).unwrap()).collect();
    (medium, stores)
}

impl Machine {
    fn new(config: SimConfig) -> Self {
        let (medium, stores) = boot(formatted(4 << 20, config));
        Machine { medium, stores, writers: BTreeMap::new(), model: BTreeMap::new() }
    }

    fn step(&mut self, rng: &mut Seeded) {
        let name = format!("object {}", rng.u8(..12));
        let size = rng.u64(1..40_000);
        let who = rng.usize(..self.stores.len());
        let store = self.stores[who].clone();
        let exists = self.model.contains_key(&name);
        let held = self.writers.contains_key(&name);
        match rng.u8(..20) {
            0..4 => match store
                .create(&name, &CreateOptions { size, sparse: rng.bool(), ..CreateOptions::default() })
            {
                Ok(_) => {
                    assert!(!exists);
                    self.model.insert(name, vec![0; size as usize]);
                }
                Err(StoreError::Exists) => assert!(exists),
                Err(error) => assert!(matches!(error, StoreError::NoRoom { .. }), "{error}"),
            },
            4 => match store.destroy(&name, KEY) {
                Ok(()) => assert!(self.model.remove(&name).is_some() && !held),
                Err(StoreError::NotFound) => assert!(!exists),
                Err(error) => assert!(held, "{error}"),
            },
            5 => {
                let new = format!("object {}", rng.u8(..12));
                match store.rename(&name, &new, KEY) {
                    Ok(()) => {
                        assert!(!held);
                        let bytes = self.model.remove(&name).unwrap();
                        assert!(self.model.insert(new, bytes).is_none());
                    }
                    Err(StoreError::NotFound) => assert!(!exists),
                    Err(StoreError::Exists) => assert!(self.model.contains_key(&new)),
                    Err(error) => assert!(held, "{error}"),
                }
            }
            6 => match store.resize(&name, KEY, size) {
                Ok(_) => {
                    assert!(!held);
                    self.model.get_mut(&name).unwrap().resize(size as usize, 0);
                }
                Err(StoreError::NotFound) => assert!(!exists),
                Err(error) => assert!(held || matches!(error, StoreError::NoRoom { .. }), "{error}"),
            },
            7..10 => match store.attach_writer(&name, KEY) {
                Ok(writer) => {
                    assert!(!held);
                    self.writers.insert(name, (who, writer));
                }
                Err(StoreError::NotFound) => assert!(!exists),
                Err(error) => assert!(held, "{error}"),
            },
            10 => {
                if let Some((_, writer)) = self.writers.remove(&name) {
                    if rng.bool() { writer.detach().unwrap() } else { drop(writer) }
                }
            }
            11 => {
                if let Some((_, writer)) = self.writers.get_mut(&name) {
                    let grown = self.model[&name].len() as u64 + size;
                    match writer.grow(grown) {
                        Ok(_) => self.model.get_mut(&name).unwrap().resize(grown as usize, 0),
                        Err(error) => assert!(matches!(error, StoreError::NoRoom { .. }), "{error}"),
                    }
                }
            }
            12 => {
                let mut parts: Vec<(&String, &mut Writer)> = self
                    .writers
                    .iter_mut()
                    .filter(|(_, (of, _))| *of == who)
                    .map(|(name, (_, w))| (name, w))
                    .take(3)
                    .collect();
                let byte = [rng.u8(..); 100];
                let short: Vec<usize> =
                    parts.iter().map(|(name, _)| self.model[*name].len().min(100)).collect();
                let cut: Vec<[(u64, &[u8]); 1]> = short.iter().map(|len| [(0, &byte[..*len])]).collect();
                let mut joined: Vec<(&mut Writer, Edits<'_>)> = parts
                    .iter_mut()
                    .zip(&cut)
                    .map(|((_, writer), edits)| (&mut **writer, &edits[..]))
                    .collect();
                psync_many(&mut joined).unwrap();
                for ((name, _), len) in parts.iter().zip(short) {
                    self.model.get_mut(*name).unwrap()[..len].fill(byte[0]);
                }
            }
            _ => {
                if let Some((_, writer)) = self.writers.get_mut(&name) {
                    let bytes = self.model.get_mut(&name).unwrap();
                    let at = rng.usize(..bytes.len());
                    let len = rng.usize(1..=bytes.len() - at);
                    bytes[at..at + len].fill_with(|| rng.u8(..));
                    psync(writer, &[(at as u64, &bytes[at..at + len])]).unwrap();
                }
            }
        }
    }

    fn end_of_life(&mut self, rng: &mut Seeded) {
        self.compare();
        let choice = match rng.u8(..3) {
            0 => None,
            1 => Some(Choice::None),
            _ => Some(Choice::Random(rng.u64(..))),
        };
        let writers = std::mem::take(&mut self.writers);
        let medium = match choice {
            Some(choice) => {
                writers.into_values().for_each(std::mem::forget);
                self.medium.power_cut(choice).medium()
            }
            None => {
                writers.into_values().for_each(|(_, writer)| writer.detach().unwrap());
                self.stores.clear();
                self.medium.settle();
                self.medium.handle()
            }
        };
        (self.medium, self.stores) = boot(medium);
        indelible_testing::pool::recover_all(&self.stores[0]).unwrap();
        self.compare();
    }

    fn compare(&self) {
        for (who, store) in self.stores.iter().enumerate() {
            let found: BTreeMap<_, _> =
                snapshot(store).unwrap().into_iter().map(|(n, (_, _, bytes))| (n, bytes)).collect();
            assert!(found.keys().eq(self.model.keys()));
            for (name, bytes) in &found {
                if self.writers.get(name).is_some_and(|(holder, _)| *holder != who) {
                    continue; // The holder alone knows what waits to be applied.
                }
                assert!(*bytes == self.model[name], "{name}");
            }
            check_tiling(store).unwrap();
        }
    }
}

#[test]
fn programs_agree_with_a_map() {
    for (nth, config) in media().into_iter().enumerate() {
        let mut rng = Seeded::new(100 + nth as u64);
        println!("{config:?}: seed {}", rng.seed());
        let mut machine = Machine::new(config);
        for _life in 0..60 {
            for _ in 0..60 {
                machine.step(&mut rng);
            }
            machine.end_of_life(&mut rng);
        }
    }
}
