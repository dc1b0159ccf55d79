//! Replies.

/// Replies to requests, one after the other.
#[derive(Default)]
pub(crate) struct Reply(Vec<u8>);

impl Reply {
    pub(crate) fn clear(&mut self) {
        self.0.clear();
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.0
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// Takes back what came behind the first `len` bytes.
    pub(crate) fn truncate(&mut self, len: usize) {
        self.0.truncate(len);
    }

    fn line(&mut self, kind: u8, text: &str) {
        self.0.push(kind);
        self.0.extend_from_slice(text.as_bytes());
        self.0.extend_from_slice(b"\r\n");
    }

    pub(crate) fn simple(&mut self, text: &str) {
        self.line(b'+', text);
    }

    /// A text of one line, which begins with a word in capitals.
    pub(crate) fn error(&mut self, text: &str) {
        self.line(b'-', &text.replace(['\r', '\n'], " "));
    }

    pub(crate) fn integer(&mut self, value: i64) {
        self.line(b':', &value.to_string());
    }

    pub(crate) fn count(&mut self, value: usize) {
        self.line(b':', &value.to_string());
    }

    pub(crate) fn bulk(&mut self, bytes: &[u8]) {
        self.line(b'$', &bytes.len().to_string());
        self.0.extend_from_slice(bytes);
        self.0.extend_from_slice(b"\r\n");
    }

    pub(crate) fn nil(&mut self) {
        self.line(b'$', "-1");
    }

    /// A text, or nothing.
    pub(crate) fn option(&mut self, bytes: Option<&[u8]>) {
        match bytes {
            Some(bytes) => self.bulk(bytes),
            None => self.nil(),
        }
    }

    /// The beginning of so many replies in one.
    pub(crate) fn array(&mut self, len: usize) {
        self.line(b'*', &len.to_string());
    }
}
