//! The guard's loop: one thread, which waits for clients, deaths, detectors, and ends of rounds and
//! recoveries.
//!
//! It never blocks on a client: connections are nonblocking, and recoveries have their own threads.

use crate::budget::Budget;
use crate::condition::Condition;
use crate::connection::{Client, Connection};
use crate::detector::{Detector, Watch};
use crate::error::GuardError;
use crate::events::{Event, Events, Sender};
use crate::kernel;
use crate::note::Note;
use crate::process::Process;
use crate::recoveries::Recover;
use crate::socket::Socket;
use crate::state::State;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use std::io;
use std::os::fd::AsFd;
use std::path::PathBuf;
use std::time::{Duration, Instant};

const TURN: usize = 64;
const PAUSE: Duration = Duration::from_millis(100);

/// Settings of the guard.
pub struct Config {
    /// Path of the socket: see [`default_socket`](crate::default_socket).
    pub socket: PathBuf,
    /// The time that a power failure leaves.
    pub budget: Budget,
    /// Detectors.
    pub detectors: Vec<Box<dyn Detector>>,
    /// Recovers a dead process's memory.
    pub recover: Recover,
    /// Receives all notes.
    pub note: Box<dyn FnMut(&Note) + Send>,
}

/// A listening guard. Dropping it ends it; its writers go on without one.
pub struct Guard {
    socket: Socket,
    events: Events,
    sender: Sender,
    state: State,
    paused: Option<Instant>,
}

/// Ends a guard from another thread.
#[derive(Clone, Debug)]
pub struct Stop(Sender);

impl Stop {
    /// Makes [`Guard::run`] return.
    pub fn stop(&self) {
        self.0.send(Event::Stop);
    }

    /// Makes [`Guard::run`] return once the memory of processes that are already dead is recovered.
    pub fn finish(&self) {
        self.0.send(Event::Finish(false));
    }

    /// Makes the process's first SIGTERM [finish](Self::finish) the guard. Call
    /// [`hold_back_signals`](crate::hold_back_signals), or the signal kills the process.
    ///
    /// # Errors
    /// The kernel gives no thread.
    pub fn at_termination(self) -> io::Result<()> {
        let work = move || {
            if kernel::wait_for_termination().is_ok() {
                self.finish();
            }
        };
        std::thread::Builder::new().name("termination".into()).spawn(work).map(drop)
    }
}

impl Guard {
    /// Listens, and starts the detectors.
    ///
    /// # Errors
    /// Another guard has the socket; the socket or a detector does not work.
    pub fn start(config: Config) -> Result<Guard, GuardError> {
        let Config { socket: path, budget, mut detectors, recover, note } = config;
        let socket = Socket::listen(&path)?;
        let made = Sender::new();
        let (sender, events) =
            made.map_err(|source| GuardError::File { what: "wake the guard at", path, source })?;
        let mut state = State::new(budget, recover, sender.clone(), note);
        for (nth, detector) in detectors.iter_mut().enumerate() {
            let (name, looked) = (detector.name(), detector.look());
            let condition = looked.map_err(|source| GuardError::Detector { name: name.clone(), source })?;
            state.add_detector(name, detector.latency());
            state.condition(nth, condition);
        }
        for (nth, mut detector) in detectors.into_iter().enumerate() {
            let (name, watch) = (detector.name(), Watch { sender: sender.clone(), nth });
            let work = move || {
                if let Err(error) = detector.watch(&watch) {
                    let _ = watch.tell(Condition::Blind(error.to_string()));
                }
            };
            let started = std::thread::Builder::new().name("detector".into()).spawn(work);
            started.map_err(|source| GuardError::Detector { name, source })?;
        }
        Ok(Guard { socket, events, sender, state, paused: None })
    }

    /// A handle that ends it from another thread.
    #[must_use]
    pub fn stop(&self) -> Stop {
        Stop(self.sender.clone())
    }

    /// Works until it is [stopped](Self::stop).
    ///
    /// # Errors
    /// The kernel refuses to wait.
    pub fn run(mut self) -> io::Result<()> {
        let mut finishes = false;
        loop {
            let ready = self.wait()?;
            for event in self.events.take() {
                match event {
                    Event::Condition(nth, condition) => self.state.condition(nth, condition),
                    Event::Recovered(number, done) => self.state.recovered(number, done),
                    Event::Stop => return Ok(()),
                    Event::Finish(true) => finishes = true,
                    Event::Finish(false) => _ = self.sender.send(Event::Finish(true)),
                }
            }
            for id in ready.clients {
                self.state.serve(id);
            }
            for id in ready.dead {
                self.state.departed(id);
            }
            if ready.listener {
                let _ = (0..TURN).all(|_| self.accept());
            }
            self.state.pass_time(Instant::now());
            if finishes && self.state.recoveries.all().next().is_none() {
                return Ok(());
            }
        }
    }

    fn wait(&mut self) -> io::Result<Ready> {
        let now = Instant::now();
        self.paused = self.paused.filter(|until| *until > now);
        let accepts = self.paused.is_none();
        let until = self.state.deadline().into_iter().chain(self.paused).min();
        let timeout = until.map(|until| until.saturating_duration_since(now) + Duration::from_millis(1));
        let timeout = timeout.and_then(|timeout| Timespec::try_from(timeout).ok());
        let mut watched = vec![PollFd::from_borrowed_fd(self.events.as_fd(), PollFlags::IN)];
        let listening = if accepts { PollFlags::IN } else { PollFlags::empty() };
        watched.push(PollFd::from_borrowed_fd(self.socket.listener.as_fd(), listening));
        let mut owners = Vec::new();
        for (id, client) in self.state.clients() {
            let out = if client.connection.is_behind() { PollFlags::OUT } else { PollFlags::empty() };
            watched.push(PollFd::from_borrowed_fd(client.connection.as_fd(), PollFlags::IN | out));
            owners.push((id, false));
            if let Some(writer) = &client.writer {
                watched.push(PollFd::from_borrowed_fd(writer.process.as_fd(), PollFlags::IN));
                owners.push((id, true));
            }
        }
        match poll(&mut watched, timeout.as_ref()) {
            Ok(_) => {}
            Err(Errno::INTR) => return Ok(Ready::default()),
            Err(error) => return Err(error.into()),
        }
        let mut ready = Ready { listener: !watched[1].revents().is_empty() && accepts, ..Ready::default() };
        for ((id, is_process), polled) in owners.into_iter().zip(&watched[2..]) {
            if !polled.revents().is_empty() {
                if is_process { ready.dead.push(id) } else { ready.clients.push(id) }
            }
        }
        Ok(ready)
    }

    /// `false`: none waits, or the system lacks resources.
    fn accept(&mut self) -> bool {
        let stream = match self.socket.listener.accept() {
            Ok((stream, _)) => stream,
            Err(error) => {
                if error.kind() != io::ErrorKind::WouldBlock {
                    self.paused = Some(Instant::now() + PAUSE);
                }
                return false;
            }
        };
        if let Ok(peer) = kernel::peer(&stream)
            && self.state.make_room(peer.uid)
        {
            let process = Process::of(&stream, peer);
            if let Ok(connection) = Connection::new(stream) {
                self.state.add(Client::new(connection, peer, process));
            }
        }
        true
    }
}

#[derive(Default)]
struct Ready {
    listener: bool,
    clients: Vec<u64>,
    dead: Vec<u64>,
}
