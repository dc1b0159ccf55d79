//! SIGPWR from an init system or a UPS daemon.

use super::{Detector, Watch};
use crate::condition::Condition;
use crate::kernel;
use std::fs::File;
use std::io::{self, Read};
use std::path::PathBuf;
use std::time::Duration;

/// Files whose first letter tells the signal's meaning: with O the power is back.
const STATUS: [&str; 2] = ["/run/powerstatus", "/etc/powerstatus"];

/// See the module. Call [`hold_back_signals`](crate::hold_back_signals), or the signal kills the
/// process.
#[derive(Clone, Debug)]
pub struct SignalDetector {
    status: Vec<PathBuf>,
}

impl Default for SignalDetector {
    fn default() -> SignalDetector {
        SignalDetector { status: STATUS.map(PathBuf::from).to_vec() }
    }
}

impl SignalDetector {
    fn meaning(&self) -> Condition {
        let first = |path: &PathBuf| {
            let mut letter = [0];
            File::open(path).and_then(|mut file| file.read_exact(&mut letter)).ok().map(|()| letter[0])
        };
        match self.status.iter().find_map(first) {
            Some(b'O') => Condition::Fine,
            _ => Condition::Failing,
        }
    }
}

impl Detector for SignalDetector {
    fn name(&self) -> String {
        "signal SIGPWR".into()
    }

    fn latency(&self) -> Duration {
        Duration::ZERO
    }

    fn look(&mut self) -> io::Result<Condition> {
        Ok(Condition::Fine)
    }

    fn watch(&mut self, watch: &Watch) -> io::Result<()> {
        loop {
            kernel::wait_for_power_signal()?;
            if !watch.tell(self.meaning()) {
                return Ok(());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn s1_10_a_signal_means_failure_unless_the_status_says_otherwise() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("powerstatus");
        let detector = SignalDetector { status: vec![path.clone()] };
        assert_eq!(detector.meaning(), Condition::Failing, "no status");
        for (text, condition) in [
            ("OK", Condition::Fine),
            ("FAIL", Condition::Failing),
            ("LOW", Condition::Failing),
            ("", Condition::Failing),
        ] {
            std::fs::write(&path, text).unwrap();
            assert_eq!(detector.meaning(), condition, "{text}");
        }
    }
}
