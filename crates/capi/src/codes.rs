//! The codes of errors, with a text for each. All but `PMO_ERR_ARGUMENT` are
//! [`indelible::ErrorKind`]'s.

use std::ffi::CStr;

pub(crate) const ARGUMENT: i32 = 1000;
pub(crate) const ROOT_TYPE: i32 = indelible::ErrorKind::RootType as i32;
pub(crate) const INTERNAL: i32 = 1001;

/// Code, name in the header, text.
pub const CODES: &[(i32, &str, &CStr)] = &[
    (0, "PMO_OK", c"no error"),
    (1, "PMO_ERR_IO", c"the operating system failed"),
    (2, "PMO_ERR_NO_POOL", c"there is no pool at that path"),
    (3, "PMO_ERR_NOT_A_POOL", c"the file is not a pool"),
    (4, "PMO_ERR_VERSION", c"made by a version with another format"),
    (5, "PMO_ERR_GONE", c"the pool's file was truncated, deleted or replaced"),
    (6, "PMO_ERR_DAMAGED", c"bytes of the pool or heap contradict themselves"),
    (7, "PMO_ERR_POOL_EXISTS", c"there is a pool already"),
    (8, "PMO_ERR_UNSUITABLE", c"the path cannot hold a pool, or not be used as asked"),
    (9, "PMO_ERR_READ_ONLY", c"read-only"),
    (10, "PMO_ERR_NO_SPACE", c"the medium or its file system is full"),
    (11, "PMO_ERR_NO_ROOM", c"the pool has no piece large enough"),
    (12, "PMO_ERR_NO_ADDRESSES", c"the pool's address window has no range large enough"),
    (13, "PMO_ERR_NOT_FOUND", c"no such object"),
    (14, "PMO_ERR_EXISTS", c"it exists already"),
    (15, "PMO_ERR_BAD_NAME", c"the name cannot be used"),
    (16, "PMO_ERR_BAD_SIZE", c"the size cannot be used"),
    (17, "PMO_ERR_WRONG_KEY", c"the key does not match"),
    (18, "PMO_ERR_OBJECT_READ_ONLY", c"the object is read-only"),
    (19, "PMO_ERR_HELD", c"another process, or another attachment of this one, has the object"),
    (20, "PMO_ERR_BUSY", c"a process holds the table, or all lanes are taken"),
    (21, "PMO_ERR_NEEDS_RECOVERY", c"the last writer died, and the pool is opened read-only"),
    (
        22,
        "PMO_ERR_POISONED",
        c"an earlier write to the medium failed; every psync that was acknowledged is safe",
    ),
    (23, "PMO_ERR_NOT_ATTACHED", c"the address is not in an attached object"),
    (24, "PMO_ERR_ADDRESS_TAKEN", c"something else is mapped at the object's address"),
    (25, "PMO_ERR_FORKED", c"this process is a fork of the one that opened the pool"),
    (26, "PMO_ERR_UNSUPPORTED", c"the kernel lacks a facility that was asked for"),
    (27, "PMO_ERR_NOT_A_HEAP", c"the object holds no heap"),
    (28, "PMO_ERR_HEAP_FULL", c"the heap has no free piece large enough"),
    (29, "PMO_ERR_NOT_A_BLOCK", c"the address is not that of a block of the heap"),
    (30, "PMO_ERR_DOUBLE_FREE", c"the block is free already"),
    (31, "PMO_ERR_BAD_ALIGNMENT", c"the alignment cannot be had"),
    (32, "PMO_ERR_OVERWRITTEN", c"bytes that guard a block were overwritten"),
    (33, "PMO_ERR_ROOT_MISSING", c"no such root"),
    (34, "PMO_ERR_ROOT_EXISTS", c"a root of that name exists"),
    (35, "PMO_ERR_ROOT_TYPE", c"the root is of another type, or its type has another layout"),
    (36, "PMO_ERR_UNTRUSTED", c"the object's bytes may have been stored by other means than typed code"),
    (37, "PMO_ERR_BAD_WINDOW", c"the address window cannot be used"),
    (38, "PMO_ERR_DIFFERENT_POOLS", c"objects of different pools cannot change in one step"),
    (39, "PMO_ERR_STRAY_POINTER", c"the object has addresses that mean nothing in the next run"),
    (
        40,
        "PMO_ERR_VOLATILE_GONE",
        c"the object is volatile, and the machine was started anew since it was made",
    ),
    (41, "PMO_ERR_TIE_CYCLE", c"the two objects would each outlive the other"),
    (42, "PMO_ERR_TOO_MANY_TIES", c"the object is tied to as many others as one can be"),
    (43, "PMO_ERR_SEALED", c"the object is sealed, and needs a seal key, or has no such operation"),
    (44, "PMO_ERR_POOL_BEHIND", c"the sealed object is in an older state than its anchor was told"),
    (
        45,
        "PMO_ERR_ANCHOR_BEHIND",
        c"the sealed object was changed without its anchor, or the anchor is an older one",
    ),
    (46, "PMO_ERR_CLASS_MISMATCH", c"the object is, or would be, of a durability class that does not fit"),
    (47, "PMO_ERR_IN_TRANSACTION", c"the call cannot be made in a transaction"),
    (48, "PMO_ERR_CONFLICT", c"the transaction has met another one"),
    (49, "PMO_ERR_DANGLING", c"a far pointer leads to no object, or to none of its bytes"),
    (50, "PMO_ERR_DENIED", c"no security context of the program allows the access"),
    (ARGUMENT, "PMO_ERR_ARGUMENT", c"an argument cannot be"),
    (INTERNAL, "PMO_ERR_INTERNAL", c"a defect of this library"),
];

pub(crate) fn text(code: i32) -> &'static CStr {
    CODES.iter().find(|(known, ..)| *known == code).map_or(c"no such error", |(.., text)| text)
}
