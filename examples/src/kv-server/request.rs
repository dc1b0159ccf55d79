//! Requests of the Redis protocol: arrays of words with lengths, or a line of words.

use std::ops::Range;

const WORDS: i64 = 1 << 20;
const BYTES: usize = 512 << 20;
const LINE: usize = 64 << 10;
const KEEP: usize = 64;

#[derive(Debug, PartialEq)]
pub(crate) enum Words<'i> {
    Array(Vec<&'i [u8]>),
    /// Of a line that has quotes.
    Quoted(Vec<Vec<u8>>),
}

type Request<'i> = (Words<'i>, usize);

/// Reads a request once, even if it arrives in many pieces.
#[derive(Default)]
pub(crate) struct Parser {
    left: Option<i64>,
    at: usize,
    words: Vec<Range<usize>>,
    /// Empty: memory for the words of the next request.
    spare: Vec<&'static [u8]>,
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
                    return Ok(Some((split(line)?, len)));
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
        let mut words: Vec<&[u8]> = std::mem::take(&mut self.spare);
        words.extend(self.words.drain(..).map(|word| &input[word]));
        self.left = None;
        Ok(Some((Words::Array(words), std::mem::take(&mut self.at))))
    }

    /// Takes a request's memory back.
    pub(crate) fn reuse(&mut self, words: Words<'_>) {
        if let Words::Array(mut words) = words
            && words.capacity() <= KEEP
        {
            words.clear();
            // Collects in the same memory.
            self.spare = words.into_iter().map(|_| &b""[..]).collect();
        }
    }
}

fn split(line: &[u8]) -> Result<Words<'_>, String> {
    if !line.iter().any(|byte| matches!(byte, b'"' | b'\'')) {
        let words = line.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty());
        return Ok(Words::Array(words.collect()));
    }
    let (mut words, mut rest) = (Vec::new(), line.trim_ascii_start());
    while !rest.is_empty() {
        let mut word = Vec::new();
        loop {
            rest = match rest {
                [] => break,
                [byte, ..] if byte.is_ascii_whitespace() => break,
                [quote @ (b'"' | b'\''), quoted @ ..] => {
                    let rest = unquoted(*quote, quoted, &mut word);
                    rest.ok_or("unbalanced quotes in request")?
                }
                [byte, rest @ ..] => {
                    word.push(*byte);
                    rest
                }
            };
        }
        words.push(word);
        rest = rest.trim_ascii_start();
    }
    Ok(Words::Quoted(words))
}

/// Appends a quoted part to its word; returns the bytes behind it. A word ends with its quotes.
fn unquoted<'l>(quote: u8, mut rest: &'l [u8], word: &mut Vec<u8>) -> Option<&'l [u8]> {
    loop {
        rest = match rest {
            [] => return None,
            [b'\\', b'\'', rest @ ..] if quote == b'\'' => {
                word.push(quote);
                rest
            }
            [b'\\', b'x', high, low, rest @ ..]
                if quote == b'"' && high.is_ascii_hexdigit() && low.is_ascii_hexdigit() =>
            {
                let digit = |byte: u8| char::from(byte).to_digit(16).unwrap_or(0) as u8;
                word.push((digit(*high) << 4) | digit(*low));
                rest
            }
            [b'\\', byte, rest @ ..] if quote == b'"' => {
                word.push(match byte {
                    b'n' => b'\n',
                    b'r' => b'\r',
                    b't' => b'\t',
                    b'b' => 8,
                    b'a' => 7,
                    byte => *byte,
                });
                rest
            }
            [byte, rest @ ..] if *byte == quote => {
                return rest.first().is_none_or(u8::is_ascii_whitespace).then_some(rest);
            }
            [byte, rest @ ..] => {
                word.push(*byte);
                rest
            }
        };
    }
}

fn line(input: &[u8]) -> Result<Option<(&[u8], usize)>, String> {
    match input.iter().take(LINE).position(|byte| *byte == b'\n') {
        Some(end) => Ok(Some((input[..end].strip_suffix(b"\r").unwrap_or(&input[..end]), end + 1))),
        None if input.len() >= LINE => Err("too big inline request".into()),
        None => Ok(None),
    }
}

/// Redis refuses a plus sign, and zeros before a number.
pub(crate) fn number(text: &[u8]) -> Option<i64> {
    let (digits, is_negative) = match text {
        b"0" => return Some(0),
        [b'-', digits @ ..] => (digits, true),
        digits => (digits, false),
    };
    if matches!(digits, [] | [b'0', ..]) {
        return None;
    }
    digits.iter().try_fold(0_i64, |sum, digit| {
        let digit = i64::from(digit.checked_sub(b'0').filter(|digit| *digit < 10)?);
        let tens = sum.checked_mul(10)?;
        if is_negative { tens.checked_sub(digit) } else { tens.checked_add(digit) }
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
        let words = Words::Array(vec![&b"GET"[..], b"a\r\nb"]);
        assert_eq!(parser.parse(input), Ok(Some((words, first))));
        assert_eq!(parser.parse(&input[first..]), Ok(Some((Words::Array(vec![&b"PING"[..]]), 6))));
        assert_eq!(all(b"\r\n"), (Words::Array(vec![]), 2));
        assert_eq!(all(b"*0\r\n"), (Words::Array(vec![]), 4));
        assert_eq!(all(b"*-1\r\nPING\r\n"), (Words::Array(vec![]), 5));
    }

    #[test]
    fn numbers_are_read_as_redis_reads_them() {
        for number in [0, 1, -1, 10, i64::MAX, i64::MIN, i64::MIN + 1] {
            assert_eq!(super::number(number.to_string().as_bytes()), Some(number));
        }
        for text in ["", "-", "-0", "00", "01", "-01", "+1", " 1", "1 ", "1x", "1.0", "--1", "\u{661}"] {
            assert_eq!(super::number(text.as_bytes()), None, "{text:?}");
        }
        for beyond in ["9223372036854775808", "-9223372036854775809", "99999999999999999999"] {
            assert_eq!(super::number(beyond.as_bytes()), None, "{beyond}");
        }
    }

    #[test]
    fn a_line_has_words_in_quotes() {
        for (line, words) in [
            ("set a \"b c\"\r\n", ["set", "a", "b c"]),
            ("set  'a \\n' \"\\x41\\n\\\"\"\n", ["set", "a \\n", "A\n\""]),
            ("set x'it\\'s' \"\"\n", ["set", "xit's", ""]),
        ] {
            let words = words.map(|word| word.as_bytes().to_vec()).to_vec();
            assert_eq!(all(line.as_bytes()), (Words::Quoted(words), line.len()), "{line:?}");
        }
        for line in ["set \"a b\n", "set 'a\n", "set \"a\"b\n", "set \"a\\\n"] {
            let error = Parser::default().parse(line.as_bytes());
            assert_eq!(error, Err("unbalanced quotes in request".into()), "{line:?}");
        }
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
