//! A UPS reported by a real `upsd` with a simulating driver.

use crate::support::{AMPLE, Rig, attach, step, until};
use indelible_guard::Detector;
use indelible_guard::detector::NutDetector;
use indelible_guard::{Condition, Outcome};
use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;

const EVERY: Duration = Duration::from_millis(100);

struct Nut {
    dir: TempDir,
    processes: Vec<Child>,
    port: u16,
}

fn find(names: &[&str]) -> Option<PathBuf> {
    names.iter().map(PathBuf::from).find(|path| path.exists())
}

impl Nut {
    fn start() -> Option<Nut> {
        let upsd = find(&["/lib/nut/upsd", "/usr/lib/nut/upsd", "/usr/sbin/upsd"]);
        let driver = find(&["/lib/nut/dummy-ups", "/usr/lib/nut/dummy-ups", "/usr/libexec/nut/dummy-ups"]);
        let (Some(upsd), Some(driver)) = (upsd, driver) else {
            indelible_testing::not_tested("a real upsd: nut-server is not installed");
            return None;
        };
        // A short path for the driver's socket.
        let dir = TempDir::new_in("/tmp").unwrap();
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let nut = Nut { dir, processes: Vec::new(), port };
        nut.say("OL");
        nut.write(
            "ups.conf",
            &format!(
                "[test]\n driver = dummy-ups\n port = {}\n mode = dummy-loop\n",
                nut.path("test.dev").display()
            ),
        );
        nut.write("upsd.conf", &format!("LISTEN 127.0.0.1 {port}\nSTATEPATH {}\n", nut.dir.path().display()));
        nut.write("upsd.users", "");
        Some(nut.run(&driver, &["-a", "test", "-F"]).run(&upsd, &["-F"]))
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn write(&self, name: &str, text: &str) {
        let new = self.path("new");
        fs::write(&new, text).unwrap();
        fs::set_permissions(&new, fs::Permissions::from_mode(0o640)).unwrap();
        fs::rename(new, self.path(name)).unwrap();
    }

    fn say(&self, status: &str) {
        self.write("test.dev", &format!("ups.status: {status}\nTIMER 1\n"));
    }

    fn run(mut self, program: &Path, arguments: &[&str]) -> Nut {
        let mut command = Command::new(program);
        command.args(arguments).args(["-u", "root"]).stdin(Stdio::null()).stdout(Stdio::null());
        for name in ["NUT_CONFPATH", "NUT_STATEPATH", "NUT_ALTPIDPATH", "NUT_PIDPATH"] {
            command.env(name, self.dir.path());
        }
        let log = fs::File::options().create(true).append(true).open(self.path("log")).unwrap();
        self.processes.push(command.stderr(log).spawn().unwrap());
        self
    }

    fn log(&self) -> String {
        fs::read_to_string(self.path("log")).unwrap_or_default()
    }

    fn detector(&self) -> NutDetector {
        NutDetector::new(&format!("test@127.0.0.1:{}", self.port), EVERY).unwrap()
    }

    fn sees(&self, detector: &mut NutDetector, expected: &Condition) {
        let begin = Instant::now();
        loop {
            let seen = detector.look().unwrap();
            if seen == *expected {
                return;
            }
            assert!(begin.elapsed() < Duration::from_secs(60), "{seen:?}, not {expected:?}: {}", self.log());
            std::thread::yield_now();
        }
    }
}

impl Drop for Nut {
    fn drop(&mut self) {
        for process in &mut self.processes {
            let _ = process.kill();
            let _ = process.wait();
        }
    }
}

#[test]
fn s1_10_a_real_upsd_tells_that_the_power_fails() {
    if !rustix::process::geteuid().is_root() {
        return indelible_testing::not_tested("a real upsd, which changes its user, as root alone can");
    }
    let Some(mut nut) = Nut::start() else { return };
    nut.sees(&mut nut.detector(), &Condition::Fine);
    let mut rig = Rig::without_guard();
    rig.guard(AMPLE, vec![Box::new(nut.detector())]);
    let (_pool, a, b) = attach(&rig.pool, &rig.socket);
    rig.registered(1);
    let last = (0..10).map(|_| step(&a, &b)).last().unwrap();
    assert!(rig.durable() < last);
    nut.say("OB DISCHRG");
    until("a round ends", || rig.status().last.is_some());
    let round = rig.status().last.unwrap();
    assert!(round.durable && round.cause.starts_with("nut test@"), "{round:?}");
    assert_eq!((round.writers[0].outcome, rig.durable()), (Outcome::Published, last));
    nut.say("OL CHRG");
    until("the power is back", || !rig.status().failing);
    // Without upsd the state is unknown, and nothing happens.
    let mut upsd = nut.processes.pop().unwrap();
    upsd.kill().unwrap();
    upsd.wait().unwrap();
    until("the detector is blind", || rig.status().detectors[0].condition == "blind");
    assert!(!rig.status().failing);
}
