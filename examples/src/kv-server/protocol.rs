//! The interface between connections and protocols.

use crate::reply::Reply;
use crate::service::Access;

pub(crate) enum Step {
    /// No whole request: the input stays.
    Incomplete,
    /// `len` bytes of the input are consumed.
    Done {
        len: usize,
        /// A request was executed that expects a reply.
        answered: bool,
        ends: bool,
    },
}

pub(crate) trait Protocol {
    /// Executes the first request of an input, and appends its reply. After `Incomplete`, the next
    /// input begins with the same bytes.
    fn step(&mut self, access: &mut Access<'_, '_>, input: &[u8], reply: &mut Reply) -> Step;

    fn refuse(&self, why: &str, reply: &mut Reply);
}
