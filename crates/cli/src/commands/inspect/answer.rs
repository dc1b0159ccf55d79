//! Answers of HTTP.

use crate::failure::Failure;
use crate::text::json;
use serde::Serialize;
use std::io::{self, Write};

/// Only files of the page itself; no frames, forms, or other hosts.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; \
                      img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    Fine,
    BadRequest,
    Forbidden,
    NotFound,
    NotAllowed,
    TimedOut,
    HeadTooLarge,
    Unavailable,
}

impl Status {
    fn line(self) -> &'static str {
        match self {
            Status::Fine => "200 OK",
            Status::BadRequest => "400 Bad Request",
            Status::Forbidden => "403 Forbidden",
            Status::NotFound => "404 Not Found",
            Status::NotAllowed => "405 Method Not Allowed",
            Status::TimedOut => "408 Request Timeout",
            Status::HeadTooLarge => "431 Request Header Fields Too Large",
            Status::Unavailable => "503 Service Unavailable",
        }
    }

    fn advice(self) -> &'static str {
        match self {
            Status::Forbidden => "forbidden: open the address that `pmo inspect` printed, with its token",
            Status::NotAllowed => "only GET is served",
            Status::NotFound => "there is no such page",
            _ => "the request cannot be served",
        }
    }
}

pub struct Answer {
    status: Status,
    kind: &'static str,
    body: String,
}

impl Answer {
    pub fn text(kind: &'static str, body: impl Into<String>) -> Answer {
        Answer { status: Status::Fine, kind, body: body.into() }
    }

    pub fn json(value: &impl Serialize) -> Answer {
        Answer::of_json(Status::Fine, value)
    }

    fn of_json(status: Status, value: &impl Serialize) -> Answer {
        Answer { status, kind: "application/json", body: json(value).unwrap_or_default() }
    }

    pub fn write(&self, to: &mut impl Write) -> io::Result<()> {
        let Answer { status, kind, body } = self;
        let allow = if *status == Status::NotAllowed { "Allow: GET\r\n" } else { "" };
        let head = format!(
            "HTTP/1.1 {}\r\n\
             Content-Type: {kind}; charset=utf-8\r\n\
             Content-Length: {}\r\n\
             Content-Security-Policy: {POLICY}\r\n\
             Cache-Control: no-store\r\n\
             X-Content-Type-Options: nosniff\r\n\
             Referrer-Policy: no-referrer\r\n\
             Cross-Origin-Resource-Policy: same-origin\r\n\
             Cross-Origin-Opener-Policy: same-origin\r\n\
             {allow}Connection: close\r\n\r\n",
            status.line(),
            body.len()
        );
        to.write_all(head.as_bytes())?;
        to.write_all(body.as_bytes())?;
        to.flush()
    }
}

impl From<Status> for Answer {
    fn from(status: Status) -> Answer {
        Answer { status, kind: "text/plain", body: format!("{}\n", status.advice()) }
    }
}

/// The pool cannot be read now; the page shows it and tries again.
impl From<&Failure> for Answer {
    fn from(failure: &Failure) -> Answer {
        match failure {
            Failure::Said(report) => Answer::of_json(Status::Unavailable, report),
            Failure::Quiet(_) | Failure::Program(_) => Status::Unavailable.into(),
        }
    }
}
