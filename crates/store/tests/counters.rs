use indelible_store::medium::{Device, Fatal};
use indelible_store::store::{Store, Writer};
use indelible_store::table::{CreateOptions, Key};
use indelible_testing::pool::{process, psync, psync_copied, psync_many};
use indelible_testing::scenario::formatted;
use indelible_testing::{BeforeRead, Hook, Hooked, SimConfig, SimMedium};
use std::ops::Range;
use std::sync::{Arc, Mutex};

const KEY: Key<'static> = Key(&[]);

/// On a disk locks tell that a lane changes, on memory a word does.
fn pool(disk: bool) -> SimMedium {
    let medium = formatted(2 << 20, SimConfig { disk, ..SimConfig::default() });
    let store = open(&medium, 1);
    for name in ["a", "b"] {
        store.create(name, &CreateOptions { size: 10_000, ..CreateOptions::default() }).unwrap();
    }
    medium
}

fn open(medium: &SimMedium, pid: u32) -> Arc<Store> {
    Store::open(Arc::new(medium.handle()), process(pid)).unwrap()
}

fn counted(store: &Store, name: &str) -> u64 {
    store.stat(name).unwrap().1.psyncs
}

fn step(writer: &mut Writer, value: u64) {
    psync(writer, &[(0, &value.to_le_bytes())]).unwrap();
}

#[test]
fn each_psync_is_counted_when_it_returns() {
    for disk in [true, false] {
        let medium = pool(disk);
        let (ours, others) = (open(&medium, 1), open(&medium, 2));
        let looks = Store::open(Arc::new(medium.read_only_handle()), process(3)).unwrap();
        let mut a = ours.attach_writer("a", KEY).unwrap();
        let mut b = ours.attach_writer("b", KEY).unwrap();
        let check = |a, b| {
            for store in [&ours, &others, &looks] {
                assert_eq!((counted(store, "a"), counted(store, "b")), (a, b), "on a disk: {disk}");
                let all = store.statuses(&store.entries().unwrap(), None, |_, status| status.psyncs);
                let sum: u64 = all.unwrap().into_iter().flatten().map(Result::unwrap).sum();
                assert_eq!(sum, a + b);
            }
        };
        for round in 1..6 {
            step(&mut a, round);
            check(round, (round - 1) * 2);
            step(&mut b, round);
            psync_many(&mut [(&mut b, &[(64, &[round as u8; 64])])]).unwrap();
            check(round, round * 2);
            if round == 3 {
                a.checkpoint().unwrap();
                check(3, 6);
            }
        }
        psync_many(&mut [(&mut a, &[(0, &[7; 9])]), (&mut b, &[(0, &[7; 9])])]).unwrap();
        check(6, 11);
        assert_eq!(looks.stat("b").unwrap().1.published, 128);
        a.detach().unwrap();
        check(6, 11);
        b.detach().unwrap();
        check(6, 11);
    }
}

type Event = Box<dyn Fn(bool) + Send>;

#[derive(Default)]
struct Visible(Mutex<Option<(Range<u64>, Event)>>);

impl Hook for Visible {
    fn write_durable(&self, under: &dyn Device, offset: u64, bytes: &[u8]) -> Result<(), Fatal> {
        let planned = self.0.lock().unwrap();
        let event = planned.as_ref().filter(|(range, _)| range.contains(&offset)).map(|(_, event)| event);
        if let Some(event) = event {
            under.write(offset, bytes)?;
            event(false);
        }
        under.write_durable(offset, bytes)?;
        if let Some(event) = event {
            event(true);
        }
        Ok(())
    }
}

#[test]
fn a_psync_that_is_not_durable_yet_is_not_counted() {
    for disk in [true, false] {
        let medium = pool(disk);
        let hooked = Hooked::new(Arc::new(medium.handle()), Visible::default());
        let store = Store::open(hooked.clone() as Arc<dyn Device>, process(1)).unwrap();
        let mut writer = store.attach_writer("a", KEY).unwrap();
        step(&mut writer, 1);
        let lane = writer.object().entry.lane.get();
        let lane = store.lanes().unwrap().into_iter().find(|dump| dump.index == Some(lane)).unwrap();
        let (others, seen) = (open(&medium, 2), Arc::new(Mutex::new(Vec::new())));
        let noted = seen.clone();
        let look = move |durable| noted.lock().unwrap().push((durable, counted(&others, "a")));
        let body = lane.offset + indelible_store::format::lane::BODY;
        *hooked.0.lock().unwrap() = Some((body..lane.offset + lane.len, Box::new(look)));
        for value in 2..5_u8 {
            psync_copied(&mut [(&mut writer, &[(0, &[value; 8])])]).unwrap();
        }
        *hooked.0.lock().unwrap() = None;
        let seen = seen.lock().unwrap();
        let psyncs = seen.chunks(2).zip(1..);
        for (looks, done) in psyncs {
            assert!(!looks[0].0 && looks[1].0);
            assert!(looks.iter().all(|(_, count)| *count == done), "{looks:?}, on a disk: {disk}");
        }
        assert_eq!((seen.len(), counted(&open(&medium, 3), "a")), (6, 4));
    }
}

#[test]
fn a_checkpoint_in_the_middle_of_a_look_takes_nothing_away() {
    for (disk, read_only) in [(true, true), (true, false), (false, true), (false, false)] {
        let medium = pool(disk);
        let writer = open(&medium, 1).attach_writer("a", KEY).unwrap();
        let writer = Arc::new(Mutex::new(writer));
        let handle = if read_only { medium.read_only_handle() } else { medium.handle() };
        let hooked = Hooked::new(Arc::new(handle), BeforeRead::default());
        let store = Store::open(hooked.clone() as Arc<dyn Device>, process(2)).unwrap();
        counted(&store, "a");
        let mut reads = 0;
        loop {
            for value in 0..3 {
                step(&mut writer.lock().unwrap(), reads * 10 + value);
            }
            let before = writer.lock().unwrap().psyncs();
            let other = writer.clone();
            hooked.plan(reads, move || {
                let mut writer = other.lock().unwrap();
                step(&mut writer, reads * 10 + 8);
                writer.checkpoint().unwrap();
                step(&mut writer, reads * 10 + 9);
            });
            let found = counted(&store, "a");
            if hooked.is_due() {
                break;
            }
            let after = writer.lock().unwrap().psyncs();
            assert!((before..=after).contains(&found), "{before} {found} {after} at read {reads}");
            reads += 1;
        }
        assert!(reads > 8, "{reads}");
    }
}
