//! Patterns of keys: `*` any bytes, `?` one byte, `\` takes the next byte as it is.

/// Whether the whole of `text` fits the pattern; in time proportional to the product of their lengths.
pub(crate) fn matches(pattern: &[u8], text: &[u8]) -> bool {
    let (mut at, mut p) = (0, 0);
    // The last star, and the first byte that it does not stand for.
    let mut star = None;
    while at < text.len() {
        let step = match &pattern[p..] {
            [b'*', ..] => {
                star = Some((p, at));
                p += 1;
                continue;
            }
            [b'?', ..] => Some(1),
            [b'\\', byte, ..] if *byte == text[at] => Some(2),
            [byte, ..] if *byte != b'\\' && *byte == text[at] => Some(1),
            _ => None,
        };
        match (step, star) {
            (Some(step), _) => (at, p) = (at + 1, p + step),
            (None, Some((place, from))) => {
                star = Some((place, from + 1));
                (at, p) = (from + 1, place + 1);
            }
            (None, None) => return false,
        }
    }
    pattern[p..].iter().all(|byte| *byte == b'*')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_fit_whole_keys() {
        for (pattern, text, fits) in [
            ("*", "", true),
            ("a*", "abc", true),
            ("a*c", "abcbc", true),
            ("a*d", "abc", false),
            ("?b?", "abc", true),
            ("?", "", false),
            ("a\\*", "a*", true),
            ("a\\*", "ab", false),
            ("user:*:name", "user:17:name", true),
            ("user:*:name", "user:17:age", false),
            ("abc", "ab", false),
        ] {
            assert_eq!(matches(pattern.as_bytes(), text.as_bytes()), fits, "{pattern} {text}");
        }
    }
}
