//! Requests of the SQL functions of the VFS to a connection: commits by ticket.

use crate::connection::Connection;
use crate::failure::{Failure, Result, code};

pub(crate) struct Request<'a> {
    pub(crate) function: usize,
    pub(crate) text: Option<&'a str>,
    pub(crate) number: i64,
    pub(crate) answer: Option<Result<Answer>>,
}

pub(crate) enum Answer {
    Text(&'static str),
    Number(u64),
}

type Run = fn(&mut Connection, Option<&str>, i64) -> Result<Answer>;

pub(crate) const FUNCTIONS: [(&std::ffi::CStr, Run); 4] = [
    (c"pmo_commit", |connection, text, _| {
        let set = match text.map(str::to_ascii_lowercase).as_deref() {
            None => None,
            Some("ticket") => Some(true),
            Some("durable") => Some(false),
            Some(_) => return Err(Failure::new(code::ERROR, "pmo_commit takes 'ticket' or 'durable'")),
        };
        let by_ticket = connection.commit_by_ticket(set);
        Ok(Answer::Text(if by_ticket { "ticket" } else { "durable" }))
    }),
    (c"pmo_ticket", |connection, _, _| Ok(Answer::Number(connection.ticket()))),
    (c"pmo_durable", |connection, _, _| Ok(Answer::Number(connection.durable()))),
    (c"pmo_wait", |connection, text, number| {
        let ticket = text.map(|_| u64::try_from(number).unwrap_or(0));
        Ok(Answer::Number(connection.wait(ticket)?))
    }),
];

pub(crate) fn run(connection: &mut Connection, request: &mut Request<'_>) {
    let (_, work) = FUNCTIONS[request.function];
    request.answer = Some(work(connection, request.text, request.number));
}
