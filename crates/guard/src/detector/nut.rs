//! A UPS watched by Network UPS Tools: polls `upsd` by its text protocol over TCP.

use super::{Detector, Watch, poll};
use crate::condition::Condition;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::time::Duration;

const PORT: u16 = 3493;
const LONGEST: u64 = 512;

/// See the module. The power fails once the UPS is on battery (`OB`), low (`LB`), or shutting down
/// (`FSD`).
#[derive(Debug)]
pub struct NutDetector {
    ups: String,
    host: String,
    every: Duration,
    connection: Option<BufReader<TcpStream>>,
}

impl NutDetector {
    /// Watches `UPS@HOST` or `UPS@HOST:PORT`, polled every `every`.
    ///
    /// # Errors
    /// The name has another form.
    pub fn new(name: &str, every: Duration) -> io::Result<NutDetector> {
        let wrong = || io::Error::new(io::ErrorKind::InvalidInput, "give UPS@HOST or UPS@HOST:PORT");
        let (ups, host) = name.split_once('@').ok_or_else(wrong)?;
        let plain = |text: &str| {
            !text.is_empty() && !text.contains(|letter: char| letter.is_whitespace() || letter == '"')
        };
        if !plain(ups) || !plain(host) {
            return Err(wrong());
        }
        let has_port = host.rsplit_once(':').is_some_and(|(host, port)| {
            port.parse::<u16>().is_ok() && (!host.contains(':') || host.ends_with(']'))
        });
        let host = if has_port { host.to_owned() } else { format!("{host}:{PORT}") };
        Ok(NutDetector { ups: ups.to_owned(), host, every, connection: None })
    }

    fn ask(&mut self) -> io::Result<String> {
        let connection = match &mut self.connection {
            Some(connection) => connection,
            none => none.insert(BufReader::new(connect(&self.host, self.every)?)),
        };
        let question = format!("GET VAR {} ups.status\n", self.ups);
        connection.get_mut().write_all(question.as_bytes())?;
        let mut line = String::new();
        if connection.take(LONGEST).read_line(&mut line)? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        Ok(line)
    }
}

fn connect(host: &str, patience: Duration) -> io::Result<TcpStream> {
    let mut last = io::Error::other("the host has no address");
    for address in host.to_socket_addrs()? {
        match TcpStream::connect_timeout(&address, patience) {
            Ok(stream) => {
                stream.set_read_timeout(Some(patience))?;
                stream.set_write_timeout(Some(patience))?;
                stream.set_nodelay(true)?;
                return Ok(stream);
            }
            Err(error) => last = error,
        }
    }
    Err(last)
}

fn meaning(ups: &str, line: &str) -> Condition {
    let status = line
        .trim_end()
        .strip_prefix(&format!("VAR {ups} ups.status \""))
        .and_then(|rest| rest.strip_suffix('"'));
    let Some(status) = status else {
        let said: String = line.trim_end().chars().filter(|letter| !letter.is_control()).take(100).collect();
        return Condition::Blind(format!("upsd says: {said}"));
    };
    let words: Vec<&str> = status.split(' ').collect();
    let is = |word: &str| words.contains(&word);
    if is("OB") || is("LB") || is("FSD") {
        Condition::Failing
    } else if is("OL") {
        Condition::Fine
    } else {
        Condition::Blind(format!("the UPS is neither on line nor on battery: {status}"))
    }
}

impl Detector for NutDetector {
    fn name(&self) -> String {
        format!("nut {}@{}", self.ups, self.host)
    }

    /// The poll interval and an answer's time. The driver adds its own, unknown one.
    fn latency(&self) -> Duration {
        2 * self.every
    }

    fn look(&mut self) -> io::Result<Condition> {
        // Reconnects after `upsd` closed the connection.
        let again = self.connection.is_some();
        let mut answer = self.ask();
        if answer.is_err() && again {
            self.connection = None;
            answer = self.ask();
        }
        Ok(match answer {
            Ok(line) => meaning(&self.ups, &line),
            Err(error) => {
                self.connection = None;
                Condition::Blind(error.to_string())
            }
        })
    }

    fn watch(&mut self, watch: &Watch) -> io::Result<()> {
        let every = self.every;
        poll(self, every, watch)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn s1_10_the_words_of_a_ups_are_understood_and_garbage_is_no_failure() {
        let status = |words: &str| meaning("ups", &format!("VAR ups ups.status \"{words}\"\n"));
        for words in ["OL", "OL CHRG", "ALARM OL", "OL BOOST"] {
            assert_eq!(status(words), Condition::Fine, "{words}");
        }
        for words in ["OB", "OB DISCHRG", "OB LB", "FSD OL", "OL LB"] {
            assert_eq!(status(words), Condition::Failing, "{words}");
        }
        for words in ["", "WAIT", "OFF", "ob", "OBX"] {
            assert!(matches!(status(words), Condition::Blind(_)), "{words}");
        }
        for line in
            ["", "ERR DATA-STALE\n", "VAR other ups.status \"OB\"\n", "VAR ups ups.status OB\n", "\u{1}OB"]
        {
            assert!(matches!(meaning("ups", line), Condition::Blind(_)), "{line}");
        }
    }

    #[test]
    fn names_are_a_ups_and_a_host() {
        let host = |name: &str| NutDetector::new(name, Duration::from_secs(1)).map(|found| found.host);
        assert_eq!(host("ups@localhost").unwrap(), "localhost:3493");
        assert_eq!(host("ups@10.0.0.1:4000").unwrap(), "10.0.0.1:4000");
        assert_eq!(host("ups@[::1]").unwrap(), "[::1]:3493");
        assert_eq!(host("ups@[::1]:4000").unwrap(), "[::1]:4000");
        for wrong in ["ups", "@host", "ups@", "u ps@host", "ups@ho\nst", "u\"ps@host"] {
            host(wrong).unwrap_err();
        }
    }
}
