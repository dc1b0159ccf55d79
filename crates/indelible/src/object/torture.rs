//! Random programs on tracked objects against a model, on each rung and medium.

use super::Object;
use crate::dirty::Advice;
use crate::fault;
use crate::pool::{MediumKind, Pool, PoolOptions, Tracking};
use crate::sys::PAGE;

/// More than one page table; the object doubles.
const PAGES: usize = 1_100;
const ROUNDS: u64 = 120;

struct Chance(u64);

impl Chance {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % bound
    }
}

fn primary(object: &mut Object) -> Vec<u8> {
    let core = object.core_mut();
    let writer = core.writer().unwrap();
    writer.apply().unwrap();
    let entry = &writer.object().entry;
    let mut bytes = vec![0; entry.size.get() as usize];
    core.tracked.pool.media.device().read(entry.primary_offset(), &mut bytes).unwrap();
    bytes
}

fn difference(found: &[u8], expected: &[u8]) -> Option<usize> {
    assert_eq!(found.len(), expected.len());
    if found == expected { None } else { (0..found.len()).find(|at| found[*at] != expected[*at]) }
}

fn store(object: &mut Object, model: &mut [u8], chance: &mut Chance, round: u64) {
    let pages = model.len() / PAGE;
    for _ in 0..chance.below(40) {
        let (page, len) = match (round / 6 + u64::from(chance.below(8) == 0)) % 3 {
            0 => (chance.below(8), 1 + chance.below(200)),
            1 => (chance.below(pages), 1 + chance.below(200)),
            _ => (chance.below(pages), PAGE * (1 + chance.below(12))),
        };
        let at = page * PAGE + chance.below(PAGE);
        let range = at..(at + len).min(model.len());
        if chance.below(5) == 0 {
            assert_eq!(object.as_slice()[range.clone()], model[range], "before round {round}");
            continue;
        }
        let byte = 1 + chance.below(255) as u8;
        model[range.clone()].fill(byte);
        object.range_mut(range).fill(byte);
    }
}

fn torture(options: &PoolOptions, folder: &str, seed: u64) {
    let folder = tempfile::TempDir::new_in(folder).unwrap();
    let path = folder.path().join("pool");
    let mut advised = options.clone();
    advised.advice = Advice::Random(seed);
    let pool: Pool = advised.format(&path, 64 << 20).unwrap();
    let mut object = pool.create_attached("object", (PAGES * PAGE) as u64).unwrap();
    let (mut chance, mut model) = (Chance(seed), vec![0; PAGES * PAGE]);
    let mut psynced = model.clone();
    let about = format!("{options:?}, seed {seed}");
    for round in 0..ROUNDS {
        store(&mut object, &mut model, &mut chance, round);
        match chance.below(8) {
            0 => {
                object.core_mut().tracked.shadow_mut().unwrap().collect(&mut Vec::new()).unwrap();
                continue;
            }
            1 => object.psync_cut().unwrap(),
            3 => {
                object.revert().unwrap();
                psynced.resize(model.len(), 0);
                model.clone_from(&psynced);
                let left = difference(object.as_slice(), &model);
                assert_eq!(left, None, "{about}: a store was not undone in round {round}");
                assert!(!object.is_unsynced().unwrap());
                continue;
            }
            2 if model.len() < 2 * PAGES * PAGE => {
                model.resize(model.len() + chance.below(90) * PAGE, 0);
                if chance.below(2) == 0 {
                    pool.create(&format!("wall {round}"), 1).unwrap();
                }
                match chance.below(2) {
                    0 => object.grow(model.len() as u64).unwrap(),
                    _ => object.grow_beside(model.len() as u64).unwrap(),
                }
                continue;
            }
            _ => object.psync().unwrap(),
        }
        let stored = difference(object.as_slice(), &model);
        assert_eq!(stored, None, "{about}: a store was lost from memory in round {round}");
        let durable = difference(&primary(&mut object), &model);
        assert_eq!(durable, None, "{about}: a store was not made durable in round {round}");
        psynced.clone_from(&model);
    }
    object.psync().unwrap();
    drop((object, pool));
    let object = options.open(&path).unwrap().attach("object").unwrap();
    assert_eq!(difference(object.as_slice(), &model), None, "{about}: attached again");
}

fn tortured(tracking: Tracking) {
    if !tracking.is_available() {
        return indelible_testing::not_tested(format_args!("tracking by {tracking:?}"));
    }
    for (medium, folder) in [(MediumKind::Memory, "/dev/shm"), (MediumKind::File, "/var/tmp")] {
        for fault_in in [false, true] {
            if fault_in && fault::reach().is_none() {
                indelible_testing::not_tested("pages filled on demand");
                continue;
            }
            let options = PoolOptions::new().medium(medium).tracking(tracking).fault_in(fault_in);
            (1..3).for_each(|seed| torture(&options, folder, seed));
        }
    }
}

#[test]
fn no_advice_loses_a_store_that_scans_find() {
    tortured(Tracking::WpAsync);
}

#[test]
fn no_advice_loses_a_store_that_the_log_names() {
    tortured(Tracking::FaultLog);
}

#[test]
fn no_advice_loses_a_store_that_faults() {
    tortured(Tracking::Mprotect);
}

#[test]
fn no_advice_loses_a_store_that_is_marked() {
    tortured(Tracking::Explicit);
}
