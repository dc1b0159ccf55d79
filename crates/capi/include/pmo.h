/* Persistent memory objects: the C interface of Indelible.
 *
 * A program attaches a named object to its address space, changes plain data in it through ordinary
 * pointers, and calls psync. Everything since the psync before becomes durable as one step; after a crash
 * at any instant the object is exactly as some psync left it.
 *
 * Functions that return int return 0, or -1 for an error; those that return a pointer return NULL. The
 * error is in pmo_errno and pmo_error_message. Strings are UTF-8 and end with a zero byte.
 *
 * The manual pages are made of the comments that begin with two asterisks.
 */
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

/** Kind of the last error of this thread, an enum pmo_error. Calls that succeed do not change it. */
int pmo_errno(void);

/** Text of the last error of this thread: the failed action, its cause, and the remedy. Valid until
 * the next error of the thread. */
const char *pmo_error_message(void);

/** Text for a kind of error. Never NULL. */
const char *pmo_strerror(int code);

/** Version of the library, such as "0.1.0". */
const char *pmo_version(void);

/* ---- pools ---- */

/** An open pool. Wherever a function takes one, NULL is the pool of pmo_use. */
typedef struct pmo_pool pmo_pool;

enum {
    /** Open the pool's file for reading only. */
    PMO_READ_ONLY = 1,
    /** Format over an existing pool or file, all of which is lost. */
    PMO_FORCE = 2,
    /** Accept file systems whose locks may not exclude other machines. */
    PMO_ALLOW_REMOTE = 4,
    /** Do not trust the pool's file, as others may have written it: heaps are read-only until they
     * were verified. */
    PMO_UNTRUSTED = 8,
    /** Fill the pages of objects on demand even where the file could be mapped: a full tmpfs is an error of psync then, not SIGBUS. */
    PMO_FAULT_IN = 16,
    /** Leave objects that are attached for reading to forked children. */
    PMO_INHERIT_READS = 32
};

/** Kinds of medium: AUTO asks the path, the others force. */
enum pmo_medium { PMO_MEDIUM_AUTO, PMO_MEDIUM_FILE, PMO_MEDIUM_MEMORY, PMO_MEDIUM_DAX, PMO_MEDIUM_DEVDAX };

/** How stores are found: AUTO takes the best that the kernel offers. With EXPLICIT the program marks its stores with
 * pmo_mark_dirty, and those that it does not mark may be lost. */
enum pmo_tracking { PMO_TRACKING_AUTO, PMO_TRACKING_WP_ASYNC, PMO_TRACKING_MPROTECT, PMO_TRACKING_EXPLICIT };

/** How to open or format a pool. All zeros is right for most. The medium is an enum pmo_medium, the tracking an enum pmo_tracking.
 * A window gives the objects of a new pool their addresses, in multiples of 2 MiB; the label of a new pool has up to 128
 * bytes. The ahead_limit is how many bytes of an object may be filled before they are touched; 0 for any number. Flags: those of
 * the function without options, PMO_UNTRUSTED, PMO_FAULT_IN, PMO_INHERIT_READS. */
struct pmo_pool_options {
    uint32_t flags;
    uint32_t medium;
    uint32_t tracking;
    uint32_t reserved;
    uint64_t window_start;
    uint64_t window_len;
    uint64_t ahead_limit;
    const char *label;
};

/** Opens the pool at path. Opening it again in one process gives the same pool.
 * Flags: PMO_READ_ONLY, PMO_ALLOW_REMOTE. */
pmo_pool *pmo_open(const char *path, unsigned flags);

/** As pmo_open, with a medium, a tracking and so on. Opening a pool again while it is open does not change them. */
pmo_pool *pmo_open_with(const char *path, const struct pmo_pool_options *options);

/** Creates a file of size bytes and formats it as a pool.
 * Flags: PMO_FORCE, PMO_ALLOW_REMOTE. */
pmo_pool *pmo_format(const char *path, uint64_t size, unsigned flags);

/** As pmo_format, with a medium, a tracking and so on. */
pmo_pool *pmo_format_with(const char *path, uint64_t size, const struct pmo_pool_options *options);

/** Opens the pool at path, or formats one of size bytes if nothing is there.
 * Flags: PMO_ALLOW_REMOTE. */
pmo_pool *pmo_open_or_format(const char *path, uint64_t size, unsigned flags);

/** As pmo_open_or_format, with a medium, a tracking and so on. */
pmo_pool *pmo_open_or_format_with(const char *path, uint64_t size, const struct pmo_pool_options *options);

/** From now on attach, resize, rename and destroy wait for an object that others have, every call
 * waits for the table while another process has it, and pmo_psync_cut waits for locks, each for as
 * long at most; then they fail with PMO_ERR_HELD or PMO_ERR_BUSY. Without this call they do not
 * wait for an object, and for 20 s otherwise. In any case they wait 100 ms for a killed process
 * that the kernel has not ended yet. */
int pmo_wait(pmo_pool *pool, uint64_t milliseconds);

/** Closes a pool. Objects attached from it stay attached until they are detached. */
int pmo_close(pmo_pool *pool);

/** Opens the pool at path and takes it where a function is given no pool. Without this call, that is the
 * pool that the environment variable PMO_POOL names. */
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

/** Makes the pool so many bytes long, rounded down to whole pages. All who have it open go on, and have the new space as soon as an
 * object needs it. A pool on a device becomes as long as the device at most; none becomes shorter. */
int pmo_pool_grow(pmo_pool *pool, uint64_t length);

enum {
    /** The object refuses to be attached for writing. */
    PMO_STAT_READ_ONLY = 1,
    /** Space is claimed when it is first psynced. */
    PMO_STAT_SPARSE = 2,
    /** Its last writer died; the next attach recovers it. */
    PMO_STAT_NEEDS_RECOVERY = 4,
    /** Reading needs a key. */
    PMO_STAT_READ_KEY = 8,
    /** Writing needs a key. */
    PMO_STAT_WRITE_KEY = 16,
    /** It is a snapshot, which no process ever writes to. */
    PMO_STAT_SNAPSHOT = 32,
    /** Pages that it did not change are shared with snapshots or copies. */
    PMO_STAT_SHARES = 64,
    /** Its contents hold only until the machine is started anew. */
    PMO_STAT_VOLATILE = 128,
    /** That has happened: an attach fails with PMO_ERR_VOLATILE_GONE, and creating an object of the same name replaces it. */
    PMO_STAT_GONE = 256,
    /** It is sealed: pmo_attach_sealed attaches it. */
    PMO_STAT_SEALED = 512,
    /** It is declared to depend on its addresses nowhere: PMO_REBASE gives it others as it is. */
    PMO_STAT_POSITION_INDEPENDENT = 1024,
    /** It has a check word for each word, which transactions and pmo_scrub repair words by. Sizes are those of the words alone. */
    PMO_STAT_ECC = 2048,
    /** Its ID is the hash of its bytes: pmo_create_by_content. */
    PMO_STAT_BY_CONTENT = 4096,
    /** Plain loads outside of transactions see what these committed: pmo_set_readable_outside. */
    PMO_STAT_READABLE_OUTSIDE = 8192
};

/** How stores to an object become durable: plain stores by psync; those of transactions alone, each transaction when it commits, or on demand, when it
 * outlives the process at once and becomes durable later (pmo_tx_sync); or never, as any number of processes share the object: pmo_attach_shared. */
enum pmo_durability {
    PMO_DURABILITY_PSYNC,
    PMO_DURABILITY_TRANSACTIONAL,
    PMO_DURABILITY_ON_DEMAND,
    PMO_DURABILITY_SHARED
};

/** The pool's entry of an object; sizes in bytes. The state is 'D' (detached), 'R' (read), 'W'
 * (written), 'P' or 'C' (psync under way); the holder is a process or 0; created is in seconds since
 * 1970; psyncs are those that are durable now; own is the size of the pages that the object does not share; the durability is an
 * enum pmo_durability, or another number if a later release made the object. */
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

/** Calls each for every object of the pool, in no particular order, until it returns other than 0, which
 * is then returned. Its first argument is valid until it returns. It must not throw. */
int pmo_list(pmo_pool *pool, int (*each)(const struct pmo_stat *stat, void *context), void *context);

/* ---- objects ---- */

enum {
    /** To attach for loads: any number of processes at a time. */
    PMO_READ = 'r',
    /** To attach for loads and stores: one process at a time. */
    PMO_WRITE = 'w',
    /** With PMO_WRITE, for finding mistakes: a psync fails with PMO_ERR_STRAY_POINTER, and nothing of it is durable, while
     * pmo_audit finds addresses of the program, its libraries or its memory. It then costs as much as pmo_audit. */
    PMO_AUDIT = 256,
    /** As PMO_AUDIT, and addresses of other objects. */
    PMO_AUDIT_OBJECTS = 512
};

/** How to create an object. All zeros but for the size is right for most. Flags:
 * PMO_STAT_READ_ONLY, PMO_STAT_SPARSE, PMO_STAT_VOLATILE, PMO_STAT_POSITION_INDEPENDENT,
 * PMO_STAT_READABLE_OUTSIDE of transactional objects and those on demand, and PMO_STAT_ECC, which
 * makes an object transactional that is not on demand: it takes twice its size, in whole pages. The
 * reach is the address space kept for growth, in bytes; 0 for several times the pool's length, or
 * several times the size once objects have taken half of the pool's addresses. Keys are bytes;
 * without any, all users of the pool may attach. The durability is an enum pmo_durability. */
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

/** Creates an object, with keys and so on. */
int pmo_create_with(pmo_pool *pool, const char *name, const struct pmo_create_options *options);

/** Creates a read-only object of these bytes, whose ID is their hash: the first 16 bytes of SHA-256, which go to id, unless that is NULL. If the pool has an object with
 * that ID already, of whatever name, it is that one, once its bytes were compared. Returns 1 if it was made, 0 if it was there, -1 for an error:
 * PMO_ERR_EXISTS for a name that another object has, PMO_ERR_DAMAGED for an object with other bytes. "id:" and the 32 digits of an ID are a name of the object. */
int pmo_create_by_content(pmo_pool *pool, const char *name, const void *content, size_t size, uint8_t *id);

/** Destroys a detached object: pmo_delete is for attached ones. */
int pmo_destroy(pmo_pool *pool, const char *name, const void *key, size_t key_len);

/** Gives a detached object another size; its address stays. */
int pmo_resize(pmo_pool *pool, const char *name, uint64_t size, const void *key, size_t key_len);

/** Renames a detached object. PMO_ERR_SEALED: its name is sealed with it, and pmo_rename_sealed renames it. */
int pmo_rename(pmo_pool *pool, const char *name, const char *new_name, const void *key, size_t key_len);

/** Keeps reach bytes of addresses for an object to grow into, from its first one on, if those behind the ones that it has are free. It may be attached; a heap grows into them after its next attach.
 * PMO_ERR_NO_ADDRESSES: they are another object's. PMO_ERR_BAD_SIZE: it has more. */
int pmo_set_reach(pmo_pool *pool, const char *name, const void *key, size_t key_len, uint64_t reach);

/** Declares a detached object free of pointers and all else that depends on its addresses (1), or
 * not (0): whether it is PMO_STAT_POSITION_INDEPENDENT. Nothing checks that. */
int pmo_set_position_independent(pmo_pool *pool, const char *name, const void *key, size_t key_len, int is);

/** Attaches an object, for PMO_READ or PMO_WRITE, maybe with PMO_AUDIT, and returns its first byte: the same address in every
 * process and every run. If its last writer died, the object is recovered first. */
void *pmo_attach(pmo_pool *pool, const char *name, int permission, const void *key, size_t key_len);

/** As pmo_attach, for the object of the pool whose first byte has this address. It is searched for. */
void *pmo_attach_at(pmo_pool *pool, const void *address, int permission, const void *key, size_t key_len);

/** Ends an attachment. Stores that were not psynced are forgotten, and an access to the object is a SIGSEGV from
 * here on. No other thread uses the object or its heap meanwhile. */
int pmo_detach(void *object);

/** Grows an attached object, whose address stays, to size bytes, and its heap with it. No other thread uses the
 * object meanwhile. */
int pmo_grow(void *object, uint64_t size);

/** An attached object. Psyncs, recovered bytes and the tracking, an enum pmo_tracking, are 0 where it is attached for reading. */
struct pmo_object {
    void *base;
    uint64_t size;
    uint64_t psyncs;
    uint64_t recovered_bytes;
    uint32_t writable;
    uint32_t tracking;
    char name[512];
};

/** Fills in object for the attached object that has this address, which may be any of its bytes. */
int pmo_object(const void *address, struct pmo_object *object);

enum {
    /** Take a consistent cut: other threads may store meanwhile. Their stores wait, or belong to the next
     * psync. */
    PMO_PSYNC_CUT = 1
};

/** Marks size bytes from address on, in an attached object, as stored to: the next psync compares
 * them with the durable ones. psync finds every store that goes through the page tables by itself.
 * Devices bypass them once they have pinned a page: registered buffers of io_uring, RDMA, VFIO, and
 * O_DIRECT reads that were begun before a psync and end after it. Mark the range when it is pinned,
 * and again each time such I/O has ended, before the psync that must include its bytes. The first
 * mark also keeps the object's pages in place until it is detached; pin again after a pmo_grow that
 * moved the object. With tracking by mprotect, stores by /proc/self/mem or a debugger need marks as
 * well; with explicit tracking, all stores. Any thread may call it at any time. Ignored for an
 * object attached for reading. */
int pmo_mark_dirty(const void *address, size_t size);

/** Brings the pages of size bytes from address on, in an attached object, into memory, and returns
 * how many of the bytes are there then, from address on, or -1 for an error. Touching a page reads
 * it as well, but an unreadable page is an error here, and SIGBUS there. Needed before system calls
 * read from, or write into, pages of objects on device-DAX that were not touched, where `pmo
 * doctor` says that userfaultfd sees faults of user code only: without it they fail with EFAULT.
 * Bytes beyond the object are ignored. Other threads may use the object meanwhile. */
int64_t pmo_prefault(const void *address, size_t size);

/** Makes all stores to the object since its last psync durable, as one step. Any address in the object
 * will do. No thread stores to the object meanwhile. Ignored for an object attached for reading. */
int pmo_psync(void *object);

/** As pmo_psync. Flags: PMO_PSYNC_CUT. */
int pmo_psync_flags(void *object, unsigned flags);

/** psync of several objects of one pool as one step: after a crash all of them are as this call left
 * them, or none is. Flags: PMO_PSYNC_CUT. */
int pmo_psync_all(void *const *objects, size_t count, unsigned flags);

/** Takes the object back to its last psync, where it is: all stores since are undone, blocks of its heap that were allocated
 * since are free, roots made since are gone. An object that was never psynced is zeros again. Its size stays. Any address in the
 * object will do. No other thread uses the object meanwhile, and pointers to blocks allocated since are not used any more.
 * With explicit tracking, only marked stores are undone. Ignored for an object attached for reading. After an error
 * nothing was undone. */
int pmo_revert(void *object);

/** Begins a transaction of this thread on an attached object, which records bytes before they
 * change: TXSTART, TXRECORD and TXEND. One thread at a time is in one on an object; another waits
 * here. For objects that are psynced; those that transactions change have <pmo/transaction.h>. Any
 * address in the object will do. */
int pmo_txstart(void *object);

/** Records size bytes from address on, in the object of the thread's transaction, before the
 * program changes them; PMO_TXRECORD records a variable. They may be recorded several times, and
 * need no marks. */
int pmo_txrecord(const void *address, size_t size);

/** Ends the thread's transaction by a psync: its changes are durable as one step, together with all
 * other stores to the object since the last psync. After an error the transaction has ended, its
 * changes are in memory, and another pmo_psync may make them durable. No thread stores to the
 * object meanwhile. */
int pmo_txend(void);

/** Ends the thread's transaction, with all recorded bytes as they were when it began. Nothing is psynced. A thread that ends in its
 * transaction does the same. */
int pmo_txabort(void);

/** Records a variable of the object: PMO_TXRECORD(node->next). */
#define PMO_TXRECORD(variable) pmo_txrecord(&(variable), sizeof(variable))

/** An address in an object that means nothing in the next run: offset is where it lies, in bytes from the object's start, target the
 * address. The place is the way to it in its root, with its type where that is described, such as "list.next (*mut node)", or the block
 * that it lies in; into says what it leads into. */
struct pmo_pointer {
    uint64_t offset;
    uint64_t target;
    const char *place;
    const char *into;
};

/** Looks for addresses in the object that lead into the program, its libraries, its stack, malloc's memory or another attached object, and
 * calls each, which may be NULL, for them. Returns how many there are, or -1 for an error. It looks at every aligned word of all
 * blocks in use, or of the whole object if it has no heap: a number that looks like an address counts as one, and so do bytes
 * that a block had before it was allocated. Its first argument is valid until it returns. It must not throw. */
int64_t pmo_audit(const void *object, void (*each)(const struct pmo_pointer *pointer, void *context), void *context);

/* ---- transactions ---- */

/** Gives a detached object another durability, an enum pmo_durability. Its bytes stay.
 * PMO_ERR_CLASS_MISMATCH: sealed and sparse objects are not transactional, and only volatile ones
 * are shared. */
int pmo_set_durability(pmo_pool *pool, const char *name, const void *key, size_t key_len, int durability);

/** Sets whether plain loads outside of transactions see a detached object, transactional or on
 * demand (1), or are a SIGSEGV (0, as in a new object). A load sees committed bytes, and never a
 * byte of a transaction that runs, or that failed. It looks at one moment of each aligned word of 8
 * bytes, and not at one moment of several: of a transaction that is just being committed it may see
 * some words and others not yet. It may see a commit that is not durable yet. Transactions of other
 * threads change the words meanwhile: load them as atomics (__atomic_load_n), or as volatile.
 * Stores outside stay a SIGSEGV. PMO_ERR_CLASS_MISMATCH: an object of another durability, or one
 * with check words. An object that gets a durability without transactions loses this. */
int pmo_set_readable_outside(pmo_pool *pool, const char *name, const void *key, size_t key_len, int readable);

/** Attaches a transactional object, or one on demand, and returns its first byte: the same address
 * in every process and every run. A plain load or store there is a SIGSEGV (of an object that is
 * PMO_STAT_READABLE_OUTSIDE a store alone): transactions of the threads of this process read and
 * change it, and each is durable when it has committed. If the last process that had it died, the
 * object is recovered first. pmo_detach detaches it. Its heap is that of pmo_tx_alloc and
 * pmo_tx_root; other functions of heaps and roots are for other objects.
 *
 * On demand (PMO_DURABILITY_ON_DEMAND), a transaction that has committed outlives any death of the
 * process, at no cost of a durable write. It is durable later: when pmo_tx_sync or pmo_psync
 * returns, when the object is detached, and now and then (pmo_set_epochs). A power cut leaves a
 * first part of the transactions, with all that were durable, and never a part of one. A guard of
 * the machine (pmo guard) makes all of them durable when the power fails. Such an object has no
 * heap. */
void *pmo_attach_transactional(pmo_pool *pool, const char *name, const void *key, size_t key_len);

/** Says that an object that is attached for transactions, or for blocks, begins with a value of size bytes, as the program uses it: until it is detached it becomes no heap, so that nothing is
 * allocated over the value (PMO_ERR_NOT_A_HEAP). PMO_ERR_BAD_SIZE: it is smaller. A program that allocates keeps such a value in a root instead. */
int pmo_tx_begin_with(const void *object, size_t size);

/** As pmo_attach_transactional, for transactions on objects of both kinds: one that names a transactional object, attached by this function, among objects on demand is durable when it has
 * committed, together with all that was committed on demand before. */
void *pmo_attach_with_on_demand(pmo_pool *pool, const char *name, const void *key, size_t key_len);

/** Returns when all transactions of this thread are durable that it committed on objects on demand of this object's pool, and all that these read; object is any address in one that is
 * attached. Threads that wait at the same time share one durable write. Of transactional objects they are when they have committed, so that this waits for nothing, and fails if one could not be
 * made durable. After an error the next attach recovers them. */
int pmo_tx_sync(const void *object);

/** Commits on demand of this process that a power cut would take: transactions, at most, and the bytes that they changed, in lines of 64. */
struct pmo_pending {
    uint64_t transactions;
    uint64_t bytes;
};

/** Fills in the commits on demand that are not durable in the pool of an object that is attached for transactions, given by any address in it. Where only transactional objects are attached there are none. */
int pmo_tx_pending(const void *object, struct pmo_pending *pending);

/** Makes commits on demand of this process in this pool durable after so many milliseconds (at
 * first 1000; 0: never), and before more than so many bytes have changed (at first 4 MiB), in lines
 * of 64. */
int pmo_set_epochs(pmo_pool *pool, uint64_t milliseconds, uint64_t bytes);

/** Names the socket of the guard (pmo guard) that makes commits on demand of this process in this
 * pool durable when the power fails. Without this call it is found by itself. */
int pmo_set_guard(pmo_pool *pool, const char *socket);

/** The functions that libpmo-tm gives to libpmo: pmo_tm_runtime of pmo/blocks.h. */
struct pmo_tm_runtime;

/** Attaches a transactional object, or one on demand, for blocks that GCC compiles (pmo_attach_tm of pmo/blocks.h), and returns its first byte. Blocks and pmo_tx functions do not
 * share the objects of a class in a pool: PMO_ERR_HELD. pmo_detach detaches it, outside of blocks. */
void *pmo_attach_for_blocks(pmo_pool *pool, const char *name, const void *key, size_t key_len,
                            const struct pmo_tm_runtime *runtime);

/** A transaction of the thread that began it. */
typedef struct pmo_tx pmo_tx;

/** Explains on standard error a deadly access to an object: its name, the offset, and the remedy.
 * Such accesses are a load or store outside of a transaction, in an object that transactions alone
 * use; a store to an object attached for reading; an access to a detached object.
 * PMO_EXPLAIN_FAULTS=1 in the environment enables the same for any program. A handler for SIGSEGV
 * that the program installs later comes first. */
int pmo_explain_faults(void);

/** Begins a transaction on count transactional objects of one pool. NULL for an error; PMO_ERR_IN_TRANSACTION if the thread has one already. The
 * functions of pmo_tx are what PMO_TX and pmo_transaction of pmo/transaction.h, and pmo::transaction of pmo.hpp, are made of: where
 * those can be used, they run a transaction again by themselves. */
pmo_tx *pmo_tx_begin(void *const *objects, size_t count);

/** Copies size bytes of the transaction's objects, as they are for it, to the program's memory.
 * After PMO_ERR_CONFLICT it has met another one: its changes are undone, and pmo_tx_again, or
 * pmo_tx_abort, is the only thing left to do. */
int pmo_tx_read(pmo_tx *tx, const void *from, void *into, size_t size);

/** Copies size bytes of the program's memory to the transaction's objects, if it commits. PMO_ERR_CONFLICT as for pmo_tx_read. */
int pmo_tx_write(pmo_tx *tx, void *to, const void *from, size_t size);

struct pmo_type;

/** Allocates size bytes in the heap of an object of the transaction, given by any address in it, if the transaction commits. Returns
 * their address, a multiple of 16; the bytes may be anything. NULL for an error: PMO_ERR_NOT_A_HEAP if no pmo_tx_root has made a heap of the object; PMO_ERR_CONFLICT as for pmo_tx_read, also if the heap is full and grows when the transaction is begun again;
 * PMO_ERR_HEAP_FULL if it cannot grow, which its message says why, and the transaction may go on. */
void *pmo_tx_alloc(pmo_tx *tx, const void *object, size_t size);

/** Frees a block of pmo_tx_alloc, if the transaction commits. NULL is no error. PMO_ERR_CONFLICT as for pmo_tx_read; PMO_ERR_NOT_A_BLOCK, PMO_ERR_DOUBLE_FREE and, for the block of a
 * root, PMO_ERR_ROOT_EXISTS free nothing. */
int pmo_tx_free(pmo_tx *tx, void *block);

/** The address of the root of this name in the heap of an object of the transaction, given by any address in it. If there is none, it is made of zeros, as one of the type, if the
 * transaction commits; a blank object becomes a heap, whose first byte the program cannot use then. NULL for an error: PMO_ERR_ROOT_TYPE if it has another type; PMO_ERR_EXISTS if there is
 * something else in the object, PMO_ERR_NOT_A_HEAP after pmo_tx_begin_with; and as for pmo_tx_alloc. */
void *pmo_tx_root(pmo_tx *tx, const void *object, const char *name, const struct pmo_type *type);

/** Undoes the transaction's changes so far and begins it anew, after a while if it has met another
 * one. After an error it is over. */
int pmo_tx_again(pmo_tx *tx);

/** Commits the transaction. 0: all that it changed is durable, and so is all that it read, or, of objects on demand, outlives the process; it is over. 1: it has met another one and is undone,
 * pmo_tx_again begins it anew. -1: an error, and it is over; nothing of it is left after PMO_ERR_NO_ROOM, and after others all or nothing when its objects
 * are attached again. */
int pmo_tx_commit(pmo_tx *tx);

/** Ends the transaction without effect. */
int pmo_tx_abort(pmo_tx *tx);

/** Runs the transaction beside no other of the pool: PMO_ERR_CONFLICT, unless it runs alone
 * already, and from pmo_tx_again on it is alone. For one that takes long, or must not run again.
 * PMO_ERR_CLASS_MISMATCH of objects on demand. */
int pmo_tx_alone(pmo_tx *tx);

/** Calls a function once the transaction is durable, in the order of these calls. A run that does
 * not commit drops it. */
int pmo_tx_on_commit(pmo_tx *tx, void (*each)(void *context), void *context);

/** Calls a function if this run of the transaction does not commit, for any reason, the last call
 * first. */
int pmo_tx_on_abort(pmo_tx *tx, void (*each)(void *context), void *context);

/* ---- copies and snapshots ---- */

/** Keeps the object's bytes, as its last psync left them, under the name snapshot: that object can
 * be attached for reading, and be the source of pmo_create_from. It takes no time, for any size,
 * also while the object is attached: a process that writes it goes on, and its next psync waits a
 * moment. The pool needs a free piece as large as the object, of which only pages that the object
 * changes from now on take space. PMO_ERR_BUSY: the writer is in the middle of something for longer
 * than pmo_wait says. After an error nothing happened. The key is the one for writing, if the
 * object has any; where the object has a key, this one is the snapshot's. */
int pmo_snapshot(pmo_pool *pool, const char *name, const char *snapshot, const void *key, size_t key_len);

/** An object, and the name of its snapshot. */
struct pmo_snapshot {
    const char *name;
    const char *snapshot;
};

/** As pmo_snapshot, of count objects as of one moment: either all snapshots are made or none. Psyncs of several objects
 * are in all of them or in none. PMO_ERR_NO_ROOM, too, if there are more than some 50. The key is that of each object that has one. */
int pmo_snapshot_all(pmo_pool *pool, const struct pmo_snapshot *snapshots, size_t count, const void *key, size_t key_len);

/** Creates an object named copy that holds the bytes of an object, as its last psync left them, or
 * those of a snapshot. It takes no time, for any size, also while the object is attached: the first
 * change of a page that both share writes the page whole. Both have the same address, so that
 * pointers in them are right; a process attaches one of the two at a time. The pool needs a free
 * piece as large as the object, or two if it is no snapshot, of which only pages that change take
 * space. The options, which may be NULL, give keys and flags, PMO_STAT_READ_ONLY and
 * PMO_STAT_VOLATILE; size and reach are the object's, and 0 there. Without keys in the options the
 * copy has the key of this call, if the object has any. */
int pmo_create_from(pmo_pool *pool, const char *name, const char *copy, const void *key, size_t key_len,
                    const struct pmo_create_options *options);

/** Flag of pmo_copy_to and pmo_move_to: the object gets other addresses, and all pointers in it are
 * changed accordingly, so that a process can have both attached. All of them must be known: it is a
 * heap whose roots are described with all that they lead to (struct pmo_type), or it is
 * PMO_STAT_POSITION_INDEPENDENT, or was never psynced; else PMO_ERR_UNSUITABLE names an unknown
 * pointer. */
#define PMO_REBASE 1u

/** Copies the state of an object's last psync, or a snapshot, to another pool, or with PMO_REBASE
 * maybe to the same one, as an object with an identity of its own. Without PMO_REBASE both have the
 * same addresses, and a process attaches one of the two at a time. A process that has the object
 * attached goes on. The key is that of the copy, too, if the object has one. each, which may be
 * NULL, is called with bytes done and bytes in all. After an error nothing has happened. */
int pmo_copy_to(pmo_pool *pool, const char *name, const void *key, size_t key_len, pmo_pool *other, const char *copy,
                unsigned flags, void (*each)(uint64_t done, uint64_t all, void *context), void *context);

/** Moves a detached object to another pool, with its identity, its keys, and, without PMO_REBASE,
 * its addresses. Snapshots and copies of it stay. A process that dies before the object is durable
 * there leaves it here, one that dies after that in both pools: the next call fails with
 * PMO_ERR_EXISTS then; destroy one of the two. */
int pmo_move_to(pmo_pool *pool, const char *name, const void *key, size_t key_len, pmo_pool *other, unsigned flags,
                void (*each)(uint64_t done, uint64_t all, void *context), void *context);

/** Attaches an object for reading as its last psync left it, while another process writes it: that
 * one goes on, and so does any later writer. Attaches a snapshot as it is. Returns its first byte,
 * which is where the writer has it; a process that has the object attached itself gets
 * PMO_ERR_ADDRESS_TAKEN. Its bytes, and its heap, stay as they are until pmo_refresh. The pool
 * needs a free piece as large as the object, and is not opened for reading only. It is detached by
 * pmo_detach. */
void *pmo_attach_snapshot(pmo_pool *pool, const char *name, const void *key, size_t key_len);

/** Goes to the bytes that the newest psync left, of an object that pmo_attach_snapshot attached. newer, which may be NULL, is set to 1 if there
 * was a newer psync, else to 0. The object keeps its address, and may have another size; pointers into it, also roots and blocks of its heap, are to be
 * looked up again, as the memory behind them may be used for something else. No other thread uses the object meanwhile. After an error
 * the object is as it was, unless it could not be mapped, as something else is mapped where it grew to, say: then an access to it is a SIGSEGV until
 * another call succeeds. PMO_ERR_NOT_FOUND: the object was destroyed, or renamed. */
int pmo_refresh(void *object, int *newer);

/** Work that pmo_collect did: objects without a name that were removed, and bytes that were copied. */
struct pmo_collected {
    uint64_t removed;
    uint64_t copied;
};

/** Merges unshared remains of copies, and removes remains of deleted snapshots and copies, so that
 * each object takes no more space than one that was never copied. Other processes may use the pool
 * meanwhile. It costs the pages that are copied. Calls each, which may be NULL, as it goes on, with
 * the number of objects that were looked at, and of all. Fills in collected, which may be NULL.
 * After an error, work that was done before stays done. each must not throw. */
int pmo_collect(pmo_pool *pool, void (*each)(uint64_t done, uint64_t all, void *context), void *context,
                struct pmo_collected *collected);

/** The outcome of pmo_scrub: words that were read, that were repaired, and that are lost; offset of the first lost one, as programs count bytes. */
struct pmo_scrubbed {
    uint64_t words;
    uint64_t repaired;
    uint64_t lost;
    uint64_t first_lost;
};

/** Reads all words of a detached object that was created with PMO_STAT_ECC, and repairs damaged
 * ones, durably. Up to 6 wrong bits of the 128 of a word and its check word are repaired, and
 * nearly all damages of 7. A word with more wrong bits is lost: a transaction that reads it fails
 * with PMO_ERR_DAMAGED, until one stores it anew. Calls each, which may be NULL and must not throw,
 * with bytes done and bytes in all. Fills in scrubbed, which may be NULL. PMO_ERR_CLASS_MISMATCH:
 * the object has no check words. After another error, words that were repaired before stay
 * repaired. */
int pmo_scrub(pmo_pool *pool, const char *name, const void *key, size_t key_len,
              void (*each)(uint64_t done, uint64_t all, void *context), void *context, struct pmo_scrubbed *scrubbed);

/** Sets a detached object to the bytes and the size of its snapshot. The snapshot stays. It takes
 * no time, for any size. All that was psynced to the object since, and is in no other snapshot, is
 * gone. A snapshot of a copy of the object will do, too. PMO_ERR_NOT_FOUND: it is no snapshot with
 * the object's address. After an error the object is as it was. */
int pmo_rollback(pmo_pool *pool, const char *name, const char *snapshot, const void *key, size_t key_len);

/** How two objects differ: how many pages of 4 KiB hold other bytes, and the sizes in bytes. */
struct pmo_difference {
    uint64_t pages;
    uint64_t older_size;
    uint64_t newer_size;
};

/** Compares the states of two objects' last psyncs, or snapshots, in any mix. Calls each, which may
 * be NULL, for every run of pages of 4 KiB that hold other bytes: the first one, counted from the
 * object's start, and how many. Bytes past the end of an object count as zeros. Fills in
 * difference, which may be NULL. Pages that the two share are not read, and other processes may
 * have either attached. The key is that of each that needs one for reading. each must not throw. */
int pmo_diff(pmo_pool *pool, const char *older, const char *newer, const void *key, size_t key_len,
             void (*each)(uint64_t first, uint64_t count, void *context), void *context, struct pmo_difference *difference);

/** Destroys the detached snapshots of an object that a retention policy does not keep. The policy
 * keep is a list of ages with periods: 24h:1h,7d:1d keeps of those of the last 24 hours one for
 * each hour, of the older ones of the last 7 days one for each day, and the newest of all; units
 * are s, m, h, d, w. Only snapshots count that are named after the object and the time, as in
 * ledger@2026-11-24T03:00:00Z. Calls each, which may be NULL, with the name of each that is gone;
 * returns how many are, or -1 for an error: then snapshots destroyed before stay destroyed. each
 * must not throw. */
int64_t pmo_thin(pmo_pool *pool, const char *name, const char *keep, const void *key, size_t key_len,
                 void (*each)(const char *snapshot, void *context), void *context);

/* ---- the end of objects ---- */

/** Deletes an object, attached or not: its name is free at once, and no process can attach it.
 * Processes with it attached keep it, psyncs included, until they detach; its space can be used
 * again once the last of them has, or has died. */
int pmo_delete(pmo_pool *pool, const char *name, const void *key, size_t key_len);

/** Ties an object to another one, named to, which it then outlives: deleted or destroyed, it loses
 * its name, but goes when the other one has gone, and when no process has it attached.
 * PMO_ERR_TIE_CYCLE: the other one is tied to it already, directly or through others. An existing
 * tie is not added again. */
int pmo_tie(pmo_pool *pool, const char *name, const char *to, const void *key, size_t key_len);

/** Ties an object to this process: deleted or destroyed meanwhile, by any process, it goes when the
 * process ends, in any way, and not before. The tie ends for a pool when the pool's last handle in
 * this process is closed. */
int pmo_tie_to_process(pmo_pool *pool, const char *name, const void *key, size_t key_len);

/** As pmo_tie_to_process, to the thread that calls this. */
int pmo_tie_to_thread(pmo_pool *pool, const char *name, const void *key, size_t key_len);

/** Takes the tie of an object to another one back; that one is named as pmo_ties names it. was_tied, which may be NULL, is set to 1 if there was one, else to 0. */
int pmo_untie(pmo_pool *pool, const char *name, const char *from, const void *key, size_t key_len, int *was_tied);

/** An object that another one is tied to: its name, or, if deleted is not 0, the name it had. */
struct pmo_tie {
    char name[512];
    uint8_t id[16];
    uint32_t deleted;
    uint32_t reserved;
};

/** Calls each for every object that an object is tied to, as far as they are still there, until it returns other than 0, which is
 * then returned. Its first argument is valid until it returns. It must not throw. */
int pmo_ties(pmo_pool *pool, const char *name, int (*each)(const struct pmo_tie *tie, void *context), void *context);

/* ---- sealed objects ---- */

/** A key that opens sealed objects. No error has a part of one, and its memory is overwritten when it is freed: overwrite your own copy as well. */
typedef struct pmo_seal_key pmo_seal_key;

/** The key that is these bytes, the contents of a key file: 32 random ones or more, 1 MiB at most. They are copied. NULL for an error, as of
 * every function that makes a key; PMO_ERR_SEALED: it cannot be one. */
pmo_seal_key *pmo_seal_key_bytes(const void *bytes, size_t len);

/** The contents of the key file at path, all of which count. */
pmo_seal_key *pmo_seal_key_file(const char *path);

/** A passphrase. Opening an object by one takes some tenths of a second and 64 MiB of memory, for each of its key slots that has one. */
pmo_seal_key *pmo_seal_key_passphrase(const char *passphrase);

/** The standard output of a command, which /bin/sh runs without a standard input, and which is killed after so many milliseconds. The key is that of
 * a key file of the same bytes. The error of a command that fails has its standard error, never its output. */
pmo_seal_key *pmo_seal_key_command(const char *command, uint64_t milliseconds);

/** The credential of that name which systemd gave to this service: the file in the folder that CREDENTIALS_DIRECTORY names. The key is that of a key
 * file of the same bytes. */
pmo_seal_key *pmo_seal_key_credential(const char *name);

/** The TPM 2.0 of this machine if path is NULL, else the device or socket of one. A slot that is made with it has a random secret, sealed under the
 * storage key of the TPM's owner hierarchy: a copy of the pool does not open elsewhere, and every process that may use the TPM opens the object. A TPM
 * that is cleared takes its slots along: add a second key, elsewhere. */
pmo_seal_key *pmo_seal_key_tpm(const char *path);

/** The same key, to be freed on its own: key slots that are made with it are refused from that time on, in seconds since 1970. An object has at least one key that does not
 * expire. This is a guard rail, which other software, or a wrong clock, gets around: pmo_remove_key and pmo_reencrypt are not. */
pmo_seal_key *pmo_seal_key_until(const pmo_seal_key *seal, uint64_t seconds);

/** The same passphrase, to be freed on its own, at another cost: slots that are made with it ask for so many bytes of
 * memory and passes of Argon2id, 64 MiB and 3 unless given. A slot may be forged: one that asks for more than 256 MiB,
 * or for five times the usual work, is opened only by a passphrase of that cost. PMO_ERR_SEALED: it is no passphrase,
 * or the cost is out of bounds, 1 GiB and 16 passes. */
pmo_seal_key *pmo_seal_key_costing(const pmo_seal_key *seal, uint64_t memory, uint32_t passes);

/** An anchor: a place outside of the pool that keeps the number of an object's newest state. One of
 * three kinds: a file, out of reach of attackers that may put back the pool; a command of the
 * shell, which reads a line, `get`, or `put` and a record, and answers with the record, or nothing
 * if there is none, or with `stored` once that is durable; or a file anywhere, together with the
 * index of a counter, 0x01800042 say, of the TPM 2.0 of this machine, or of the device or socket
 * tpm. Unused fields are 0. timeout is the command's time limit, in milliseconds, a minute unless
 * given; interval, in milliseconds, is how long psyncs go on without telling the anchor: a minute,
 * or, as a TPM wears, an hour, unless given. */
struct pmo_anchor {
    const char *file;
    const char *command;
    const char *tpm;
    uint32_t tpm_index;
    uint32_t reserved;
    uint64_t timeout;
    uint64_t interval;
};

/** The same key, to be freed on its own, with an object's anchor: an object that it attaches, which was put back as a whole to an older state, is PMO_ERR_POOL_BEHIND, and an anchor that was
 * put back is PMO_ERR_ANCHOR_BEHIND. An object that was attached so for writing is not attached without its anchor any more. Attach, psync at its interval, and detach tell the anchor of
 * the newest state; if a process dies, states since then are not told apart. */
pmo_seal_key *pmo_seal_key_anchored(const pmo_seal_key *seal, const struct pmo_anchor *anchor);

/** The same key, to be freed on its own, with the key file at path that signs the object: 32 random bytes or more, another file than a seal key. An object that is created with it is signed: who has a seal
 * key alone reads it, and makes no state of it that is believed. To write it, or to change anything of it, takes the sign key; to read it that, or pmo_seal_key_verified_by. */
pmo_seal_key *pmo_seal_key_signed_by(const pmo_seal_key *seal, const char *path);

/** The same key, to be freed on its own, with the verify key of the object's signature: 64
 * hexadecimal digits, from pmo_verify_key for the sign key, over a trusted channel. An object that
 * is not signed by that key is PMO_ERR_DAMAGED. */
pmo_seal_key *pmo_seal_key_verified_by(const pmo_seal_key *seal, const char *digits);

/** The same key, to be freed on its own, for an object that was sealed under this name, with any
 * name and ID of its own: a copy or a snapshot of that one, or one that was renamed without its
 * key. Without it an object that was sealed under another name, or as another object, is refused
 * (PMO_ERR_SEALED): two objects of the same keys may have been exchanged. */
pmo_seal_key *pmo_seal_key_sealed_as(const pmo_seal_key *seal, const char *name);

/** Stores the verify key of the key file at path, as 64 digits and a zero: digits has room for 65
 * bytes. No secret. */
int pmo_verify_key(const char *path, char *digits);

/** Overwrites a key and frees it. Objects that it opened stay attached. */
int pmo_seal_key_free(pmo_seal_key *seal);

/** Creates a sealed object: all its bytes in the pool are encrypted and authenticated, so that only
 * owners of a seal key read it, and any change by others is noticed. Name, size, times, and which
 * pages change stay visible; a complete older state of the whole pool is told from the newest by an
 * anchor alone. The options are those of pmo_create_with; the label of the key's slot has up to 56
 * bytes, for people. */
int pmo_create_sealed(pmo_pool *pool, const char *name, const struct pmo_create_options *options, const pmo_seal_key *seal,
                      const char *label);

/** As pmo_attach, of a sealed object. PMO_ERR_WRONG_KEY: seal opens none of its key slots, and
 * nothing was read. PMO_ERR_DAMAGED: a page, which the message names, differs from the sealed one.
 * The plaintext is in this process's memory alone, which core dumps do not have, and which
 * pmo_detach overwrites. */
void *pmo_attach_sealed(pmo_pool *pool, const char *name, int permission, const void *key, size_t key_len,
                        const pmo_seal_key *seal);

/** As pmo_attach_snapshot, of a sealed object: its pages are verified and decrypted as the newest
 * psync left them; pmo_refresh verifies and decrypts the changed ones. */
void *pmo_attach_snapshot_sealed(pmo_pool *pool, const char *name, const void *key, size_t key_len, const pmo_seal_key *seal);

/** As pmo_resize, of a sealed object. */
int pmo_resize_sealed(pmo_pool *pool, const char *name, uint64_t size, const void *key, size_t key_len, const pmo_seal_key *seal);

/** Renames a detached, sealed object, and authenticates the new name with it; seal has the sign key of a signed object. A
 * crash leaves one of the two names. */
int pmo_rename_sealed(pmo_pool *pool, const char *name, const char *new_name, const void *key, size_t key_len, const pmo_seal_key *seal);

/** Authenticates the name and the ID of a detached, sealed object with it from now on. The object is one of an earlier
 * release, or a copy; for a copy seal has the name of its origin (pmo_seal_key_sealed_as). */
int pmo_bind_name(pmo_pool *pool, const char *name, const void *key, size_t key_len, const pmo_seal_key *seal);

/** Seals all of a detached, sealed object anew, by a new key, which these keys open, each in its
 * slot; all other slots go, so that owners of other keys cannot read later psyncs. The first of
 * them opens the object. It needs its space once more meanwhile; a crash leaves the former key or
 * the new one, and all of the object. */
int pmo_reencrypt(pmo_pool *pool, const char *name, const void *key, size_t key_len, const pmo_seal_key *const *seals, size_t count);

/** Accepts the present state of a detached, sealed object as the newest, against the record of the
 * key's anchor: for a state that was put back on purpose, an anchor that was lost, or another
 * anchor. If the key has no anchor, the object has none from then on. */
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

/** A key slot of a sealed object: its number, the kind of its key, an enum pmo_key_kind, when it was made and from when on it is refused (0: never), in seconds since 1970, whether it is damaged, its label. */
struct pmo_key_slot {
    uint32_t slot;
    uint32_t kind;
    uint64_t created;
    uint64_t expires;
    uint32_t damaged;
    uint32_t reserved;
    const char *label;
};

/** Calls each for every key slot in use of a sealed object, attached or not, until it returns other
 * than 0, which is then returned. Its first argument is valid until it returns. No seal key is
 * needed. It must not throw. */
int pmo_key_slots(pmo_pool *pool, const char *name, const void *key, size_t key_len,
                  int (*each)(const struct pmo_key_slot *slot, void *context), void *context);

/** Lets another key, added, open a detached, sealed object; seal is one that opens it. Returns the
 * number of its slot, or -1 for an error. */
int pmo_add_key(pmo_pool *pool, const char *name, const void *key, size_t key_len, const pmo_seal_key *seal,
                const pmo_seal_key *added, const char *label);

/** Exchanges the key seal of a detached, sealed object for the key changed, as one step. A NULL
 * label leaves that of the slot. Returns the number of the slot, or -1 for an error. */
int pmo_change_key(pmo_pool *pool, const char *name, const void *key, size_t key_len, const pmo_seal_key *seal,
                   const pmo_seal_key *changed, const char *label);

/** Empties a key slot of a detached, sealed object, but never the last one. An owner who has opened
 * the object before may have kept the key that the slot protects. */
int pmo_remove_key(pmo_pool *pool, const char *name, const void *key, size_t key_len, const pmo_seal_key *seal, unsigned slot);

/* ---- the heap of an object ---- */

enum {
    /** Guard blocks and look at the guards when a block is freed, and in pmo_heap_check. */
    PMO_HEAP_DEBUG = 1,
    /** Grow the object when its heap is full. */
    PMO_HEAP_GROW = 2
};

/** Makes a heap of a blank object: from then on, stores to the object go to blocks of the heap.
 * Flags: PMO_HEAP_DEBUG, PMO_HEAP_GROW. */
int pmo_heap_format(void *object, unsigned flags);

/** Opens the heap of an object with flags; without this call it is opened when it is first used, with none.
 * Flags: PMO_HEAP_DEBUG, PMO_HEAP_GROW. */
int pmo_heap_open(void *object, unsigned flags);

/** Opens the heap of an object, or makes one if the object is blank.
 * Flags: PMO_HEAP_DEBUG, PMO_HEAP_GROW. */
int pmo_heap_open_or_format(void *object, unsigned flags);

/** Allocates size bytes, at a multiple of 16, in the object. A struct that is copied there brings the
 * bytes between its members along, which are any bytes of the process: store the members, or clear the
 * struct before it is filled. Blocks become durable, as in use or as free, with the next psync. Any number of threads may allocate and free at once. */
void *pmo_malloc(void *object, size_t size);

/** Allocates count times size bytes, all zero. */
void *pmo_calloc(void *object, size_t count, size_t size);

/** Allocates size bytes at a multiple of alignment, a power of two of at most 2 MiB. */
void *pmo_aligned_alloc(void *object, size_t alignment, size_t size);

/** Gives a block another size; it may move. With NULL for the block, allocates one in the object. After
 * an error the block is as it was; that of a root (PMO_ERR_ROOT_EXISTS) stays as it is. */
void *pmo_realloc(void *object, void *block, size_t size);

/** Frees a block, of any object. NULL is ignored. An address that is no block, a block that is free
 * already, and that of a root (PMO_ERR_ROOT_EXISTS: pmo_root_remove first) are errors that change
 * nothing. */
int pmo_free(void *block);

/** Fails where pmo_free would, and frees nothing: for programs that destroy a value before they free its block. */
int pmo_can_free(const void *block);

/** Bytes that may be used of a block, at least those asked for; 0 for an error. */
size_t pmo_usable_size(const void *block);

/** A heap in numbers, counted when asked for; sizes in bytes. free_bytes is of pages for any use,
 * class_bytes of free blocks in pages that small blocks share, overhead all other bytes. */
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

/** Looks for everything that is wrong in the object's heap, and calls each, which may be NULL, for
 * every finding: its offset, in bytes from the object's start, and its description. Returns the
 * number of findings, or -1 for an error. No other thread uses the heap meanwhile. */
int64_t pmo_heap_check(void *object, void (*each)(uint64_t offset, const char *what, void *context), void *context);

/** Calls each for every live block, in the order of addresses, until it returns other than 0, which is then
 * returned. It must not throw. */
int pmo_heap_blocks(void *object, int (*each)(void *block, size_t size, void *context), void *context);

/* ---- named roots ---- */

struct pmo_type;

/** A field of a type: its own type is nested(), where that is not NULL. For a pointer, or an array
 * of them, target() is the type that it leads to, where that is not NULL; it is no part of the
 * field's type. */
struct pmo_field {
    const char *name;
    const char *type;
    size_t offset;
    size_t size;
    const struct pmo_type *(*nested)(void);
    const struct pmo_type *(*target)(void);
};

/** Kinds of types: a struct of fields; a number; an address, of which the only field, if there is one, is its target; an array, of which the only field is an element; bytes that a library
 * makes sense of, with the types that its name has as parameters; the link to extensions; a pmo_ptr, of which the only field, if there is one, is its target. */
enum pmo_kind { PMO_STRUCT, PMO_SCALAR, PMO_POINTER, PMO_ARRAY, PMO_OPAQUE, PMO_EXTENSIONS, PMO_FAR };

/** A type, against which a root is checked. PMO_TYPE makes one. An alignment of 0 stands for the
 * usual one. */
struct pmo_type {
    const char *name;
    size_t size;
    const struct pmo_field *fields;
    size_t count;
    int kind;
    size_t align;
};

/** Gives size bytes at address, which lie in one block of the object's heap, a name of up to 255 bytes. The type has as many
 * bytes, or fewer. */
int pmo_root_create(void *object, const char *name, const void *address, size_t size, const struct pmo_type *type);

/** Returns the address of a root. If it was made with another type, or with a type that had another layout, that is
 * an error whose message shows both. With NULL for the type, any will do. */
void *pmo_root(void *object, const char *name, const struct pmo_type *type);

/** Takes a name away; the bytes stay. */
int pmo_root_remove(void *object, const char *name);

/** A step from one version of a type to the next. convert makes the new value, in zeroed bytes, of the old one, which it leaves as it
 * is, and returns 0; anything else fails, and nothing changes. It may allocate in the object. drop, if it is not NULL, frees what an
 * old value has beside its own block, once the root has the new one: all that the new value does not share with it. Neither may
 * throw, psync, or touch roots. */
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

/** How a root comes to be of the program's type. make fills in the zeroed bytes of a new value, and returns 0: for a root that is
 * missing (without it that is an error), or was reset. With told, a root of a type that no converters lead away from is reset: the
 * blocks of its value are freed, as its description in the heap has them, and told is told; nothing else remembers. */
struct pmo_root_options {
    const struct pmo_converter *converters;
    size_t count;
    int (*make)(void *new_value, void *context);
    void (*told)(const struct pmo_reset *reset, void *context);
    void *context;
};

/** Returns the address of a root as a value of the program's type, made, converted or reset if need be. Converters form a chain from
 * the version in the heap, which is found whole before any of them runs; a version without a converter is an error that names it.
 * The new value takes the place of the old one, which is freed with its block; the next psync makes all of it durable as one step,
 * and until then a crash leaves the old one. If anything fails, blocks that were allocated meanwhile are freed, and the old value
 * is as it was; only if an old block cannot be freed, as drop has freed it already, has the root its new value. Costs a walk over the blocks of the heap if there is something to do. No other thread uses the object meanwhile. */
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

/** Calls each for every root, sorted by name, until it returns other than 0, which is then returned. Its
 * first argument is valid until it returns. It must not throw. */
int pmo_roots(void *object, int (*each)(const struct pmo_root *root, void *context), void *context);

/** Writes the text of a type's layout to text, cut to len bytes with the zero byte, and its fingerprint, of names,
 * types, offsets and sizes of all fields, nested ones included. Either may be NULL. */
int pmo_type_describe(const struct pmo_type *type, char *text, size_t len, uint64_t fingerprint[2]);

/* PMO_TYPE(place,
 *     PMO_FIELD(int64_t, number),
 *     PMO_FIELD(char[16], name),
 *     PMO_NESTED(struct point, where, point),
 *     PMO_POINTS_TO(struct place *, next, place))
 *
 * describes struct place as PMO_TYPEOF(place). The types given are compared with those of the fields when
 * that is compiled. PMO_NESTED is for fields that are, or are arrays of, structs described by another
 * PMO_TYPE, which its last argument names. PMO_POINTS_TO is for pointers, and arrays of them, to structs described by a PMO_TYPE,
 * which its last argument names: pmo heap goes on there by type; a pmo_ptr, or an array of them, is described by PMO_POINTS_TO, or by PMO_FIELD if its target is not. One that comes later is declared by PMO_DECLARE_TYPE(tag).
 *
 * PMO_TYPE_WAS(item_v1, "struct item", …) describes struct item_v1 as an earlier version of struct item, for pmo_root_from. */
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

/** A pointer that lies in an object, to a place in the same object or in another one: it means the
 * same wherever they lie, in any pools. 24 bits are the number of an entry in the object's table of
 * other objects, 0 for the object itself, and 40 bits an offset. 0 is null. */
typedef uint64_t pmo_ptr;

/** Rights that pointers ask for. They are requests: keys and locks decide, and a store to an object that is attached for reading is a SIGSEGV. */
enum pmo_rights { PMO_RIGHT_READ = 1, PMO_RIGHT_WRITE = 2, PMO_RIGHT_EXECUTE = 4 };

/** Looks for objects that far pointers lead to in a pool, too, after those that were added before,
 * until it is removed, or a handle of it closed. */
int pmo_space_add(pmo_pool *pool);

/** Stops looking for objects in a pool. Those that are attached stay attached. */
int pmo_space_remove(pmo_pool *pool);

/** The address that a far pointer leads to which lies in the attached object that has the address home, where size bytes follow. The
 * object that it leads to is attached for reading if it is not attached, and stays so until pmo_detach. PMO_ERR_DANGLING: the pointer is null, its entry is not there, the
 * object is in no pool that was added, or ends before. */
void *pmo_lea(const void *home, pmo_ptr pointer, size_t size);

/** A far pointer, for the attached object with a heap that has the address home, to the address target in the same or another attached object: by an
 * entry for the enum pmo_rights, which is found or added. The next psync of home's object makes the entry durable together with the
 * pointer. 0 if it fails: PMO_ERR_DANGLING for the first byte of an object. */
pmo_ptr pmo_store(const void *home, const void *target, unsigned rights);

/* ---- views ---- */

/* A view is an object with slots, each of which has an object of the same pool. A program that attaches a view has each of these objects at its own address from its first use on:
 * the first load or store by any code attaches it, for stores if the slot asks for them. From then on the object is known by its address as any other, but pmo_detach refuses it. If it cannot be had, or the access is not
 * allowed, the program gets SIGSEGV; pmo_view_at says why. To system calls the address of an object that was not used before is EFAULT. A view that is NULL below is the one of pmo_view_start. */

/** Makes a view with so many slots, up to 65536, all empty. */
int pmo_view_create(pmo_pool *pool, const char *name, size_t slots);

/** Puts an object into a slot, durably, with PMO_RIGHT_READ alone or PMO_RIGHT_WRITE as well. PMO_ERR_ADDRESS_TAKEN: another slot has the object. Processes that have the view attached find it
 * at their next use of an object that is new to them. */
int pmo_view_set(pmo_pool *pool, const char *view, size_t slot, const char *object, unsigned rights);

/** Empties a slot, durably. Processes that have the view attached keep the object until pmo_view_adopt. */
int pmo_view_clear(pmo_pool *pool, const char *view, size_t slot);

/** Attaches a view, while any process may change it. No object is attached yet. */
int pmo_view_attach(pmo_pool *pool, const char *view);

/* A security context is an object with rights to objects, by their IDs: PMO_RIGHT_READ alone or
 * with PMO_RIGHT_WRITE, or 0 for none. A view that is attached in contexts has each object with the
 * rights that its slot asks for, as far as any of them allows them. Nothing is refused before it is
 * used: then a load or store is a SIGSEGV, and pmo_view_at fails with PMO_ERR_DENIED. Contexts keep
 * a program from mistakes; they are no barrier against code that means to pass them. */

/** The kind of an entry of a security context. */
enum pmo_rule {
    PMO_RULE_ALLOW = 1,   /* states the rights to an object, in the place of the default ones */
    PMO_RULE_MASK = 2,    /* limits the rights to an object, delegated ones included */
    PMO_RULE_DELEGATE = 3 /* adds another context's rights, these at most */
};

/** Makes a security context that gives nothing, with room for so many entries, up to 65536. */
int pmo_context_create(pmo_pool *pool, const char *name, size_t entries);

/** States the rights to all objects that the context says nothing else of, durably. */
int pmo_context_default(pmo_pool *pool, const char *context, unsigned rights);

/** Sets a context's entry, durably, an enum pmo_rule for an object, or for the context that it is
 * delegated from, in place of the former one. PMO_ERR_BAD_SIZE: there is no room.
 * PMO_ERR_UNSUITABLE: contexts would be delegated in a circle. Processes that have a view attached
 * in the context find it at their next use of an object that is new to them, and by
 * pmo_view_adopt. */
int pmo_context_set(pmo_pool *pool, const char *context, const char *object, unsigned rule, unsigned rights);

/** Takes away, durably, all that a context says of an object. */
int pmo_context_clear(pmo_pool *pool, const char *context, const char *object);

/** The rights to an object that contexts give together: 0 for none, else of enum pmo_rights; -1 if it fails. */
int pmo_context_rights(pmo_pool *pool, const char *const *contexts, size_t count, const char *object);

/** As pmo_view_attach, in count security contexts of the same pool. */
int pmo_view_attach_in(pmo_pool *pool, const char *view, const char *const *contexts, size_t count);

/** As pmo_view_attach, in count security contexts that are those of threads: the view's objects are closed to every thread, but for those that have entered contexts which allow the access. Objects to which each context
 * gives the same rights open and close as one, and there can be 15 such classes in a process; pmo_view_at fails with PMO_ERR_NO_ROOM for an object of one more, and with PMO_ERR_UNSUITABLE for one that is tracked by mprotect. With protection keys of the processor
 * (`pmo doctor`) a thread has its rights for itself; without them all threads have them meanwhile. An access that is not allowed is a SIGSEGV, or EFAULT for a system call. Calls
 * of this library need the thread's rights as well, but for those that make stores durable. A thread that jumps out of a signal handler (siglongjmp) is within no contexts afterwards: pmo_view_leave_all, then enter again. */
int pmo_view_attach_switched(pmo_pool *pool, const char *view, const char *const *contexts, size_t count);

/** Enters count of the view's contexts with this thread, in addition to those that it has entered
 * before. Threads that it starts meanwhile inherit that where there are protection keys. */
int pmo_view_enter(pmo_pool *pool, const char *view, const char *const *contexts, size_t count);

/** Undoes the thread's last pmo_view_enter. PMO_ERR_ARGUMENT: there is none. The end of the thread undoes all of them. */
int pmo_view_leave(void);

/** Leaves all contexts of any view with this thread: undoes each pmo_view_enter of its own, and the
 * contexts that it inherited from the thread that started it. */
int pmo_view_leave_all(void);

/** The address of the object in a slot, which is attached if it is not yet. NULL if it cannot be had. */
void *pmo_view_at(pmo_pool *pool, const char *view, size_t slot);

/** Makes the stores to all objects of the view durable as one step, as pmo_psync does for one. */
int pmo_view_psync(pmo_pool *pool, const char *view);

/** Takes over all changes that others made to the view and its security contexts. Objects whose slots were emptied, or have other objects or rights, are detached: no other thread uses them meanwhile. */
int pmo_view_adopt(pmo_pool *pool, const char *view);

/** Detaches a view and its objects. */
int pmo_view_detach(pmo_pool *pool, const char *view);

/** Attaches the view that `pmo run` named in the environment, in the security contexts that it named. resumed, if not NULL, gets 1 where an earlier process that ran in the view died, else 0. The header pmo/resume.h calls a
 * function of the program then. */
int pmo_view_start(int *resumed);

/** Whether the process that died had the object in a slot of that view for stores, so that those after its last psync are lost, or the object is a volatile one that is gone: 1 or 0; -1 if it fails. */
int pmo_view_lost(size_t slot);

/* ---- structs that later versions extend ---- */

/* A later version of a program may add fields to a struct whose last field is a link to blocks with them. */

/** The link from a struct to its extensions: its last field. All zero: none. */
struct pmo_extensions {
    uint64_t link;
};

/** An extension: the struct that it is of, the type of its fields, a function that computes their initial values, or NULL
 * if these are zero. Its last field is the library's, and 0 at first. */
struct pmo_extension {
    const char *of;
    const struct pmo_type *(*type)(void);
    void (*init)(const void *base, void *fields);
    uint64_t identity;
};

/** Makes the extensions of the struct at base, up to a number, that are not there yet, and returns
 * the fields of the last one. The struct lies in the heap of an object. Any number of threads may
 * call it at once. */
void *pmo_extend(const void *base, const struct pmo_extensions *link, const struct pmo_extension *all, size_t number);

/** Returns the fields of the extension of a number; if it was not made yet, writes their initial values to initial, and
 * returns that. Stores nothing to the object. */
const void *pmo_extended(const void *base, const struct pmo_extensions *link, const struct pmo_extension *all,
                         size_t number, void *initial);

/** Copies a struct, or one that has such structs as fields, with all extensions. Those that were there before are freed. */
int pmo_extended_copy(void *to, const void *from, const struct pmo_type *type);

/** Frees a block with count such structs, and their extensions. NULL is ignored. */
int pmo_extended_free(void *block, size_t count, const struct pmo_type *type);

/** Writes the text of the last error to standard error, and ends the program. */
int pmo_extension_failed(const char *of);

/* Accesses that a compiler sees through. */
#include <pmo/extensions.h>

/* ---- objects that processes share ---- */

/** Attaches an object of PMO_DURABILITY_SHARED, and returns its first byte: the same address in every process. Any number of processes have it at once, and store to it as
 * threads store to memory that they have in common: by atomics, or under locks of their own. Nothing of it becomes durable; it stays until the object is destroyed, or the machine
 * is started anew. pmo_detach detaches it. All are of one user. */
void *pmo_attach_shared(pmo_pool *pool, const char *name, const void *key, size_t key_len);

enum {
    /** Result of pmo_wait_any and pmo_receive: the time is over. */
    PMO_TIMED_OUT = -2
};

/** Sleeps until the word, of a shared object, is not expected any more, for so many nanoseconds at
 * most; negative: for any time. Returns 1 if it has changed, 0 if the time is over. A change wakes
 * no waiter by itself: store, then pmo_wake. */
int pmo_wait_word(const uint32_t *word, uint32_t expected, int64_t nanoseconds);

/** A word to wait for; reserved is 0. */
struct pmo_word {
    const uint32_t *word;
    uint32_t expected;
    uint32_t reserved;
};

/** As pmo_wait_word, for a change of any of up to 128 words, of any shared objects. Returns the number of the word that has changed, from 0 on, or PMO_TIMED_OUT. */
int64_t pmo_wait_any(const struct pmo_word *words, size_t count, int64_t nanoseconds);

/** Wakes as many as most that sleep on the word, in any process; returns how many there were. */
int64_t pmo_wake(const uint32_t *word, uint32_t most);

/** How a queue is made: messages that it holds at most, a power of two, and bytes of the longest one; one_producer is 1 if there is one at a time, which is faster, and 0 for
 * any number; reserved is 0. */
struct pmo_queue_options {
    uint64_t slots;
    uint64_t most;
    uint32_t one_producer;
    uint32_t reserved;
};

/** A queue in a shared object. */
typedef struct pmo_queue pmo_queue;

/** Opens the queue that begins at an address, a multiple of 64, of a shared object; it is made if there is none. It needs 512 bytes, 8 for each slot, and a multiple of 64 for each message.
 * PMO_ERR_ROOT_TYPE: there is one of other options, or something else. */
pmo_queue *pmo_queue_open(void *at, const struct pmo_queue_options *options);

/** Ends the use of a queue, which stays. While it is open, the object's memory stays as well. */
int pmo_queue_close(pmo_queue *queue);

/** Puts a message of len bytes in, once there is room, within so many nanoseconds; negative:
 * without limit. Returns 1 once it is in, 0 if the queue stayed full. A process that dies in here
 * leaves no message, or a whole one. */
int pmo_send(pmo_queue *queue, const void *message, size_t len, int64_t nanoseconds);

/** Takes the next message out, once there is one, within so many nanoseconds; negative: without
 * limit. Returns its length, or PMO_TIMED_OUT. There is room for the longest message of the queue.
 * PMO_ERR_HELD: another process takes messages out, which one does at a time, from its first call
 * until it closes the queue, or ends. */
int64_t pmo_receive(pmo_queue *queue, void *into, size_t len, int64_t nanoseconds);

/* ---- the paper's names ---- */

/* Table I of the paper, on the pool of pmo_use or PMO_POOL. Define PMO_NO_SHORT_NAMES to do without. */
#ifndef PMO_NO_SHORT_NAMES

/** Creates an object of size bytes, and returns the address it will have whenever it is attached. A key of NULL is
 * none. NULL if there is no room, or another error. */
void *pcreate(const char *name, size_t size, const char *key);

/** Destroys an object. */
int pdestroy(const char *name, const char *key);

/** Attaches an object, with permission 'r' or 'w', and returns its address. In C, attach(address, perm), with the
 * address that pcreate returned, attaches the object there; so does the overload in C++. */
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
