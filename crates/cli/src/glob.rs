//! Patterns for names: `*`, `?`, `[a-z]`, `[!a-z]`, and `\` before a literal character. `*` covers
//! `/` too.

/// A parsed pattern.
#[derive(Clone, Debug)]
pub struct Glob {
    /// The literal prefix.
    prefix: String,
    tokens: Vec<Token>,
}

#[derive(Clone, Debug)]
enum Token {
    Any,
    One,
    Char(char),
    Set { ranges: Vec<(char, char)>, negated: bool },
}

impl Glob {
    /// An unclosed `[` is literal.
    pub fn new(pattern: &str) -> Self {
        let (mut prefix, mut tokens) = (String::new(), Vec::new());
        let mut rest = pattern;
        while let Some(c) = rest.chars().next() {
            rest = &rest[c.len_utf8()..];
            let token = match c {
                '*' => Token::Any,
                '?' => Token::One,
                '\\' => match rest.chars().next() {
                    Some(next) => {
                        rest = &rest[next.len_utf8()..];
                        Token::Char(next)
                    }
                    None => Token::Char('\\'),
                },
                '[' => match set(rest) {
                    Some((token, after)) => {
                        rest = after;
                        token
                    }
                    None => Token::Char('['),
                },
                c => Token::Char(c),
            };
            match token {
                Token::Char(c) if tokens.is_empty() => prefix.push(c),
                token => tokens.push(token),
            }
        }
        Glob { prefix, tokens }
    }

    /// The only matching name, if there is one.
    pub fn literal(&self) -> Option<&str> {
        self.tokens.is_empty().then_some(&self.prefix)
    }

    /// Matches the whole `name`, in time of at most the product of both lengths.
    pub fn matches(&self, name: &str) -> bool {
        let Some(name) = name.strip_prefix(&*self.prefix) else { return false };
        if matches!(self.tokens[..], [Token::Any]) {
            return true;
        }
        let name: Vec<char> = name.chars().collect();
        let (mut at, mut token) = (0, 0);
        // The last `*`, and the bytes that it has taken.
        let mut star: Option<(usize, usize)> = None;
        while at < name.len() {
            match self.tokens.get(token) {
                Some(Token::Any) => {
                    star = Some((token, at));
                    token += 1;
                }
                Some(one) if one.takes(name[at]) => {
                    at += 1;
                    token += 1;
                }
                _ => match &mut star {
                    Some((place, taken)) => {
                        *taken += 1;
                        (token, at) = (*place + 1, *taken);
                    }
                    None => return false,
                },
            }
        }
        self.tokens[token..].iter().all(|token| matches!(token, Token::Any))
    }
}

impl Token {
    fn takes(&self, c: char) -> bool {
        match self {
            Token::Any => false,
            Token::One => true,
            Token::Char(own) => *own == c,
            Token::Set { ranges, negated } => {
                ranges.iter().any(|(from, to)| (*from..=*to).contains(&c)) != *negated
            }
        }
    }
}

fn set(text: &str) -> Option<(Token, &str)> {
    let negated = text.starts_with(['!', '^']);
    let body = if negated { &text[1..] } else { text };
    // A leading `]` is a member.
    let first = body.chars().next()?;
    let end = first.len_utf8() + body[first.len_utf8()..].find(']')?;
    let members: Vec<char> = body[..end].chars().collect();
    let mut ranges = Vec::new();
    let mut at = 0;
    while at < members.len() {
        if let (Some('-'), Some(to)) = (members.get(at + 1), members.get(at + 2)) {
            ranges.push((members[at], *to));
            at += 3;
        } else {
            ranges.push((members[at], members[at]));
            at += 1;
        }
    }
    Some((Token::Set { ranges, negated }, &body[end + 1..]))
}

#[cfg(test)]
mod tests {
    use super::Glob;

    #[test]
    fn patterns_match() {
        for (pattern, name, expected) in [
            ("*", "", true),
            ("a*c", "abbc", true),
            ("a*c", "abbcd", false),
            ("*.log", "x/y.log", true),
            ("a?c", "aüc", true),
            ("a?c", "ac", false),
            ("[a-c]x", "bx", true),
            ("[!a-c]x", "bx", false),
            ("[]]", "]", true),
            ("[x", "[x", true),
            ("\\*", "*", true),
            ("\\*", "a", false),
            ("*a*b*", "xxaxxbxx", true),
            ("*a*b*", "xxbxxaxx", false),
            ("", "", true),
            ("", "a", false),
        ] {
            assert_eq!(Glob::new(pattern).matches(name), expected, "{pattern} {name}");
        }
    }

    #[test]
    fn many_stars_stay_cheap() {
        assert!(!Glob::new(&"*a".repeat(60)).matches(&"a".repeat(59)));
        assert!(!Glob::new(&format!("{}b", "*a".repeat(60))).matches(&"a".repeat(500)));
    }
}
