const UNITS: [&str; 5] = ["B", "KiB", "MiB", "GiB", "TiB"];

const USAGE: &str = "a size is a number with an optional K, M, G or T, such as 64M";

/// Reads a size: `4096`, `64K`, `1.5G`, `2MiB`. `MB` is ambiguous, 1000 or 1024, and refused.
pub fn parse(text: &str) -> Result<u64, String> {
    let text = text.trim();
    let digits = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, suffix) = (&text[..digits], text[digits..].trim().to_ascii_lowercase());
    if number.is_empty() {
        return Err(USAGE.to_owned());
    }
    let unit = unit(&suffix).ok_or_else(|| unknown(number, &suffix))?;
    let (whole, fraction) = number.split_once('.').unwrap_or((number, "0"));
    let bytes = exact(whole, fraction, unit).ok_or(USAGE)?;
    u64::try_from(bytes).map_err(|_| "that is more than 16 EiB".to_owned())
}

fn unit(suffix: &str) -> Option<u128> {
    let power = match suffix.chars().next() {
        None | Some('b') => 0,
        Some(letter) => 1 + "kmgt".find(letter)? as u32,
    };
    match suffix.get(1..).unwrap_or("") {
        "" | "ib" if power > 0 => Some(1024_u128.pow(power)),
        "" => Some(1),
        _ => None,
    }
}

fn unknown(number: &str, suffix: &str) -> String {
    let letter = suffix.chars().next().filter(|letter| "kmgt".contains(*letter));
    match (letter.map(|letter| letter.to_ascii_uppercase()), suffix.len()) {
        (Some(letter), 2) if suffix.ends_with('b') => format!(
            "{letter}B may mean a power of 1000 or of 1024: write {number}{letter} or {number}{letter}iB for 1024, and \
             the number of bytes for 1000"
        ),
        _ => format!("{suffix:?} is not a unit; K, M, G and T are"),
    }
}

fn exact(whole: &str, fraction: &str, unit: u128) -> Option<u128> {
    if fraction.len() > 9 || whole.len() > 20 {
        return None;
    }
    let scale = 10_u128.pow(fraction.len() as u32);
    let (whole, fraction): (u128, u128) = (whole.parse().ok()?, fraction.parse().ok()?);
    Some(whole * unit + fraction * unit / scale)
}

/// Exact if whole in its unit, else rounded to a tenth.
pub fn human(bytes: u64) -> String {
    let mut power = 0;
    while power + 1 < UNITS.len() && bytes >> (10 * (power + 1)) > 0 {
        power += 1;
    }
    let unit = 1_u64 << (10 * power);
    if bytes.is_multiple_of(unit) {
        return format!("{} {}", bytes / unit, UNITS[power]);
    }
    format!("{:.1} {}", bytes as f64 / unit as f64, UNITS[power])
}

/// As [`human`], with the exact number if that says more.
pub fn exactly(bytes: u64) -> String {
    if bytes < 1024 { count(bytes) } else { format!("{} ({})", human(bytes), count(bytes)) }
}

fn count(bytes: u64) -> String {
    crate::text::count(bytes, "byte")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read() {
        for (text, bytes) in [
            ("0", 0),
            ("4096", 4096),
            ("12B", 12),
            ("64K", 64 << 10),
            ("64k", 64 << 10),
            ("1.5G", 3 << 29),
            ("2 MiB", 2 << 20),
            ("1T", 1 << 40),
        ] {
            assert_eq!(parse(text), Ok(bytes), "{text}");
        }
        for text in [
            "",
            "K",
            "x",
            "-1",
            "1Q",
            "1KiBs",
            "1.2.3",
            "99999999999999999T",
            "1e3",
            ".",
            "1Ki",
            "4KB",
            "2mb",
        ] {
            assert!(parse(text).is_err(), "{text}");
        }
        assert!(parse("4KB").is_err_and(|why| why.contains("write 4K or 4KiB")));
    }

    #[test]
    fn sizes_are_shown() {
        assert_eq!(human(0), "0 B");
        assert_eq!(human(4096), "4 KiB");
        assert_eq!(human(5000), "4.9 KiB");
        assert_eq!(human(1 << 40), "1 TiB");
        assert_eq!(human(3 << 50), "3072 TiB");
    }
}
