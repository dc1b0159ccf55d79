//! Text lines between writers, users and the guard. `crates/indelible/src/transaction/guarded.rs`
//! lists those of writers.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;
use std::time::Duration;

const VERSION: &str = "1";
const LONGEST_PATH: usize = 4096;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Request {
    Writer { pool: PathBuf, id: [u8; 16], number: u64 },
    Measured { bytes: u64, took: Duration },
    Published { token: u64, bytes: u64 },
    Failed { token: u64, why: String },
    Bye,
    Status,
    Rehearse,
}

/// `None`: the line is not of this protocol.
pub(crate) fn parse(line: &str) -> Option<Request> {
    let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
    let words: Vec<&str> = rest.split(' ').collect();
    match (word, &words[..]) {
        ("writer", [VERSION, id, number, path]) => {
            let id = <[u8; 16]>::try_from(hex(id, 16)?).ok()?;
            let number = u64::from_be_bytes(<[u8; 8]>::try_from(hex(number, 8)?).ok()?);
            let path = PathBuf::from(OsString::from_vec(hex(path, LONGEST_PATH)?));
            let usable = path.is_absolute() && !path.as_os_str().as_encoded_bytes().contains(&0);
            usable.then_some(Request::Writer { pool: path, id, number })
        }
        ("measured", [bytes, nanoseconds]) => {
            let took = Duration::from_nanos(nanoseconds.parse().ok()?);
            Some(Request::Measured { bytes: bytes.parse().ok()?, took })
        }
        ("published", [token, bytes, _]) => {
            Some(Request::Published { token: token.parse().ok()?, bytes: bytes.parse().ok()? })
        }
        ("failed", [token, ..]) => {
            let why = rest.split_once(' ').map_or("", |(_, why)| why);
            Some(Request::Failed { token: token.parse().ok()?, why: why.to_owned() })
        }
        ("bye", [""]) => Some(Request::Bye),
        ("status", [""]) => Some(Request::Status),
        ("rehearse", [""]) => Some(Request::Rehearse),
        _ => None,
    }
}

fn hex(digits: &str, longest: usize) -> Option<Vec<u8>> {
    let (pairs, odd) = digits.as_bytes().as_chunks::<2>();
    if !odd.is_empty() || pairs.len() > longest {
        return None;
    }
    let digit = |byte: u8| char::from(byte).to_digit(16);
    pairs.iter().map(|[high, low]| u8::try_from(digit(*high)? << 4 | digit(*low)?).ok()).collect()
}

pub(crate) fn budget(bytes: u64) -> String {
    format!("budget {bytes}\n")
}

pub(crate) fn publish(token: u64) -> String {
    format!("publish {token}\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_read_and_all_others_are_refused() {
        let id = "000102030405060708090a0b0c0d0e0f";
        let writer = format!("writer 1 {id} 00000000000000ff 2f612062");
        let expected =
            Request::Writer { pool: "/a b".into(), id: std::array::from_fn(|nth| nth as u8), number: 255 };
        assert_eq!(parse(&writer), Some(expected));
        let took = Duration::from_nanos(9);
        assert_eq!(parse("measured 4 9"), Some(Request::Measured { bytes: 4, took }));
        assert_eq!(parse("published 3 64 9"), Some(Request::Published { token: 3, bytes: 64 }));
        assert_eq!(
            parse("failed 3 no space left"),
            Some(Request::Failed { token: 3, why: "no space left".into() })
        );
        assert_eq!(parse("failed 3"), Some(Request::Failed { token: 3, why: String::new() }));
        assert_eq!(
            [parse("bye"), parse("status"), parse("rehearse")],
            [Some(Request::Bye), Some(Request::Status), Some(Request::Rehearse)]
        );
        let long = format!("writer 1 {id} 00000000000000ff 2f{}", "61".repeat(5000));
        for wrong in [
            "",
            " ",
            "bye bye",
            "status\u{0}",
            "measured 4",
            "measured -4 9",
            "measured 99999999999999999999 1",
            "published x 1 1",
            "failed",
            &writer.replace("writer 1", "writer 2"),
            &writer.replace("2f6120", "612f20"),
            &writer.replace("2f6120", "2f6100"),
            &writer.replace("2f6120", "2f612"),
            &writer.replace("0f 00", "0f 0"),
            &writer.replace("0001", "0x01"),
            &format!("{writer} more"),
            &long,
        ] {
            assert_eq!(parse(wrong), None, "{wrong}");
        }
    }
}
