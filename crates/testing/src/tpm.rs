use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// An emulated TPM with its state in a folder, which ends on drop.
pub struct EmulatedTpm {
    process: Child,
    socket: PathBuf,
}

impl EmulatedTpm {
    #[must_use]
    pub fn start(state: &Path, what: &str) -> Option<EmulatedTpm> {
        let (socket, control) = (state.join("socket"), state.join("control"));
        let _ = (std::fs::remove_file(&socket), std::fs::remove_file(&control));
        let mut command = Command::new("swtpm");
        command.args(["socket", "--tpm2", "--flags", "startup-clear"]);
        command.arg("--tpmstate").arg(format!("dir={}", state.display()));
        command.arg("--server").arg(format!("type=unixio,path={}", socket.display()));
        command.arg("--ctrl").arg(format!("type=unixio,path={}", control.display()));
        let process = match command.stdin(Stdio::null()).stderr(Stdio::null()).spawn() {
            Ok(process) => process,
            Err(error) => {
                crate::not_tested(format_args!("{what}: no swtpm: {error}"));
                return None;
            }
        };
        let mut emulator = EmulatedTpm { process, socket };
        while !emulator.socket.exists() {
            assert!(emulator.process.try_wait().expect("it is a child").is_none(), "swtpm ended");
            std::thread::yield_now();
        }
        Some(emulator)
    }

    #[must_use]
    pub fn socket(&self) -> &Path {
        &self.socket
    }
}

impl Drop for EmulatedTpm {
    fn drop(&mut self) {
        let _ = (self.process.kill(), self.process.wait());
    }
}
