use super::checked::Words;
use super::durable::Durable;
use super::space::Space;
use indelible_store::Mutant;
use std::cell::RefCell;
use std::sync::{Arc, Weak};

pub(super) type Thread = indelible_stm::Thread<Words, Durable>;

struct Membership {
    space: Weak<Space>,
    thread: Option<Box<Thread>>,
}

thread_local! {
    static MEMBERSHIPS: RefCell<Vec<Membership>> = const { RefCell::new(Vec::new()) };
}

/// Puts back the thread's state on drop; a transaction begun in between has its own.
pub(crate) struct Member {
    /// Address of its space, unique as long as the place has a member of it.
    space: usize,
    pub(super) thread: Option<Box<Thread>>,
}

impl Member {
    #[inline]
    pub(super) fn of(space: &Arc<Space>) -> Member {
        let address = Arc::as_ptr(space).addr();
        let kept = MEMBERSHIPS.try_with(|places| find(&mut places.borrow_mut(), address)?.thread.take());
        match kept {
            Ok(Some(thread)) => Member { space: address, thread: Some(thread) },
            _ => Member::new(space),
        }
    }

    /// For the thread's first transaction in the space, within another's action, and while the
    /// thread ends: it relies on all commits so far.
    #[cold]
    fn new(space: &Arc<Space>) -> Member {
        let address = Arc::as_ptr(space).addr();
        let _ = MEMBERSHIPS.try_with(|places| {
            let mut places = places.borrow_mut();
            if find(&mut places, address).is_none() {
                places.retain(|place| place.space.strong_count() > 0);
                places.push(Membership { space: Arc::downgrade(space), thread: None });
            }
        });
        let mut thread = Box::new(space.stm.thread());
        if !Mutant::UnknownTakenForNone.is_on() {
            thread.own().note(space.last());
        }
        Member { space: address, thread: Some(thread) }
    }

    pub(super) fn known(space: usize) -> Option<Member> {
        let kept = MEMBERSHIPS.try_with(|places| find(&mut places.borrow_mut(), space)?.thread.take());
        kept.ok().flatten().map(|thread| Member { space, thread: Some(thread) })
    }
}

#[inline]
fn find(places: &mut [Membership], space: usize) -> Option<&mut Membership> {
    places.iter_mut().find(|place| place.space.as_ptr().addr() == space)
}

/// If unknown, the space's last, which may not be durable.
pub(super) fn last_of_thread(space: &Arc<Space>) -> u64 {
    Member::of(space).thread.as_mut().map_or(0, |thread| thread.own().last())
}

impl Drop for Member {
    #[inline]
    fn drop(&mut self) {
        let Some(mut thread) = self.thread.take() else { return };
        let _rest = MEMBERSHIPS.try_with(|places| {
            let mut places = places.borrow_mut();
            match find(&mut places, self.space).map(|place| &mut place.thread) {
                Some(Some(first)) => first.own().note(thread.own().last()),
                Some(empty) => return empty.replace(thread),
                None => {}
            }
            Some(thread)
        });
    }
}
