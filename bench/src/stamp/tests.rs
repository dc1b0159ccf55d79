//! Each kernel, small, on each memory and by several threads; its check must notice missing work.

use super::memory::{Memory, Plain, Reliable, Transient};
use super::{Bayes, Genome, Intruder, Kernel, Kmeans, Labyrinth, Ssca2, Store, Vacation, Yada, run};
use indelible::{Class, CreateOptions, MediumKind, Pool, PoolOptions};

const THREADS: [usize; 3] = [1, 2, 8];

fn with_object(class: Class, what: impl FnOnce(&Reliable)) {
    let dir = tempfile::Builder::new().prefix("stamp-").tempdir_in("/dev/shm").unwrap();
    let options = PoolOptions::new().medium(MediumKind::Memory);
    let pool: Pool = options.format(dir.path().join("pool"), 64 << 20).unwrap();
    pool.create_with("words", &CreateOptions::new(Reliable::SIZE).class(class)).unwrap();
    let memory = Reliable::attach(&pool, "words").unwrap();
    what(&memory);
    memory.detach().unwrap();
}

fn holds<K: Kernel>(size: usize) {
    let kernel = K::new(size);
    run(&kernel, &Plain::new(), 1).unwrap();
    for threads in THREADS {
        let of = |memory: &str, done: super::Outcome<f64>| {
            done.unwrap_or_else(|stop| panic!("{}, {memory}, {threads} threads: {stop}", K::NAME))
        };
        of("volatile", run(&kernel, &Transient::new(), threads));
        for class in [Class::Transactional, Class::OnDemand] {
            with_object(class, |memory| {
                of(&format!("{class:?}"), run(&kernel, memory, threads));
            });
        }
    }
}

fn notices<K: Kernel>(size: usize) {
    let (kernel, memory) = (K::new(size), Transient::new());
    kernel.load(&mut memory.worker(), 2).unwrap();
    let checked = kernel.check(&mut memory.worker());
    assert!(checked.is_err(), "{} takes what was loaded for its result", K::NAME);
}

macro_rules! kernels {
    ($($name:ident: $kernel:ty, $size:expr;)+) => {$(
        #[test]
        fn $name() {
            holds::<$kernel>($size);
            notices::<$kernel>($size);
        }
    )+};
}

kernels! {
    s1_21_vacation_keeps_what_is_reserved: Vacation, 4;
    s1_21_intruder_finds_what_was_put_in: Intruder, 4;
    s1_21_genome_puts_the_gene_together: Genome, 4;
    s1_21_kmeans_finds_the_centers_of_one_thread: Kmeans, 4;
    s1_21_labyrinth_lays_paths_that_do_not_touch: Labyrinth, 4;
    s1_21_ssca2_has_each_edge_once: Ssca2, 8;
    s1_21_yada_leaves_no_small_angle: Yada, 4;
    s1_21_bayes_learns_a_network_without_a_circle: Bayes, 4;
    s1_21_the_store_has_what_was_set: Store, 4;
}

#[test]
fn threads_do_not_wait_for_one_that_cannot_go_on() {
    struct Fails;
    impl Kernel for Fails {
        const NAME: &'static str = "fails";

        fn new(_size: usize) -> Self {
            Fails
        }

        fn load<W: super::Worker>(&self, _worker: &mut W, _threads: usize) -> super::Outcome<()> {
            Ok(())
        }

        fn work<W: super::Worker>(&self, worker: &mut W, part: &super::Part<'_>) -> super::Outcome<()> {
            if part.number == 1 {
                return worker.atomically(|tx| super::memory::Words::get(tx, u64::MAX)).map(drop);
            }
            part.meet().map(drop)
        }

        fn check<W: super::Worker>(&self, _worker: &mut W) -> super::Outcome<()> {
            Ok(())
        }
    }
    let failed = run(&Fails, &Transient::new(), 4).unwrap_err();
    assert!(failed.to_string().contains("there is no word"), "{failed}");
}

#[test]
fn s1_21_the_list_is_a_queue() {
    use super::ring::Ring;
    for payload in [1, 16, 100] {
        let memory = Transient::new();
        let mut worker = memory.worker();
        let ring = Ring::new(payload);
        ring.load(&mut worker).unwrap();
        for round in 0..20 {
            (0..500).for_each(|value| ring.push(&mut worker, round + value).unwrap());
            assert_eq!(ring.sum(&mut worker).unwrap(), (0..500).map(|value| round + value).sum::<u64>());
            ring.change(&mut worker, 2).unwrap();
            assert!((0..500).all(|value| ring.pop(&mut worker).unwrap() == Some(round + value + 2)));
            assert_eq!(ring.pop(&mut worker).unwrap(), None);
        }
    }
}
