#![allow(unsafe_code)]

use std::collections::BTreeMap;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use super::*;
use crate::mapping::Mapping;
use crate::sys::mmap::{self, Protection};

const PAGES: usize = 100;

enum Event {
    Fails,
    Panics,
    Waits(Sender<()>, Receiver<()>),
}

struct Scripted {
    byte: u8,
    slow: bool,
    script: Mutex<BTreeMap<usize, Event>>,
    read: Mutex<Vec<usize>>,
}

impl Scripted {
    fn new(byte: u8, slow: bool) -> Arc<Scripted> {
        Arc::new(Scripted { byte, slow, script: Mutex::default(), read: Mutex::default() })
    }

    fn wait_at(&self, page: usize) -> (Receiver<()>, Sender<()>) {
        let ((say, said), (go, gone)) = (channel(), channel());
        self.script.lock().unwrap().insert(page, Event::Waits(say, gone));
        (said, go)
    }

    fn page(&self, page: usize) -> Result<(), PageError> {
        let mut script = self.script.lock().unwrap();
        match script.get(&page) {
            Some(Event::Fails) => Err(PageError { page, source: "as the script says".into() }),
            Some(Event::Panics) => {
                drop(script);
                panic!("as the script says")
            }
            Some(Event::Waits(..)) => {
                let Some(Event::Waits(say, gone)) = script.remove(&page) else { return Ok(()) };
                drop(script);
                say.send(()).unwrap();
                gone.recv().unwrap();
                Ok(())
            }
            None => Ok(()),
        }
    }
}

impl PageSource for Scripted {
    fn read(&self, first: usize, bytes: &mut [u8]) -> Result<(), PageError> {
        for (page, bytes) in (first..).zip(bytes.chunks_exact_mut(PAGE)) {
            self.page(page)?;
            self.read.lock().unwrap().push(page);
            bytes.fill(self.byte);
        }
        Ok(())
    }

    fn is_slow(&self) -> bool {
        self.slow
    }
}

struct Area {
    served: Served,
    mapping: Mapping,
}

impl Area {
    fn new(place: usize, source: &Arc<Scripted>, ahead: usize, budget: usize) -> Area {
        Area::with(place, source, ahead, budget, None)
    }

    fn with(
        place: usize,
        source: &Arc<Scripted>,
        ahead: usize,
        budget: usize,
        prediction: Option<PredictionParams>,
    ) -> Area {
        let addr = 0x5800_0000_0000 + (place << 30);
        let mapping = Mapping::anonymous(addr, PAGES * PAGE, Protection::ReadWrite).unwrap();
        let source = Arc::clone(source) as Arc<dyn PageSource>;
        let (len, (limit, frozen)) = (PAGES * PAGE, (None, false));
        let (protect, secret) = (false, false);
        let params = ServeParams {
            base: addr,
            len,
            ahead,
            budget,
            protect,
            secret,
            limit,
            frozen,
            prediction,
            source,
        };
        Area { served: serve(params).unwrap(), mapping }
    }

    fn load(&self, page: usize) -> u8 {
        // SAFETY: a page of the mapping, to which no thread stores.
        unsafe { self.mapping.base().as_ptr().add(page * PAGE + 7).read_volatile() }
    }

    fn drop_page(&self, page: usize) {
        // SAFETY: there are no references to the page.
        let done = unsafe {
            libc::madvise(self.mapping.base().as_ptr().add(page * PAGE).cast(), PAGE, libc::MADV_DONTNEED)
        };
        assert_eq!(done, 0);
    }

    fn present(&self) -> Vec<usize> {
        let mut at = 0;
        while at < PAGES {
            let claimed = self.served.range.claim(at..PAGES).unwrap();
            assert!(self.served.range.end(&claimed).is_empty(), "another thread's fault");
            at = claimed.end;
        }
        let found = mmap::resident(self.mapping.addr(), PAGES).unwrap();
        found.iter().enumerate().filter_map(|(page, there)| there.then_some(page)).collect()
    }
}

fn serves() -> bool {
    let serves = reach().is_some();
    if !serves {
        indelible_testing::not_tested("fault-in (no userfaultfd, or one without poison)");
    }
    serves
}

const LONG: Duration = Duration::from_secs(30);

#[test]
fn a_slow_source_keeps_no_other_object_waiting() {
    if !serves() {
        return;
    }
    let (slow, quick) = (Scripted::new(1, true), Scripted::new(2, false));
    let (a, b) = (Area::new(0, &slow, 0, 0), Area::new(1, &quick, 0, 0));
    let (there, go) = slow.wait_at(3);
    let (answer, answered) = channel();
    thread::scope(|scope| {
        let first = scope.spawn(|| a.load(3));
        there.recv().unwrap();
        let same = scope.spawn(|| a.load(3));
        let other = scope.spawn(|| a.load(4));
        scope.spawn(|| answer.send(b.load(0)).unwrap());
        let answered = answered.recv_timeout(LONG);
        go.send(()).unwrap();
        assert_eq!(answered, Ok(2), "the fault waited for another object's source");
        assert_eq!([first, same, other].map(|thread| thread.join().unwrap()), [1, 1, 1]);
    });
    assert_eq!(slow.read.lock().unwrap().iter().filter(|page| **page == 4).count(), 1);
}

#[test]
fn pages_filled_ahead_keep_no_fault_waiting_elsewhere() {
    if !serves() {
        return;
    }
    let (ahead, quick) = (Scripted::new(1, false), Scripted::new(2, false));
    let (a, b) = (Area::new(2, &ahead, 0, PAGES), Area::new(3, &quick, 0, 0));
    let (there, go) = ahead.wait_at(10);
    let (answer, answered) = channel();
    thread::scope(|scope| {
        let filler = scope.spawn(|| a.served.prefault(0..80));
        there.recv().unwrap();
        let inside = scope.spawn(|| a.load(90));
        scope.spawn(|| answer.send(b.load(0)).unwrap());
        let answered = answered.recv_timeout(LONG);
        go.send(()).unwrap();
        assert_eq!(answered, Ok(2), "the fault waited for pages filled ahead");
        assert_eq!((inside.join().unwrap(), filler.join().unwrap().unwrap()), (1, 80));
    });
    assert_eq!(a.load(79), 1);
}

#[test]
fn a_page_that_fails_ahead_of_its_use_is_an_error_and_no_more() {
    if !serves() {
        return;
    }
    let source = Scripted::new(5, false);
    let area = Area::new(4, &source, 8, PAGES);
    for (page, event, why) in [
        (5, Event::Fails, "cannot read page 5 of the object: as the script says"),
        (20, Event::Panics, "the source panicked"),
    ] {
        source.script.lock().unwrap().insert(page, event);
        let error = area.served.prefault(page - 5..page + 5).unwrap_err();
        assert!(error.to_string().contains(why), "{error}");
        assert_eq!(area.load(page - 1), 5);
        assert!(!area.present().contains(&page));
        assert!(area.served.failure().is_none(), "no thread touched the page");
        source.script.lock().unwrap().clear();
        assert_eq!(area.served.prefault(page - 5..page + 5).unwrap(), 10);
        assert_eq!(area.load(page), 5);
    }
}

#[test]
fn no_more_is_filled_ahead_than_the_budget_allows() {
    if !serves() {
        return;
    }
    let source = Scripted::new(6, false);
    let area = Area::new(5, &source, 8, 12);
    assert_eq!((area.load(50), area.present()), (6, (50..59).collect()), "eight pages ahead");
    assert_eq!(area.served.prefault(45..70).unwrap(), 5 - 1, "the four that are left");
    assert_eq!((area.load(80), area.load(49)), (6, 6), "what is touched is filled");
    let mut read = source.read.lock().unwrap().clone();
    read.sort_unstable();
    assert_eq!(read, [(45..59).collect(), vec![80]].concat(), "and nothing beside it, nor twice");
    assert_eq!(area.served.prefault(45..59).unwrap(), 14, "pages that are there cost nothing");
    assert_eq!(area.served.prefault(90..200).unwrap(), 0);
}

#[test]
fn pages_dropped_while_their_fault_is_answered_come_back() {
    if !serves() {
        return;
    }
    let source = Scripted::new(7, true);
    let area = Area::new(6, &source, 0, PAGES);
    let (there, go) = source.wait_at(3);
    thread::scope(|scope| {
        let loading = scope.spawn(|| area.load(3));
        there.recv().unwrap();
        area.drop_page(3);
        go.send(()).unwrap();
        assert_eq!(loading.join().unwrap(), 7);
    });
    area.drop_page(3);
    assert_eq!((area.present(), area.load(3)), (vec![], 7));
    assert_eq!(*source.read.lock().unwrap(), [3, 3]);
}

#[test]
fn a_range_that_is_no_longer_served_is_filled_no_more() {
    if !serves() {
        return;
    }
    let (old, new) = (Scripted::new(8, false), Scripted::new(9, false));
    let area = Area::new(7, &old, 0, PAGES);
    let range = Arc::clone(&area.served.range);
    drop(area);
    let area = Area::new(7, &new, 0, PAGES);
    assert_eq!(range.claim_or_leave(area.mapping.addr()), None);
    assert_eq!(area.served.service.prefault(&range, 0, 10).unwrap(), 0);
    assert_eq!((area.present(), area.load(0)), (vec![], 9));
    assert!(old.read.lock().unwrap().is_empty());
}

#[test]
fn a_source_on_a_slow_medium_says_so() {
    let source = Scripted::new(4, false);
    let slow = OnSlowMedium(source.clone());
    let mut bytes = vec![0; 4 * PAGE];
    slow.read(11, &mut bytes).unwrap();
    assert!(bytes.iter().all(|byte| *byte == 4) && *source.read.lock().unwrap() == [11, 12, 13, 14]);
    assert!(slow.is_slow() && !source.is_slow());
    source.script.lock().unwrap().insert(12, Event::Fails);
    assert_eq!(slow.read(11, &mut bytes).unwrap_err().page, 12);
}

fn settle(area: &Area, filled: u64) {
    let begin = Instant::now();
    while area.served.prediction().unwrap().filled < filled {
        assert!(begin.elapsed() < LONG, "{:?}", area.served.prediction());
        thread::yield_now();
    }
}

fn predicting(place: usize, source: &Arc<Scripted>, budget: usize, measured: bool) -> Area {
    let depth = PredictionDepth::Pages(4);
    Area::with(place, source, 0, budget, Some(PredictionParams { depth, measured }))
}

#[test]
fn predicted_pages_raise_no_fault_and_their_trigger_does() {
    if !serves() {
        return;
    }
    let source = Scripted::new(3, false);
    let area = predicting(8, &source, PAGES, false);
    assert_eq!([area.load(10), area.load(11)], [3, 3]);
    settle(&area, 4);
    assert_eq!(area.present(), [10, 11, 12, 13, 15, 16], "the trigger, 14, is not filled");
    assert_eq!([12, 13, 14].map(|page| area.load(page)), [3; 3]);
    settle(&area, 8);
    assert_eq!(area.present(), [(10..19).collect(), vec![20, 21]].concat());
    let stats = area.served.prediction().unwrap();
    assert_eq!((stats.faults, stats.late, stats.filled, stats.touched), (3, 0, 8, 0));
    assert_eq!(area.served.failure().map(|error| error.page), None);
}

#[test]
fn a_fault_of_a_page_that_is_being_filled_is_answered_by_its_thread() {
    if !serves() {
        return;
    }
    let source = Scripted::new(4, false);
    let area = predicting(9, &source, PAGES, false);
    let (there, go) = source.wait_at(12);
    assert_eq!([area.load(10), area.load(11)], [4, 4]);
    there.recv().unwrap();
    thread::scope(|scope| {
        let waiting = scope.spawn(|| area.load(13));
        assert_eq!(area.load(50), 4);
        while area.served.prediction().unwrap().late == 0 {
            thread::yield_now();
        }
        go.send(()).unwrap();
        assert_eq!(waiting.join().unwrap(), 4);
    });
    settle(&area, 4);
    assert_eq!(source.read.lock().unwrap().iter().filter(|page| **page == 13).count(), 1);
}

#[test]
fn predicted_pages_that_fail_are_errors_when_they_are_touched() {
    if !serves() {
        return;
    }
    let source = Scripted::new(5, false);
    let area = predicting(10, &source, PAGES, false);
    source.script.lock().unwrap().insert(13, Event::Fails);
    assert_eq!([area.load(10), area.load(11)], [5, 5]);
    settle(&area, 2);
    assert!(!area.present().contains(&13) && area.served.failure().is_none());
    let narrow = predicting(11, &source, 3, false);
    assert_eq!([narrow.load(20), narrow.load(21)], [5, 5]);
    settle(&narrow, 3);
    assert_eq!(narrow.load(24), 5);
    assert_eq!(narrow.served.prefault(40..50).unwrap(), 0);
}

#[test]
fn a_measured_range_says_how_good_its_prediction_is() {
    if !serves() {
        return;
    }
    let source = Scripted::new(6, false);
    let area = predicting(12, &source, PAGES, true);
    assert_eq!([area.load(10), area.load(11)], [6, 6]);
    settle(&area, 4);
    assert_eq!(area.present(), [10, 11], "predicted pages are read, and thrown away");
    assert_eq!([12, 13, 15].map(|page| area.load(page)), [6; 3]);
    let stats = area.served.prediction().unwrap();
    assert_eq!((stats.touched, stats.predicted, stats.used, stats.in_time), (5, 4, 3, 3));
    assert_eq!((stats.accuracy(), stats.coverage(), stats.timeliness()), (Some(0.75), Some(0.6), Some(1.0)));
    assert_eq!(area.present(), [10, 11, 12, 13, 15]);
}
