//! Requests: arrays of words with their lengths, or a line of words.

/// Words that a request may have, and bytes of one of them.
const WORDS: usize = 1 << 20;
const BYTES: usize = 512 << 20;
/// Bytes of a line.
const LINE: usize = 64 << 10;

/// The first request of an input, if it is whole.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Request<'i> {
    /// More input is needed.
    Incomplete,
    /// A request, of no words if the line is empty, and its length.
    Whole { words: Vec<&'i [u8]>, len: usize },
}

/// Reads the request at the beginning of `input`.
///
/// # Errors
/// It is none, and the connection cannot go on.
pub(crate) fn parse(input: &[u8]) -> Result<Request<'_>, &'static str> {
    let Some((line, mut at)) = line(input, 0)? else { return Ok(Request::Incomplete) };
    let Some(count) = line.strip_prefix(b"*") else {
        let words = line.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty());
        return Ok(Request::Whole { words: words.collect(), len: at });
    };
    let count = number(count).filter(|count| *count <= WORDS).ok_or("invalid multibulk length")?;
    let mut words = Vec::with_capacity(count.min(64));
    for _ in 0..count {
        let Some((header, begin)) = self::line(input, at)? else { return Ok(Request::Incomplete) };
        let len = header.strip_prefix(b"$").ok_or("expected '$' before the length of a word")?;
        let len = number(len).filter(|len| *len <= BYTES).ok_or("invalid bulk length")?;
        let (end, behind) = (begin + len, begin + len + 2);
        if input.len() < behind {
            return Ok(Request::Incomplete);
        }
        if &input[end..behind] != b"\r\n" {
            return Err("a word does not end where its length says");
        }
        words.push(&input[begin..end]);
        at = behind;
    }
    Ok(Request::Whole { words, len: at })
}

/// The line that begins at `at`, and the place behind it.
fn line(input: &[u8], at: usize) -> Result<Option<(&[u8], usize)>, &'static str> {
    let rest = &input[at..];
    match rest.iter().take(LINE).position(|byte| *byte == b'\n') {
        Some(end) => Ok(Some((rest[..end].strip_suffix(b"\r").unwrap_or(&rest[..end]), at + end + 1))),
        None if rest.len() >= LINE => Err("too big inline request"),
        None => Ok(None),
    }
}

fn number(text: &[u8]) -> Option<usize> {
    std::str::from_utf8(text).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_whole_at_its_last_byte_only() {
        let input = b"*2\r\n$3\r\nGET\r\n$4\r\na\r\nb\r\nPING\r\n";
        let first = b"*2\r\n$3\r\nGET\r\n$4\r\na\r\nb\r\n".len();
        for end in 0..first {
            assert_eq!(parse(&input[..end]), Ok(Request::Incomplete), "{end}");
        }
        assert_eq!(parse(input), Ok(Request::Whole { words: vec![b"GET", b"a\r\nb"], len: first }));
        assert_eq!(parse(&input[first..]), Ok(Request::Whole { words: vec![b"PING"], len: 6 }));
        assert_eq!(parse(b"\r\n"), Ok(Request::Whole { words: vec![], len: 2 }));
    }

    #[test]
    fn other_bytes_are_refused() {
        for input in [
            "*x\r\n",
            "*-1\r\n",
            "*99999999\r\n",
            "*1\r\nGET\r\n",
            "*1\r\n$-1\r\n",
            "*1\r\n$9999999999\r\n",
            "*1\r\n$1\r\nab\r\n",
        ] {
            assert!(parse(input.as_bytes()).is_err(), "{input:?}");
        }
        assert!(parse(&[b'x'; LINE]).is_err());
    }
}
