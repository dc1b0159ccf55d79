use crate::support::{self, World};
use indelible::Heap;
use indelible_testing::{CrashImage, Limits, Seeded, SimMedium, for_each_crash};
use std::sync::Arc;

pub struct Rounds {
    pub advance: fn(&mut Heap) -> u64,
    pub verify: fn(&mut Heap) -> u64,
}

fn opened(world: &World) -> Heap {
    Heap::open(world.open().attach("o").unwrap()).unwrap()
}

impl Rounds {
    pub fn survive_power_cuts(&self, world: &World, rounds: u64, limits: &Limits, least: u64) {
        let sim = world.sim().unwrap();
        let record = |sim: &SimMedium| {
            let mut heap = opened(world);
            sim.mark(0);
            for _ in 0..rounds {
                let round = (self.advance)(&mut heap);
                heap.psync().unwrap();
                sim.mark(round);
            }
        };
        let verify_image = |image: &CrashImage| -> Result<(), String> {
            let pool = world.options().on_device(Arc::new(image.medium()), false).unwrap();
            let mut heap = Heap::open(pool.attach("o").unwrap()).unwrap();
            let (found, said) = ((self.verify)(&mut heap), image.last_mark().unwrap_or(0));
            (self.advance)(&mut heap);
            assert_eq!((self.verify)(&mut heap), found + 1);
            if found == said || found == said + 1 {
                Ok(())
            } else {
                Err(format!("round {found}, said {said}"))
            }
        };
        let report = for_each_crash(sim, record, verify_image, limits).unwrap();
        assert!(report.distinct > least, "only {} images", report.distinct);
    }

    pub fn work(&self) {
        let Some(path) = std::env::var_os("WORK_POOL") else { return };
        let options = support::options_of(&std::env::var("WORK_WORLD").unwrap());
        let mut heap = Heap::open(options.open(path).unwrap().attach("o").unwrap()).unwrap();
        loop {
            let round = (self.advance)(&mut heap);
            heap.psync().unwrap();
            println!("ROUND {round}");
        }
    }

    pub fn survive_kills(
        &self,
        world: &World,
        work: &str,
        random: &mut Seeded,
        [kills, longest]: [usize; 2],
        least: u64,
    ) {
        let mut said = 0;
        for _ in 0..kills {
            said = support::killed_at_work(world, work, random.usize(..longest)).unwrap_or(said);
            let found = (self.verify)(&mut opened(world));
            assert!(found >= said, "round {said} was said to be durable, {found} is there");
        }
        assert!(said > least, "only {said} rounds");
    }
}
