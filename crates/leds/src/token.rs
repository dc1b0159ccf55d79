//! Tokens of C, to find braces, names and statements.

use std::ops::Range;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Token {
    pub(crate) kind: Kind,
    pub(crate) range: Range<usize>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Name,
    Literal,
    Mark(u8),
    /// With its continued lines.
    Directive,
}

impl Token {
    pub(crate) fn text<'s>(&self, source: &'s str) -> &'s str {
        &source[self.range.clone()]
    }

    pub(crate) fn is(&self, mark: u8) -> bool {
        self.kind == Kind::Mark(mark)
    }
}

pub(crate) fn tokens(source: &str) -> Vec<Token> {
    let mut scan = Scan { bytes: source.as_bytes(), at: 0, fresh: true };
    std::iter::from_fn(|| scan.token()).collect()
}

struct Scan<'s> {
    bytes: &'s [u8],
    at: usize,
    /// The line has only blanks so far.
    fresh: bool,
}

impl Scan<'_> {
    fn peek(&self, ahead: usize) -> u8 {
        self.bytes.get(self.at + ahead).copied().unwrap_or(0)
    }

    fn token(&mut self) -> Option<Token> {
        self.skip_blanks();
        let (start, first) = (self.at, *self.bytes.get(self.at)?);
        let fresh = std::mem::replace(&mut self.fresh, false);
        let kind = match first {
            b'#' if fresh => {
                self.line();
                Kind::Directive
            }
            b'"' | b'\'' => {
                self.quoted(first);
                Kind::Literal
            }
            b'R' if self.peek(1) == b'"' => {
                self.raw_string();
                Kind::Literal
            }
            b'0'..=b'9' => {
                self.word(b"._'+-");
                Kind::Literal
            }
            b'_' | b'a'..=b'z' | b'A'..=b'Z' | 0x80.. => {
                self.word(b"_");
                Kind::Name
            }
            mark => {
                self.at += 1;
                Kind::Mark(mark)
            }
        };
        Some(Token { kind, range: start..self.at })
    }

    fn skip_blanks(&mut self) {
        loop {
            match (self.peek(0), self.peek(1)) {
                (b'\n', _) => {
                    self.fresh = true;
                    self.at += 1;
                }
                (b' ' | b'\t' | b'\r' | 0x0b | 0x0c, _) => self.at += 1,
                (b'\\', b'\n') => self.at += 2,
                (b'/', b'/') => self.line(),
                (b'/', b'*') => self.comment(),
                _ => return,
            }
        }
    }

    fn line(&mut self) {
        while self.at < self.bytes.len() && self.peek(0) != b'\n' {
            match (self.peek(0), self.peek(1)) {
                (b'\\', b'\n') => self.at += 2,
                (b'/', b'*') => self.comment(),
                _ => self.at += 1,
            }
        }
    }

    fn comment(&mut self) {
        self.at += 2;
        while self.at < self.bytes.len() && (self.peek(0), self.peek(1)) != (b'*', b'/') {
            self.at += 1;
        }
        self.at = (self.at + 2).min(self.bytes.len());
    }

    fn quoted(&mut self, end: u8) {
        self.at += 1;
        while self.at < self.bytes.len() && self.peek(0) != end && self.peek(0) != b'\n' {
            self.at += 1 + usize::from(self.peek(0) == b'\\');
        }
        self.at = (self.at + 1).min(self.bytes.len());
    }

    /// `R"word( … )word"`.
    fn raw_string(&mut self) {
        let rest = &self.bytes[self.at + 2..];
        let Some(open) = rest.iter().position(|byte| *byte == b'(') else {
            self.at += 1;
            return;
        };
        let end = [b")", &rest[..open], b"\""].concat();
        let found = rest.windows(end.len()).position(|window| window == end);
        self.at = found.map_or(self.bytes.len(), |found| self.at + 2 + found + end.len());
    }

    /// Letters, digits, and `more`; signs only after an exponent.
    fn word(&mut self, more: &[u8]) {
        while self.at < self.bytes.len() {
            let (byte, before) = (self.peek(0), self.bytes[self.at.saturating_sub(1)]);
            let sign = matches!(byte, b'+' | b'-');
            let exponent = matches!(before, b'e' | b'E' | b'p' | b'P');
            if !(byte.is_ascii_alphanumeric()
                || byte >= 0x80
                || (more.contains(&byte) && (!sign || exponent)))
            {
                return;
            }
            self.at += 1;
        }
    }
}

pub(crate) fn is_closed(text: &str) -> bool {
    let mut depth = 0_i32;
    for token in tokens(text) {
        match token.kind {
            Kind::Mark(b'(' | b'[' | b'{') => depth += 1,
            Kind::Mark(b')' | b']' | b'}') => depth -= 1,
            Kind::Mark(b',' | b';') if depth == 0 => return false,
            _ => {}
        }
        if depth < 0 {
            return false;
        }
    }
    depth == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(source: &str) -> Vec<&str> {
        tokens(source).iter().map(|token| token.text(source)).collect()
    }

    #[test]
    fn comments_strings_and_directives_hide_their_braces() {
        let source = "a/* { */b // {\n\"{\\\"\"'{' x#y\n # define C {\\\n {\n1e+5-2 R\"x({)\")x\" ü_1";
        let expected = [
            "a",
            "b",
            "\"{\\\"\"",
            "'{'",
            "x",
            "#",
            "y",
            "# define C {\\\n {",
            "1e+5",
            "-",
            "2",
            "R\"x({)\")x\"",
            "ü_1",
        ];
        assert_eq!(texts(source), expected);
        assert_eq!(tokens(source)[7].kind, Kind::Directive);
    }

    #[test]
    fn ends_that_are_missing_end_with_the_source() {
        for source in ["/* a", "\"a", "'", "R\"a(b", "R\"a", "#a \\\n", "// a", "\\"] {
            assert!(tokens(source).iter().all(|token| token.range.end <= source.len()), "{source}");
        }
    }
}
