use crate::support::{Ground, everywhere};
use indelible::{Class, CreateOptions};

fn without<T: Send>(calls: &[libc::c_long], work: impl FnOnce() -> T + Send) -> T {
    let run = || {
        let step = |code: u32, jump: u8, k: u32| libc::sock_filter { code: code as u16, jt: jump, jf: 0, k };
        let load = libc::BPF_LD | libc::BPF_W | libc::BPF_ABS;
        let (equal, back) = (libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, libc::BPF_RET | libc::BPF_K);
        let mut steps = vec![step(load, 0, 0)];
        for (behind, call) in (0..calls.len()).rev().zip(calls) {
            steps.push(step(equal, behind as u8 + 1, *call as u32));
        }
        steps.push(step(back, 0, libc::SECCOMP_RET_ALLOW));
        steps.push(step(back, 0, libc::SECCOMP_RET_ERRNO | libc::EPERM as u32));
        let filter = libc::sock_fprog { len: steps.len() as u16, filter: steps.as_mut_ptr() };
        // SAFETY: a filter of as many steps as it says; it binds this thread alone, which ends with
        // the work.
        let installed = unsafe {
            libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0
                && libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &raw const filter) == 0
        };
        assert!(installed, "{}", std::io::Error::last_os_error());
        work()
    };
    std::thread::scope(|scope| scope.spawn(run).join().unwrap())
}

#[test]
fn objects_are_made_stored_to_and_read_without_fallocate_and_madvise() {
    everywhere(|world| {
        if world.ground == Ground::Simulated || world.fault_in {
            return;
        }
        without(&[libc::SYS_fallocate, libc::SYS_madvise], || {
            let pool = world.format();
            let mut a = pool.create_attached("a", 300_000).unwrap();
            a.as_mut_slice().fill(3);
            a.psync().unwrap();
            a.grow(900_000).unwrap();
            a.as_mut_slice()[899_999] = 4;
            a.psync().unwrap();
            a.detach().unwrap();
            let read = pool.attach_read("a").unwrap();
            assert_eq!((read.as_slice()[299_999], read.as_slice()[899_999]), (3, 4));
            drop(read);
            pool.destroy("a").unwrap();
            for class in [Class::Transactional, Class::OnDemand] {
                pool.create_with("t", &CreateOptions::new(4096).class(class)).unwrap();
                drop(pool.attach_transactional::<[u64; 8]>("t").unwrap());
                pool.destroy("t").unwrap();
            }
        });
    });
}
