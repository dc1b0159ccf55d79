//! The part of an address behind `?`.

use super::answer::Status;

#[derive(Debug, Default)]
pub struct Query(Vec<(String, String)>);

impl Query {
    /// `None`: malformed.
    pub fn of(text: &str) -> Option<Query> {
        let parts = text.split('&').filter(|part| !part.is_empty());
        let pair = |part: &str| {
            let (name, value) = part.split_once('=').unwrap_or((part, ""));
            Some((decoded(name)?, decoded(value)?))
        };
        Some(Query(parts.map(pair).collect::<Option<_>>()?))
    }

    pub fn text(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    pub fn number(&self, name: &str, otherwise: u64) -> Result<u64, Status> {
        self.text(name).map_or(Ok(otherwise), |text| text.parse().map_err(|_| Status::BadRequest))
    }
}

fn decoded(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'%' => digit(rest.next()?)? << 4 | digit(rest.next()?)?,
            other => other,
        });
    }
    String::from_utf8(bytes).ok()
}

fn digit(letter: u8) -> Option<u8> {
    char::from(letter).to_digit(16).map(|digit| digit as u8)
}

#[cfg(test)]
mod tests {
    use super::Query;

    #[test]
    fn queries_are_decoded_or_refused() {
        let query = Query::of("a=1&name=%3Cb%3e%26%20+&&c").unwrap();
        assert_eq!(query.text("name"), Some("<b>& +"));
        assert_eq!((query.text("c"), query.text("d")), (Some(""), None));
        assert!(
            query.number("a", 7) == Ok(1) && query.number("d", 7) == Ok(7) && query.number("c", 7).is_err()
        );
        for bad in ["%", "a=%1", "a=%zz", "%ff=1", "a=%c3"] {
            assert!(Query::of(bad).is_none(), "{bad}");
        }
    }
}
