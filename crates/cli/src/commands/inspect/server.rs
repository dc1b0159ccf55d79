//! Threads that accept connections; one request each.

use super::answer::{Answer, Status};
use super::request::Request;
use super::site::Site;
use super::socket::Socket;
use super::token::Token;
use crate::failure::Result;
use std::net::{SocketAddr, TcpListener};
use std::time::Duration;

/// Slow clients occupy one each, until their time-out.
const THREADS: usize = 32;
const STACK: usize = 1 << 20;
/// After a failed accept, as for want of descriptors.
const PAUSE: Duration = Duration::from_millis(100);

pub struct Server {
    listener: TcpListener,
    address: SocketAddr,
    token: Token,
    site: Site,
}

impl Server {
    pub fn new(listener: TcpListener, address: SocketAddr, token: Token, site: Site) -> Server {
        Server { listener, address, token, site }
    }

    /// Serves until the process ends.
    pub fn serve(&self) -> Result {
        std::thread::scope(|scope| {
            for _ in 0..THREADS {
                let thread = std::thread::Builder::new().stack_size(STACK);
                thread.spawn_scoped(scope, || self.accept())?;
            }
            Ok(())
        })
    }

    fn accept(&self) -> ! {
        loop {
            match self.listener.accept() {
                Ok((stream, _)) => self.talk(Socket::new(stream)),
                Err(_) => std::thread::sleep(PAUSE),
            }
        }
    }

    fn talk(&self, mut socket: Socket) {
        let Some(request) = Request::read(&mut socket) else { return };
        let answer = request.map_or_else(Answer::from, |request| self.answer(&request));
        socket.wind();
        if answer.write(&mut socket).is_ok() {
            socket.close();
        }
    }

    fn answer(&self, request: &Request) -> Answer {
        if !request.is_for(self.address) || !self.token.is(request.token()) {
            return Status::Forbidden.into();
        }
        self.site.answer(request, &self.token)
    }
}
