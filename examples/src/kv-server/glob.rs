//! Patterns of keys: `*` any bytes, `?` one byte, `[a-c]` one of some, `[^a]` one of the others,
//! `\` a literal byte.

/// Matches the whole `text`, in time of the product of both lengths.
pub(crate) fn matches(pattern: &[u8], text: &[u8]) -> bool {
    let (mut at, mut p) = (0, 0);
    // The last star, and the first byte behind its match.
    let mut star = None;
    while at < text.len() {
        let step = match &pattern[p..] {
            [b'*', ..] => {
                star = Some((p, at));
                p += 1;
                continue;
            }
            [b'?', ..] => Some(1),
            [b'[', class @ ..] => fits(class, text[at]).map(|len| 1 + len),
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

fn fits(class: &[u8], byte: u8) -> Option<usize> {
    let is_negative = class.first() == Some(&b'^');
    let (mut at, mut found) = (usize::from(is_negative), false);
    loop {
        match &class[at..] {
            [] => break,
            [b']', ..] => {
                at += 1;
                break;
            }
            [b'\\', escaped, ..] => {
                found |= *escaped == byte;
                at += 2;
            }
            [first, b'-', last, ..] => {
                found |= (first.min(last)..=first.max(last)).contains(&&byte);
                at += 3;
            }
            [one, ..] => {
                found |= *one == byte;
                at += 1;
            }
        }
    }
    (found != is_negative).then_some(at)
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
            ("key:[13]", "key:3", true),
            ("key:[13]", "key:2", false),
            ("[^a-c]*", "dog", true),
            ("*[c-a]", "dob", true),
            ("[^a-c]*", "bog", false),
            ("[\\]]", "]", true),
            ("[ab", "b", true),
        ] {
            assert_eq!(matches(pattern.as_bytes(), text.as_bytes()), fits, "{pattern} {text}");
        }
    }
}
