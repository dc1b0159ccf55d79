use super::queue::options;
use super::{Rig, kind};
use indelible::{ErrorKind, Log, LogReader, Pool, PoolOptions, QueueKind, QueueOptions};
use indelible_testing::{Choice, Fault, OpKind, Seeded, SimConfig, SimMedium};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

const NOW: Option<Duration> = Some(Duration::ZERO);
const LONG: Option<Duration> = Some(Duration::from_secs(60));

fn how() -> QueueOptions {
    options(QueueKind::ManyProducers, 64, 64)
}

fn all(reader: &mut LogReader) -> Vec<Vec<u8>> {
    let records = std::iter::from_fn(|| reader.read().unwrap());
    records.map(|record| record.bytes).collect()
}

#[test]
fn s2_21_a_log_has_what_was_psynced_and_grows() {
    let mut seeded = Seeded::new(8);
    let rig = Rig::new();
    let pool = &rig.pool;
    let mut log = pool.open_log("log", b"").unwrap();
    drop(pool.open_log("other", b"").unwrap());
    let mut reader = pool.read_log("other", b"").unwrap();
    assert_eq!(reader.read().unwrap(), None, "nothing was ever psynced to it");
    let (mut written, mut psynced) = (Vec::new(), 0);
    for _ in 0..200 {
        match seeded.usize(..5) {
            0 => {
                log.psync().unwrap();
                psynced = written.len();
            }
            1 => {
                drop(log);
                written.truncate(psynced);
                log = pool.open_log("log", b"").unwrap();
                assert_eq!(log.len(), psynced as u64);
            }
            _ => {
                let bytes: Vec<u8> = (0..seeded.usize(..5000)).map(|_| seeded.u8(..)).collect();
                assert_eq!(log.append(&bytes).unwrap(), written.len() as u64);
                written.push(bytes);
            }
        }
    }
    log.psync().unwrap();
    assert!(pool.stat("log").unwrap().size > 64 << 10, "it has grown");
    log.detach().unwrap();
    assert_eq!(all(&mut pool.read_log("log", b"").unwrap()), written);
}

#[test]
fn a_reader_follows_a_log() {
    let rig = Rig::new();
    drop(rig.pool.open_log("log", b"").unwrap());
    let mut child = rig.child("log::appends");
    child.said("PSYNCED").unwrap();
    let mut reader = rig.pool.read_log("log", b"").unwrap();
    let mut next = 0_u64;
    let mut read = |reader: &mut LogReader| {
        while let Some(record) = reader.read().unwrap() {
            assert_eq!((record.number, record.message), (next, None));
            assert_eq!(record.bytes, next.to_le_bytes().repeat(100));
            next += 1;
        }
        next
    };
    while read(&mut reader) < 3000 {
        child.said("PSYNCED").unwrap();
        reader.refresh().unwrap();
    }
    child.kill();
    drop(reader);
    let records = all(&mut rig.pool.read_log("log", b"").unwrap());
    assert!(records.len() >= 3000, "{}", records.len());
    let expected = (0_u64..).map(|number| number.to_le_bytes().repeat(100));
    assert!(records.into_iter().zip(expected).all(|(record, expected)| record == expected));
}

#[test]
#[ignore = "run by the other test as a process of its own"]
fn appends() {
    let Some(path) = std::env::var_os("WORK_POOL") else { return };
    let mut log = Pool::open(path).unwrap().open_log("log", b"").unwrap();
    for number in 0_u64.. {
        log.append(&number.to_le_bytes().repeat(100)).unwrap();
        if number.is_multiple_of(10) {
            log.psync().unwrap();
            println!("PSYNCED");
        }
    }
}

#[test]
fn objects_that_are_no_logs_and_damaged_ones_are_errors() {
    let rig = Rig::new();
    let pool = &rig.pool;
    let mut other = pool.create_attached("other", 4096).unwrap();
    other.as_mut_slice()[0] = 1;
    other.psync().unwrap();
    drop(other);
    assert_eq!(kind(pool.open_log("other", b"")), ErrorKind::RootType);
    assert_eq!(kind(pool.read_log("other", b"")), ErrorKind::RootType);
    assert_eq!(kind(pool.read_log("absent", b"")), ErrorKind::NotFound);
    pool.create("small", 10).unwrap();
    assert_eq!(kind(pool.open_log("small", b"")), ErrorKind::RootType);
    let mut log = pool.open_log("log", b"").unwrap();
    for number in 0..4_u64 {
        log.append(&number.to_le_bytes()).unwrap();
    }
    log.psync().unwrap();
    drop(log);
    let mut object = pool.attach("log").unwrap();
    object.as_mut_slice()[64 + 2 * 48 + 41] ^= 1;
    object.psync().unwrap();
    drop(object);
    let mut reader = pool.read_log("log", b"").unwrap();
    assert!(reader.read().unwrap().is_some() && reader.read().unwrap().is_some());
    let error = reader.read().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Damaged);
    assert!(error.to_string().contains("byte 160") && error.remedy().contains("backup"), "{error}");
    drop(reader);
    let mut seeded = Seeded::new(99);
    for _ in 0..200 {
        let mut object = pool.attach("log").unwrap();
        let at = seeded.usize(..300);
        object.as_mut_slice()[at] = seeded.u8(..);
        object.psync().unwrap();
        drop(object);
        if let Ok(mut reader) = pool.read_log("log", b"") {
            while let Ok(Some(record)) = reader.read() {
                assert!(record.bytes.len() < 300);
            }
        }
    }
}

fn collected(log: &mut Log, rig: &Rig, count: u64) -> Vec<u64> {
    let queue = rig.queue(&how());
    let (mut producer, mut consumer) = (queue.producer().unwrap(), queue.consumer().unwrap());
    let numbers: Vec<u64> = (0..count).map(|n| producer.send_value(&n, NOW).unwrap().unwrap()).collect();
    assert_eq!(log.collect(&mut consumer, 100, NOW).unwrap() as u64, count);
    assert!(numbers.iter().all(|number| producer.wait_taken(*number, NOW).unwrap()));
    numbers
}

#[test]
fn s2_27_messages_are_acknowledged_once_they_are_durable() {
    let rig = Rig::new();
    let mut log = rig.pool.open_log("log", b"").unwrap();
    assert_eq!(collected(&mut log, &rig, 10), (0..10).collect::<Vec<_>>());
    assert_eq!(collected(&mut log, &rig, 5), (10..15).collect::<Vec<_>>());
    drop(log);
    let id = rig.queue(&how()).id();
    let mut reader = rig.pool.read_log("log", b"").unwrap();
    let messages = std::iter::from_fn(|| reader.read().unwrap()).map(|record| record.message.unwrap());
    assert_eq!(messages.collect::<Vec<_>>(), (0..15).map(|n| (id, n)).collect::<Vec<_>>());
}

#[test]
fn a_collector_that_dies_before_it_acknowledges_leaves_no_record_twice() {
    let rig = Rig::new();
    let queue = rig.queue(&how());
    let mut producer = queue.producer().unwrap();
    let mut log = rig.pool.open_log("log", b"").unwrap();
    (0..6_u64).for_each(|n| assert!(producer.send_value(&n, NOW).unwrap().is_some()));
    let object = rig.attach();
    let before: Vec<u64> = object.words().iter().map(|word| word.load(Relaxed)).collect();
    assert_eq!(log.collect(&mut queue.consumer().unwrap(), 2, NOW).unwrap(), 2);
    assert!(producer.wait_taken(1, NOW).unwrap());
    object.words().iter().zip(before).for_each(|(word, before)| word.store(before, Relaxed));
    assert!(!producer.wait_taken(0, NOW).unwrap());
    log.detach().unwrap();
    let mut log = rig.pool.open_log("log", b"").unwrap();
    assert_eq!(log.len(), 2);
    let mut consumer = queue.consumer().unwrap();
    assert_eq!(log.collect(&mut consumer, 100, NOW).unwrap(), 6, "none was acknowledged");
    assert!(producer.wait_taken(5, NOW).unwrap());
    log.detach().unwrap();
    let records = all(&mut rig.pool.read_log("log", b"").unwrap());
    let numbers = records.into_iter().map(|bytes| u64::from_le_bytes(bytes.try_into().unwrap()));
    assert_eq!(numbers.collect::<Vec<_>>(), [0, 1, 2, 3, 4, 5], "each once");
}

fn left(queue: &indelible::Queue) -> Vec<u64> {
    let mut consumer = queue.consumer().unwrap();
    std::iter::from_fn(|| consumer.receive_value::<u64>(NOW).unwrap()).collect()
}

#[test]
pub fn a_psync_that_fails_acknowledges_nothing() {
    let rig = Rig::new();
    let queue = rig.queue(&how());
    let device = Arc::new(SimMedium::new(8 << 20, SimConfig::default()));
    let pool = PoolOptions::new().on_device(device.clone(), true).unwrap();
    let mut log = pool.open_log("log", b"").unwrap();
    let (mut producer, mut consumer) = (queue.producer().unwrap(), queue.consumer().unwrap());
    (0..3_u64).for_each(|n| assert!(producer.send_value(&n, NOW).unwrap().is_some()));
    device.kill();
    for _ in 0..3 {
        assert!(log.collect(&mut consumer, 100, NOW).is_err());
        assert!(!producer.wait_taken(0, NOW).unwrap());
    }
    drop(consumer);
    assert_eq!(left(&queue), [0, 1, 2]);
}

#[test]
pub fn a_psync_that_meets_a_failing_medium_acknowledges_nothing() {
    for fault in [Fault::Io, Fault::After] {
        let rig = Rig::new();
        let queue = rig.queue(&how());
        let medium = SimMedium::new(8 << 20, SimConfig::default());
        let pool = PoolOptions::new().on_device(Arc::new(medium.handle()), true).unwrap();
        let mut log = pool.open_log("log", b"").unwrap();
        let (mut producer, mut consumer) = (queue.producer().unwrap(), queue.consumer().unwrap());
        (0..3_u64).for_each(|n| assert!(producer.send_value(&n, NOW).unwrap().is_some()));
        for kind in [OpKind::WriteDurable, OpKind::Barrier] {
            medium.fail_from(kind, 0, fault);
        }
        for _ in 0..2 {
            assert!(log.collect(&mut consumer, 100, NOW).is_err());
            assert!(!producer.wait_taken(0, NOW).unwrap());
        }
        medium.clear_faults();
        drop((log, pool));
        let pool = PoolOptions::new().on_device(Arc::new(medium.handle()), false).unwrap();
        let mut log = pool.open_log("log", b"").unwrap();
        assert_eq!(log.collect(&mut consumer, 100, NOW).unwrap(), 3);
        assert!(producer.wait_taken(2, NOW).unwrap());
        log.detach().unwrap();
        let records = all(&mut pool.read_log("log", b"").unwrap());
        let once: Vec<_> = (0..3_u64).map(|n| n.to_le_bytes().to_vec()).collect();
        assert_eq!(records, once, "whether or not that psync happened");
    }
}

#[test]
fn a_log_without_room_acknowledges_nothing_and_goes_on_later() {
    let rig = Rig::new();
    let queue = rig.attach().queue(0, &options(QueueKind::ManyProducers, 4, 100_000)).unwrap();
    let medium = SimMedium::new(8 << 20, SimConfig::default());
    let pool = PoolOptions::new().on_device(Arc::new(medium.handle()), true).unwrap();
    let mut log = pool.open_log("log", b"").unwrap();
    let mut fill = 4 << 20;
    let mut fillers = 0;
    while fill >= 4096 {
        match pool.create(&format!("filler {fillers}"), fill) {
            Ok(()) => fillers += 1,
            Err(_) => fill /= 2,
        }
    }
    let (mut producer, mut consumer) = (queue.producer().unwrap(), queue.consumer().unwrap());
    for first in [1, 2, 3_u8] {
        producer.send(&vec![first; if first == 1 { 10 } else { 90_000 }], NOW).unwrap().unwrap();
    }
    for _ in 0..2 {
        assert_eq!(kind(log.collect(&mut consumer, 100, NOW)), ErrorKind::NoRoom);
        assert!(!producer.wait_taken(0, NOW).unwrap());
    }
    (0..fillers).for_each(|filler| pool.destroy(&format!("filler {filler}")).unwrap());
    assert_eq!(log.collect(&mut consumer, 100, NOW).unwrap(), 3);
    assert!(producer.wait_taken(2, NOW).unwrap());
    log.detach().unwrap();
    let records = all(&mut pool.read_log("log", b"").unwrap());
    assert_eq!(
        records.iter().map(|bytes| (bytes[0], bytes.len())).collect::<Vec<_>>(),
        [(1, 10), (2, 90_000), (3, 90_000)]
    );
}

#[test]
fn a_log_that_a_power_cut_meets_has_what_was_acknowledged() {
    let rig = Rig::new();
    let queue = rig.queue(&how());
    let mut seeded = Seeded::new(31);
    for _ in 0..10 {
        let medium = SimMedium::new(8 << 20, SimConfig::default());
        let pool = PoolOptions::new().on_device(Arc::new(medium.handle()), true).unwrap();
        let mut log = pool.open_log("log", b"").unwrap();
        let (mut producer, mut consumer) = (queue.producer().unwrap(), queue.consumer().unwrap());
        let (mut sent, mut acknowledged) = (0_u64, 0);
        for _ in 0..seeded.usize(1..20) {
            for _ in 0..seeded.usize(1..10) {
                producer.send_value(&sent, LONG).unwrap().unwrap();
                sent += 1;
            }
            log.collect(&mut consumer, 100, NOW).unwrap();
            acknowledged = sent;
            log.append(b"lost").unwrap();
        }
        let image = medium.power_cut(Choice::None).medium();
        drop((log, pool));
        let pool = PoolOptions::new().on_device(Arc::new(image.handle()), false).unwrap();
        let records = all(&mut pool.read_log("log", b"").unwrap());
        let values = records.iter().filter(|bytes| bytes.len() == 8);
        let values: Vec<u64> =
            values.map(|bytes| u64::from_le_bytes(bytes[..].try_into().unwrap())).collect();
        assert_eq!(values, (0..acknowledged).collect::<Vec<_>>());
    }
}

#[test]
fn a_key_guards_a_log() {
    let rig = Rig::new();
    let pool = &rig.pool;
    pool.open_log("log", b"k").unwrap().detach().unwrap();
    assert_eq!(kind(pool.open_log("log", b"")), ErrorKind::WrongKey);
    assert_eq!(kind(pool.read_log("log", b"no")), ErrorKind::WrongKey);
    pool.read_log("log", b"k").unwrap();
}

fn of(number: u64, len: usize) -> Vec<u8> {
    (0..len as u64).map(|at| (number * 7 + at) as u8).collect()
}

fn reached(readers: usize) -> u64 {
    const LEN: usize = 8 << 10;
    let medium = SimMedium::new(32 << 20, SimConfig::default());
    let pool = PoolOptions::new().on_device(Arc::new(medium.handle()), true).unwrap();
    let mut log = pool.open_log("log", b"").unwrap();
    let mut readers: Vec<_> = (0..readers).map(|_| pool.read_log("log", b"").unwrap()).collect();
    loop {
        for _ in 0..16 {
            if let Err(error) = log.append(&of(log.len(), LEN)) {
                assert_eq!(error.kind(), ErrorKind::NoRoom);
                return log.len();
            }
        }
        log.psync().unwrap();
        for reader in &mut readers {
            let first = reader.len();
            assert!(reader.refresh().unwrap() && !reader.is_locked());
            for number in first..log.len() {
                assert_eq!(reader.read().unwrap().unwrap().bytes, of(number, LEN));
            }
            assert_eq!(reader.read().unwrap(), None);
        }
    }
}

#[test]
fn readers_take_no_space_from_a_log() {
    let alone = reached(0);
    assert!(alone * (8 << 10) > 24 << 20, "{alone} records");
    assert_eq!((reached(1), reached(3)), (alone, alone));
}

#[test]
fn a_reader_in_place_reads_what_was_psynced_wherever_the_log_lies() {
    let mut seeded = Seeded::new(17);
    let medium = SimMedium::new(64 << 20, SimConfig::default());
    let pool = PoolOptions::new().on_device(Arc::new(medium.handle()), true).unwrap();
    let mut log = pool.open_log("log", b"").unwrap();
    let mut readers: Vec<_> = (0..3).map(|_| (pool.read_log("log", b"").unwrap(), 0, 0)).collect();
    let (mut lens, mut psynced, mut others) = (Vec::new(), 0, Vec::new());
    for step in 0..600 {
        match seeded.usize(..12) {
            0..4 => {
                let len = if seeded.usize(..8) == 0 { 40_000 } else { seeded.usize(..3000) };
                let number = log.append(&of(lens.len() as u64, len)).unwrap();
                assert_eq!(number, lens.len() as u64);
                lens.push(len);
            }
            4..7 => {
                log.psync().unwrap();
                psynced = lens.len() as u64;
            }
            7 => {
                drop(log);
                lens.truncate(psynced as usize);
                log = pool.open_log("log", b"").unwrap();
            }
            8 if others.len() < 6 => {
                let name = format!("other {step}");
                match seeded.bool() {
                    true => pool.snapshot("log", &name, b"").unwrap(),
                    false => pool.create(&name, 4096).unwrap(),
                }
                others.push(name);
            }
            9 => {
                if let Some(name) = others.pop() {
                    pool.destroy(&name).unwrap();
                }
            }
            _ => {
                let index = seeded.usize(..3);
                let (reader, shown, next) = &mut readers[index];
                if seeded.bool() {
                    assert!(reader.refresh().unwrap() || *shown == psynced, "step {step}");
                    *shown = psynced;
                    assert_eq!(reader.len(), psynced, "step {step}");
                }
                for _ in 0..seeded.usize(..40) {
                    let found = reader.read().unwrap().map(|record| record.bytes);
                    let expected = (*next < *shown).then(|| of(*next, lens[*next as usize]));
                    assert!(found == expected, "step {step}: record {next} of {shown}");
                    *next += u64::from(found.is_some());
                }
            }
        }
    }
    drop(log);
    pool.destroy("log").unwrap();
    assert_eq!(kind(readers[0].0.refresh()), ErrorKind::NotFound);
    pool.open_log("log", b"").unwrap().psync().unwrap();
    assert_eq!(kind(readers[0].0.refresh()), ErrorKind::Damaged);
}
