use super::{CONFIG, KEY, Verdict, create, open};
use crate::hooked::{Hook, Hooked};
use crate::pool::{Snapshot, process, psync};
use crate::scenario::{formatted, judge_by};
use crate::sim::{Limits, SimMedium};
use indelible_store::Selected;
use indelible_store::format::batch::{Header, MAGIC};
use indelible_store::medium::{Device, Fatal};
use indelible_store::store::{Store, Writer};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use zerocopy::FromBytes;

const NAMES: [&str; 4] = ["a", "b", "c", "d"];
const PATIENCE: u8 = 100;

#[derive(Default)]
struct Together {
    begun: AtomicU64,
    awaited: AtomicU64,
    written: Mutex<Vec<Vec<u8>>>,
}

impl Hook for Together {
    fn write_durable(&self, under: &dyn Device, offset: u64, bytes: &[u8]) -> Result<(), Fatal> {
        while self.begun.load(Ordering::Acquire) < self.awaited.load(Ordering::Acquire) {
            std::thread::yield_now();
        }
        (0..500).for_each(|_| std::thread::yield_now());
        self.written.lock().unwrap().push(bytes.to_vec());
        under.write_durable(offset, bytes)
    }
}

struct Joined {
    medium: SimMedium,
    together: Arc<Hooked<Together>>,
    writers: Vec<Writer>,
}

impl Joined {
    fn begin() -> Joined {
        let medium = formatted(2 << 20, CONFIG);
        let store = open(&medium, 1);
        NAMES.iter().for_each(|name| create(&store, name, 5000));
        drop(store);
        let together = Hooked::new(Arc::new(medium.handle()), Together::default());
        let store = Store::open(together.clone(), process(2)).unwrap();
        let writers = NAMES.iter().map(|name| store.attach_writer(name, KEY).unwrap()).collect();
        Joined { medium, together, writers }
    }

    fn joined(&self) -> u64 {
        let used = self.writers[0].lane_use();
        used.batches - used.commits
    }

    fn round(&mut self, value: u8) -> Verdict {
        let (together, selected) = (&self.together, Selected::here());
        together.begun.store(0, Ordering::Release);
        together.awaited.store(NAMES.len() as u64, Ordering::Release);
        let done = std::thread::scope(|scope| {
            let threads: Vec<_> = self
                .writers
                .iter_mut()
                .map(|writer| {
                    scope.spawn(move || {
                        selected.run(|| {
                            together.begun.fetch_add(1, Ordering::AcqRel);
                            psync(writer, &[(0, &[value; 200])]).map_err(|error| error.to_string())
                        })
                    })
                })
                .collect();
            threads.into_iter().try_for_each(|thread| thread.join().map_err(|_| "a thread panicked")?)
        });
        together.awaited.store(0, Ordering::Release);
        done
    }

    fn rounds(&mut self, before: impl Fn(&Joined)) -> Result<u8, String> {
        for value in 1..PATIENCE {
            before(self);
            let joined = self.joined();
            self.round(value)?;
            if self.joined() > joined + 1 {
                return Ok(value);
            }
        }
        Err("no commit joined another".into())
    }
}

pub(super) fn a_torn_write_of_several_batches_is_no_damage() -> Verdict {
    let mut joined = Joined::begin();
    let value = joined.rounds(|joined| joined.medium.forget_log())?;
    let judge = |found: &Snapshot| {
        for (name, (_, _, bytes)) in found {
            let one = bytes[..200].iter().all(|byte| *byte == bytes[0]);
            if !one || ![value, value - 1].contains(&bytes[0]) {
                return Err(format!("{name} is neither as before nor as after its psync"));
            }
        }
        Ok(())
    };
    let limits = Limits { exhaustive: 16, singles: 24, random: 16, points: 40, seed: 3 };
    joined.medium.power_cut_states(&limits).try_for_each(|image| judge_by(&image.medium(), judge).map(drop))
}

pub(super) fn batches_of_one_write_state_the_same_watermark() -> Verdict {
    let mut joined = Joined::begin();
    joined.rounds(|joined| joined.together.written.lock().unwrap().clear())?;
    for write in &*joined.together.written.lock().unwrap() {
        let (mut at, mut first) = (0, None);
        while at < write.len() {
            let header = Header::read_from_prefix(&write[at..]).map_err(|_| "a batch ends too early")?.0;
            if header.magic.get() != MAGIC {
                break;
            }
            let first = *first.get_or_insert(header.sequence.get());
            if header.durable.get() != first {
                let (sequence, durable) = (header.sequence, header.durable);
                return Err(format!(
                    "batch {sequence} of a write from {first} on says that {durable} are durable"
                ));
            }
            at += header.len.get() as usize;
        }
    }
    Ok(())
}
