use crate::support::{self, Ground, World};
use indelible::collections::{PMutex, PVec};
use indelible::{Heap, Tracking};
use indelible_testing::Seeded;

const THREADS: usize = 6;

type Log<'h> = PMutex<'h, PVec<'h, u64>>;

#[test]
#[ignore = "run by the other test as a process of its own"]
fn work() {
    let Some(path) = std::env::var_os("WORK_POOL") else { return };
    let options = support::options_of(&std::env::var("WORK_WORLD").unwrap());
    let heap = Heap::open(options.open(path).unwrap().attach("heap").unwrap()).unwrap();
    let log = heap.root_ref::<Log>("log").unwrap();
    std::thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                loop {
                    let number = {
                        let mut log = log.lock();
                        let number = log.len() as u64 + 1;
                        log.push(number);
                        number
                    };
                    heap.commit().wait().unwrap();
                    println!("ROUND {number}");
                }
            });
        }
    });
}

#[test]
fn killed_at_any_moment_no_acknowledged_commit_is_lost() {
    for (ground, tracking) in
        [(Ground::Memory, Tracking::Auto), (Ground::File, Tracking::Auto), (Ground::File, Tracking::Explicit)]
    {
        let world = World::new(ground, tracking, false);
        let pool = world.format();
        pool.create("heap", 4 << 20).unwrap();
        let mut heap = Heap::format(pool.attach("heap").unwrap()).unwrap();
        heap.root_or_insert_with::<Log, _>("log", |place| PMutex::new_in(PVec::new(), place)).unwrap();
        heap.psync().unwrap();
        drop((heap, pool));
        let mut random = Seeded::new(31);
        let mut said = 0;
        for _ in 0..12 {
            let last = random.usize(1..200);
            said = support::killed_at_work(&world, "ticket_crash::work", last).unwrap_or(said).max(said);
            let mut heap = Heap::open(world.open().attach("heap").unwrap()).unwrap();
            assert_eq!(heap.check(), []);
            let log = heap.root_ref::<Log>("log").unwrap().lock();
            assert!(log.iter().copied().eq(1..=log.len() as u64), "half a section is durable");
            assert!(log.len() as u64 >= said, "{said} was acknowledged, {} is durable", log.len());
        }
        assert!(said > 300, "only {said} commits");
    }
}
