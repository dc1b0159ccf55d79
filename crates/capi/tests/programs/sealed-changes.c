/* Sealed objects whose keys, anchors and sizes change, read beside their writer: sealed-changes
 * POOL, in a folder of its own. */
#define _DEFAULT_SOURCE
#include "check.h"
#include <signal.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static char folder[4096];

static const char *in_folder(const char *name)
{
    static char path[8192];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

static void copy(const char *from, const char *to)
{
    char buffer[65536];
    size_t got;
    FILE *in = fopen(from, "rb"), *out = fopen(to, "wb");
    CHECK(in && out);
    while ((got = fread(buffer, 1, sizeof buffer, in)) > 0)
        CHECK(fwrite(buffer, 1, got, out) == got);
    CHECK(fclose(in) == 0 && fclose(out) == 0);
}

static pmo_seal_key *key_of(int byte)
{
    char bytes[32];
    memset(bytes, byte, sizeof bytes);
    pmo_seal_key *key = pmo_seal_key_bytes(bytes, sizeof bytes);
    CHECK(key);
    return key;
}

static void step(int go, int done)
{
    char byte = 1;
    CHECK(write(done, &byte, 1) == 1 && read(go, &byte, 1) == 1);
}

/* The writing process: a psync, another one, unsynced stores, each on command. */
static void writes(const char *path, int go, int done)
{
    pmo_pool *pool = pmo_open(path, 0);
    CHECK(pool);
    char *ledger = pmo_attach_sealed(pool, "ledger", PMO_WRITE, NULL, 0, key_of(1));
    CHECK(ledger);
    for (int psync = 1; psync <= 2; psync++) {
        memset(ledger, psync, 100000);
        CHECK(pmo_psync(ledger) == 0);
        memset(ledger, 9, 100000);
        step(go, done);
    }
}

static void beside_a_writer(const char *path)
{
    int to[2], from[2], newer, status;
    char byte;
    CHECK(pipe(to) == 0 && pipe(from) == 0);
    pid_t child = fork();
    if (child == 0)
        writes(path, to[0], from[1]);
    CHECK(child > 0 && read(from[0], &byte, 1) == 1);
    pmo_pool *pool = pmo_open(path, 0);
    CHECK(pool);
    pmo_seal_key *key = key_of(1), *wrong = key_of(9);
    FAILS(!pmo_attach_snapshot_sealed(pool, "ledger", NULL, 0, wrong), PMO_ERR_WRONG_KEY, "opens none");
    FAILS(!pmo_attach_snapshot_sealed(pool, "ledger", NULL, 0, NULL), PMO_ERR_ARGUMENT, "seal key is NULL");
    FAILS(!pmo_attach_snapshot(pool, "ledger", NULL, 0), PMO_ERR_SEALED, "sealed");
    char *ledger = pmo_attach_snapshot_sealed(pool, "ledger", NULL, 0, key);
    CHECK(ledger && ledger[0] == 1 && ledger[99999] == 1);
    CHECK(pmo_refresh(ledger, &newer) == 0 && newer == 0);
    CHECK(write(to[1], &byte, 1) == 1 && read(from[0], &byte, 1) == 1);
    CHECK(ledger[0] == 1 && pmo_refresh(ledger, &newer) == 0 && newer == 1 && ledger[0] == 2 && ledger[99999] == 2);
    /* Its death affects neither its reader nor the next writer. */
    CHECK(kill(child, SIGKILL) == 0 && waitpid(child, &status, 0) == child && WIFSIGNALED(status));
    CHECK(ledger[0] == 2 && pmo_refresh(ledger, &newer) == 0 && newer == 0 && ledger[99999] == 2 && pmo_detach(ledger) == 0);
    ledger = pmo_attach_sealed(pool, "ledger", PMO_WRITE, NULL, 0, key);
    CHECK(ledger && ledger[0] == 2 && ledger[99999] == 2 && pmo_detach(ledger) == 0 && pmo_close(pool) == 0);
}

static int count(const struct pmo_key_slot *slot, void *context)
{
    (void)slot;
    ++*(int *)context;
    return 0;
}

static int expiry(const struct pmo_key_slot *slot, void *context)
{
    ((uint64_t *)context)[slot->slot] = slot->expires;
    return 0;
}

static void keys_and_sizes(pmo_pool *pool)
{
    pmo_seal_key *key = key_of(1), *second = key_of(2), *third = key_of(3);
    int slots = 0;
    CHECK(pmo_resize_sealed(pool, "ledger", 150000, NULL, 0, key) == 0);
    FAILS(pmo_resize_sealed(pool, "ledger", 150000, NULL, 0, second) == -1, PMO_ERR_WRONG_KEY, "opens none");
    FAILS(pmo_resize_sealed(pool, "ledger", 0, NULL, 0, key) == -1, PMO_ERR_BAD_SIZE, "at least one byte");
    struct pmo_stat stat;
    CHECK(pmo_stat(pool, "ledger", &stat) == 0 && stat.size == 150000);
    CHECK(pmo_add_key(pool, "ledger", NULL, 0, key, second, "") == 1 && pmo_add_key(pool, "ledger", NULL, 0, key, third, "") == 2);
    const pmo_seal_key *stay[] = {key, second};
    FAILS(pmo_reencrypt(pool, "ledger", NULL, 0, NULL, 2) == -1, PMO_ERR_ARGUMENT, "array of seal keys");
    FAILS(pmo_reencrypt(pool, "ledger", NULL, 0, NULL, 0) == -1, PMO_ERR_SEALED, "at least one key");
    CHECK(pmo_reencrypt(pool, "ledger", NULL, 0, stay, 2) == 0);
    CHECK(pmo_key_slots(pool, "ledger", NULL, 0, count, &slots) == 0 && slots == 2);
    FAILS(!pmo_attach_sealed(pool, "ledger", PMO_READ, NULL, 0, third), PMO_ERR_WRONG_KEY, "opens none");
    char *ledger = pmo_attach_sealed(pool, "ledger", PMO_READ, NULL, 0, second);
    CHECK(ledger && ledger[99999] == 2 && ledger[149999] == 0 && pmo_detach(ledger) == 0);
    /* An object of one key file at a time. */
    pmo_seal_key *erasable = pmo_seal_key_erasable(key);
    struct pmo_create_options small = {.size = 5000};
    FAILS(!pmo_seal_key_erasable(NULL), PMO_ERR_ARGUMENT, "seal key is NULL");
    CHECK(erasable && pmo_create_sealed(pool, "patient", &small, erasable, "") == 0);
    FAILS(pmo_add_key(pool, "patient", NULL, 0, key, second, "") == -1, PMO_ERR_SEALED, "one key slot");
    FAILS(pmo_renew_key(pool, "patient", NULL, 0, key, NULL) == -1, PMO_ERR_ARGUMENT, "seal key is NULL");
    CHECK(pmo_renew_key(pool, "patient", NULL, 0, key, second) == 0);
    FAILS(!pmo_attach_sealed(pool, "patient", PMO_READ, NULL, 0, key), PMO_ERR_WRONG_KEY, "opens none");
    CHECK((ledger = pmo_attach_sealed(pool, "patient", PMO_READ, NULL, 0, second)) != NULL && pmo_detach(ledger) == 0);
    pmo_seal_key_free(erasable);
    /* An expiring key, and an expired one. */
    uint64_t later = (uint64_t)time(NULL) + 1000000, expires[12] = {1, 1, 1};
    pmo_seal_key *good = pmo_seal_key_until(third, later), *late = pmo_seal_key_until(key_of(4), 1000000000);
    CHECK(good && late);
    FAILS(!pmo_seal_key_until(NULL, 1), PMO_ERR_ARGUMENT, "seal key is NULL");
    FAILS(!pmo_seal_key_until(key, UINT64_MAX), PMO_ERR_ARGUMENT, "too late");
    CHECK(pmo_add_key(pool, "ledger", NULL, 0, key, good, "guest") == 2);
    /* A slot above the cost limit opens only by a passphrase of that cost. */
    pmo_seal_key *phrase = pmo_seal_key_passphrase("correct horse"), *dear = pmo_seal_key_costing(phrase, 257 << 20, 1);
    CHECK(phrase && dear && pmo_add_key(pool, "ledger", NULL, 0, key, dear, "dear") == 3);
    FAILS(!pmo_attach_sealed(pool, "ledger", PMO_READ, NULL, 0, phrase), PMO_ERR_SEALED, "give that cost with the passphrase");
    CHECK((ledger = pmo_attach_sealed(pool, "ledger", PMO_READ, NULL, 0, dear)) != NULL && pmo_detach(ledger) == 0);
    CHECK(pmo_remove_key(pool, "ledger", NULL, 0, key, 3) == 0);
    FAILS(!pmo_seal_key_costing(key, 64 << 20, 3), PMO_ERR_SEALED, "no passphrase");
    FAILS(!pmo_seal_key_costing(phrase, 2ull << 30, 1), PMO_ERR_SEALED, "out of bounds");
    pmo_seal_key_free(phrase), pmo_seal_key_free(dear);
    CHECK((ledger = pmo_attach_sealed(pool, "ledger", PMO_WRITE, NULL, 0, third)) != NULL);
    /* Also while the object is attached. */
    CHECK(pmo_key_slots(pool, "ledger", NULL, 0, expiry, expires) == 0);
    CHECK(expires[0] == 0 && expires[1] == 0 && expires[2] == later && pmo_detach(ledger) == 0);
    CHECK(pmo_add_key(pool, "ledger", NULL, 0, key, late, "intern") == 3);
    FAILS(!pmo_attach_sealed(pool, "ledger", PMO_READ, NULL, 0, late), PMO_ERR_SEALED, "\"intern\", which the seal key opens, expired at 2001-09-09");
}

static void anchor(pmo_pool *pool, const struct pmo_anchor *with, const char *path)
{
    const pmo_seal_key *key = key_of(1);
    pmo_seal_key *anchored = pmo_seal_key_anchored(key, with);
    CHECK(anchored);
    char older[8192];
    snprintf(older, sizeof older, "%s.older", path);
    CHECK(pmo_set_anchor(pool, "ledger", NULL, 0, anchored) == 0);
    FAILS(!pmo_attach_sealed(pool, "ledger", PMO_READ, NULL, 0, key), PMO_ERR_SEALED, "it has an anchor");
    char *ledger = pmo_attach_sealed(pool, "ledger", PMO_WRITE, NULL, 0, anchored);
    CHECK(ledger && pmo_detach(ledger) == 0 && pmo_close(pool) == 0);
    copy(path, older);
    CHECK((pool = pmo_open(path, 0)) != NULL && (ledger = pmo_attach_sealed(pool, "ledger", PMO_WRITE, NULL, 0, anchored)) != NULL);
    ++*ledger;
    CHECK(pmo_psync(ledger) == 0 && pmo_detach(ledger) == 0 && pmo_close(pool) == 0);
    /* The pool is put back. */
    copy(older, path);
    CHECK((pool = pmo_open(path, 0)) != NULL);
    FAILS(!pmo_attach_sealed(pool, "ledger", PMO_WRITE, NULL, 0, anchored), PMO_ERR_POOL_BEHIND, "put back to an older state");
    CHECK(pmo_set_anchor(pool, "ledger", NULL, 0, anchored) == 0);
    CHECK((ledger = pmo_attach_sealed(pool, "ledger", PMO_WRITE, NULL, 0, anchored)) != NULL && pmo_detach(ledger) == 0);
    CHECK(pmo_set_anchor(pool, "ledger", NULL, 0, key) == 0);
    CHECK((ledger = pmo_attach_sealed(pool, "ledger", PMO_READ, NULL, 0, key)) != NULL && pmo_detach(ledger) == 0);
    CHECK(pmo_seal_key_free(anchored) == 0 && pmo_close(pool) == 0);
}

static void signatures(pmo_pool *pool)
{
    char writer[9000], other[9000], digits[65], others[65];
    snprintf(writer, sizeof writer, "%s", in_folder("writer.key"));
    snprintf(other, sizeof other, "%s", in_folder("other.key"));
    FILE *out = fopen(writer, "wb");
    CHECK(out && fprintf(out, "%032d", 1) == 32 && fclose(out) == 0 && (out = fopen(other, "wb")) != NULL);
    CHECK(fprintf(out, "%032d", 2) == 32 && fclose(out) == 0);
    CHECK(pmo_verify_key(writer, digits) == 0 && strlen(digits) == 64 && pmo_verify_key(other, others) == 0 && strcmp(digits, others) != 0);
    FAILS(pmo_verify_key(in_folder("none"), digits) == -1, PMO_ERR_IO, "none");
    FAILS(pmo_verify_key(writer, NULL) == -1, PMO_ERR_ARGUMENT, "the place of the digits is NULL");
    pmo_seal_key *key = key_of(5), *signs = pmo_seal_key_signed_by(key, writer), *verifies = pmo_seal_key_verified_by(key, digits);
    CHECK(signs && verifies);
    FAILS(!pmo_seal_key_verified_by(key, "12"), PMO_ERR_SEALED, "64 hexadecimal digits");
    FAILS(!pmo_seal_key_signed_by(key, NULL), PMO_ERR_ARGUMENT, "path is NULL");
    struct pmo_create_options options = {.size = 5000};
    FAILS(pmo_create_sealed(pool, "signed", &options, verifies, "") == -1, PMO_ERR_SEALED, "one sign key");
    CHECK(pmo_create_sealed(pool, "signed", &options, signs, "") == 0);
    char *object = pmo_attach_sealed(pool, "signed", PMO_WRITE, NULL, 0, signs);
    CHECK(object);
    object[4999] = 7;
    CHECK(pmo_psync(object) == 0 && pmo_detach(object) == 0);
    FAILS(!pmo_attach_sealed(pool, "signed", PMO_WRITE, NULL, 0, verifies), PMO_ERR_SEALED, "give its sign key");
    FAILS(!pmo_attach_sealed(pool, "signed", PMO_READ, NULL, 0, key), PMO_ERR_SEALED, "the key that verifies");
    CHECK((object = pmo_attach_sealed(pool, "signed", PMO_READ, NULL, 0, verifies)) != NULL && object[4999] == 7 && pmo_detach(object) == 0);
    CHECK(pmo_change_signer(pool, "signed", NULL, 0, signs, other) == 0);
    FAILS(!pmo_attach_sealed(pool, "signed", PMO_READ, NULL, 0, verifies), PMO_ERR_DAMAGED, "its signature is not of the key");
    pmo_seal_key *anew = pmo_seal_key_verified_by(key, others);
    CHECK((object = pmo_attach_sealed(pool, "signed", PMO_READ, NULL, 0, anew)) != NULL && pmo_detach(object) == 0);
    CHECK(pmo_destroy(pool, "signed", NULL, 0) == 0);
}

static void names(pmo_pool *pool)
{
    pmo_seal_key *key = key_of(6), *as_a = pmo_seal_key_sealed_as(key, "a");
    struct pmo_create_options options = {.size = 5000}, copy_options = {0};
    CHECK(as_a && pmo_create_sealed(pool, "a", &options, key, "") == 0);
    FAILS(!pmo_seal_key_sealed_as(key, NULL), PMO_ERR_ARGUMENT, "name is NULL");
    FAILS(pmo_rename(pool, "a", "b", NULL, 0) == -1, PMO_ERR_SEALED, "its name is sealed with it");
    FAILS(pmo_rename_sealed(pool, "a", "b", NULL, 0, key_of(7)) == -1, PMO_ERR_WRONG_KEY, "opens none");
    CHECK(pmo_rename_sealed(pool, "a", "b", NULL, 0, key) == 0 && pmo_rename_sealed(pool, "b", "a", NULL, 0, key) == 0);
    CHECK(pmo_create_from(pool, "a", "copy", NULL, 0, &copy_options) == 0);
    FAILS(!pmo_attach_sealed(pool, "copy", PMO_READ, NULL, 0, key), PMO_ERR_SEALED, "it was sealed under another name");
    char *copy = pmo_attach_sealed(pool, "copy", PMO_READ, NULL, 0, as_a);
    CHECK(copy && pmo_detach(copy) == 0 && pmo_bind_name(pool, "copy", NULL, 0, as_a) == 0);
    CHECK((copy = pmo_attach_sealed(pool, "copy", PMO_READ, NULL, 0, key)) != NULL && pmo_detach(copy) == 0);
    CHECK(pmo_destroy(pool, "copy", NULL, 0) == 0 && pmo_destroy(pool, "a", NULL, 0) == 0 && pmo_seal_key_free(as_a) == 0);
}

int main(int argc, char **argv)
{
    CHECK(argc >= 2);
    const char *path = argv[1];
    snprintf(folder, sizeof folder, "%s", path);
    *strrchr(folder, '/') = 0;
    pmo_pool *pool = pmo_format(path, 8 << 20, 0);
    struct pmo_create_options options = {.size = 100000};
    CHECK(pool && pmo_create_sealed(pool, "ledger", &options, key_of(1), "") == 0 && pmo_close(pool) == 0);
    beside_a_writer(path);
    CHECK((pool = pmo_open(path, 0)) != NULL);
    keys_and_sizes(pool);
    signatures(pool);
    names(pool);

    pmo_seal_key *key = key_of(1);
    FAILS(!pmo_seal_key_anchored(key, NULL), PMO_ERR_ARGUMENT, "struct of an anchor");
    struct pmo_anchor bad[] = {{0}, {.file = "a", .command = "b"}, {.tpm_index = 7}, {.file = "a", .tpm = "b"}};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        FAILS(!pmo_seal_key_anchored(key, &bad[i]), PMO_ERR_ARGUMENT, "an anchor is a file, a command");
    struct pmo_anchor file = {.file = in_folder("anchor"), .interval = 1000};
    anchor(pool, &file, path);
    CHECK((pool = pmo_open(path, 0)) != NULL);
    char command[20000];
    const char *record = in_folder("kept");
    snprintf(command, sizeof command,
             "read -r what record; case $what in get) cat '%s' || true ;; put) echo \"$record\" >'%s'; echo stored ;; esac", record, record);
    struct pmo_anchor behind = {.command = command, .timeout = 100000};
    anchor(pool, &behind, path);
    CHECK((pool = pmo_open(path, 0)) != NULL);
    struct pmo_anchor none = {.command = "exit 3"};
    pmo_seal_key *no_anchor = pmo_seal_key_anchored(key, &none);
    FAILS(!pmo_attach_sealed(pool, "ledger", PMO_WRITE, NULL, 0, no_anchor), PMO_ERR_IO, "exit status: 3");
    struct pmo_anchor absent = {.file = in_folder("counted"), .tpm = "/nowhere/tpm", .tpm_index = 0x01800042};
    pmo_seal_key *no_tpm = pmo_seal_key_anchored(key, &absent);
    CHECK(no_tpm);
    FAILS(pmo_set_anchor(pool, "ledger", NULL, 0, no_tpm) == -1, PMO_ERR_IO, "/nowhere/tpm");
    if (argc == 3) {
        struct pmo_anchor tpm = {.file = in_folder("counted"), .tpm = argv[2], .tpm_index = 0x01800042};
        anchor(pool, &tpm, path);
    }
    puts("done");
    return 0;
}
