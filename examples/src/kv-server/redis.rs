//! A connection's Redis protocol: requests, and transactions of several.

use crate::call::{Call, Client, Command, Refusal, is};
use crate::commands::find;
use crate::protocol::{Protocol, Step};
use crate::reply::Reply;
use crate::request::{Parser, Words};
use crate::service::Access;

const QUEUE: usize = 1 << 29;

pub(crate) struct Redis {
    parser: Parser,
    client: Client,
    /// Of the last request: the next one often has the same.
    last: Option<&'static Command>,
    /// Between `MULTI` and `EXEC`.
    queue: Option<Queue>,
}

#[derive(Default)]
struct Queue {
    requests: Vec<(&'static Command, Vec<Vec<u8>>)>,
    bytes: usize,
    broken: bool,
}

impl Redis {
    pub(crate) fn new(id: u64) -> Redis {
        let client = Client { id, name: Vec::new(), ends: false };
        Redis { parser: Parser::default(), client, last: None, queue: None }
    }

    fn perform(&mut self, access: &mut Access<'_, '_>, words: &[&[u8]], reply: &mut Reply) {
        let last = self.last.filter(|last| is(words[0], last.name));
        let Some(command) = last.or_else(|| find(words[0])) else {
            self.broken();
            let text = |word: &[u8]| String::from_utf8_lossy(word).chars().take(128).collect::<String>();
            let arguments: String =
                words[1..].iter().take(16).map(|word| format!("'{}' ", text(word))).collect();
            let name = text(words[0]);
            return reply
                .error(&format!("ERR unknown command '{name}', with args beginning with: {arguments}"));
        };
        self.last = Some(command);
        if !command.words.contains(&words.len()) {
            self.broken();
            let name = command.name.to_ascii_lowercase();
            return reply.error(&format!("ERR wrong number of arguments for '{name}' command"));
        }
        match (command.name, self.queue.take()) {
            ("MULTI", None) => {
                self.queue = Some(Queue::default());
                reply.ok();
            }
            ("MULTI", queue) => {
                self.queue = queue;
                reply.error("ERR MULTI calls can not be nested");
            }
            ("EXEC" | "DISCARD", None) => reply.error(&format!("ERR {} without MULTI", command.name)),
            ("DISCARD", Some(_)) => reply.ok(),
            ("EXEC", Some(queue)) if queue.broken => {
                reply.error("EXECABORT Transaction discarded because of previous errors.");
            }
            ("EXEC", Some(queue)) => self.execute(access, &queue, reply),
            ("RESET" | "QUIT", _) | (_, None) => self.run(access, command, words, reply),
            (_, Some(queue)) => self.enqueue(queue, command, words, reply),
        }
    }

    fn broken(&mut self) {
        if let Some(queue) = &mut self.queue {
            queue.broken = true;
        }
    }

    fn enqueue(&mut self, mut queue: Queue, command: &'static Command, words: &[&[u8]], reply: &mut Reply) {
        queue.bytes += words.iter().map(|word| word.len() + size_of::<Vec<u8>>()).sum::<usize>();
        if queue.bytes > QUEUE {
            queue.requests.clear();
            queue.broken = true;
            reply.error("ERR the transaction is too long");
        } else {
            queue.requests.push((command, words.iter().map(|word| word.to_vec()).collect()));
            reply.simple("QUEUED");
        }
        self.queue = Some(queue);
    }

    /// Executes a transaction with the database locked throughout: one durable write has all its
    /// changes.
    fn execute(&mut self, access: &mut Access<'_, '_>, queue: &Queue, reply: &mut Reply) {
        reply.array(queue.requests.len());
        for (command, words) in &queue.requests {
            let words: Vec<&[u8]> = words.iter().map(Vec::as_slice).collect();
            self.run(access, command, &words, reply);
        }
    }

    fn run(&mut self, access: &mut Access<'_, '_>, command: &Command, words: &[&[u8]], reply: &mut Reply) {
        let before = reply.len();
        if command.changes {
            access.changes();
        }
        let Access { database, heap, now, service } = access;
        let (keys, client) = (&mut database.values, &mut self.client);
        let (heap, now, service) = (*heap, *now, *service);
        let done = (command.run)(&mut Call { words, keys, heap, now, reply, client, service });
        let refusal = match done {
            Ok(()) if reply.overflows() => Some(Refusal::Other("the reply is too long").to_string()),
            Ok(()) => None,
            Err(refusal) => Some(refusal.to_string()),
        };
        if let Some(refusal) = refusal {
            reply.truncate(before);
            reply.error(&refusal);
        }
    }
}

impl Protocol for Redis {
    fn step(&mut self, access: &mut Access<'_, '_>, input: &[u8], reply: &mut Reply) -> Step {
        match self.parser.parse(input) {
            Ok(None) => Step::Incomplete,
            Ok(Some((request, len))) => {
                let words = match &request {
                    Words::Array(words) => words,
                    Words::Quoted(words) => &words.iter().map(Vec::as_slice).collect(),
                };
                let answered = !words.is_empty();
                if answered {
                    self.perform(access, words, reply);
                }
                self.parser.reuse(request);
                Step::Done { len, answered, ends: self.client.ends }
            }
            Err(why) => {
                reply.error(&format!("ERR Protocol error: {why}"));
                Step::Done { len: input.len(), answered: true, ends: true }
            }
        }
    }

    fn refuse(&self, why: &str, reply: &mut Reply) {
        reply.error(&format!("ERR {why}"));
    }
}
