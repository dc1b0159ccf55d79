/* Persistent memory objects: the C interface of Indelible.
 *
 * A program attaches a named object, changes plain data in it through ordinary pointers, and calls
 * psync. All changes since the last psync become durable as one step; after a crash at any instant
 * the object is as some psync left it.
 *
 * Functions return 0, or a pointer; for an error -1, or NULL, with pmo_errno and pmo_error_message.
 * Strings are UTF-8 and end with a zero byte. Callbacks must not throw; their pointers are valid
 * until they return. A signal handler may store to objects, and calls no function: like malloc, a
 * call that interrupts another call of its thread may never return.
 *
 * The manual pages are made of the comments that begin with two asterisks. */
#ifndef PMO_H
#define PMO_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- errors ---- */

/** Kinds of errors. The numbers never change. */
enum pmo_error {
    PMO_OK = 0,
    PMO_ERR_IO = 1,
    PMO_ERR_NO_POOL = 2,
    PMO_ERR_NOT_A_POOL = 3,
    PMO_ERR_VERSION = 4,
    PMO_ERR_GONE = 5,
    PMO_ERR_DAMAGED = 6,
    PMO_ERR_POOL_EXISTS = 7,
    PMO_ERR_UNSUITABLE = 8,
    PMO_ERR_READ_ONLY = 9,
    PMO_ERR_NO_SPACE = 10,
    PMO_ERR_NO_ROOM = 11,
    PMO_ERR_NO_ADDRESSES = 12,
    PMO_ERR_NOT_FOUND = 13,
    PMO_ERR_EXISTS = 14,
    PMO_ERR_BAD_NAME = 15,
    PMO_ERR_BAD_SIZE = 16,
    PMO_ERR_WRONG_KEY = 17,
    PMO_ERR_OBJECT_READ_ONLY = 18,
    PMO_ERR_HELD = 19,
    PMO_ERR_BUSY = 20,
    PMO_ERR_NEEDS_RECOVERY = 21,
    PMO_ERR_POISONED = 22,
    PMO_ERR_NOT_ATTACHED = 23,
    PMO_ERR_ADDRESS_TAKEN = 24,
    PMO_ERR_FORKED = 25,
    PMO_ERR_UNSUPPORTED = 26,
    PMO_ERR_NOT_A_HEAP = 27,
    PMO_ERR_HEAP_FULL = 28,
    PMO_ERR_NOT_A_BLOCK = 29,
    PMO_ERR_DOUBLE_FREE = 30,
    PMO_ERR_BAD_ALIGNMENT = 31,
    PMO_ERR_OVERWRITTEN = 32,
    PMO_ERR_ROOT_MISSING = 33,
    PMO_ERR_ROOT_EXISTS = 34,
    PMO_ERR_ROOT_TYPE = 35,
    PMO_ERR_UNTRUSTED = 36,
    PMO_ERR_BAD_WINDOW = 37,
    PMO_ERR_DIFFERENT_POOLS = 38,
    PMO_ERR_STRAY_POINTER = 39,
    PMO_ERR_VOLATILE_GONE = 40,
    PMO_ERR_TIE_CYCLE = 41,
    PMO_ERR_TOO_MANY_TIES = 42,
    PMO_ERR_SEALED = 43,
    PMO_ERR_POOL_BEHIND = 44,
    PMO_ERR_ANCHOR_BEHIND = 45,
    PMO_ERR_CLASS_MISMATCH = 46,
    PMO_ERR_IN_TRANSACTION = 47,
    PMO_ERR_CONFLICT = 48,
    PMO_ERR_DANGLING = 49,
    PMO_ERR_DENIED = 50,
    PMO_ERR_ARGUMENT = 1000,
    PMO_ERR_INTERNAL = 1001
};

/** Kind of this thread's last error, an enum pmo_error. Calls that succeed do not change it. */
int pmo_errno(void);

/** Text of this thread's last error: action, cause, remedy. Valid until the thread's next error. */
const char *pmo_error_message(void);

/** Text for a kind of error. Never NULL. */
const char *pmo_strerror(int code);

/** Version of the library, such as "0.1.0". */
const char *pmo_version(void);

/* ---- pools ---- */

/** An open pool. NULL as an argument is the pool of pmo_use. */
typedef struct pmo_pool pmo_pool;

enum {
    /** Open the pool's file for reading only. */
    PMO_READ_ONLY = 1,
    /** Format over an existing pool or file, which is lost. */
    PMO_FORCE = 2,
    /** Accept file systems whose locks may not exclude other machines. */
    PMO_ALLOW_REMOTE = 4,
    /** Distrust the pool's file: heaps are read-only until verified. */
    PMO_UNTRUSTED = 8,
    /** Fill pages on demand instead of mapping the file: a full tmpfs is an error of psync, not
     * SIGBUS. */
    PMO_FAULT_IN = 16,
    /** Leave objects attached for reading to forked children. */
    PMO_INHERIT_READS = 32
};

/** Kinds of medium: AUTO asks the path, the others force. */
enum pmo_medium { PMO_MEDIUM_AUTO, PMO_MEDIUM_FILE, PMO_MEDIUM_MEMORY, PMO_MEDIUM_DAX, PMO_MEDIUM_DEVDAX };

/** How stores are found: AUTO takes WP_ASYNC where the kernel has it, else MPROTECT. With EXPLICIT,
 * stores not marked by pmo_mark_dirty may be lost. FAULT_LOG is WP_ASYNC with the kernel's log of
 * page faults: psync costs what changed at any size of the object, and may find stores of other
 * processes (process_vm_writev) only later. */
enum pmo_tracking {
    PMO_TRACKING_AUTO,
    PMO_TRACKING_WP_ASYNC,
    PMO_TRACKING_MPROTECT,
    PMO_TRACKING_EXPLICIT,
    PMO_TRACKING_FAULT_LOG
};

/** How to open or format a pool; zeros are defaults. medium is an enum pmo_medium, tracking an enum
 * pmo_tracking. The window, in multiples of 2 MiB, is the address range of a new pool's objects;
 * its label has up to 128 bytes. ahead_limit bounds the bytes of an object filled before they are
 * touched; 0: no limit. memory_limit, at least 1 MiB, bounds the memory of an attached object that
 * the kernel cannot reclaim: psyncs give pages that they made durable back; 0: a quarter of the
 * memory that the process may use. Flags: those of the function without options, PMO_UNTRUSTED,
 * PMO_FAULT_IN, PMO_INHERIT_READS. */
struct pmo_pool_options {
    uint32_t flags;
    uint32_t medium;
    uint32_t tracking;
    uint32_t reserved;
    uint64_t window_start;
    uint64_t window_len;
    uint64_t ahead_limit;
    uint64_t memory_limit;
    const char *label;
};

/** Opens the pool at path; again in one process, the same pool. Flags: PMO_READ_ONLY,
 * PMO_ALLOW_REMOTE. */
pmo_pool *pmo_open(const char *path, unsigned flags);

/** As pmo_open, with options, which an open pool ignores. */
pmo_pool *pmo_open_with(const char *path, const struct pmo_pool_options *options);

/** Creates a file of size bytes and formats it as a pool. Flags: PMO_FORCE, PMO_ALLOW_REMOTE. */
pmo_pool *pmo_format(const char *path, uint64_t size, unsigned flags);

/** As pmo_format, with options. */
pmo_pool *pmo_format_with(const char *path, uint64_t size, const struct pmo_pool_options *options);

/** Opens the pool at path, or formats one of size bytes if nothing is there. Flags:
 * PMO_ALLOW_REMOTE. */
pmo_pool *pmo_open_or_format(const char *path, uint64_t size, unsigned flags);

/** As pmo_open_or_format, with options. */
pmo_pool *pmo_open_or_format_with(const char *path, uint64_t size, const struct pmo_pool_options *options);

/** Limits waits: of attach, resize, rename and destroy for an object in use elsewhere, of all calls
 * for the pool's table, of a consistent cut for locks. Then they fail with PMO_ERR_HELD or
 * PMO_ERR_BUSY. By default objects are not waited for, the rest 20 s; a killed process always 100
 * ms. */
int pmo_wait(pmo_pool *pool, uint64_t milliseconds);

/** Closes a pool. Attached objects stay attached. */
int pmo_close(pmo_pool *pool);

/** Opens the pool at path, for functions whose pool is NULL. By default that is the pool of the
 * environment variable PMO_POOL. */
int pmo_use(const char *path);

/** A pool in numbers; sizes in bytes. The medium is an enum pmo_medium. */
struct pmo_pool_info {
    uint8_t id[16];
    uint64_t length;
    uint64_t objects;
    uint64_t free;
    uint64_t largest_free;
    uint32_t version;
    uint32_t medium;
};

/** Fills in info about the pool. */
int pmo_pool_info(pmo_pool *pool, struct pmo_pool_info *info);

/** Lengthens the pool to length bytes, rounded down to whole pages, beside its other users. A
 * device limits its pool; no pool becomes shorter. */
int pmo_pool_grow(pmo_pool *pool, uint64_t length);

enum {
    /** The object refuses to be attached for writing. */
    PMO_STAT_READ_ONLY = 1,
    /** Space is claimed by the first psync. */
    PMO_STAT_SPARSE = 2,
    /** Its last writer died; the next attach recovers it. */
    PMO_STAT_NEEDS_RECOVERY = 4,
    /** Reading needs a key. */
    PMO_STAT_READ_KEY = 8,
    /** Writing needs a key. */
    PMO_STAT_WRITE_KEY = 16,
    /** It is a snapshot, which never changes. */
    PMO_STAT_SNAPSHOT = 32,
    /** It shares unchanged pages with snapshots or copies. */
    PMO_STAT_SHARES = 64,
    /** Its contents hold until the machine restarts. */
    PMO_STAT_VOLATILE = 128,
    /** The machine restarted: an attach fails with PMO_ERR_VOLATILE_GONE; creating the name
     * replaces it. */
    PMO_STAT_GONE = 256,
    /** It is sealed: pmo_attach_sealed attaches it. */
    PMO_STAT_SEALED = 512,
    /** It is declared independent of its addresses: PMO_REBASE moves it unchanged. */
    PMO_STAT_POSITION_INDEPENDENT = 1024,
    /** Each word has a check word, by which transactions and pmo_scrub repair it. Sizes exclude
     * these. */
    PMO_STAT_ECC = 2048,
    /** Its ID is the hash of its bytes: pmo_create_by_content. */
    PMO_STAT_BY_CONTENT = 4096,
    /** Plain loads outside of transactions see committed bytes: pmo_set_readable_outside. */
    PMO_STAT_READABLE_OUTSIDE = 8192
};

/** How stores become durable: plain stores by psync; transactional ones by each commit; on demand
 * by pmo_tx_sync, after a commit that outlives the process; or never, in shared objects. */
enum pmo_durability {
    PMO_DURABILITY_PSYNC,
    PMO_DURABILITY_TRANSACTIONAL,
    PMO_DURABILITY_ON_DEMAND,
    PMO_DURABILITY_SHARED
};

/** The pool's entry of an object; sizes in bytes. state is 'D' (detached), 'R' (read), 'W'
 * (written), 'P' or 'C' (psync under way); holder a process or 0; created in seconds since 1970;
 * own the size of unshared pages; durability an enum pmo_durability. */
struct pmo_stat {
    char name[512];
    uint8_t id[16];
    uint64_t size;
    uint64_t address;
    uint64_t reach;
    uint64_t psyncs;
    uint64_t created;
    uint32_t state;
    uint32_t holder;
    uint32_t flags;
    uint32_t durability;
    uint64_t own;
};

/** Fills in stat for the object. */
int pmo_stat(pmo_pool *pool, const char *name, struct pmo_stat *stat);

/** Calls each for every object of the pool, in no order, until it returns nonzero, which is
 * returned. */
int pmo_list(pmo_pool *pool, int (*each)(const struct pmo_stat *stat, void *context), void *context);

/* ---- objects ---- */

enum {
    /** Attach for loads: any number of processes at a time. */
    PMO_READ = 'r',
    /** Attach for loads and stores: one process at a time. */
    PMO_WRITE = 'w',
    /** Attach the last psync for loads, beside any writers: pmo_attach_snapshot. */
    PMO_SNAPSHOT = 's',
    /** With PMO_WRITE, to find mistakes: each psync costs a pmo_audit, and fails with
     * PMO_ERR_STRAY_POINTER while that finds addresses of the program, its libraries or its memory.
     */
    PMO_AUDIT = 256,
    /** As PMO_AUDIT, and also for addresses of other objects. */
    PMO_AUDIT_OBJECTS = 512,
    /** With PMO_SNAPSHOT: at addresses that the kernel chooses, in any number of states, beside the
     * object itself. Pointers in it, and far pointers to the object, lead to the object's own
     * addresses. It stays at its psync: pmo_refresh fails with PMO_ERR_UNSUITABLE. */
    PMO_ANYWHERE = 1024
};

/** How to create an object; zeros, but for the size, are defaults. Flags: PMO_STAT_READ_ONLY,
 * PMO_STAT_SPARSE, PMO_STAT_VOLATILE, PMO_STAT_POSITION_INDEPENDENT, PMO_STAT_READABLE_OUTSIDE of
 * transactional objects and those on demand, and PMO_STAT_ECC, at twice the size in whole pages,
 * which makes an object transactional unless it is on demand. reach is the address space kept for
 * growth, in bytes; 0: several times the pool's length, or the object's size once objects have half
 * of the pool's addresses. Without keys, all users of the pool may attach. durability is an enum
 * pmo_durability. */
struct pmo_create_options {
    uint64_t size;
    uint64_t reach;
    const void *read_key;
    size_t read_key_len;
    const void *write_key;
    size_t write_key_len;
    uint32_t flags;
    uint32_t durability;
};

/** Creates an object of size bytes, full of zeros. */
int pmo_create(pmo_pool *pool, const char *name, uint64_t size);

/** Creates an object, with options. */
int pmo_create_with(pmo_pool *pool, const char *name, const struct pmo_create_options *options);

/** Creates a read-only object of these bytes, whose ID is their hash, the first 16 bytes of
 * SHA-256; id, which may be NULL, receives it. An existing object with that ID, of any name, is
 * taken instead, after a comparison. Returns 1 if it was made, 0 if it was there, -1 for an error:
 * PMO_ERR_EXISTS if another object has the name, PMO_ERR_DAMAGED if the bytes differ. "id:" and the
 * ID's 32 digits also name the object. */
int pmo_create_by_content(pmo_pool *pool, const char *name, const void *content, size_t size, uint8_t *id);

/** Destroys a detached object. pmo_delete also takes attached ones. */
int pmo_destroy(pmo_pool *pool, const char *name, const void *key, size_t key_len);

/** Gives a detached object another size; its address stays. */
int pmo_resize(pmo_pool *pool, const char *name, uint64_t size, const void *key, size_t key_len);

/** Renames a detached object. PMO_ERR_SEALED: its name is sealed; use pmo_rename_sealed. */
int pmo_rename(pmo_pool *pool, const char *name, const char *new_name, const void *key, size_t key_len);

/** Reserves reach bytes of addresses for the growth of an object, attached or not; a heap uses them
 * after the next attach. PMO_ERR_NO_ADDRESSES: another object has them. PMO_ERR_BAD_SIZE: it has
 * more already. */
int pmo_set_reach(pmo_pool *pool, const char *name, const void *key, size_t key_len, uint64_t reach);

/** Declares a detached object independent of its addresses (1), or not (0), unchecked:
 * PMO_STAT_POSITION_INDEPENDENT. */
int pmo_set_position_independent(pmo_pool *pool, const char *name, const void *key, size_t key_len, int is);

/** Attaches an object, for PMO_READ, PMO_SNAPSHOT or PMO_WRITE, maybe with PMO_AUDIT, and returns
 * its first byte, at the same address in every process and run, unless with PMO_ANYWHERE. */
void *pmo_attach(pmo_pool *pool, const char *name, int permission, const void *key, size_t key_len);

/** How pmo_attach_with attaches; zeros are defaults, but for size, the size of this struct, and the
 * permission of pmo_attach. tracking, an enum pmo_tracking, is that of this attachment; AUTO: that
 * of the pool. wait limits the wait for an object in use, in milliseconds; 0: as pmo_wait says. A
 * snapshot takes neither. seal is a key of a sealed object. */
struct pmo_attach_options {
    size_t size;
    int permission;
    uint32_t tracking;
    uint64_t wait;
    const void *key;
    size_t key_len;
    const struct pmo_seal_key *seal;
};

/** As pmo_attach, with options. PMO_ERR_UNSUPPORTED: the machine does not offer the tracking.
 * Programs compiled for another release may call it: fields that they lack are 0. */
void *pmo_attach_with(pmo_pool *pool, const char *name, const struct pmo_attach_options *options);

/** As pmo_attach, for the object whose first byte has this address. */
void *pmo_attach_at(pmo_pool *pool, const void *address, int permission, const void *key, size_t key_len);

/** Ends an attachment. Stores since the last psync are lost. No other thread uses the object or its
 * heap meanwhile. */
int pmo_detach(void *object);

/** Grows an attached object, and its heap, to size bytes at the same address. No other thread uses
 * it meanwhile. */
int pmo_grow(void *object, uint64_t size);

/** An attached object. Psyncs, recovered bytes and the tracking, an enum pmo_tracking, are 0 if it
 * is attached for reading. */
struct pmo_object {
    void *base;
    uint64_t size;
    uint64_t psyncs;
    uint64_t recovered_bytes;
    uint32_t writable;
    uint32_t tracking;
    char name[512];
};

/** Fills in object for the attached object that contains this address. */
int pmo_object(const void *address, struct pmo_object *object);

enum {
    /** Take a consistent cut: stores of other threads wait meanwhile, or belong to the next psync.
     */
    PMO_PSYNC_CUT = 1
};

/** Marks size bytes from address, in an attached object, as stored to. psync finds every store
 * through the page tables, but not those of devices that have pinned a page: registered buffers of
 * io_uring, RDMA, VFIO, and O_DIRECT reads across a psync. Mark the range when it is pinned, and
 * after each such I/O. The first mark keeps the object's pages in place until detach; pin again
 * after a pmo_grow that moved the object. With tracking by mprotect, mark also stores by
 * /proc/self/mem or a debugger; with explicit tracking, all stores. Any thread may call it. Ignored
 * for an object attached for reading. */
int pmo_mark_dirty(const void *address, size_t size);

/** Reads the pages of size bytes from address, in an attached object, into memory; returns how many
 * bytes from address are there, or -1 for an error. An unreadable page is an error here, but SIGBUS
 * at a touch. Call it before system calls that access untouched pages where `pmo doctor` says that
 * userfaultfd sees faults of user code only: they fail with EFAULT. Bytes beyond the object are
 * ignored. */
int64_t pmo_prefault(const void *address, size_t size);

/** Makes all stores to the object since its last psync durable, as one step. Any address in the
 * object will do. No thread stores to it meanwhile. Ignored for an object attached for reading. */
int pmo_psync(void *object);

/** As pmo_psync. Flags: PMO_PSYNC_CUT. */
int pmo_psync_flags(void *object, unsigned flags);

/** psync of several objects of one pool as one step. Flags: PMO_PSYNC_CUT. */
int pmo_psync_all(void *const *objects, size_t count, unsigned flags);

/** Takes the object, given by any address in it, back to its last psync, or to zeros: later stores,
 * allocations and roots are undone. Its size and address stay. No other thread uses it meanwhile.
 * With explicit tracking, only marked stores are undone. Ignored for an object attached for
 * reading. After an error nothing is undone. */
int pmo_revert(void *object);

/** Begins a transaction of this thread on a psynced object, given by any address in it: TXSTART,
 * TXRECORD and TXEND. An object has one at a time; another thread waits here. <pmo/transaction.h>
 * is for transactional objects. */
int pmo_txstart(void *object);

/** Records size bytes from address, in the object of the thread's transaction, before they change;
 * PMO_TXRECORD records a variable. Recorded bytes need no marks. */
int pmo_txrecord(const void *address, size_t size);

/** Ends the thread's transaction by a psync. After an error the transaction is over, its changes
 * are in memory, and another pmo_psync may make them durable. No thread stores to the object
 * meanwhile. */
int pmo_txend(void);

/** Ends the thread's transaction and restores all recorded bytes. So does the end of the thread. */
int pmo_txabort(void);

/** Records a variable of the object: PMO_TXRECORD(node->next). */
#define PMO_TXRECORD(variable) pmo_txrecord(&(variable), sizeof(variable))

/** An address in an object that means nothing in the next run: offset is its place, in bytes from
 * the object's start; target the address; place its path from a root, such as "list.next (*mut
 * node)", or its block; into what it points into. */
struct pmo_pointer {
    uint64_t offset;
    uint64_t target;
    const char *place;
    const char *into;
};

/** Finds addresses in the object that point into the program, its libraries, its memory or another
 * attached object; calls each, which may be NULL, for them. Returns their number, or -1 for an
 * error. It examines every aligned word of all live blocks, or of the whole object without a heap:
 * numbers that look like addresses count. */
int64_t pmo_audit(const void *object, void (*each)(const struct pmo_pointer *pointer, void *context), void *context);

/* ---- transactions ---- */

/** Gives a detached object another durability, an enum pmo_durability. Its bytes stay.
 * PMO_ERR_CLASS_MISMATCH: sealed and sparse objects are not transactional; only volatile ones are
 * shared. */
int pmo_set_durability(pmo_pool *pool, const char *name, const void *key, size_t key_len, int durability);

/** Sets whether plain loads outside of transactions see a detached object, transactional or on
 * demand (1), or are a SIGSEGV (0, the default). A load sees committed bytes alone, maybe before
 * they are durable. An aligned word of 8 bytes is of one moment, several are not. Load words as
 * atomics (__atomic_load_n) or as volatile. Stores outside stay a SIGSEGV. PMO_ERR_CLASS_MISMATCH:
 * another durability, or check words. A durability without transactions resets this. */
int pmo_set_readable_outside(pmo_pool *pool, const char *name, const void *key, size_t key_len, int readable);

/** Attaches a transactional object, or one on demand, and returns its first byte: the same address
 * in every process and run. Transactions of this process's threads read and change it; each is
 * durable when it has committed. A plain load or store is a SIGSEGV; of an object that is
 * PMO_STAT_READABLE_OUTSIDE, only a store. pmo_detach detaches it. Its heap is that of pmo_tx_alloc
 * and pmo_tx_root; other functions of heaps and roots refuse it.
 *
 * On demand (PMO_DURABILITY_ON_DEMAND), a commit outlives the process without a durable write. It
 * is durable after pmo_tx_sync, pmo_psync or the detach, and now and then (pmo_set_epochs). A power
 * cut leaves a prefix of the commits, with all durable ones. A guard of the machine (pmo guard)
 * makes all durable when the power fails. */
void *pmo_attach_transactional(pmo_pool *pool, const char *name, const void *key, size_t key_len);

/** States that an object attached for transactions, or for blocks, begins with a value of size
 * bytes: until detach no heap overwrites it (PMO_ERR_NOT_A_HEAP). PMO_ERR_BAD_SIZE: the object is
 * smaller. */
int pmo_tx_begin_with(const void *object, size_t size);

/** As pmo_attach_transactional, for transactions on objects of both kinds: those are durable when
 * they have committed, with all earlier commits on demand. */
void *pmo_attach_with_on_demand(pmo_pool *pool, const char *name, const void *key, size_t key_len);

/** Waits until this thread's commits on demand in this pool, and all that they read, are durable;
 * object is any address in an attached object of the pool. Concurrent waits share one durable
 * write. After an error the next attach recovers the objects. */
int pmo_tx_sync(const void *object);

/** Commits on demand of this process that a power cut would lose: transactions, at most, and
 * changed bytes, in lines of 64. */
struct pmo_pending {
    uint64_t transactions;
    uint64_t bytes;
};

/** Fills in the pending commits on demand in the pool of an attached object, given by any address
 * in it. */
int pmo_tx_pending(const void *object, struct pmo_pending *pending);

/** Makes commits on demand of this process in this pool durable after milliseconds (default 1000;
 * 0: never), and before more than bytes have changed (default 4 MiB), in lines of 64. */
int pmo_set_epochs(pmo_pool *pool, uint64_t milliseconds, uint64_t bytes);

/** Names the socket of the guard (pmo guard) for this process's commits on demand in this pool. By
 * default it is found. */
int pmo_set_guard(pmo_pool *pool, const char *socket);

/** The functions that libpmo-tm gives to libpmo: pmo_tm_runtime of pmo/blocks.h. */
struct pmo_tm_runtime;

/** Attaches a transactional object, or one on demand, for blocks that GCC compiles (pmo_attach_tm
 * of pmo/blocks.h), and returns its first byte. PMO_ERR_HELD: pmo_tx functions use objects of that
 * class in the pool. pmo_detach detaches it, outside of blocks. */
void *pmo_attach_for_blocks(pmo_pool *pool, const char *name, const void *key, size_t key_len,
                            const struct pmo_tm_runtime *runtime);

/** A transaction of the thread that began it. */
typedef struct pmo_tx pmo_tx;

/** Explains deadly accesses to objects on standard error: the object's name, the offset, the
 * remedy. PMO_EXPLAIN_FAULTS=1 in the environment does the same for any program. A later handler
 * for SIGSEGV comes first. */
int pmo_explain_faults(void);

/** Begins a transaction on count transactional objects of one pool. NULL for an error;
 * PMO_ERR_IN_TRANSACTION if the thread has one. Prefer PMO_TX and pmo_transaction of
 * pmo/transaction.h, and pmo::transaction of pmo.hpp, which repeat it after conflicts. */
pmo_tx *pmo_tx_begin(void *const *objects, size_t count);

/** Copies size bytes of the transaction's objects, as the transaction sees them, to the program's
 * memory. PMO_ERR_CONFLICT: another transaction interfered, and the changes are undone; only
 * pmo_tx_again or pmo_tx_abort may follow. */
int pmo_tx_read(pmo_tx *tx, const void *from, void *into, size_t size);

/** Copies size bytes of the program's memory to the transaction's objects, if it commits.
 * PMO_ERR_CONFLICT as for pmo_tx_read. */
int pmo_tx_write(pmo_tx *tx, void *to, const void *from, size_t size);

struct pmo_type;

/** Allocates size bytes in the heap of an object of the transaction, given by any address in it, if
 * the transaction commits. Returns their address, a multiple of 16; the bytes are undefined. NULL
 * for an error: PMO_ERR_NOT_A_HEAP without a heap, which pmo_tx_root makes; PMO_ERR_CONFLICT as for
 * pmo_tx_read, also to grow a full heap; PMO_ERR_HEAP_FULL if it cannot grow, and the transaction
 * may go on. */
void *pmo_tx_alloc(pmo_tx *tx, const void *object, size_t size);

/** Frees a block of pmo_tx_alloc, if the transaction commits. NULL is ignored. PMO_ERR_CONFLICT as
 * for pmo_tx_read; PMO_ERR_NOT_A_BLOCK, PMO_ERR_DOUBLE_FREE and, for the block of a root,
 * PMO_ERR_ROOT_EXISTS free nothing. */
int pmo_tx_free(pmo_tx *tx, void *block);

/** Returns the address of a root in the heap of an object of the transaction, given by any address
 * in it. A missing root is made of zeros if the transaction commits, in a blank object with a heap.
 * NULL for an error: PMO_ERR_ROOT_TYPE for another type; PMO_ERR_EXISTS if the object has other
 * contents; PMO_ERR_NOT_A_HEAP after pmo_tx_begin_with; others as for pmo_tx_alloc. */
void *pmo_tx_root(pmo_tx *tx, const void *object, const char *name, const struct pmo_type *type);

/** Undoes the transaction's changes and begins it again, after a pause if it met another one. After
 * an error it is over. */
int pmo_tx_again(pmo_tx *tx);

/** Commits the transaction. 0: it is over; its changes, and all that it read, are durable, or, on
 * demand, outlive the process. 1: a conflict; it is undone, and pmo_tx_again begins it again. -1:
 * an error, and it is over; after PMO_ERR_NO_ROOM without effect, after others with all or no
 * changes at the next attach. */
int pmo_tx_commit(pmo_tx *tx);

/** Ends the transaction without effect. */
int pmo_tx_abort(pmo_tx *tx);

/** Makes the transaction run alone in the pool from pmo_tx_again on; PMO_ERR_CONFLICT unless it
 * runs alone already. For long or unrepeatable ones. PMO_ERR_CLASS_MISMATCH for objects on demand.
 */
int pmo_tx_alone(pmo_tx *tx);

/** Calls a function once the transaction is durable, in the order of these calls. A run that does
 * not commit drops it. */
int pmo_tx_on_commit(pmo_tx *tx, void (*each)(void *context), void *context);

/** Calls a function if this run of the transaction does not commit, the last call first. */
int pmo_tx_on_abort(pmo_tx *tx, void (*each)(void *context), void *context);

/* ---- copies and snapshots ---- */

/** Keeps the bytes of the object's last psync under the name snapshot, to be attached for reading,
 * or copied by pmo_create_from. It takes constant time, also beside a writer, whose next psync
 * waits a moment. The pool needs a free piece as large as the object; later only changed pages take
 * space. PMO_ERR_BUSY: the writer is busy for longer than pmo_wait says. The key is the one for
 * writing, if the object has any; the snapshot then has it. */
int pmo_snapshot(pmo_pool *pool, const char *name, const char *snapshot, const void *key, size_t key_len);

/** An object, and the name of its snapshot. */
struct pmo_snapshot {
    const char *name;
    const char *snapshot;
};

/** As pmo_snapshot, of count objects as of one moment, all or none. The key is that of each
 * object that has one. */
int pmo_snapshot_all(pmo_pool *pool, const struct pmo_snapshot *snapshots, size_t count, const void *key, size_t key_len);

/** Creates an object named copy with the bytes of an object's last psync, or of a snapshot. It
 * takes constant time, also beside a writer. Both have the same address: a process attaches one of
 * them at a time. The pool needs a free piece as large as the object, or two unless it is a
 * snapshot; later only changed pages take space. The options, which may be NULL, give keys and the
 * flags PMO_STAT_READ_ONLY and PMO_STAT_VOLATILE; their size and reach are 0. By default the copy
 * has the key of this call, if the object has any. */
int pmo_create_from(pmo_pool *pool, const char *name, const char *copy, const void *key, size_t key_len,
                    const struct pmo_create_options *options);

/** Pages of an object or a snapshot, len bytes from from on, and their place in a new object. Both
 * places are multiples of 4096; the range ends with a page, or with its object. */
struct pmo_page_range {
    const char *object;
    uint64_t from;
    uint64_t len;
    uint64_t at;
};

/** Creates an object of the size in the options from count ranges of other objects, as their last
 * psyncs left them, with zeros between them: all of it, or nothing. It has addresses of its own;
 * bytes that are addresses keep their values. Pages that keep their place are shared with their
 * source: of one source, a snapshot, or 64 KiB and more of an object that the key allows to write.
 * Others are copied. The options also give keys, reach and the flags PMO_STAT_READ_ONLY,
 * PMO_STAT_SPARSE, PMO_STAT_VOLATILE and PMO_STAT_POSITION_INDEPENDENT. PMO_ERR_BAD_SIZE: a range
 * is not as above, meets another one, or does not fit. Sources are neither sealed, on demand nor
 * shared, and without check words. */
int pmo_create_from_ranges(pmo_pool *pool, const char *name, const struct pmo_page_range *ranges, size_t count,
                           const void *key, size_t key_len, const struct pmo_create_options *options);

/** Flag of pmo_copy_to and pmo_move_to: the object gets other addresses, its pointers change
 * accordingly, and a process can attach both. It must be a heap whose roots are described with all
 * that they lead to (struct pmo_type), PMO_STAT_POSITION_INDEPENDENT, or never psynced; else
 * PMO_ERR_UNSUITABLE names an unknown pointer. */
#define PMO_REBASE 1u

/** Copies the state of an object's last psync, or a snapshot, to another pool, or with PMO_REBASE
 * maybe to the same one, as an object with its own identity. Without PMO_REBASE a process attaches
 * one of them at a time. The key is also the copy's, if the object has one. Calls each, which may
 * be NULL, with bytes done and bytes in all. After an error nothing has happened. */
int pmo_copy_to(pmo_pool *pool, const char *name, const void *key, size_t key_len, pmo_pool *other, const char *copy,
                unsigned flags, void (*each)(uint64_t done, uint64_t all, void *context), void *context);

/** Moves a detached object to another pool, with its identity, its keys, and, without PMO_REBASE,
 * its addresses. Its snapshots and copies stay. A death leaves it here, or in both pools
 * (PMO_ERR_EXISTS): destroy one of the two. */
int pmo_move_to(pmo_pool *pool, const char *name, const void *key, size_t key_len, pmo_pool *other, unsigned flags,
                void (*each)(uint64_t done, uint64_t all, void *context), void *context);

/** Attaches an object for reading as its last psync left it, beside any writers; or a snapshot.
 * Returns its first byte, at the writer's address; PMO_ERR_ADDRESS_TAKEN if this process has the
 * object attached, which PMO_ANYWHERE of pmo_attach avoids. Its bytes and heap stay unchanged until
 * pmo_refresh. The pool is open for writing and needs a free piece as large as the object.
 * pmo_detach detaches it. */
void *pmo_attach_snapshot(pmo_pool *pool, const char *name, const void *key, size_t key_len);

/** Advances an object of pmo_attach_snapshot to the newest psync. newer, which may be NULL, is set
 * to 1 if there was one, else to 0. The address stays, the size may change; look up pointers, roots
 * and blocks again. No other thread uses the object meanwhile. After an error it is unchanged, or,
 * if it could not be mapped where it grew to, closed until another call succeeds.
 * PMO_ERR_NOT_FOUND: it was destroyed or renamed. PMO_ERR_UNSUITABLE: attached with PMO_ANYWHERE;
 * attach another one, and detach this one. */
int pmo_refresh(void *object, int *newer);

/** Work that pmo_collect did: removed objects without a name, and copied bytes. */
struct pmo_collected {
    uint64_t removed;
    uint64_t copied;
};

/** Merges unshared remains of copies, and removes remains of deleted snapshots and copies, so that
 * no object takes more space than one never copied. Other processes may use the pool meanwhile.
 * Calls each, which may be NULL, with the number of objects examined, and of all. Fills in
 * collected, which may be NULL. After an error, finished work stays. */
int pmo_collect(pmo_pool *pool, void (*each)(uint64_t done, uint64_t all, void *context), void *context,
                struct pmo_collected *collected);

/** The outcome of pmo_scrub: words read, repaired, and lost; the offset of the first lost one, in
 * bytes of the object. */
struct pmo_scrubbed {
    uint64_t words;
    uint64_t repaired;
    uint64_t lost;
    uint64_t first_lost;
};

/** Reads all words of a detached object that was created with PMO_STAT_ECC, and repairs damaged
 * ones durably. Up to 6 wrong bits of the 128 of a word and its check word are repaired, and nearly
 * all damages of 7. Other words are lost: reading one fails with PMO_ERR_DAMAGED until a
 * transaction stores it. Calls each, which may be NULL, with bytes done and bytes in all. Fills in
 * scrubbed, which may be NULL. PMO_ERR_CLASS_MISMATCH: no check words. After another error,
 * finished repairs stay. */
int pmo_scrub(pmo_pool *pool, const char *name, const void *key, size_t key_len,
              void (*each)(uint64_t done, uint64_t all, void *context), void *context, struct pmo_scrubbed *scrubbed);

/** Sets a detached object to the bytes and size of its snapshot, or its copy's, in constant time.
 * The snapshot stays. PMO_ERR_NOT_FOUND: no snapshot with the object's address. After an error the
 * object is unchanged. */
int pmo_rollback(pmo_pool *pool, const char *name, const char *snapshot, const void *key, size_t key_len);

/** How two objects differ: how many pages of 4 KiB differ, and the sizes in bytes. */
struct pmo_difference {
    uint64_t pages;
    uint64_t older_size;
    uint64_t newer_size;
};

/** Compares the states of two objects' last psyncs, or snapshots, in any mix. Calls each, which may
 * be NULL, for every run of differing pages of 4 KiB: the first, counted from the object's start,
 * and how many. Bytes past an object's end count as zeros. Fills in difference, which may be NULL.
 * The key is that of each that needs one for reading. */
int pmo_diff(pmo_pool *pool, const char *older, const char *newer, const void *key, size_t key_len,
             void (*each)(uint64_t first, uint64_t count, void *context), void *context, struct pmo_difference *difference);

/** Destroys detached snapshots of an object that a retention policy drops. The policy keep lists
 * ages with periods: 24h:1h,7d:1d keeps one for each of the last 24 hours, one for each of the last
 * 7 days, and the newest; units are s, m, h, d, w. Only snapshots named OBJECT@TIME count, such as
 * ledger@2026-11-24T03:00:00Z. Calls each, which may be NULL, with the name of each destroyed one;
 * returns their number, or -1 for an error, after which they stay destroyed. */
int64_t pmo_thin(pmo_pool *pool, const char *name, const char *keep, const void *key, size_t key_len,
                 void (*each)(const char *snapshot, void *context), void *context);

/* ---- the end of objects ---- */

/** Deletes an object, attached or not: its name is free at once. Attached processes keep it, psyncs
 * included; its space is free after the last one's detach or death. */
int pmo_delete(pmo_pool *pool, const char *name, const void *key, size_t key_len);

/** Ties an object to another one, named to, which it then outlives: deleted or destroyed, it loses
 * its name, but stays until the other one is gone and no process has it attached.
 * PMO_ERR_TIE_CYCLE: the other one is tied to it, maybe through others. */
int pmo_tie(pmo_pool *pool, const char *name, const char *to, const void *key, size_t key_len);

/** Ties an object to this process: deleted or destroyed, it stays until this process ends or closes
 * its last handle of the pool. */
int pmo_tie_to_process(pmo_pool *pool, const char *name, const void *key, size_t key_len);

/** As pmo_tie_to_process, to the calling thread. */
int pmo_tie_to_thread(pmo_pool *pool, const char *name, const void *key, size_t key_len);

/** Removes the tie of an object to another one, named as pmo_ties names it. was_tied, which may be
 * NULL, is set to 1 if there was one, else to 0. */
int pmo_untie(pmo_pool *pool, const char *name, const char *from, const void *key, size_t key_len, int *was_tied);

/** An object that another one is tied to: its name, or, if deleted is not 0, its former name. */
struct pmo_tie {
    char name[512];
    uint8_t id[16];
    uint32_t deleted;
    uint32_t reserved;
};

/** Calls each for every existing object that an object is tied to, until it returns nonzero, which
 * is returned. */
int pmo_ties(pmo_pool *pool, const char *name, int (*each)(const struct pmo_tie *tie, void *context), void *context);

/* ---- sealed objects ---- */

/** A key that opens sealed objects. Its memory is overwritten when it is freed: overwrite your own
 * copy as well. */
typedef struct pmo_seal_key pmo_seal_key;

/** Makes a key of the contents of a key file: 32 random bytes or more, 1 MiB at most. They are
 * copied. NULL for an error, as of all functions that make keys; PMO_ERR_SEALED: unusable bytes. */
pmo_seal_key *pmo_seal_key_bytes(const void *bytes, size_t len);

/** Makes a key of the whole contents of the key file at path. */
pmo_seal_key *pmo_seal_key_file(const char *path);

/** Makes a key of a passphrase. Opening an object takes tenths of a second and 64 MiB of memory for
 * each passphrase slot. */
pmo_seal_key *pmo_seal_key_passphrase(const char *passphrase);

/** Makes a key of the standard output of a command, which /bin/sh runs without a standard input,
 * and kills after so many milliseconds. A key file of the same bytes gives the same key. */
pmo_seal_key *pmo_seal_key_command(const char *command, uint64_t milliseconds);

/** Makes a key of the credential of that name which systemd gave to this service: a file in the
 * folder CREDENTIALS_DIRECTORY. */
pmo_seal_key *pmo_seal_key_credential(const char *name);

/** Makes a key of the TPM 2.0 of this machine, or of the device or socket at path, if not NULL. A
 * copy of the pool does not open elsewhere; every process with access to the TPM opens the object.
 * Clearing the TPM loses its slots: add a second key, elsewhere. */
pmo_seal_key *pmo_seal_key_tpm(const char *path);

/** Copies a key, to be freed on its own, whose new slots expire at a time in seconds since 1970. An
 * object keeps at least one key without expiry. Other software, or a wrong clock, ignores the
 * expiry: pmo_remove_key and pmo_reencrypt do not depend on them. */
pmo_seal_key *pmo_seal_key_until(const pmo_seal_key *seal, uint64_t seconds);

/** Copies a passphrase, to be freed on its own, at another cost: its new slots take so many bytes
 * of memory and passes of Argon2id, by default 64 MiB and 3. A slot above 256 MiB, or five times
 * the default work, opens only by a passphrase of that cost. PMO_ERR_SEALED: no passphrase, or more
 * than 1 GiB or 16 passes. */
pmo_seal_key *pmo_seal_key_costing(const pmo_seal_key *seal, uint64_t memory, uint32_t passes);

/** An anchor: a place outside of the pool that keeps the number of an object's newest state. It is
 * one of three. A file, out of reach of attackers that may put back the pool. A shell command,
 * which reads a line, `get`, or `put` and a record, and answers with the record, if there is one,
 * or `stored` once it is durable. Or a file anywhere with the index of a counter, such as
 * 0x01800042, of this machine's TPM 2.0, or of the device or socket tpm. Unused fields are 0.
 * timeout is the command's limit, in milliseconds, by default a minute; interval, in milliseconds,
 * is how long psyncs go on without telling the anchor, by default a minute, or, as a TPM wears, an
 * hour. */
struct pmo_anchor {
    const char *file;
    const char *command;
    const char *tpm;
    uint32_t tpm_index;
    uint32_t reserved;
    uint64_t timeout;
    uint64_t interval;
};

/** Copies a key, to be freed on its own, with an object's anchor. An attach then fails with
 * PMO_ERR_POOL_BEHIND if the object was put back to an older state, and with PMO_ERR_ANCHOR_BEHIND
 * if the anchor was. An object attached so for writing needs its anchor from then on. Attach, psync
 * at its interval, and detach tell the anchor of the newest state; after a death any later state is
 * accepted. */
pmo_seal_key *pmo_seal_key_anchored(const pmo_seal_key *seal, const struct pmo_anchor *anchor);

/** Copies a key, to be freed on its own, with the key file at path that signs the object: 32 random
 * bytes or more, not the seal key's file. An object created with it is signed: changes need the
 * sign key; reads need it, or pmo_seal_key_verified_by. */
pmo_seal_key *pmo_seal_key_signed_by(const pmo_seal_key *seal, const char *path);

/** Copies a key, to be freed on its own, with the verify key of the object's signature: 64
 * hexadecimal digits from pmo_verify_key, over a trusted channel. An object not signed by that key
 * is PMO_ERR_DAMAGED. */
pmo_seal_key *pmo_seal_key_verified_by(const pmo_seal_key *seal, const char *digits);

/** Copies a key, to be freed on its own, for an object that was sealed under this name: a copy, a
 * snapshot, or one renamed without its key. Otherwise an object sealed under another name or ID is
 * refused (PMO_ERR_SEALED). */
pmo_seal_key *pmo_seal_key_sealed_as(const pmo_seal_key *seal, const char *name);

/** Copies a key of a key file, to be freed on its own: an object created with it is erasable. The
 * object has this one key slot, and only pmo_renew_key gives it another key file. Once its present
 * and former key files are destroyed, no copy, snapshot or backup of it can be read. */
pmo_seal_key *pmo_seal_key_erasable(const pmo_seal_key *seal);

/** Stores the verify key of the key file at path, as 64 digits and a zero: digits has room for 65
 * bytes. It is no secret. */
int pmo_verify_key(const char *path, char *digits);

/** Overwrites a key and frees it. Objects that it opened stay attached. */
int pmo_seal_key_free(pmo_seal_key *seal);

/** Creates a sealed object: its bytes in the pool are encrypted and authenticated. Name, size,
 * times, and which pages change stay visible; only an anchor detects an older state of the whole
 * pool. The options are those of pmo_create_with; the label of the key's slot has up to 56 bytes,
 * for people. */
int pmo_create_sealed(pmo_pool *pool, const char *name, const struct pmo_create_options *options, const pmo_seal_key *seal,
                      const char *label);

/** As pmo_attach, of a sealed object. PMO_ERR_WRONG_KEY: seal opens none of its key slots, and
 * nothing was read. PMO_ERR_DAMAGED: the page in the message differs from the sealed one. The
 * plaintext is excluded from core dumps, and pmo_detach overwrites it. */
void *pmo_attach_sealed(pmo_pool *pool, const char *name, int permission, const void *key, size_t key_len,
                        const pmo_seal_key *seal);

/** As pmo_attach_snapshot, of a sealed object: verifies and decrypts its pages as of the newest
 * psync; pmo_refresh verifies and decrypts changed ones. */
void *pmo_attach_snapshot_sealed(pmo_pool *pool, const char *name, const void *key, size_t key_len, const pmo_seal_key *seal);

/** As pmo_resize, of a sealed object. */
int pmo_resize_sealed(pmo_pool *pool, const char *name, uint64_t size, const void *key, size_t key_len, const pmo_seal_key *seal);

/** Renames a detached, sealed object, and authenticates the new name; seal has the sign key of a
 * signed object. A crash leaves one of the two names. */
int pmo_rename_sealed(pmo_pool *pool, const char *name, const char *new_name, const void *key, size_t key_len, const pmo_seal_key *seal);

/** Authenticates the name and ID of a detached, sealed object of an earlier release, or of a copy,
 * from now on; for a copy seal has its origin's name (pmo_seal_key_sealed_as). */
int pmo_bind_name(pmo_pool *pool, const char *name, const void *key, size_t key_len, const pmo_seal_key *seal);

/** Seals a detached, sealed object by a new key, which these keys open, each in its slot; the first
 * opens the object now. Other slots go: owners of other keys cannot read later psyncs. It needs its
 * space once more meanwhile. A crash leaves the former key or the new one. */
int pmo_reencrypt(pmo_pool *pool, const char *name, const void *key, size_t key_len, const pmo_seal_key *const *seals, size_t count);

/** Seals a detached, sealed object by a new key, which next alone opens, in the slot of seal. Once
 * the former key file is destroyed, no older copy of an erasable object (pmo_seal_key_erasable) can
 * be read. The call needs the object's space once more. A crash leaves the former key or the new
 * one. */
int pmo_renew_key(pmo_pool *pool, const char *name, const void *key, size_t key_len, const pmo_seal_key *seal, const pmo_seal_key *next);

/** Accepts the state of a detached, sealed object as the newest, against the record of the key's
 * anchor: for a restored state, or a new anchor. A key without an anchor removes the object's. */
int pmo_set_anchor(pmo_pool *pool, const char *name, const void *key, size_t key_len, const pmo_seal_key *seal);

/** Re-signs a detached, signed, sealed object with the key file at path; seal has the former sign
 * key. Readers need the new verify key from then on. */
int pmo_change_signer(pmo_pool *pool, const char *name, const void *key, size_t key_len, const pmo_seal_key *seal, const char *path);

/** Kinds of key slots. */
enum pmo_key_kind {
    /** Bytes of a file, a command, a credential. */
    PMO_KEY_FILE = 1,
    /** A passphrase. */
    PMO_KEY_PASSPHRASE = 2,
    /** A secret that a TPM keeps. */
    PMO_KEY_TPM = 3
};

/** A key slot of a sealed object: its number, an enum pmo_key_kind, its creation and its expiry (0:
 * never) in seconds since 1970, whether it is damaged, its label. */
struct pmo_key_slot {
    uint32_t slot;
    uint32_t kind;
    uint64_t created;
    uint64_t expires;
    uint32_t damaged;
    uint32_t reserved;
    const char *label;
};

/** Calls each for every used key slot of a sealed object, attached or not, until it returns
 * nonzero, which is returned. It needs no seal key. */
int pmo_key_slots(pmo_pool *pool, const char *name, const void *key, size_t key_len,
                  int (*each)(const struct pmo_key_slot *slot, void *context), void *context);

/** Lets another key, added, open a detached, sealed object; seal opens it already. Returns the
 * number of its slot, or -1 for an error. */
int pmo_add_key(pmo_pool *pool, const char *name, const void *key, size_t key_len, const pmo_seal_key *seal,
                const pmo_seal_key *added, const char *label);

/** Exchanges the key seal of a detached, sealed object for the key changed, as one step. A NULL
 * label leaves that of the slot. Returns the number of the slot, or -1 for an error. */
int pmo_change_key(pmo_pool *pool, const char *name, const void *key, size_t key_len, const pmo_seal_key *seal,
                   const pmo_seal_key *changed, const char *label);

/** Empties a key slot of a detached, sealed object, but never the last one. A former user may have
 * kept the key that the slot protects: pmo_reencrypt. */
int pmo_remove_key(pmo_pool *pool, const char *name, const void *key, size_t key_len, const pmo_seal_key *seal, unsigned slot);

/* ---- the heap of an object ---- */

enum {
    /** Guard blocks; pmo_free and pmo_heap_check examine the guards. */
    PMO_HEAP_DEBUG = 1,
    /** Grow the object when its heap is full. */
    PMO_HEAP_GROW = 2
};

/** Makes a heap of a blank object: later stores go to blocks of the heap. Flags: PMO_HEAP_DEBUG,
 * PMO_HEAP_GROW. */
int pmo_heap_format(void *object, unsigned flags);

/** Opens the heap of an object. By default its first use opens it without flags. Flags:
 * PMO_HEAP_DEBUG, PMO_HEAP_GROW. */
int pmo_heap_open(void *object, unsigned flags);

/** Opens the heap of an object, or makes one if the object is blank. Flags: PMO_HEAP_DEBUG,
 * PMO_HEAP_GROW. */
int pmo_heap_open_or_format(void *object, unsigned flags);

/** Allocates size bytes, at a multiple of 16, in the object. A struct copied there brings its
 * padding, arbitrary bytes of the process: store the members, or clear the struct first. Any number
 * of threads may allocate and free at once. */
void *pmo_malloc(void *object, size_t size);

/** Allocates count times size bytes, all zero. */
void *pmo_calloc(void *object, size_t count, size_t size);

/** Allocates size bytes at a multiple of alignment, a power of two of at most 2 MiB. */
void *pmo_aligned_alloc(void *object, size_t alignment, size_t size);

/** Resizes a block, which may move. With NULL for the block, allocates one in the object. After an
 * error the block is unchanged; a root's block cannot be resized (PMO_ERR_ROOT_EXISTS). */
void *pmo_realloc(void *object, void *block, size_t size);

/** Frees a block of any object. NULL is ignored. Errors change nothing: an address that is no
 * block, a free block, a root's block (PMO_ERR_ROOT_EXISTS: pmo_root_remove first). */
int pmo_free(void *block);

/** Fails where pmo_free would, and frees nothing. */
int pmo_can_free(const void *block);

/** Usable bytes of a block, at least those asked for; 0 for an error. */
size_t pmo_usable_size(const void *block);

/** A heap in numbers, counted when asked for; sizes in bytes. free_bytes is of whole free pages,
 * class_bytes of free blocks in pages of small blocks, overhead all other bytes. */
struct pmo_heap_stats {
    uint64_t bytes;
    uint64_t blocks;
    uint64_t block_bytes;
    uint64_t free_bytes;
    uint64_t largest_free;
    uint64_t class_bytes;
    uint64_t overhead;
    uint64_t roots;
};

/** Counts the blocks, bytes and roots of the object's heap. */
int pmo_heap_stats(void *object, struct pmo_heap_stats *stats);

/** Checks the object's heap, and calls each, which may be NULL, for every finding: its offset, in
 * bytes from the object's start, and its description. Returns their number, or -1 for an error. No
 * other thread uses the heap meanwhile. */
int64_t pmo_heap_check(void *object, void (*each)(uint64_t offset, const char *what, void *context), void *context);

/** Calls each for every live block, by address, until it returns nonzero, which is returned. */
int pmo_heap_blocks(void *object, int (*each)(void *block, size_t size, void *context), void *context);

/* ---- named roots ---- */

struct pmo_type;

/** A field of a type: nested() is its own type, if not NULL. For pointers, and arrays of them,
 * target() is the type that they lead to, if not NULL; it is no part of the field's type. */
struct pmo_field {
    const char *name;
    const char *type;
    size_t offset;
    size_t size;
    const struct pmo_type *(*nested)(void);
    const struct pmo_type *(*target)(void);
};

/** Kinds of types: a struct of fields; a number; an address, with its target, if known, as the only
 * field; an array of its only field; bytes that a library interprets, with the type parameters of
 * its name; the link to extensions; a pmo_ptr, with its target as an address has it. */
enum pmo_kind { PMO_STRUCT, PMO_SCALAR, PMO_POINTER, PMO_ARRAY, PMO_OPAQUE, PMO_EXTENSIONS, PMO_FAR };

/** A type, against which a root is checked. PMO_TYPE makes one. An alignment of 0 is the usual one.
 */
struct pmo_type {
    const char *name;
    size_t size;
    const struct pmo_field *fields;
    size_t count;
    int kind;
    size_t align;
};

/** Names size bytes at address, in one block of the object's heap; the name has up to 255 bytes.
 * The type has as many bytes, or fewer. */
int pmo_root_create(void *object, const char *name, const void *address, size_t size, const struct pmo_type *type);

/** Returns the address of a root. A root of another type or layout is an error, whose message shows
 * both. A NULL type takes any. */
void *pmo_root(void *object, const char *name, const struct pmo_type *type);

/** Removes a name; the bytes stay. */
int pmo_root_remove(void *object, const char *name);

/** A step from one version of a type to the next. convert fills the new value, zeroed bytes, from
 * the unchanged old one, and returns 0; otherwise nothing changes. It may allocate in the object.
 * drop, which may be NULL, then frees blocks that only the old value owns. Neither may throw,
 * psync, or touch roots. */
struct pmo_converter {
    const struct pmo_type *from;
    const struct pmo_type *to;
    int (*convert)(const void *old_value, void *new_value, void *context);
    void (*drop)(void *old_value, void *context);
    void *context;
};

/** A root that was reset: its name, its types, and the freed blocks and bytes. */
struct pmo_reset {
    const char *root;
    const char *old_type;
    const char *new_type;
    uint64_t blocks;
    uint64_t bytes;
};

/** How a root gets the program's type. make fills in the zeroed bytes of a new value, and returns
 * 0: for a missing root (without make an error), or a reset one. With told, a root that no
 * converters lead away from is reset: its blocks are freed, and told is called. */
struct pmo_root_options {
    const struct pmo_converter *converters;
    size_t count;
    int (*make)(void *new_value, void *context);
    void (*told)(const struct pmo_reset *reset, void *context);
    void *context;
};

/** Returns the address of a root as a value of the program's type, made, converted or reset if need
 * be. Converters form a chain from the version in the heap; a missing one is an error before any
 * runs. The new value replaces the old one, which is freed with its block; the next psync makes
 * this durable as one step. After an error, new blocks are freed and the old value stays, unless
 * drop has freed it. No other thread uses the object meanwhile. */
void *pmo_root_from(void *object, const char *name, const struct pmo_type *type, const struct pmo_root_options *options);

/** A root. */
struct pmo_root {
    const char *name;
    void *address;
    uint64_t size;
    const char *type;
    const char *layout;
    uint64_t fingerprint[2];
};

/** Calls each for every root, by name, until it returns nonzero, which is returned. */
int pmo_roots(void *object, int (*each)(const struct pmo_root *root, void *context), void *context);

/** Writes the text of a type's layout to text, cut to len bytes with the zero byte, and its
 * fingerprint, of names, types, offsets and sizes of all fields, nested ones included. Either may
 * be NULL. */
int pmo_type_describe(const struct pmo_type *type, char *text, size_t len, uint64_t fingerprint[2]);

/* PMO_TYPE(place,
 *     PMO_FIELD(int64_t, number),
 *     PMO_FIELD(char[16], name),
 *     PMO_NESTED(struct point, where, point),
 *     PMO_POINTS_TO(struct place *, next, place))
 *
 * describes struct place as PMO_TYPEOF(place); the compiler compares the types with those of the
 * fields. PMO_NESTED is for fields that are structs described by another PMO_TYPE, its last
 * argument, or arrays of them. PMO_POINTS_TO is for pointers, and arrays of them, to structs
 * described by a PMO_TYPE, its last argument, where pmo heap goes on by type; for a pmo_ptr
 * too, or PMO_FIELD if its target is not described. PMO_DECLARE_TYPE(tag) declares a later one.
 *
 * PMO_TYPE_WAS(item_v1, "struct item", …) describes struct item_v1 as an earlier version of struct
 * item, for pmo_root_from. */
#define PMO_TYPE(tag, ...) PMO_TYPE_WAS(tag, "struct " #tag, __VA_ARGS__)
#define PMO_TYPE_WAS(tag, its_name, ...)                                                          \
    static inline const struct pmo_type *pmo_type_##tag(void)                                     \
    {                                                                                             \
        typedef struct tag pmo_self;                                                              \
        static const struct pmo_field fields[] = {__VA_ARGS__};                                   \
        static const struct pmo_type type = {its_name, sizeof(pmo_self), fields,                  \
                                             sizeof fields / sizeof *fields, PMO_STRUCT,          \
                                             __alignof__(pmo_self)};                              \
        return &type;                                                                             \
    }
#define PMO_DECLARE_TYPE(tag) static inline const struct pmo_type *pmo_type_##tag(void)
#define PMO_TYPEOF(tag) pmo_type_##tag()
#define PMO_NESTED(type, field, tag)                                                              \
    {#field, #type, offsetof(pmo_self, field), PMO_CHECKED_SIZE(type, field), pmo_type_##tag, NULL}
#define PMO_POINTS_TO(type, field, tag)                                                           \
    {#field, #type, offsetof(pmo_self, field), PMO_CHECKED_SIZE(type, field), NULL, pmo_type_##tag}
#ifdef __cplusplus
#define PMO_FIELD(type, field)                                                                    \
    {#field, #type, offsetof(pmo_self, field), PMO_CHECKED_SIZE(type, field), NULL, NULL}
/* In C++ the types are seen by pmo.hpp, with PMO_DESCRIBE. */
#define PMO_CHECKED_SIZE(type, field) sizeof(((pmo_self *)0)->field)
#else
#define PMO_FIELD(type, field)                                                                    \
    {#field, #type, offsetof(pmo_self, field),                                                    \
     PMO_CHECKED_SIZE(type, field) + 0 * sizeof(char[PMO_IS_SCALAR(field) ? 1 : -1]), NULL, NULL}
/* A negative size: the field has another type. */
#define PMO_CHECKED_SIZE(type, field)                                                             \
    (sizeof(((pmo_self *)0)->field) +                                                             \
     0 * sizeof(char[__builtin_types_compatible_p(__typeof__(((pmo_self *)0)->field),             \
                                                  __typeof__(type))                               \
                         ? 1                                                                      \
                         : -1]))
/* A negative size: the field is a struct or union, or an array of them, which PMO_NESTED is for. */
#define PMO_AT(field) (((pmo_self *)0)->field)
#define PMO_IS_ARRAY(field)                                                                       \
    (!__builtin_types_compatible_p(__typeof__(PMO_AT(field)), __typeof__(((void)0, PMO_AT(field)))))
#define PMO_IS_STRUCT(value) (__builtin_classify_type(value) == 12 || __builtin_classify_type(value) == 13)
#define PMO_IS_SCALAR(field)                                                                      \
    (!PMO_IS_STRUCT(PMO_AT(field)) &&                                                             \
     !PMO_IS_STRUCT(*__builtin_choose_expr(PMO_IS_ARRAY(field), PMO_AT(field), (int *)0)))
#endif

/* ---- pointers from object to object ---- */

/** A pointer in an object to a place in the same or another object, the same in any pool: 24 bits
 * of an entry in the object's table of other objects, 0 for the object itself, and 40 bits of an
 * offset. 0 is null. */
typedef uint64_t pmo_ptr;

/** Rights that pointers ask for; keys and locks grant them. */
enum pmo_rights { PMO_RIGHT_READ = 1, PMO_RIGHT_WRITE = 2, PMO_RIGHT_EXECUTE = 4 };

/** Also looks for objects of far pointers in a pool, after those added before, until it is removed
 * or a handle of it is closed. */
int pmo_space_add(pmo_pool *pool);

/** Stops looking for objects in a pool. Attached ones stay attached. */
int pmo_space_remove(pmo_pool *pool);

/** The address of a far pointer's target of at least size bytes; home is any address in the object
 * that contains the pointer. An unattached target is attached for reading, until pmo_detach.
 * PMO_ERR_DANGLING: a null pointer, a missing entry, an object in no added pool, or one that ends
 * before. */
void *pmo_lea(const void *home, pmo_ptr pointer, size_t size);

/** Makes a far pointer, for the attached heap that contains home, to target in the same or another
 * attached object, by an entry for the enum pmo_rights, found or added. The next psync of home's
 * object makes both durable. 0 for an error: PMO_ERR_DANGLING for the first byte of an object. */
pmo_ptr pmo_store(const void *home, const void *target, unsigned rights);

/* ---- views ---- */

/* A view is an object with slots, each for an object of the same pool. A program that attaches a
 * view has each of these at its own address: the first load or store by any code attaches it, for
 * stores if the slot asks for them. pmo_detach refuses it. An unavailable object or a forbidden
 * access is a SIGSEGV; pmo_view_at says why. To system calls an unused object's address is EFAULT.
 * A NULL view is the one of pmo_view_start. */

/** Makes a view with so many empty slots, up to 65536. */
int pmo_view_create(pmo_pool *pool, const char *name, size_t slots);

/** Puts an object into a slot, durably, with PMO_RIGHT_READ alone or PMO_RIGHT_WRITE as well.
 * PMO_ERR_ADDRESS_TAKEN: another slot has the object. */
int pmo_view_set(pmo_pool *pool, const char *view, size_t slot, const char *object, unsigned rights);

/** Empties a slot, durably. Processes with the view attached keep the object until pmo_view_adopt.
 */
int pmo_view_clear(pmo_pool *pool, const char *view, size_t slot);

/** Attaches a view, which any process may change meanwhile. No object is attached yet. */
int pmo_view_attach(pmo_pool *pool, const char *view);

/* A security context is an object with rights to objects, by their IDs: PMO_RIGHT_READ alone or
 * with PMO_RIGHT_WRITE, or 0 for none. A view attached in contexts limits each slot's rights to
 * those that any of them allows. Refusals come at the use: a load or store is a SIGSEGV, and
 * pmo_view_at fails with PMO_ERR_DENIED. Contexts protect from mistakes, not from hostile code. */

/** The kind of an entry of a security context. */
enum pmo_rule {
    PMO_RULE_ALLOW = 1,   /* states the rights to an object, in the place of the default ones */
    PMO_RULE_MASK = 2,    /* limits the rights to an object, delegated ones included */
    PMO_RULE_DELEGATE = 3 /* adds another context's rights, these at most */
};

/** Makes a security context that gives nothing, with room for so many entries, up to 65536. */
int pmo_context_create(pmo_pool *pool, const char *name, size_t entries);

/** Sets the rights to all objects without an entry in the context, durably. */
int pmo_context_default(pmo_pool *pool, const char *context, unsigned rights);

/** Sets a context's entry, durably: an enum pmo_rule for an object, or for the context that it is
 * delegated from. PMO_ERR_BAD_SIZE: there is no room. PMO_ERR_UNSUITABLE: contexts would be
 * delegated in a circle. Views attached in the context follow at the next use of a new object, and
 * by pmo_view_adopt. */
int pmo_context_set(pmo_pool *pool, const char *context, const char *object, unsigned rule, unsigned rights);

/** Removes, durably, all entries of a context for an object. */
int pmo_context_clear(pmo_pool *pool, const char *context, const char *object);

/** The rights to an object that contexts give together: 0 for none, else of enum pmo_rights; -1 for
 * an error. */
int pmo_context_rights(pmo_pool *pool, const char *const *contexts, size_t count, const char *object);

/** As pmo_view_attach, in count security contexts of the same pool. */
int pmo_view_attach_in(pmo_pool *pool, const char *view, const char *const *contexts, size_t count);

/** As pmo_view_attach, in count security contexts of threads: an access needs a thread that has
 * entered contexts which allow it. Objects with the same rights in each context open and close as
 * one, and a process can have 15 such classes; pmo_view_at fails with PMO_ERR_NO_ROOM beyond them,
 * and with PMO_ERR_UNSUITABLE for an object tracked by mprotect. With the processor's protection
 * keys (`pmo doctor`) a thread has its rights for itself; without them all threads share them. A
 * forbidden access is a SIGSEGV, or EFAULT for a system call. After a jump out of a signal handler
 * (siglongjmp) a thread is in no contexts: call pmo_view_leave_all, then enter again. */
int pmo_view_attach_switched(pmo_pool *pool, const char *view, const char *const *contexts, size_t count);

/** Enters count of the view's contexts with this thread, in addition to earlier ones. With
 * protection keys, threads that it starts meanwhile inherit them. */
int pmo_view_enter(pmo_pool *pool, const char *view, const char *const *contexts, size_t count);

/** Undoes the thread's last pmo_view_enter. PMO_ERR_ARGUMENT: there is none. The end of the thread
 * undoes all. */
int pmo_view_leave(void);

/** Leaves all contexts of any view with this thread, those inherited from its parent thread
 * included. */
int pmo_view_leave_all(void);

/** The address of the object in a slot, which is attached if it is not yet. NULL if it is
 * unavailable. */
void *pmo_view_at(pmo_pool *pool, const char *view, size_t slot);

/** Makes the stores to all objects of the view durable as one step, as pmo_psync does for one. */
int pmo_view_psync(pmo_pool *pool, const char *view);

/** Adopts all changes to the view and its security contexts. Objects whose slots were emptied, or
 * have other objects or rights, are detached: no other thread uses them meanwhile. */
int pmo_view_adopt(pmo_pool *pool, const char *view);

/** Detaches a view and its objects. */
int pmo_view_detach(pmo_pool *pool, const char *view);

/** Attaches the view that `pmo run` named in the environment, in its security contexts. resumed,
 * which may be NULL, is set to 1 if an earlier process in the view died, else to 0. The header
 * pmo/resume.h then calls a function of the program. */
int pmo_view_start(int *resumed);

/** Whether the process that died may have lost stores to the object in a slot of that view,
 * attached for stores, or a volatile one that is gone: 1 or 0; -1 for an error. */
int pmo_view_lost(size_t slot);

/* ---- structs that later versions extend ---- */

/* A later version of a program may add fields to a struct whose last field is a link to extensions.
 */

/** The link from a struct to its extensions: its last field. All zero: none. */
struct pmo_extensions {
    uint64_t link;
};

/** An extension: the struct that it extends, the type of its fields, a function that computes their
 * initial values, or NULL for zeros. The last field belongs to the library, and is 0 at first. */
struct pmo_extension {
    const char *of;
    const struct pmo_type *(*type)(void);
    void (*init)(const void *base, void *fields);
    uint64_t identity;
};

/** Makes the missing extensions, up to a number, of the struct at base, in a heap, and returns the
 * fields of the last one. Threads may call it at once. */
void *pmo_extend(const void *base, const struct pmo_extensions *link, const struct pmo_extension *all, size_t number);

/** Returns the fields of an extension; if it is missing, writes their initial values to initial,
 * and returns that. Stores nothing to the object. */
const void *pmo_extended(const void *base, const struct pmo_extensions *link, const struct pmo_extension *all,
                         size_t number, void *initial);

/** Copies a struct, or one that contains such structs, with all extensions. The target's former
 * extensions are freed. */
int pmo_extended_copy(void *to, const void *from, const struct pmo_type *type);

/** Frees a block with count such structs, and their extensions. NULL is ignored. */
int pmo_extended_free(void *block, size_t count, const struct pmo_type *type);

/** Writes the text of the last error to standard error, and ends the program. */
int pmo_extension_failed(const char *of);

/* Accesses that a compiler sees through. */
#include <pmo/extensions.h>

/* ---- objects that processes share ---- */

/** Attaches an object of PMO_DURABILITY_SHARED, and returns its first byte: the same address in
 * every process. Processes of one user share it as threads share memory: by atomics, or under
 * locks. Nothing becomes durable; it stays until it is destroyed or the machine restarts.
 * pmo_detach detaches it. */
void *pmo_attach_shared(pmo_pool *pool, const char *name, const void *key, size_t key_len);

enum {
    /** Result of pmo_wait_any and pmo_receive: the time is over. */
    PMO_TIMED_OUT = -2
};

/** Sleeps while the word of a shared object is as expected, for so many nanoseconds at most;
 * negative: for any time. Returns 1 if it changed, 0 if the time is over. Call pmo_wake after a
 * store. */
int pmo_wait_word(const uint32_t *word, uint32_t expected, int64_t nanoseconds);

/** A word to wait for; reserved is 0. */
struct pmo_word {
    const uint32_t *word;
    uint32_t expected;
    uint32_t reserved;
};

/** As pmo_wait_word, for a change of any of up to 128 words of any shared objects. Returns the
 * index of the changed word, or PMO_TIMED_OUT. */
int64_t pmo_wait_any(const struct pmo_word *words, size_t count, int64_t nanoseconds);

/** Wakes at most so many sleepers on the word, in any process; returns how many there were. */
int64_t pmo_wake(const uint32_t *word, uint32_t most);

/** How a queue is made: slots is the most messages in it, a power of two; most the bytes of the
 * longest one; one_producer is 1 for one at a time, which is faster, and 0 for any number; reserved
 * is 0. */
struct pmo_queue_options {
    uint64_t slots;
    uint64_t most;
    uint32_t one_producer;
    uint32_t reserved;
};

/** A queue in a shared object. */
typedef struct pmo_queue pmo_queue;

/** Opens the queue at an address, a multiple of 64, of a shared object, or makes one there. It
 * needs 512 bytes, 8 for each slot, and a multiple of 64 for each message. PMO_ERR_ROOT_TYPE: there
 * is one of other options, or something else. */
pmo_queue *pmo_queue_open(void *at, const struct pmo_queue_options *options);

/** Closes a queue, which stays. While it is open, the object's memory stays as well. */
int pmo_queue_close(pmo_queue *queue);

/** Puts a message of len bytes in, once there is room, within so many nanoseconds; negative:
 * without limit. Returns 1 once it is in, 0 if the queue stayed full. A death leaves no message, or
 * a whole one. */
int pmo_send(pmo_queue *queue, const void *message, size_t len, int64_t nanoseconds);

/** Takes the next message out, within so many nanoseconds; negative: without limit. Returns its
 * length, or PMO_TIMED_OUT. The buffer has room for the queue's longest message. PMO_ERR_HELD:
 * another process is the receiver, from its first call until it closes the queue, or ends. */
int64_t pmo_receive(pmo_queue *queue, void *into, size_t len, int64_t nanoseconds);

/* ---- the paper's names ---- */

/* Table I of the paper, on the pool of pmo_use or PMO_POOL. PMO_NO_SHORT_NAMES omits it. */
#ifndef PMO_NO_SHORT_NAMES

/** Creates an object of size bytes, and returns its address, the same in each attachment. A NULL
 * key is none. NULL for an error, such as no room. */
void *pcreate(const char *name, size_t size, const char *key);

/** Destroys an object. */
int pdestroy(const char *name, const char *key);

/** Attaches an object, with permission 'r' or 'w', and returns its address. In C, attach(address,
 * perm) attaches the object at an address that pcreate returned; so does the overload in C++. */
void *attach(const char *name, int perm, const char *key);

/** Ends an attachment: pmo_detach. */
int detach(void *addr);

/** Makes all stores to the object durable: pmo_psync. */
int psync(void *addr);

#endif

#ifdef __cplusplus
}
#ifndef PMO_NO_SHORT_NAMES
inline void *attach(void *address, int perm)
{
    return pmo_attach_at(NULL, address, perm, NULL, 0);
}
#endif
#elif !defined PMO_NO_SHORT_NAMES
#define attach(...) PMO_ATTACH(__VA_ARGS__, PMO_ATTACH_NAME, PMO_ATTACH_ADDRESS, 0)(__VA_ARGS__)
#define PMO_ATTACH(first, second, third, chosen, ...) chosen
#define PMO_ATTACH_NAME (attach)
#define PMO_ATTACH_ADDRESS(address, perm) pmo_attach_at(NULL, address, perm, NULL, 0)
#endif

#endif
