//! The secret in the page's address.

use crate::text::hex;
use std::hint::black_box;
use std::io;

/// 128 random bits as hexadecimal digits.
pub struct Token(String);

impl Token {
    pub fn new() -> io::Result<Token> {
        let mut bytes = [0; 16];
        getrandom::fill(&mut bytes).map_err(|error| io::Error::other(format!("no random bytes: {error}")))?;
        Ok(Token(hex(&bytes)))
    }

    pub fn text(&self) -> &str {
        &self.0
    }

    /// Compares in constant time.
    pub fn is(&self, given: &str) -> bool {
        let (own, given) = (self.0.as_bytes(), given.as_bytes());
        let differing = own.iter().zip(given).fold(0, |all, (a, b)| black_box(all | (a ^ b)));
        own.len() == given.len() && differing == 0
    }
}
