//! Who is alive: the boot's identity and whether a process still exists.

use rustix::process::{Pid, test_kill_process};

/// The ID of this boot, all zeros where the kernel does not tell.
pub(crate) fn boot_id() -> [u8; 16] {
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

/// This process's ID, as other tools of this PID namespace see it.
pub(crate) fn pid() -> u32 {
    std::process::id()
}

/// Whether a process with this ID exists in this PID namespace. The ID may have been reused, and
/// processes of other containers are not seen: use it to inform people, never to decide.
pub(crate) fn pid_alive(pid: u32) -> bool {
    let Some(pid) = i32::try_from(pid).ok().and_then(Pid::from_raw) else {
        return false;
    };
    // EPERM means that it exists and belongs to somebody else.
    matches!(test_kill_process(pid), Ok(()) | Err(rustix::io::Errno::PERM))
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

    #[test]
    fn this_process_is_alive_and_nonsense_is_not() {
        assert!(pid_alive(pid()));
        assert!(!pid_alive(0));
        assert!(!pid_alive(u32::MAX));
    }
}
