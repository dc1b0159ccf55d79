//! The seam between connections and protocols.

use crate::reply::Reply;
use crate::service::Service;

/// The outcome of a look at a connection's input.
pub(crate) enum Step {
    /// The input has no whole request; it is left as it is.
    Incomplete,
    /// `len` bytes of the input are done with.
    Done {
        len: usize,
        /// Whether a request was carried out that expects a reply.
        answered: bool,
        /// Whether the connection ends once the reply has left.
        ends: bool,
    },
}

/// One connection's side of a protocol.
pub(crate) trait Protocol {
    /// Carries out the first request of an input, and appends its reply. After `Incomplete`, the
    /// next input begins with the same bytes.
    fn step(&mut self, service: &Service<'_>, input: &[u8], reply: &mut Reply) -> Step;

    /// Appends the reply to a request whose changes could not be made durable.
    fn refuse(&self, why: &str, reply: &mut Reply);
}
