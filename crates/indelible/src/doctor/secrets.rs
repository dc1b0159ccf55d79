//! Whether the machine can keep a key of sealed objects.

use super::Facility;
use crate::sys::tpm;
use std::fs::File;
use std::path::Path;

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
    fn a_device_that_cannot_be_opened_is_no_tpm() {
        assert_eq!(of_device(Path::new("/dev/null")).available, Some(true));
        let found = of_device(Path::new("/dev/none"));
        assert!(found.available == Some(false) && found.found.starts_with("/dev/none: "), "{found:?}");
    }
}
