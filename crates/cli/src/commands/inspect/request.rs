//! The head of a request; bodies are not read.

use super::answer::Status;
use super::query::Query;
use httparse::EMPTY_HEADER;
use std::io::{ErrorKind, Read};
use std::net::{IpAddr, Ipv6Addr, SocketAddr};

const HEAD: usize = 8192;
const FIELDS: usize = 64;

#[derive(Debug)]
pub struct Request {
    pub path: String,
    pub query: Query,
    token: Option<String>,
    host: String,
}

impl Request {
    /// `None`: the client left without a request.
    pub fn read(from: &mut impl Read) -> Option<Result<Request, Status>> {
        let (mut head, mut len) = ([0; HEAD], 0);
        loop {
            if let Some(end) = end_of(&head[..len]) {
                return Some(Request::parse(&head[..end]));
            }
            if len == HEAD {
                return Some(Err(Status::HeadTooLarge));
            }
            match from.read(&mut head[len..]) {
                Ok(0) if len == 0 => return None,
                Ok(0) => return Some(Err(Status::BadRequest)),
                Ok(read) => len += read,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) if len == 0 => return None,
                Err(_) => return Some(Err(Status::TimedOut)),
            }
        }
    }

    fn parse(head: &[u8]) -> Result<Request, Status> {
        let mut fields = [EMPTY_HEADER; FIELDS];
        let mut parsed = httparse::Request::new(&mut fields);
        match parsed.parse(head) {
            Ok(httparse::Status::Complete(_)) => {}
            Err(httparse::Error::TooManyHeaders) => return Err(Status::HeadTooLarge),
            _ => return Err(Status::BadRequest),
        }
        if parsed.method != Some("GET") {
            return Err(Status::NotAllowed);
        }
        let target = parsed.path.unwrap_or_default();
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        let one = |name: &str| {
            let mut named = parsed.headers.iter().filter(|field| field.name.eq_ignore_ascii_case(name));
            let value = named.next().map(|field| std::str::from_utf8(field.value)).transpose();
            let value = value.map_err(|_| Status::BadRequest)?;
            if named.next().is_some() { Err(Status::BadRequest) } else { Ok(value.map(str::to_owned)) }
        };
        let query = Query::of(query).ok_or(Status::BadRequest)?;
        let token = one("x-pmo-token")?.or_else(|| query.text("token").map(str::to_owned));
        let host = one("host")?.ok_or(Status::BadRequest)?;
        Ok(Request { path: path.to_owned(), query, token, host })
    }

    pub fn token(&self) -> &str {
        self.token.as_deref().unwrap_or_default()
    }

    /// Whether the client named the server by its number: another site's name may lead here, too
    /// (DNS rebinding).
    pub fn is_for(&self, address: SocketAddr) -> bool {
        let (name, port) = match self.host.rsplit_once(':') {
            Some((name, port)) if !port.ends_with(']') => (name, port.parse().ok()),
            _ => (self.host.as_str(), Some(80)),
        };
        let inner = name.strip_prefix('[').and_then(|name| name.strip_suffix(']'));
        let named: Option<IpAddr> = match inner {
            Some(inner) => inner.parse::<Ipv6Addr>().ok().map(IpAddr::V6),
            None => name.parse().ok(),
        };
        let own = address.ip();
        let is_own = match named {
            Some(named) => own.is_unspecified() || named == own,
            None => own.is_loopback() && name.eq_ignore_ascii_case("localhost"),
        };
        is_own && port == Some(address.port())
    }
}

fn end_of(head: &[u8]) -> Option<usize> {
    const END: &[u8] = b"\r\n\r\n";
    head.windows(END.len()).position(|window| window == END).map(|at| at + END.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> Result<Request, Status> {
        Request::read(&mut text.as_bytes()).unwrap()
    }

    #[test]
    fn hosts_are_numbers_of_this_server() {
        let is_for = |host: &str, address: &str| {
            of(&format!("GET / HTTP/1.1\r\nHost: {host}\r\n\r\n")).unwrap().is_for(address.parse().unwrap())
        };
        for (host, address) in [
            ("127.0.0.1:99", "127.0.0.1:99"),
            ("localhost:99", "127.0.0.1:99"),
            ("LocalHost:99", "[::1]:99"),
            ("127.0.0.1", "127.0.0.1:80"),
            ("[::1]:99", "[::1]:99"),
            ("[::1]", "[::1]:80"),
            ("10.0.0.7:99", "0.0.0.0:99"),
        ] {
            assert!(is_for(host, address), "{host} {address}");
        }
        for (host, address) in [
            ("127.0.0.1:98", "127.0.0.1:99"),
            ("127.0.0.1", "127.0.0.1:99"),
            ("127.0.0.2:99", "127.0.0.1:99"),
            ("evil.example:99", "127.0.0.1:99"),
            ("127.0.0.1.evil.example:99", "127.0.0.1:99"),
            ("evil.example:99", "0.0.0.0:99"),
            ("localhost:99", "10.0.0.7:99"),
            ("127.0.0.1:x", "127.0.0.1:99"),
            ("127.0.0.1:", "127.0.0.1:99"),
            ("", "127.0.0.1:99"),
            (":99", "127.0.0.1:99"),
        ] {
            assert!(!is_for(host, address), "{host} {address}");
        }
    }

    #[test]
    fn heads_are_whole_bounded_and_unambiguous() {
        let found = of("GET /a?token=t&x=%20 HTTP/1.1\r\nHost: h\r\n\r\nbody").unwrap();
        assert_eq!((found.path.as_str(), found.token(), found.query.text("x")), ("/a", "t", Some(" ")));
        let found = of("GET / HTTP/1.1\r\nHost: h\r\nX-PMO-Token: u\r\n\r\n").unwrap();
        assert_eq!(found.token(), "u");
        let long = format!("GET /{} HTTP/1.1\r\n", "a".repeat(HEAD));
        let many = format!("GET / HTTP/1.1\r\nHost: h\r\n{}\r\n", "a: b\r\n".repeat(FIELDS));
        for (text, status) in [
            ("POST / HTTP/1.1\r\nHost: h\r\n\r\n", Status::NotAllowed),
            ("GET / HTTP/1.1\r\n\r\n", Status::BadRequest),
            ("GET / HTTP/1.1\r\nHost: a\r\nHost: a\r\n\r\n", Status::BadRequest),
            ("GET /?a=%f HTTP/1.1\r\nHost: h\r\n\r\n", Status::BadRequest),
            ("GET / HTTP/1.1\r\nHost", Status::BadRequest),
            ("\x16\x03\x01\r\n\r\n", Status::BadRequest),
            (&long, Status::HeadTooLarge),
            (&many, Status::HeadTooLarge),
        ] {
            assert_eq!(of(text).unwrap_err(), status, "{text:?}");
        }
        assert!(Request::read(&mut &b""[..]).is_none());
    }
}
