//! Requests of the Redis protocol: arrays of words with lengths, or a line of words.

use std::ops::Range;

const WORDS: i64 = 1 << 20;
const BYTES: usize = 512 << 20;
const LINE: usize = 64 << 10;

type Request<'i> = (Vec<&'i [u8]>, usize);

/// Reads a request once, even if it arrives in many pieces.
#[derive(Default)]
pub(crate) struct Parser {
    left: Option<i64>,
    at: usize,
    words: Vec<Range<usize>>,
}

impl Parser {
    /// The words and the length of the request at the beginning of `input`; nothing while it is
    /// incomplete, and the next `input` begins with the same bytes. An empty line or array has no
    /// words.
    ///
    /// # Errors
    /// It is no request, and the connection ends.
    pub(crate) fn parse<'i>(&mut self, input: &'i [u8]) -> Result<Option<Request<'i>>, String> {
        let mut left = match self.left {
            Some(left) => left,
            None => {
                let Some((line, len)) = line(input)? else { return Ok(None) };
                let Some(count) = line.strip_prefix(b"*") else {
                    let words = line.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty());
                    return Ok(Some((words.collect(), len)));
                };
                self.at = len;
                number(count).filter(|count| *count <= WORDS).ok_or("invalid multibulk length")?
            }
        };
        while left > 0 {
            self.left = Some(left);
            let Some((header, len)) = line(&input[self.at..])? else { return Ok(None) };
            let size = header.strip_prefix(b"$").ok_or_else(|| {
                let found = header.first().map_or(' ', |byte| char::from(*byte));
                format!("expected '$', got '{found}'")
            })?;
            let size = number(size).and_then(|size| usize::try_from(size).ok());
            let size = size.filter(|size| *size <= BYTES).ok_or("invalid bulk length")?;
            let begin = self.at + len;
            let end = begin + size;
            match input.get(end..end + 2) {
                None => return Ok(None),
                Some(b"\r\n") => {}
                Some(_) => return Err("a word does not end where its length says".into()),
            }
            self.words.push(begin..end);
            self.at = end + 2;
            left -= 1;
        }
        let words = self.words.drain(..).map(|word| &input[word]).collect();
        self.left = None;
        Ok(Some((words, std::mem::take(&mut self.at))))
    }
}

fn line(input: &[u8]) -> Result<Option<(&[u8], usize)>, String> {
    match input.iter().take(LINE).position(|byte| *byte == b'\n') {
        Some(end) => Ok(Some((input[..end].strip_suffix(b"\r").unwrap_or(&input[..end]), end + 1))),
        None if input.len() >= LINE => Err("too big inline request".into()),
        None => Ok(None),
    }
}

/// Redis refuses a plus sign.
pub(crate) fn number(text: &[u8]) -> Option<i64> {
    let text = std::str::from_utf8(text).ok().filter(|text| !text.starts_with('+'))?;
    text.parse().ok().filter(|number: &i64| {
        !(text.starts_with('0') || text.starts_with("-0")) || (*number == 0 && text.len() == 1)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(input: &[u8]) -> Request<'_> {
        Parser::default().parse(input).unwrap().unwrap()
    }

    #[test]
    fn a_request_is_whole_at_its_last_byte_only() {
        let input = b"*2\r\n$3\r\nGET\r\n$4\r\na\r\nb\r\nPING\r\n";
        let first = b"*2\r\n$3\r\nGET\r\n$4\r\na\r\nb\r\n".len();
        let mut parser = Parser::default();
        for end in 0..first {
            assert_eq!(parser.parse(&input[..end]), Ok(None), "{end}");
        }
        assert_eq!(parser.parse(input), Ok(Some((vec![&b"GET"[..], b"a\r\nb"], first))));
        assert_eq!(parser.parse(&input[first..]), Ok(Some((vec![&b"PING"[..]], 6))));
        assert_eq!(all(b"\r\n"), (vec![], 2));
        assert_eq!(all(b"*0\r\n"), (vec![], 4));
        assert_eq!(all(b"*-1\r\nPING\r\n"), (vec![], 5));
    }

    #[test]
    fn other_bytes_are_refused() {
        for input in [
            "*x\r\n",
            "*+1\r\n",
            "*99999999\r\n",
            "*1\r\nGET\r\n",
            "*1\r\n$-1\r\n",
            "*1\r\n$9999999999\r\n",
            "*1\r\n$1\r\nab\r\n",
        ] {
            assert!(Parser::default().parse(input.as_bytes()).is_err(), "{input:?}");
        }
        assert!(Parser::default().parse(&[b'x'; LINE]).is_err());
    }
}
