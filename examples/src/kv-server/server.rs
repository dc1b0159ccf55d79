//! Threads with an event loop and clients each: a turn executes what has arrived, waits for one
//! ticket, and answers. Threads share durable writes.

use crate::connection::Connection;
use crate::memcached::Memcached;
use crate::protocol::Protocol;
use crate::redis::Redis;
use crate::service::Service;
use anyhow::Result;
use indelible::ErrorKind;
use rustix::buffer::spare_capacity;
use rustix::event::{Timespec, epoll};
use rustix::io::Errno;
use std::collections::HashMap;
use std::io::Write;
use std::net::{TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::sync::atomic::Ordering::SeqCst;
use std::time::{Duration, Instant};

const EVENTS: usize = 1024;
const ARRIVALS: usize = 64;
const PAUSE: Duration = Duration::from_millis(100);

#[derive(Clone, Copy)]
pub(crate) enum Speaks {
    Redis,
    Memcached,
}

pub(crate) struct Listener {
    pub(crate) socket: TcpListener,
    pub(crate) speaks: Speaks,
}

/// # Errors
/// Sockets cannot be waited for.
pub(crate) fn serve(service: &Service<'_>, listeners: &[Listener], threads: usize) -> Result<()> {
    for listener in listeners {
        // Each thread is notified; one gets the client.
        listener.socket.set_nonblocking(true)?;
    }
    std::thread::scope(|scope| {
        let threads: Vec<_> =
            (0..threads.max(1)).map(|_| scope.spawn(|| EventLoop::new(service, listeners)?.run())).collect();
        threads.into_iter().try_for_each(|thread| {
            let ended = thread.join();
            ended.unwrap_or_else(|_| Err(anyhow::anyhow!("a thread that serves clients panicked")))
        })
    })
}

struct EventLoop<'s, 'h> {
    service: &'s Service<'h>,
    listeners: &'s [Listener],
    epoll: OwnedFd,
    clients: HashMap<u64, Connection>,
    next: u64,
    /// Clients with unexecuted requests in memory: their sockets may be silent.
    waiting: Vec<u64>,
    resumes: Option<Instant>,
    complained: bool,
}

impl<'s, 'h> EventLoop<'s, 'h> {
    fn new(service: &'s Service<'h>, listeners: &'s [Listener]) -> Result<Self> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        let next = listeners.len() as u64;
        let (clients, waiting) = (HashMap::new(), Vec::new());
        let mut this =
            EventLoop { service, listeners, epoll, clients, next, waiting, resumes: None, complained: false };
        this.listen()?;
        Ok(this)
    }

    fn run(&mut self) -> Result<()> {
        let (mut events, mut piece) = (Vec::with_capacity(EVENTS), Vec::new());
        let mut idle = self.service.with(|access| access.purge());
        loop {
            self.wait(&mut events, idle)?;
            let mut turn = std::mem::take(&mut self.waiting);
            turn.extend(events.iter().map(|event: &epoll::Event| event.data.u64()));
            turn.sort_unstable();
            turn.dedup();
            let arrivals = turn.partition_point(|id| *id < self.listeners.len() as u64);
            for id in &turn[arrivals..] {
                let Some(client) = self.clients.get_mut(id) else { continue };
                if client.receive(&mut piece).is_err() {
                    self.part(*id);
                }
            }
            idle = self.service.with(|access| {
                for id in &turn[arrivals..] {
                    if let Some(client) = self.clients.get_mut(id) {
                        client.execute(access);
                    }
                }
                access.purge()
            });
            let settled = self.service.settle();
            for id in &turn[arrivals..] {
                if let (Err(error), Some(client)) = (&settled, self.clients.get_mut(id)) {
                    client.refuse(&error.to_string());
                }
                self.send(*id)?;
            }
            if let Err(error) = settled {
                match error.kind() {
                    ErrorKind::NoSpace | ErrorKind::NoRoom | ErrorKind::Busy => {}
                    // Memory may differ from the durable state; the next attach tells.
                    _ => {
                        eprintln!("{error}");
                        std::process::exit(1);
                    }
                }
            }
            turn[..arrivals].iter().try_for_each(|at| self.accept(*at as usize))?;
        }
    }

    fn wait(&mut self, events: &mut Vec<epoll::Event>, idle: Option<u64>) -> Result<()> {
        let now = Instant::now();
        if self.resumes.is_some_and(|moment| moment <= now) {
            self.listen()?;
        }
        let waiting = (!self.waiting.is_empty()).then_some(Duration::ZERO);
        let idle = idle.map(Duration::from_millis);
        let resumes = self.resumes.map(|moment| moment.saturating_duration_since(now));
        let timeout = [waiting, idle, resumes].into_iter().flatten().min();
        let timeout = timeout.map(|time| Timespec {
            tv_sec: time.as_secs().try_into().unwrap_or(i64::MAX),
            tv_nsec: time.subsec_nanos().into(),
        });
        events.clear();
        match epoll::wait(&self.epoll, spare_capacity(events), timeout.as_ref()) {
            Ok(_) | Err(Errno::INTR) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    fn listen(&mut self) -> Result<()> {
        for (at, listener) in self.listeners.iter().enumerate() {
            let data = epoll::EventData::new_u64(at as u64);
            epoll::add(&self.epoll, &listener.socket, data, epoll::EventFlags::IN)?;
        }
        self.resumes = None;
        Ok(())
    }

    fn accept(&mut self, at: usize) -> Result<()> {
        let Listener { socket, speaks } = &self.listeners[at];
        for _ in 0..ARRIVALS {
            if self.resumes.is_some() {
                break;
            }
            match socket.accept().and_then(|(stream, _)| self.greet(stream, *speaks)) {
                Ok(()) => self.complained = false,
                Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == std::io::ErrorKind::ConnectionAborted => {}
                Err(error) => {
                    if !std::mem::replace(&mut self.complained, true) {
                        eprintln!("cannot accept clients: {error}");
                    }
                    for listener in self.listeners {
                        epoll::delete(&self.epoll, &listener.socket)?;
                    }
                    self.resumes = Some(Instant::now() + PAUSE);
                }
            }
        }
        Ok(())
    }

    fn greet(&mut self, mut stream: TcpStream, speaks: Speaks) -> std::io::Result<()> {
        stream.set_nonblocking(true)?;
        let figures = &self.service.figures;
        figures.connections.fetch_add(1, SeqCst);
        if figures.clients.load(SeqCst) >= self.service.most_clients {
            // Redis's message, maybe unread.
            let _ = stream.write(b"-ERR max number of clients reached\r\n");
            return Ok(());
        }
        stream.set_nodelay(true)?;
        let (id, protocol): (_, Box<dyn Protocol>) = match speaks {
            Speaks::Redis => (self.next, Box::new(Redis::new(figures.connections.load(SeqCst)))),
            Speaks::Memcached => (self.next, Box::new(Memcached::default())),
        };
        epoll::add(&self.epoll, &stream, epoll::EventData::new_u64(id), epoll::EventFlags::IN)?;
        self.next += 1;
        figures.clients.fetch_add(1, SeqCst);
        self.clients.insert(id, Connection::new(stream, protocol));
        Ok(())
    }

    fn send(&mut self, id: u64) -> Result<()> {
        let Some(client) = self.clients.get_mut(&id) else { return Ok(()) };
        let was_sending = client.is_blocked();
        if client.send().is_err() {
            self.part(id);
            return Ok(());
        }
        if client.is_blocked() != was_sending {
            let flags = if was_sending { epoll::EventFlags::IN } else { epoll::EventFlags::OUT };
            epoll::modify(&self.epoll, client.stream(), epoll::EventData::new_u64(id), flags)?;
        }
        if client.has_more() {
            self.waiting.push(id);
        }
        Ok(())
    }

    fn part(&mut self, id: u64) {
        if self.clients.remove(&id).is_some() {
            self.service.figures.clients.fetch_sub(1, SeqCst);
        }
    }
}
