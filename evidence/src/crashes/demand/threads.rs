use std::cell::RefCell;

thread_local! {
    static AT_THE_END: RefCell<AtTheEnd> = const { RefCell::new(AtTheEnd(None)) };
}

struct AtTheEnd(Option<Box<dyn FnOnce()>>);

impl Drop for AtTheEnd {
    fn drop(&mut self) {
        if let Some(what) = self.0.take() {
            what();
        }
    }
}

/// Runs `what` at this thread's end, after its transactions' state is gone; the thread has run none
/// yet.
pub(super) fn at_the_end(what: impl FnOnce() + 'static) {
    AT_THE_END.set(AtTheEnd(Some(Box::new(what))));
}
