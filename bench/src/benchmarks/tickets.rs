//! Group commit: threads and tasks that wait for each change, beside one writer that collects and
//! psyncs as many.

use crate::Result;
use crate::environment::{Environment, Medium, discard, progress};
use crate::floor::rounds as bare;
use crate::model::{Cell, Goal, Section, Table, Unit};
use crate::stats::{Samples, Spread};
use indelible::collections::{PHashMap, PMutex};
use indelible::{CreateOptions, Heap, HeapOptions, Tracking};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::task::{Context, Poll, Wake, Waker};
use std::time::{Duration, Instant};

const THREADS: [usize; 3] = [1, 10, 50];
const SIZE: u64 = 64 << 20;
const KEYS: u64 = 100_000;
const VALUE: usize = 64;

type Value = [u8; VALUE];
type Values<'h> = PMutex<'h, PHashMap<'h, u64, Value>>;

const COLUMNS: [(&str, Unit); 11] = [
    ("changes at a time", Unit::Count),
    ("one writer", Unit::PerSecond),
    ("threads", Unit::PerSecond),
    ("to one writer", Unit::Ratio),
    ("volatile, in rounds", Unit::PerSecond),
    ("threads, to one writer and these", Unit::Ratio),
    ("tasks of one thread", Unit::PerSecond),
    ("to one writer", Unit::Ratio),
    ("longest stop of a thread that stores", Unit::Nanoseconds),
    ("longest stop of such a thread beside those", Unit::Nanoseconds),
    ("rounds", Unit::Count),
];

pub fn run(environment: &Environment, section: &mut Section) -> Result<()> {
    for medium in Medium::ALL {
        for tracking in [Tracking::Auto, Tracking::Explicit] {
            on(environment, medium, tracking, section)?;
        }
    }
    section.notes.push(
        "one writer: so many changes, then a psync, over and over. threads: each makes a change under the lock, takes a ticket, and \
         waits for it. tasks: the same, as futures that one thread polls. The stop is the median over rounds of the longest time \
         that a thread which never waits for a ticket took for one change beside them, waiting for the lock included. volatile, \
         in rounds: as many threads, each of which changes a map of std's under a lock, and waits until one thread wakes all, as soon as all of them wait; \
         nothing is written: what locks and the scheduler take. The ratio beside it is to what is left if a change takes its share of one writer's time and of theirs, one after the other."
            .into(),
    );
    Ok(())
}

fn on(environment: &Environment, medium: Medium, tracking: Tracking, section: &mut Section) -> Result<()> {
    let pool = environment.pool_tracking(medium, tracking, "tickets", 256 << 20)?;
    pool.create_with("heap", &CreateOptions::new(SIZE))?;
    let mut heap = Heap::format_with(pool.attach("heap")?, HeapOptions::new())?;
    heap.root_or_insert_with::<Values, _>("values", |place| PMutex::new_in(PHashMap::new(), place))?;
    for key in 0..KEYS {
        change(heap.root_ref::<Values>("values")?, key, 0);
    }
    heap.psync()?;
    let word = if tracking == Tracking::Explicit { ", explicit" } else { "" };
    let title = format!("Tickets on {}{word}", medium.word());
    let (slice, rounds) = if environment.quick { (80, 3) } else { (300, 9) };
    let slice = Duration::from_millis(slice);
    let bar = progress(rounds * THREADS.len(), &title);
    let mut rows: [[Samples; 6]; THREADS.len()] = Default::default();
    for _ in 0..rounds {
        for (threads, row) in THREADS.iter().zip(&mut rows) {
            row[0].push(one_writer(&mut heap, *threads as u64, slice)?);
            row[1].push(by_threads(&heap, *threads, slice)?);
            row[2].push(by_tasks(&heap, *threads, slice)?);
            row[3].push(longest_stop(&heap, *threads, slice / 2)?);
            row[4].push(bare::changes(*threads, slice / 2));
            row[5].push(bare::longest_stop(*threads, slice / 2));
            bar.inc(1);
        }
    }
    bar.finish_and_clear();
    let mut table = Table::new(&title, &COLUMNS);
    for (threads, row) in THREADS.iter().zip(&rows) {
        let cell = |samples: &Samples| samples.spread().map_or(Cell::Empty, Spread::into);
        let [writer, by_threads, by_tasks, stop, bare, bare_stop] = row;
        let to_writer = |samples: &Samples| samples.median() / writer.median();
        let left = 1.0 / (1.0 / writer.median() + 1.0 / bare.median());
        table.row(vec![
            (*threads as u64).into(),
            cell(writer),
            cell(by_threads),
            to_writer(by_threads).into(),
            cell(bare),
            (by_threads.median() / left).into(),
            cell(by_tasks),
            to_writer(by_tasks).into(),
            cell(stop),
            cell(bare_stop),
            (rounds as u64).into(),
        ]);
        let what = |of: &str| format!("{}{word}: {threads} {of}", medium.short());
        section.goals.push(Goal::at_least(
            what("threads with tickets, to one writer"),
            Unit::Ratio,
            0.9,
            to_writer(by_threads),
        ));
        if medium == Medium::File {
            section.goals.push(Goal::at_most(
                what("threads: the longest stop of one that stores"),
                Unit::Nanoseconds,
                1e6,
                stop.median(),
            ));
        }
    }
    section.tables.push(table);
    drop(heap);
    discard(pool);
    Ok(())
}

/// Unique per run: unchanged bytes are no change, and their psync writes nothing.
fn salt() -> u64 {
    static RUNS: AtomicU64 = AtomicU64::new(0);
    RUNS.fetch_add(1, Relaxed) << 32
}

fn change(values: &Values<'_>, key: u64, salt: u64) {
    let mut value = [0; VALUE];
    for (word, bytes) in value.chunks_exact_mut(8).enumerate() {
        bytes.copy_from_slice(&(key ^ salt.rotate_left(word as u32)).to_ne_bytes());
    }
    values.lock().insert(key.wrapping_mul(0x9e37_79b9_7f4a_7c15) % KEYS, value);
}

fn one_writer(heap: &mut Heap, at_a_time: u64, slice: Duration) -> Result<f64> {
    let (start, salt, mut done) = (Instant::now(), salt(), 0);
    while start.elapsed() < slice {
        let values = heap.root_ref::<Values>("values")?;
        (done..done + at_a_time).for_each(|key| change(values, key, salt));
        heap.psync()?;
        done += at_a_time;
    }
    Ok(done as f64 / start.elapsed().as_secs_f64())
}

fn together(threads: usize, work: impl Fn(u64) -> Result<u64> + Sync) -> Result<f64> {
    let (ready, work) = (Barrier::new(threads), &work);
    let ready = &ready;
    std::thread::scope(|scope| {
        let start = Instant::now();
        let all: Vec<_> = (0..threads as u64)
            .map(|thread| {
                scope.spawn(move || {
                    ready.wait();
                    work(thread)
                })
            })
            .collect();
        let mut done = 0;
        for thread in all {
            done += thread.join().map_err(|_| "a thread panicked")??;
        }
        Ok(done as f64 / start.elapsed().as_secs_f64())
    })
}

fn changes(heap: &Heap, values: &Values<'_>, thread: u64, salt: u64, end: impl Fn() -> bool) -> Result<u64> {
    let mut done = 0;
    while !end() {
        change(values, thread << 32 | done, salt);
        heap.commit().wait()?;
        done += 1;
    }
    Ok(done)
}

fn by_threads(heap: &Heap, threads: usize, slice: Duration) -> Result<f64> {
    let values = heap.root_ref::<Values>("values")?;
    let (end, salt) = (Instant::now() + slice, salt());
    together(threads, |thread| changes(heap, values, thread, salt, || Instant::now() >= end))
}

/// The longest change, in nanoseconds, by a thread without tickets beside `threads` with tickets.
fn longest_stop(heap: &Heap, threads: usize, slice: Duration) -> Result<f64> {
    let values = heap.root_ref::<Values>("values")?;
    let (stop, by_threads, own) = (AtomicBool::new(false), salt(), salt());
    std::thread::scope(|scope| {
        let others = scope.spawn(|| {
            together(threads, |thread| changes(heap, values, thread, by_threads, || stop.load(Relaxed)))
        });
        let mut number = 0;
        let longest = bare::longest(slice, || {
            change(values, number, own);
            number += 1;
        });
        stop.store(true, Relaxed);
        others.join().map_err(|_| "a thread panicked")??;
        Ok(longest)
    })
}

#[derive(Default)]
struct Ready(AtomicBool);

impl Wake for Ready {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Relaxed);
    }
}

fn by_tasks(heap: &Heap, tasks: usize, slice: Duration) -> Result<f64> {
    let values = heap.root_ref::<Values>("values")?;
    let (start, salt, mut done) = (Instant::now(), salt(), 0_u64);
    let task = |task: u64| async move {
        let mut done = 0;
        while start.elapsed() < slice {
            change(values, task << 32 | done, salt);
            heap.commit().await?;
            done += 1;
        }
        Ok::<u64, indelible::Error>(done)
    };
    type Task<'t> = (Pin<Box<dyn Future<Output = indelible::Result<u64>> + 't>>, Arc<Ready>);
    let mut all: Vec<Task<'_>> = (0..tasks as u64)
        .map(|number| (Box::pin(task(number)) as _, Arc::new(Ready(AtomicBool::new(true)))))
        .collect();
    while !all.is_empty() {
        let mut failed = None;
        all.retain_mut(|(task, ready)| {
            if !ready.0.swap(false, Relaxed) {
                return true;
            }
            match task.as_mut().poll(&mut Context::from_waker(&Waker::from(ready.clone()))) {
                Poll::Pending => true,
                Poll::Ready(Ok(changes)) => {
                    done += changes;
                    false
                }
                Poll::Ready(Err(error)) => {
                    failed = Some(error);
                    false
                }
            }
        });
        if let Some(error) = failed {
            return Err(error.into());
        }
    }
    Ok(done as f64 / start.elapsed().as_secs_f64())
}
