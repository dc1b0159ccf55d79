//! Secrets of sealed objects: where the machine may write them, and whether it can keep a key.

use super::Facility;
use crate::sys::tpm;
use std::fs::File;
use std::path::Path;

pub(super) fn swap(readable: &[String]) -> Facility {
    Facility {
        name: "secret memory",
        available: Some(readable.is_empty()),
        found: match readable {
            [] => "no swap, or encrypted swap".into(),
            devices => format!("{} is not known to be encrypted", devices.join(", ")),
        },
        advice: if readable.is_empty() {
            "plaintext of sealed objects stays in memory"
        } else {
            "plaintext of attached sealed objects may be swapped out there: encrypt it, or have none; objects within ulimit -l stay in memory"
        }
        .into(),
    }
}

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
    fn a_device_that_cannot_be_opened_is_no_tpm() {
        assert_eq!(of_device(Path::new("/dev/null")).available, Some(true));
        let found = of_device(Path::new("/dev/none"));
        assert!(found.available == Some(false) && found.found.starts_with("/dev/none: "), "{found:?}");
    }
}
