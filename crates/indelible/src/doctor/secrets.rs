//! Secrets of sealed objects: where the machine may write them to, and whether it can keep a key.

use super::Facility;
use crate::sys::tpm;
use std::fs::File;
use std::path::Path;

/// Devices and files that the kernel swaps memory to.
pub(super) fn swap() -> Facility {
    of_swaps(&std::fs::read_to_string("/proc/swaps").unwrap_or_default())
}

/// Of the text of `/proc/swaps`. Compressed memory is memory.
fn of_swaps(text: &str) -> Facility {
    let places = text.lines().skip(1).filter_map(|line| line.split_whitespace().next());
    let places: Vec<_> = places.filter(|place| !place.starts_with("/dev/zram")).collect();
    let advice = match places.is_empty() {
        true => "contents of sealed objects stay in memory",
        false => {
            "contents of sealed objects that are attached can be written there as they are: have it encrypted, or off"
        }
    };
    Facility {
        name: "no swap",
        available: Some(places.is_empty()),
        found: if places.is_empty() { "none on a device".into() } else { places.join(", ") },
        advice: advice.into(),
    }
}

/// The TPM of the machine.
pub(super) fn tpm() -> Facility {
    of_device(Path::new(tpm::DEVICE))
}

fn of_device(path: &Path) -> Facility {
    let opened = File::options().read(true).write(true).open(path);
    Facility {
        name: "TPM 2.0",
        available: Some(opened.is_ok()),
        found: match &opened {
            Ok(_) => path.display().to_string(),
            Err(error) => format!("{}: {error}", path.display()),
        },
        advice: match opened {
            Ok(_) => "`pmo key add --new-tpm` lets this machine open a sealed object".into(),
            Err(_) => "sealed objects are opened by key files, passphrases, commands and credentials".into(),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn swap_that_is_not_memory_is_told() {
        const HEAD: &str = "Filename\t\t\tType\t\tSize\t\tUsed\t\tPriority\n";
        for (rest, places) in [
            ("", None),
            ("/dev/zram0                              partition\t4\t0\t100\n", None),
            ("/dev/sda2      partition\t4\t0\t-2\n/dev/zram0 partition\t4\t0\t100\n", Some("/dev/sda2")),
            ("/swap.img   file\t4\t0\t-2\n/dev/dm-1 partition\t4\t0\t-3\n", Some("/swap.img, /dev/dm-1")),
        ] {
            let found = of_swaps(&format!("{HEAD}{rest}"));
            assert_eq!(found.available, Some(places.is_none()), "{rest}");
            assert_eq!(found.found, places.unwrap_or("none on a device"));
            assert_eq!(found.advice.contains("encrypted"), places.is_some());
        }
        assert_eq!(of_swaps("").available, Some(true));
    }

    #[test]
    fn a_device_that_cannot_be_opened_is_no_tpm() {
        assert_eq!(of_device(Path::new("/dev/null")).available, Some(true));
        let found = of_device(Path::new("/dev/none"));
        assert!(found.available == Some(false) && found.found.starts_with("/dev/none: "), "{found:?}");
    }
}
