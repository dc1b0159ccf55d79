//! Signed objects, attached: holders of the seal key alone read them (S3.5).

use super::support::{everywhere, seal_key};
use indelible::{CreateOptions, ErrorKind, Pool, SealKey, SignKey, VerifyKey};

const SIZE: usize = 300_000;

fn sign_key() -> SignKey {
    SignKey::file(vec![0x3c; 32]).unwrap()
}

fn writing() -> SealKey {
    seal_key().signed_by(&sign_key()).unwrap()
}

fn reading() -> SealKey {
    seal_key().verified_by(sign_key().verify_key())
}

fn signed(pool: &Pool) {
    pool.create_with("a", &CreateOptions::new(SIZE as u64).sealed(&writing(), "test")).unwrap();
}

#[test]
fn a_signed_object_is_read_by_all_and_written_by_the_sign_key() {
    everywhere(|world| {
        let pool = world.format();
        signed(&pool);
        let mut a = pool.attach_sealed("a", b"", &writing()).unwrap();
        a.range_mut(100..200).fill(7);
        a.psync().unwrap();
        let mut beside = pool.attach_snapshot_sealed_anywhere("a", b"", &reading()).unwrap();
        assert_eq!(beside.as_slice()[150], 7);
        for value in 8..12 {
            a.range_mut(100..200).fill(value);
            a.range_mut(SIZE - 9000..SIZE).fill(value);
            a.psync().unwrap();
            assert!(beside.refresh().unwrap());
            assert_eq!((beside.as_slice()[150], beside.as_slice()[SIZE - 1]), (value, value));
        }
        beside.detach().unwrap();
        a.grow(2 * SIZE as u64).unwrap();
        a.range_mut(2 * SIZE - 10..2 * SIZE).fill(12);
        a.psync().unwrap();
        a.detach().unwrap();
        drop(pool);
        let pool = world.open();
        for key in [reading(), writing()] {
            let a = pool.attach_read_sealed("a", b"", &key).unwrap();
            assert_eq!((a.as_slice()[150], a.as_slice()[2 * SIZE - 1]), (11, 12));
            a.detach().unwrap();
        }
        assert!(pool.verify_sealed("a", b"", &reading(), &mut |_, _| {}).unwrap().is_empty());
        let other = SignKey::file(vec![0x77; 32]).unwrap();
        for (key, kind, part) in [
            (seal_key(), ErrorKind::Sealed, "give the key that verifies its signature"),
            (
                seal_key().verified_by(other.verify_key()),
                ErrorKind::Damaged,
                "its signature is not of the key",
            ),
        ] {
            let error = pool.attach_read_sealed("a", b"", &key).err().unwrap();
            assert!(error.kind() == kind && error.to_string().contains(part), "{error}");
            assert!(error.to_string().contains("\"a\""), "{error}");
        }
        for key in [seal_key(), reading()] {
            let refused = [
                pool.attach_sealed("a", b"", &key).err().unwrap(),
                pool.resize_sealed("a", 100, b"", &key).err().unwrap(),
                pool.reencrypt("a", b"", &[&key], |_, _| {}).err().unwrap(),
                pool.remove_key("a", b"", &key, 0).err().unwrap(),
                pool.change_signer("a", b"", &key, &other).err().unwrap(),
            ];
            for error in refused {
                assert!(
                    error.kind() == ErrorKind::Sealed && error.to_string().contains("its sign key"),
                    "{error}"
                );
            }
        }
        pool.change_signer("a", b"", &writing(), &other).unwrap();
        let by_other = seal_key().signed_by(&other).unwrap();
        pool.reencrypt("a", b"", &[&by_other], |_, _| {}).unwrap();
        pool.resize_sealed("a", 1000, b"", &by_other).unwrap();
        let a = pool.attach_read_sealed("a", b"", &seal_key().verified_by(other.verify_key())).unwrap();
        assert_eq!(a.as_slice()[150], 11);
        assert_eq!(pool.attach_read_sealed("a", b"", &reading()).err().unwrap().kind(), ErrorKind::Damaged);
    });
}

// S3.5
#[test]
fn an_object_without_a_signature_is_refused_where_one_is_asked_for() {
    everywhere(|world| {
        let pool = world.format();
        pool.create_with("a", &CreateOptions::new(9000).sealed(&seal_key(), "test")).unwrap();
        for error in [
            pool.attach_sealed("a", b"", &writing()).err().unwrap(),
            pool.attach_read_sealed("a", b"", &reading()).err().unwrap(),
            pool.attach_snapshot_sealed_anywhere("a", b"", &reading()).err().unwrap(),
        ] {
            assert!(
                error.kind() == ErrorKind::Damaged && error.to_string().contains("it is not signed"),
                "{error}"
            );
        }
        pool.attach_sealed("a", b"", &seal_key()).unwrap().detach().unwrap();
        let other = SealKey::file(vec![1; 32]).unwrap();
        let how = CreateOptions::new(9000).sealed(&other, "").sealed(&writing(), "");
        let mut b = pool.create_attached_with("b", &how).unwrap();
        b.as_mut_slice().fill(1);
        b.psync().unwrap();
    });
}

// S3.5
#[test]
fn verify_keys_are_text_and_come_from_files() {
    let key = sign_key().verify_key();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("verify");
    std::fs::write(&path, format!("{key}\n")).unwrap();
    assert_eq!(VerifyKey::from_file(&path).unwrap(), key);
    std::fs::write(&path, [0x3c; 32]).unwrap();
    assert_eq!(SignKey::from_file(&path).unwrap().verify_key(), key);
    assert_eq!(VerifyKey::from_file(&path).err().unwrap().kind(), ErrorKind::Sealed);
    assert_eq!(VerifyKey::from_file(folder.path().join("none")).err().unwrap().kind(), ErrorKind::Io);
    assert_eq!("00".repeat(32).parse::<VerifyKey>().err().unwrap().kind(), ErrorKind::Sealed);
    let same = SealKey::from_file(&path).unwrap().signed_by(&sign_key()).err().unwrap();
    assert!(same.kind() == ErrorKind::Sealed && same.to_string().contains("is the seal key"), "{same}");
}
