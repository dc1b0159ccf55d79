//! Requests and their completions: two one-producer queues in a shared object.
//!
//! A request stays in its queue until it and all before it are completed. The server first puts the
//! completion into the other queue, then marks the request's slot. A server that takes over marks
//! the one request whose completion, the last of its queue, may lack the mark, and receives the
//! unmarked ones. So each request has one completion.
//!
//! Invariant: requests without a received completion number at most the slots, so that a completion
//! always finds room.

use super::consumer::Consumer;
use super::layout::{QueueKind, QueueOptions, Role};
use super::object::SharedObject;
use super::producer::Producer;
use super::queue::Queue;
use super::word::error;
use crate::error::{Cause, Error, Result, SharedError};
use crate::sys::sync::Ordering;
use indelible_store::Mutant;
use std::collections::{BTreeMap, HashSet};
use std::time::{Duration, Instant};

const NUMBER: usize = size_of::<u64>();
/// There is room, unless the memory was scribbled over.
const PATIENCE: Duration = Duration::from_secs(10);
const NOW: Option<Duration> = Some(Duration::ZERO);

/// How an exchange is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExchangeOptions {
    /// Requests at most that wait for their completions: a power of two.
    pub slots: usize,
    /// Bytes of the longest request.
    pub request: usize,
    /// Bytes of the longest completion.
    pub completion: usize,
}

impl Default for ExchangeOptions {
    fn default() -> Self {
        ExchangeOptions { slots: 256, request: 64, completion: 56 }
    }
}

impl ExchangeOptions {
    /// Bytes of such an exchange, for sizing its object.
    ///
    /// # Errors
    /// `BadSize`: there can be no such exchange.
    pub fn bytes(&self) -> Result<usize> {
        let [requests, completions] = self.queues();
        Ok(requests.bytes()?.next_multiple_of(64).saturating_add(completions.bytes()?))
    }

    fn queues(&self) -> [QueueOptions; 2] {
        [self.request, self.completion.saturating_add(NUMBER)].map(|most| QueueOptions {
            kind: QueueKind::OneProducer,
            slots: self.slots,
            most,
        })
    }
}

/// Requests and their completions in a shared object: one requester sends requests and gets
/// numbers, one server completes them by their numbers, in any order. Both may die at any
/// instruction: each request that was sent is completed once, by this server or a later one.
///
/// ```
/// # let dir = tempfile::tempdir().unwrap();
/// # let pool = indelible::Pool::format(dir.path().join("p"), 16 << 20)?;
/// use indelible::{Class, CreateOptions, ExchangeOptions};
///
/// let how = ExchangeOptions::default();
/// pool.create_with("squares", &CreateOptions::new(how.bytes()? as u64).class(Class::Shared))?;
/// let squares = pool.attach_shared("squares")?.exchange(0, &how)?; // in each process
/// let mut requester = squares.requester()?;
/// let three = requester.send(&[3], None)?.unwrap();
/// let five = requester.send(&[5], None)?.unwrap();
///
/// let mut server = squares.server()?; // in another process
/// let (mut request, mut open) = (Vec::new(), Vec::new());
/// while let Some(number) = server.receive(&mut request, Some(std::time::Duration::ZERO))? {
///     open.push((number, request[0]));
/// }
/// for (number, side) in open.into_iter().rev() {
///     server.complete(number, &[side * side])?;
/// }
///
/// let mut square = Vec::new();
/// assert!(requester.wait(three, &mut square, None)? && square == [9]);
/// assert!(requester.wait(five, &mut square, None)? && square == [25]);
/// # Ok::<(), indelible::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Exchange {
    requests: Queue,
    completions: Queue,
    completion: usize,
}

impl SharedObject {
    /// The exchange at `offset`, a multiple of 64; made if absent.
    ///
    /// # Errors
    /// As for [`queue`](SharedObject::queue).
    pub fn exchange(&self, offset: usize, options: &ExchangeOptions) -> Result<Exchange> {
        let [requests, completions] = options.queues();
        let first = requests.bytes()?.next_multiple_of(64);
        // Both are there, or neither is made.
        let needed = first.saturating_add(completions.bytes()?);
        self.about("open an exchange in", || {
            let left = self.len().saturating_sub(offset);
            match needed <= left {
                true => Ok(()),
                false => Err(SharedError::no_room(offset, needed, left).into()),
            }
        })?;
        Ok(Exchange {
            requests: self.queue(offset, &requests)?,
            completions: self.queue(offset + first, &completions)?,
            completion: options.completion,
        })
    }
}

impl Exchange {
    /// The only requester, until its drop or its process's death. A later one gets the completions
    /// that earlier ones had not taken out, by the numbers of their requests.
    ///
    /// # Errors
    /// `Held`: there is one. `Damaged`, `Gone`, `Forked`.
    pub fn requester(&self) -> Result<Requester> {
        let producer = self.requests.producer()?;
        let completions = self.completions.consumer()?;
        let first = producer.next_number();
        Ok(Requester { producer, completions, received: BTreeMap::new(), first, open: HashSet::new() })
    }

    /// The only server, until its drop or its process's death. It receives requests that earlier
    /// ones did not complete.
    ///
    /// # Errors
    /// `Held`: there is one. `Damaged`, `Gone`, `Forked`.
    pub fn server(&self) -> Result<Server> {
        let mut requests = self.requests.consumer()?;
        requests.skip_completed();
        let completions = self.completions.producer()?;
        let mut server = Server { requests, completions, completion: self.completion };
        server.take_over().map_err(|cause| server.error(cause))?;
        Ok(server)
    }

    /// Whether a process has the [`server`](Self::server). A waiting requester asks it between
    /// timeouts.
    ///
    /// # Errors
    /// `Gone`, `Io`.
    pub fn has_server(&self) -> Result<bool> {
        has(&self.requests, Role::Consumer)
    }

    /// Whether a process has the [`requester`](Self::requester).
    ///
    /// # Errors
    /// `Gone`, `Io`.
    pub fn has_requester(&self) -> Result<bool> {
        has(&self.requests, Role::Producer)
    }
}

fn has(queue: &Queue, role: Role) -> Result<bool> {
    let memory = &queue.memory;
    let has = memory.check().and_then(|()| Ok(memory.is_claimed(queue.layout.claim(role))?));
    has.map_err(|cause| error(memory, "look into", cause))
}

fn left(begin: Instant, timeout: Option<Duration>) -> Option<Duration> {
    timeout.map(|timeout| timeout.saturating_sub(begin.elapsed()))
}

/// Sends requests into an [`Exchange`], and gets their completions.
#[derive(Debug)]
pub struct Requester {
    producer: Producer,
    completions: Consumer,
    received: BTreeMap<u64, Vec<u8>>,
    /// The first number of its own.
    first: u64,
    /// Of its own requests, those whose completions the caller lacks.
    open: HashSet<u64>,
}

impl Requester {
    /// Sends a request, waiting up to `timeout` for room (`None`: for ever). Returns its number;
    /// `None`: no room, as the server completes none.
    ///
    /// # Errors
    /// `BadSize`: it is too long. `Damaged`: the exchange was scribbled over. `Gone`, `Forked`.
    pub fn send(&mut self, request: &[u8], timeout: Option<Duration>) -> Result<Option<u64>> {
        let begin = Instant::now();
        while self.take(NOW)? {}
        let slots = self.producer.queue().options().slots as u64;
        while self.producer.next_number().wrapping_sub(self.completions.head()) >= slots {
            if !self.take(left(begin, timeout))? {
                return Ok(None);
            }
        }
        let number = self.producer.send(request, left(begin, timeout))?;
        self.open.extend(number);
        Ok(number)
    }

    /// Waits up to `timeout` for the completion of request `number` (`None`: for ever); returns
    /// whether it is there. A dead server's successor completes it.
    ///
    /// # Errors
    /// `NotFound`: no such request was sent, or its completion was returned already. `Damaged`,
    /// `Gone`, `Forked`.
    pub fn wait(&mut self, number: u64, completion: &mut Vec<u8>, timeout: Option<Duration>) -> Result<bool> {
        let begin = Instant::now();
        loop {
            if let Some(found) = self.received.remove(&number) {
                self.open.remove(&number);
                *completion = found;
                return Ok(true);
            }
            let is_own = number >= self.first;
            if number >= self.producer.next_number() || is_own && !self.open.contains(&number) {
                let memory = &self.producer.queue().memory;
                return Err(error(memory, "wait for a completion in", SharedError::NoRequest { number }));
            }
            if !self.take(left(begin, timeout))? {
                return Ok(false);
            }
        }
    }

    /// Takes the completion of the lowest number that is there, waiting up to `timeout` for one
    /// (`None`: for ever). Returns the number of its request.
    ///
    /// # Errors
    /// `Damaged`, `Gone`, `Forked`.
    pub fn receive(&mut self, completion: &mut Vec<u8>, timeout: Option<Duration>) -> Result<Option<u64>> {
        while self.take(NOW)? {}
        if self.received.is_empty() && !self.take(timeout)? {
            return Ok(None);
        }
        Ok(self.received.pop_first().map(|(number, found)| {
            self.open.remove(&number);
            *completion = found;
            number
        }))
    }

    fn take(&mut self, timeout: Option<Duration>) -> Result<bool> {
        let mut message = Vec::new();
        if !self.completions.receive(&mut message, timeout)? {
            return Ok(false);
        }
        let Some((number, completion)) = message.split_first_chunk::<NUMBER>() else {
            let queue = self.completions.queue();
            let cause = queue.damaged("a completion is shorter than a number");
            return Err(error(&queue.memory, "take a completion out of", cause));
        };
        self.received.insert(u64::from_le_bytes(*number), completion.to_vec());
        Ok(true)
    }
}

/// Receives requests of an [`Exchange`], and completes them.
#[derive(Debug)]
pub struct Server {
    requests: Consumer,
    completions: Producer,
    completion: usize,
}

impl Server {
    /// Copies the next request into `request`, waiting up to `timeout` (`None`: for ever); returns
    /// its number.
    ///
    /// # Errors
    /// `Damaged`: the exchange was scribbled over. `Gone`: the object's memory was truncated.
    /// `Forked`.
    pub fn receive(&mut self, request: &mut Vec<u8>, timeout: Option<Duration>) -> Result<Option<u64>> {
        self.requests.look(request, timeout)
    }

    /// Completes a received request. It is done once this returns, also if this process dies; until
    /// then a later server receives the request again.
    ///
    /// # Errors
    /// `NotFound`: this server received no such request, or completed it. `BadSize`: the completion
    /// is too long. `Damaged`, `Gone`, `Forked`.
    pub fn complete(&mut self, number: u64, completion: &[u8]) -> Result<()> {
        if !self.requests.has_read(number) || self.requests.queue().slots().is_completed(number) {
            return Err(self.error(SharedError::NoRequest { number }.into()));
        }
        let (len, most) = (completion.len(), self.completion);
        if len > most {
            return Err(self.error(SharedError::TooLong { len, most }.into()));
        }
        let parts = [&number.to_le_bytes()[..], completion];
        if self.completions.send_parts(parts, Some(PATIENCE))?.is_none() {
            let cause = self.completions.queue().damaged("it has no room for a completion");
            return Err(self.error(cause));
        }
        self.requests.queue().slots().complete(number);
        self.requests.release_completed().map_err(|cause| self.error(cause))
    }

    /// The last completion of a dead server may lack its mark.
    fn take_over(&mut self) -> Result<(), Cause> {
        let completions = self.completions.queue();
        let requests = self.requests.queue();
        if let Some(last) = self.completions.next_number().checked_sub(1)
            && !Mutant::CompletionUnmarked.is_on()
        {
            let mut number = [0; NUMBER];
            let at = completions.layout.message(completions.slots().index(last));
            completions.memory.load(at, &mut number);
            let number = u64::from_le_bytes(number);
            let tail = requests.slots().tail.load(Ordering::Acquire);
            if (self.requests.head()..tail).contains(&number) {
                requests.slots().complete(number);
            }
        }
        self.requests.release_completed()
    }

    fn error(&self, cause: Cause) -> Error {
        error(&self.requests.queue().memory, "complete a request of", cause)
    }
}
