//! Identities of the boot and the process, as recorded for people.

pub(crate) fn boot_id() -> [u8; 16] {
    if cfg!(miri) {
        return [1; 16];
    }
    std::fs::read_to_string("/proc/sys/kernel/random/boot_id")
        .ok()
        .and_then(|text| parse(text.trim()))
        .unwrap_or_default()
}

fn parse(text: &str) -> Option<[u8; 16]> {
    let mut id = [0; 16];
    let mut digits = text.bytes().filter(|b| *b != b'-');
    for byte in &mut id {
        let high = char::from(digits.next()?).to_digit(16)?;
        let low = char::from(digits.next()?).to_digit(16)?;
        *byte = u8::try_from(high << 4 | low).ok()?;
    }
    digits.next().is_none().then_some(id)
}

pub(crate) fn pid() -> u32 {
    std::process::id()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn boot_ids_parse_whole_or_not_at_all() {
        let id = parse("00112233-4455-6677-8899-aabbccddeeff").unwrap();
        assert_eq!(id[..3], [0x00, 0x11, 0x22]);
        assert_eq!(id[15], 0xff);
        for bad in
            ["", "0011", "00112233-4455-6677-8899-aabbccddeeff0", "zz112233-4455-6677-8899-aabbccddeeff"]
        {
            assert_eq!(parse(bad), None, "{bad:?}");
        }
        assert_eq!(boot_id(), boot_id());
    }
}
