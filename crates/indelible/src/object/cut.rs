use super::together::cut_cores;
use super::writer::Object;
use crate::dirty::{Bystanders, Unknown};
use crate::error::Result;
use crate::events;

impl Object {
    /// As [`psync`](Object::psync), while other threads store: a consistent cut. Their stores wait,
    /// or belong to the next psync; a system call that stores to a protected page fails with
    /// `EFAULT`.
    pub fn psync_cut(&self) -> Result<()> {
        self.cut(false, &mut Unknown, || {})
    }

    /// As [`psync_cut`](Object::psync_cut), for a caller that can keep storing threads away, or
    /// wait for them. Tracking by `mprotect` or `explicit` holds stores up without asking `others`.
    ///
    /// # Errors
    /// As for [`psync`](Object::psync); `Busy` if the answer is
    /// [`Beside::GiveUp`](crate::Beside::GiveUp).
    pub fn psync_cut_beside(&self, others: &mut dyn Bystanders) -> Result<()> {
        self.cut(false, others, || {})
    }

    /// A gate keeps out threads that store under locks of the object's heap. Calls `fixed` when the
    /// content is fixed, before the durable write.
    pub(crate) fn psync_cut_gated(&self, others: &mut dyn Bystanders, fixed: impl FnOnce()) -> Result<()> {
        self.cut(true, others, fixed)
    }

    fn cut(&self, gated: bool, others: &mut dyn Bystanders, fixed: impl FnOnce()) -> Result<()> {
        let cut = self.pool.alive().and_then(|()| cut_cores(&mut [&mut *self.core()], gated, others, fixed));
        cut.map_err(|cause| self.error("psync", cause))?;
        events::psynced(&self.name, || self.stats().logged_bytes);
        Ok(())
    }
}
