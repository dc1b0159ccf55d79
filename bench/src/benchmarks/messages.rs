//! Processes that communicate through objects: wake-ups beside a bare futex, queues, a durable log
//! beside raw writes (S2.19 to S2.21, S2.27).

use crate::Result;
use crate::environment::{Environment, Medium, discard, progress};
use crate::floor::WriteFloor;
use crate::model::{Cell, Goal, Section, Table, Unit};
use crate::stats::{Samples, Spread};
use crate::talk::{BYTES, PING, PONG, SLOTS, Talk, play};
use indelible::{
    AttachedView, Class, CreateOptions, Pool, Queue, QueueKind, QueueOptions, Rights, SharedObject,
    SlotMemory, View,
};
use std::io::{BufRead, BufReader};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::atomic::Ordering;
use std::time::Instant;

const PRODUCERS: usize = 4;
const RECORD: usize = 200;
const RECORDS: usize = 64;

pub fn run(environment: &Environment, section: &mut Section) -> Result<()> {
    let pool = environment.pool(Medium::Memory, "messages", 64 << 20)?;
    let rounds = match (environment.smoke, environment.quick) {
        (true, _) => 2,
        (_, true) => 7,
        _ => 31,
    };
    let bar = progress(rounds * 6, "messages");
    let tick = || bar.inc(1);
    waking(environment, &pool, rounds, &tick, section)?;
    queues(environment, &pool, rounds, &tick, section)?;
    discard(pool);
    views(environment, rounds, &tick, section)?;
    log(environment, rounds, &tick, section)?;
    bar.finish_and_clear();
    section.notes.push(format!(
        "Each side of a queue, and of the words that are waited for, is a process of its own; a game of words is a store, a wake and a wait of each of the two. \
         Messages have {BYTES} bytes, queues room for {SLOTS}; the rate is from the first message to the last one received. The log has {RECORDS} records of {RECORD} bytes in each psync; the raw writes have as many bytes, durable each.",
    ));
    Ok(())
}

struct Partner {
    child: Child,
    said: BufReader<ChildStdout>,
}

impl Partner {
    fn start(pool: &Pool, talk: Talk, count: usize) -> Result<Partner> {
        let mut command = Command::new(std::env::current_exe()?);
        command.arg("child").arg("talk").arg(pool.path()).arg(talk.word()).arg(count.to_string());
        let mut child = command.stdout(Stdio::piped()).spawn()?;
        let mut said = BufReader::new(child.stdout.take().ok_or("a pipe")?);
        if said.read_line(&mut String::new())? == 0 {
            return Err(format!("a process of the benchmark failed: {}", child.wait()?).into());
        }
        Ok(Partner { child, said })
    }

    fn end(mut self) -> Result<()> {
        self.said.read_line(&mut String::new())?;
        let status = self.child.wait()?;
        if status.success() {
            Ok(())
        } else {
            Err(format!("a process of the benchmark failed: {status}").into())
        }
    }
}

impl Drop for Partner {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn shared(pool: &Pool, name: &str, size: usize) -> Result<SharedObject> {
    pool.create_with(name, &CreateOptions::new(size as u64).class(Class::Shared))?;
    Ok(pool.attach_shared(name)?)
}

fn waking(
    environment: &Environment,
    pool: &Pool,
    rounds: usize,
    tick: &dyn Fn(),
    section: &mut Section,
) -> Result<()> {
    let count = if environment.quick { 2_000 } else { 10_000 };
    let words = shared(pool, "words", 4096)?;
    let (mut bare, mut own) = (Samples::default(), Samples::default());
    for _ in 0..rounds {
        for (talk, samples) in [(Talk::Bare, &mut bare), (Talk::Words, &mut own)] {
            for word in [PING, PONG] {
                words.word(word)?.store(0, Ordering::Release);
            }
            let partner = Partner::start(pool, talk, count)?;
            let start = Instant::now();
            play(&words, (PING, PONG), true, talk == Talk::Bare, count as u32)?;
            samples.push(start.elapsed().as_nanos() as f64 / count as f64);
            partner.end()?;
        }
        tick();
    }
    let mut table = Table::new(
        "Two processes that wake each other in turn, there and back",
        &[
            ("a bare futex", Unit::Nanoseconds),
            ("words of a shared object", Unit::Nanoseconds),
            ("to bare", Unit::Ratio),
        ],
    );
    let ratio = own.median() / bare.median();
    table.row(vec![cell(&bare), cell(&own), ratio.into()]);
    section.tables.push(table);
    section.goals.push(Goal::at_most("waking another process, to a bare futex", Unit::Ratio, 1.1, ratio));
    Ok(())
}

fn queues(
    environment: &Environment,
    pool: &Pool,
    rounds: usize,
    tick: &dyn Fn(),
    section: &mut Section,
) -> Result<()> {
    let count = match (environment.smoke, environment.quick) {
        (true, _) => 20_000,
        (_, true) => 1_000_000,
        _ => 4_000_000,
    };
    let mut table = Table::new(
        format!("Messages of {BYTES} bytes from process to process"),
        &[("producers", Unit::Count), ("messages", Unit::PerSecond)],
    );
    for (kind, talk, producers, goal) in
        [(QueueKind::OneProducer, Talk::One, 1, 20e6), (QueueKind::ManyProducers, Talk::Many, PRODUCERS, 5e6)]
    {
        let how = QueueOptions { kind, slots: SLOTS, most: BYTES };
        let queue = shared(pool, talk.word(), how.bytes()?)?.queue(0, &how)?;
        let mut samples = Samples::default();
        for _ in 0..rounds {
            samples.push(received(pool, &queue, talk, (producers, count / producers))?);
            tick();
        }
        table.row(vec![(producers as u64).into(), cell(&samples)]);
        let what = format!("{producers} producers to one consumer, messages a second");
        section.goals.push(Goal::at_least(what, Unit::PerSecond, goal, samples.median()));
    }
    section.tables.push(table);
    Ok(())
}

fn received(pool: &Pool, queue: &Queue, talk: Talk, (producers, each): (usize, usize)) -> Result<f64> {
    let mut consumer = queue.consumer()?;
    let partners: Result<Vec<_>> = (0..producers).map(|_| Partner::start(pool, talk, each)).collect();
    let (mut start, mut sum) = (Instant::now(), 0_u64);
    for number in 0..producers * each {
        let value: [u64; 8] = consumer.receive_value(None)?.ok_or("the queue ended")?;
        sum += value[0];
        if number == 0 {
            start = Instant::now();
        }
    }
    let took = start.elapsed().as_secs_f64();
    partners?.into_iter().try_for_each(Partner::end)?;
    let each = each as u64;
    match sum == producers as u64 * (each * (each - 1) / 2) {
        true => Ok((producers as u64 * each - 1) as f64 / took),
        false => Err("messages were lost, or came twice".into()),
    }
}

const OBJECTS: usize = 100;

fn views(environment: &Environment, rounds: usize, tick: &dyn Fn(), section: &mut Section) -> Result<()> {
    let mut table = Table::new(
        format!("A view of {OBJECTS} objects, attached as a whole"),
        &[
            ("medium", Unit::Text),
            ("an attach", Unit::Nanoseconds),
            ("the view", Unit::Nanoseconds),
            ("attaches", Unit::Ratio),
        ],
    );
    for medium in Medium::ALL {
        let pool = environment.pool(medium, "views", 64 << 20)?;
        let mut view = View::create(&pool, "view", OBJECTS)?;
        for slot in 0..OBJECTS {
            let name = format!("part-{slot}");
            pool.create(&name, 4096)?;
            view.set_at_once(slot, &name, Rights::READ | Rights::WRITE)?;
        }
        view.psync()?;
        drop(view);
        let (mut one, mut all) = (Samples::default(), Samples::default());
        for _ in 0..rounds {
            let start = Instant::now();
            let object = pool.attach("part-0")?;
            one.push(start.elapsed().as_nanos() as f64);
            drop(object);
            all.push(attached_whole(&pool)?);
            tick();
        }
        let ratio = all.median() / one.median();
        table.row(vec![medium.word().into(), cell(&one), cell(&all), ratio.into()]);
        section.goals.push(Goal::at_most(
            format!("{}: attach of a view of {OBJECTS} objects, in attaches", medium.short()),
            Unit::Ratio,
            10.0,
            ratio,
        ));
        discard(pool);
    }
    section.tables.push(table);
    Ok(())
}

fn attached_whole(pool: &Pool) -> Result<f64> {
    let start = Instant::now();
    let attached = AttachedView::attach(pool, "view")?;
    let brought = attached.bring_all()?;
    let took = start.elapsed().as_nanos() as f64;
    match attached.slots().iter().filter(|slot| slot.memory == SlotMemory::Writing).count() {
        OBJECTS => Ok(took),
        _ => Err(format!("{brought} objects of {OBJECTS} were attached").into()),
    }
}

fn log(environment: &Environment, rounds: usize, tick: &dyn Fn(), section: &mut Section) -> Result<()> {
    let psyncs = match (environment.smoke, environment.quick) {
        (true, _) => 4,
        (_, true) => 200,
        _ => 1_000,
    };
    let bytes = RECORDS * RECORD;
    let pool = environment.pool(Medium::File, "log", 1 << 30)?;
    let path = environment.path(Medium::File, "raw-log");
    let mut floor = WriteFloor::new(&path, 64 << 20)?;
    let (mut raw, mut own) = (Samples::default(), Samples::default());
    let record = [0x5a; RECORD];
    for round in 0..rounds {
        let name = format!("log-{round}");
        let mut log = pool.open_log(&name, b"")?;
        let start = Instant::now();
        for _ in 0..psyncs {
            for _ in 0..RECORDS {
                log.append(&record)?;
            }
            log.psync()?;
        }
        own.push((psyncs * bytes) as f64 / start.elapsed().as_secs_f64());
        log.detach()?;
        pool.destroy(&name)?;
        let start = Instant::now();
        for _ in 0..psyncs {
            floor.write(bytes.next_multiple_of(512))?;
        }
        raw.push((psyncs * bytes) as f64 / start.elapsed().as_secs_f64());
        tick();
    }
    drop(floor);
    let _ = std::fs::remove_file(path);
    discard(pool);
    let mut table = Table::new(
        "A durable log on the SSD",
        &[("raw writes", Unit::BytesPerSecond), ("log", Unit::BytesPerSecond), ("to raw", Unit::Ratio)],
    );
    let ratio = own.median() / raw.median();
    table.row(vec![cell(&raw), cell(&own), ratio.into()]);
    section.tables.push(table);
    section.goals.push(Goal::at_least(
        "the log's bytes a second, to raw durable writes",
        Unit::Ratio,
        0.5,
        ratio,
    ));
    Ok(())
}

fn cell(samples: &Samples) -> Cell {
    samples.spread().map_or(Cell::Empty, Spread::into)
}
