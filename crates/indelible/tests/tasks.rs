use crate::support::{Ground, World};
use indelible::collections::{PHashMap, PMutex, PString};
use indelible::{ErrorKind, Heap, Pool, Tracking};
use std::pin::Pin;
use std::sync::mpsc;
use std::sync::{Arc, Condvar, Mutex};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

type Sessions<'h> = PMutex<'h, PHashMap<'h, PString<'h>, u64>>;
type Pair<'h> = PMutex<'h, [u64; 2]>;

type Task = Pin<Box<dyn Future<Output = indelible::Result<()>> + Send>>;

/// As `tokio::spawn` demands it.
fn task(future: impl Future<Output = indelible::Result<()>> + Send + 'static) -> Task {
    Box::pin(future)
}

#[derive(Default)]
struct Bell {
    rung: Mutex<bool>,
    wake: Condvar,
}

impl Bell {
    fn wait(&self) {
        let rung = self.rung.lock().unwrap();
        *self.wake.wait_while(rung, |rung| !*rung).unwrap() = false;
    }
}

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        *self.rung.lock().unwrap() = true;
        self.wake.notify_one();
    }
}

fn run(mut tasks: Vec<Task>) {
    let bell = Arc::new(Bell::default());
    while !tasks.is_empty() {
        let waker = Waker::from(bell.clone());
        let left = std::thread::spawn(move || {
            tasks.retain_mut(|task| match task.as_mut().poll(&mut Context::from_waker(&waker)) {
                Poll::Ready(done) => {
                    done.unwrap();
                    false
                }
                Poll::Pending => true,
            });
            tasks
        });
        tasks = left.join().unwrap();
        if !tasks.is_empty() {
            bell.wait();
        }
    }
}

fn pool(world: &World) -> Pool {
    world.format()
}

#[test]
fn roots_are_kept_across_an_await_by_tasks_that_change_threads() {
    let world = World::new(Ground::Memory, Tracking::Auto, false);
    let mut heap = pool(&world).heap("sessions", 1 << 20).unwrap();
    heap.root_or_insert_with::<Sessions, _>("s", |place| PMutex::new_in(PHashMap::new(), place)).unwrap();
    let heap = Arc::new(heap);
    let visits = |user: u64, heap: Arc<Heap>| {
        task(async move {
            let sessions = heap.root_in_task::<Sessions>("s")?;
            for visit in 1..=5 {
                sessions.lock().insert(format!("user {user}").as_str(), visit);
                heap.commit().await?;
                assert_eq!(sessions.lock()[format!("user {user}").as_str()], visit);
            }
            Ok(())
        })
    };
    run((0..8).map(|user| visits(user, heap.clone())).collect());
    drop(heap);
    let heap = Heap::open(world.open().attach("sessions").unwrap()).unwrap();
    let sessions = heap.root_ref::<Sessions>("s").unwrap().lock();
    assert_eq!(sessions.len(), 8);
    assert!(sessions.values().all(|visits| *visits == 5));
}

fn pair_of(world: &World) -> Heap {
    let mut heap = pool(world).heap("pair", 1 << 20).unwrap();
    heap.root_or_insert_with::<Pair, _>("p", |place| PMutex::new_in([1, 1], place)).unwrap();
    heap.psync().unwrap();
    heap
}

fn durable(world: &World) -> [u64; 2] {
    let heap = Heap::open(world.open().attach("pair").unwrap()).unwrap();
    let pair = heap.root_ref::<Pair>("p").unwrap();
    *pair.lock()
}

fn half(heap: &Heap) {
    let died = std::thread::scope(|scope| {
        let section = || {
            let mut pair = heap.root_ref::<Pair>("p").unwrap().lock();
            pair[0] = 2;
            std::panic::resume_unwind(Box::new("in the midst of a change"));
        };
        scope.spawn(section).join()
    });
    assert!(died.is_err());
}

#[test]
fn a_panic_under_a_lock_leaves_it_free_and_its_changes_to_the_next_commit() {
    let world = World::new(Ground::Memory, Tracking::Auto, false);
    let heap = pair_of(&world);
    half(&heap);
    assert_eq!(*heap.root_ref::<Pair>("p").unwrap().try_lock().unwrap(), [2, 1]);
    heap.commit().wait().unwrap();
    drop(heap);
    assert_eq!(durable(&world), [2, 1]);
}

#[test]
fn after_a_panic_under_a_lock_revert_has_the_last_commit() {
    let world = World::new(Ground::Memory, Tracking::Auto, false);
    let mut heap = pair_of(&world);
    half(&heap);
    heap.revert().unwrap();
    assert_eq!(*heap.root_ref::<Pair>("p").unwrap().lock(), [1, 1]);
    heap.commit().wait().unwrap();
    drop(heap);
    assert_eq!(durable(&world), [1, 1]);
}

#[test]
fn a_lock_that_a_thread_keeps_fails_commits_after_the_wait_and_loses_nothing() {
    let world = World::new(Ground::Memory, Tracking::Auto, false);
    let pool = pool(&world);
    pool.set_wait(Duration::from_millis(1));
    let mut heap = pool.heap("pair", 1 << 20).unwrap();
    heap.root_or_insert_with::<Pair, _>("p", |place| PMutex::new_in([1, 1], place)).unwrap();
    heap.psync().unwrap();
    let heap = &heap;
    std::thread::scope(|scope| {
        let (has_it, is_there) = mpsc::channel();
        let (goes_on, end) = mpsc::channel();
        let keeps = scope.spawn(move || {
            let mut pair = heap.root_ref::<Pair>("p").unwrap().lock();
            pair[0] = 2;
            has_it.send(()).unwrap();
            end.recv().unwrap();
            pair[1] = 2;
        });
        is_there.recv().unwrap();
        for _ in 0..2 {
            let error = heap.commit().wait().unwrap_err();
            assert!(error.kind() == ErrorKind::Busy, "{error}");
            assert!(error.to_string().contains("has had a lock of the object"), "{error}");
        }
        goes_on.send(()).unwrap();
        keeps.join().unwrap();
    });
    heap.commit().wait().unwrap();
    assert_eq!(*heap.root_ref::<Pair>("p").unwrap().lock(), [2, 2]);
}
