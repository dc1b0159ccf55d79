//! Replies of the Redis protocol, versions 2 and 3, or of text.

use crate::decimal::Decimal;

const MOST: usize = 1 << 30;

pub(crate) struct Reply {
    bytes: Vec<u8>,
    /// 2 or 3.
    pub(crate) version: u8,
    most: usize,
    overflows: bool,
}

impl Default for Reply {
    fn default() -> Self {
        Reply { bytes: Vec::new(), version: 2, most: MOST, overflows: false }
    }
}

impl Reply {
    pub(crate) fn clear(&mut self) {
        self.bytes.clear();
    }

    pub(crate) fn keep(&mut self, bytes: usize) {
        self.bytes.shrink_to(bytes);
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    pub(crate) fn len(&self) -> usize {
        self.bytes.len()
    }

    pub(crate) fn truncate(&mut self, len: usize) {
        self.bytes.truncate(len);
        self.overflows = false;
    }

    pub(crate) fn overflows(&self) -> bool {
        self.overflows
    }

    pub(crate) fn raw(&mut self, bytes: &[u8]) {
        self.overflows |= self.bytes.len() + bytes.len() > self.most;
        if !self.overflows {
            self.bytes.extend_from_slice(bytes);
        }
    }

    fn line(&mut self, kind: u8, text: &str) {
        self.raw(&[kind]);
        self.raw(text.as_bytes());
        self.raw(b"\r\n");
    }

    fn counted(&mut self, kind: u8, value: usize) {
        self.raw(&[kind]);
        self.raw(Decimal::new(false, value as u64).bytes());
        self.raw(b"\r\n");
    }

    pub(crate) fn simple(&mut self, text: &str) {
        self.line(b'+', text);
    }

    pub(crate) fn ok(&mut self) {
        self.simple("OK");
    }

    /// One line, which begins with a word in capitals.
    pub(crate) fn error(&mut self, text: &str) {
        self.bytes.push(b'-');
        self.bytes.extend_from_slice(text.replace(['\r', '\n'], " ").as_bytes());
        self.bytes.extend_from_slice(b"\r\n");
    }

    pub(crate) fn integer(&mut self, value: i64) {
        self.raw(b":");
        self.raw(Decimal::from(value).bytes());
        self.raw(b"\r\n");
    }

    pub(crate) fn count(&mut self, value: usize) {
        self.counted(b':', value);
    }

    pub(crate) fn bulk(&mut self, bytes: &[u8]) {
        self.counted(b'$', bytes.len());
        self.raw(bytes);
        self.raw(b"\r\n");
    }

    pub(crate) fn nil(&mut self) {
        self.raw(if self.version == 3 { b"_\r\n" } else { b"$-1\r\n" });
    }

    pub(crate) fn nil_array(&mut self) {
        self.raw(if self.version == 3 { b"_\r\n" } else { b"*-1\r\n" });
    }

    pub(crate) fn option(&mut self, bytes: Option<&[u8]>) {
        match bytes {
            Some(bytes) => self.bulk(bytes),
            None => self.nil(),
        }
    }

    pub(crate) fn double(&mut self, value: f64) {
        let text = shown(value);
        if self.version == 3 { self.line(b',', &text) } else { self.bulk(text.as_bytes()) }
    }

    pub(crate) fn verbatim(&mut self, text: &str) {
        if self.version == 3 {
            self.counted(b'=', text.len() + 4);
            self.raw(b"txt:");
            self.raw(text.as_bytes());
            self.raw(b"\r\n");
        } else {
            self.bulk(text.as_bytes());
        }
    }

    pub(crate) fn array(&mut self, len: usize) {
        self.counted(b'*', len);
    }

    pub(crate) fn map(&mut self, len: usize) {
        if self.version == 3 { self.counted(b'%', len) } else { self.array(2 * len) }
    }
}

pub(crate) fn shown(score: f64) -> String {
    if score.is_infinite() {
        return if score > 0.0 { "inf" } else { "-inf" }.into();
    }
    let scientific = format!("{score:e}");
    match scientific.split_once('e').and_then(|(digits, power)| Some((digits, power.parse::<i32>().ok()?))) {
        Some((digits, power)) if !(-4..17).contains(&power) => {
            format!("{digits}e{}{:02}", if power < 0 { '-' } else { '+' }, power.abs())
        }
        _ => score.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reply_has_an_end() {
        let mut reply = Reply { most: 20, ..Reply::default() };
        reply.bulk(b"12345");
        let before = reply.len();
        reply.bulk(b"1234567890");
        reply.bulk(b"");
        assert!(reply.overflows() && reply.len() <= 20);
        reply.truncate(before);
        assert!(!reply.overflows() && reply.bytes() == b"$5\r\n12345\r\n");
    }

    #[test]
    fn scores_are_shown_as_redis_shows_them() {
        for (score, text) in [
            (0.0, "0"),
            (-1.5, "-1.5"),
            (1e16, "10000000000000000"),
            (1e17, "1e+17"),
            (-2.5e-7, "-2.5e-07"),
            (0.0001, "0.0001"),
            (f64::NEG_INFINITY, "-inf"),
        ] {
            assert_eq!(shown(score), text);
        }
    }
}
