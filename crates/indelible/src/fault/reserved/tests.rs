use super::{Owner, Reserved};
use crate::mapping::Mapping;
use crate::sys::PAGE;
use crate::sys::mmap::Protection;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, Weak};

struct Answers {
    range: Mutex<Mapping>,
    addr: usize,
    asked: AtomicUsize,
    refuses: usize,
}

impl Owner for Answers {
    fn touched(&self, number: usize) -> bool {
        assert_eq!(number, 7);
        if self.asked.fetch_add(1, Ordering::SeqCst) < self.refuses {
            return false;
        }
        let mut range = self.range.lock().unwrap();
        if range.len() != 2 * PAGE {
            // In one step: the kernel would place the stack of a starting thread in a hole here.
            // SAFETY: no thread has had access.
            unsafe { range.move_to(2 * PAGE, 0, Protection::ReadWrite) }.unwrap();
        }
        true
    }
}

fn reserved(refuses: usize) -> (Arc<Answers>, Reserved) {
    let mapping = Mapping::anonymous(None, 3 * PAGE, Protection::None).unwrap();
    let addr = mapping.addr();
    let answers = Arc::new(Answers { range: Mutex::new(mapping), addr, asked: AtomicUsize::new(0), refuses });
    let owner: Weak<dyn Owner> = Arc::<Answers>::downgrade(&answers);
    let touches = Reserved::new(addr..addr + 2 * PAGE, owner, 7).unwrap();
    (answers, touches)
}

fn at(addr: usize) -> *mut u64 {
    std::ptr::with_exposed_provenance_mut(addr)
}

#[test]
fn s2_08_the_first_touch_maps_a_range_for_all_threads() {
    let (answers, touches) = reserved(0);
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let addr = answers.addr + 64 * thread;
            // SAFETY: mapped by the touch; each thread has a word of its own.
            scope.spawn(move || unsafe { *at(addr) += 1 });
        }
    });
    // SAFETY: mapped; the threads have ended.
    let words = [0, 1, 2, 3].map(|thread| unsafe { *at(answers.addr + 64 * thread) });
    assert_eq!(words, [1; 4]);
    assert!(answers.asked.load(Ordering::SeqCst) >= 1);
    drop(touches);
    // SAFETY: still mapped.
    assert_eq!(unsafe { *at(answers.addr) }, 1);
}

#[test]
fn s2_08_a_fault_that_is_not_the_ranges_goes_on() {
    use super::table::touched;
    use crate::sys::signal::Verdict::{Foreign, Resolved};
    let (answers, touches) = reserved(2);
    let addr = answers.addr;
    assert_eq!(touched(addr + 2 * PAGE, true), Foreign, "beside the range");
    assert_eq!(touched(addr, true), Foreign, "refused");
    assert_eq!(touched(addr, false), Foreign, "refused once more, and asked again for it");
    assert_eq!(answers.asked.load(Ordering::SeqCst), 2);
    assert_eq!(touched(addr + 1, true), Resolved, "mapped now");
    assert_eq!(touched(addr + 1, true), Resolved, "may have come before that");
    assert_eq!(touched(addr + 1, true), Foreign, "has not");
    assert_eq!(answers.asked.load(Ordering::SeqCst), 3);
    touches.unmapped();
    assert_eq!(touched(addr + 1, true), Resolved, "asked for again");
    assert_eq!(answers.asked.load(Ordering::SeqCst), 4);
    drop(touches);
    assert_eq!(touched(addr, true), Foreign, "no owner");
    assert_eq!(answers.asked.load(Ordering::SeqCst), 4);
}

#[test]
fn an_owner_that_is_gone_answers_no_touch() {
    use super::table::touched;
    let (answers, touches) = reserved(0);
    let addr = answers.addr;
    drop(answers);
    assert_eq!(touched(addr, true), crate::sys::signal::Verdict::Foreign);
    drop(touches);
}

struct Panics(AtomicUsize);

impl Owner for Panics {
    fn touched(&self, _: usize) -> bool {
        assert_ne!(self.0.fetch_add(1, Ordering::SeqCst), 0, "an owner's defect");
        true
    }
}

#[test]
fn a_panic_of_an_owner_refuses_and_the_next_touch_is_answered() {
    use super::table::touched;
    use crate::sys::signal::Verdict::{Foreign, Resolved};
    let mapping = Mapping::anonymous(None, PAGE, Protection::None).unwrap();
    let panics: Arc<dyn Owner> = Arc::new(Panics(AtomicUsize::new(0)));
    let range = mapping.addr()..mapping.addr() + PAGE;
    let touches = Reserved::new(range, Arc::downgrade(&panics), 0).unwrap();
    assert_eq!(touched(mapping.addr(), true), Foreign);
    assert_eq!(touched(mapping.addr(), true), Resolved);
    drop(touches);
}
