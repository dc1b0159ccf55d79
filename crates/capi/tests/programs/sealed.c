/* Sealed objects: sealed POOL, in a folder of its own. */
#define _DEFAULT_SOURCE
#include "check.h"
#include <stdlib.h>
#include <unistd.h>

#define PLANTED "planted plaintext of C"

static char folder[4096];

static const char *in_folder(const char *name)
{
    static char path[8192];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

static void write_file(const char *path, const void *bytes, size_t len)
{
    FILE *file = fopen(path, "wb");
    CHECK(file && fwrite(bytes, 1, len, file) == len && fclose(file) == 0);
}

static int contains(const char *path, const char *wanted, size_t len)
{
    FILE *file = fopen(path, "rb");
    CHECK(file && fseek(file, 0, SEEK_END) == 0);
    long size = ftell(file);
    char *bytes = malloc(size);
    CHECK(bytes && fseek(file, 0, SEEK_SET) == 0 && fread(bytes, 1, size, file) == (size_t)size && fclose(file) == 0);
    int found = 0;
    for (long at = 0; at + (long)len <= size && !found; at++)
        found = memcmp(bytes + at, wanted, len) == 0;
    free(bytes);
    return found;
}

static int list(const struct pmo_key_slot *slot, void *context)
{
    CHECK(!slot->damaged && slot->created > 1000000000);
    sprintf((char *)context + strlen(context), "%u:%u:%s;", slot->slot, slot->kind, slot->label);
    return 0;
}

static int stop(const struct pmo_key_slot *slot, void *context)
{
    (void)slot, (void)context;
    return 7;
}

int main(int argc, char **argv)
{
    CHECK(argc == 2);
    const char *path = argv[1];
    snprintf(folder, sizeof folder, "%s", path);
    *strrchr(folder, '/') = 0;
    pmo_pool *pool = pmo_format(path, 16 << 20, 0);
    CHECK(pool);

    char bytes[32];
    memset(bytes, 0x5a, sizeof bytes);
    pmo_seal_key *key = pmo_seal_key_bytes(bytes, sizeof bytes);
    CHECK(key);
    write_file(in_folder("k"), bytes, sizeof bytes);
    pmo_seal_key *same = pmo_seal_key_file(in_folder("k"));
    CHECK(same);
    pmo_seal_key *phrase = pmo_seal_key_passphrase("correct horse");
    CHECK(phrase);
    char command[9000];
    snprintf(command, sizeof command, "cat '%s'", in_folder("k"));
    pmo_seal_key *from_command = pmo_seal_key_command(command, 20000);
    CHECK(from_command);
    CHECK(setenv("CREDENTIALS_DIRECTORY", folder, 1) == 0);
    pmo_seal_key *credential = pmo_seal_key_credential("k");
    CHECK(credential);
    memset(bytes, 1, sizeof bytes);
    pmo_seal_key *wrong = pmo_seal_key_bytes(bytes, sizeof bytes);
    CHECK(wrong);
    FAILS(!pmo_seal_key_bytes("planted key", 11), PMO_ERR_SEALED, "at least 32 bytes");
    CHECK(!strstr(pmo_error_message(), "planted"));
    FAILS(!pmo_seal_key_bytes(NULL, 32), PMO_ERR_ARGUMENT, "seal key");
    FAILS(!pmo_seal_key_passphrase(""), PMO_ERR_SEALED, "empty");
    FAILS(!pmo_seal_key_passphrase(NULL), PMO_ERR_ARGUMENT, "passphrase is NULL");
    FAILS(!pmo_seal_key_file(in_folder("none")), PMO_ERR_IO, "none");
    FAILS(!pmo_seal_key_file(NULL), PMO_ERR_ARGUMENT, "path is NULL");
    FAILS(!pmo_seal_key_credential("none"), PMO_ERR_IO, "none");
    FAILS(!pmo_seal_key_credential("../k"), PMO_ERR_SEALED, "name of a credential");
    FAILS(!pmo_seal_key_command("echo planted key; echo no card >&2; exit 3", 20000), PMO_ERR_SEALED, "no card");
    CHECK(!strstr(strstr(pmo_error_message(), "failed with"), "planted"));
    FAILS(!pmo_seal_key_command("exec sleep 1000", 1), PMO_ERR_SEALED, "killed");
    FAILS(!pmo_seal_key_tpm(in_folder("none")), PMO_ERR_SEALED, "the TPM at");
    CHECK(unsetenv("CREDENTIALS_DIRECTORY") == 0);
    FAILS(!pmo_seal_key_credential("k"), PMO_ERR_SEALED, "CREDENTIALS_DIRECTORY");

    struct pmo_create_options options = {.size = 100000};
    struct pmo_stat stat;
    CHECK(pmo_create_sealed(pool, "ledger", &options, key, "the key file") == 0);
    CHECK(pmo_stat(pool, "ledger", &stat) == 0 && stat.flags == PMO_STAT_SEALED && stat.size == 100000);
    struct pmo_attach_options with = {.size = sizeof with, .permission = PMO_WRITE, .seal = key};
    char *ledger = pmo_attach_with(pool, "ledger", &with);
    CHECK(ledger && pmo_detach(ledger) == 0 && pmo_attach_sealed(pool, "ledger", PMO_WRITE, NULL, 0, key) == ledger);
    CHECK(ledger && (uint64_t)ledger == stat.address);
    strcpy(ledger + 5000, PLANTED);
    CHECK(pmo_psync(ledger) == 0);
    strcpy(ledger, "unsynced");
    FAILS(pmo_add_key(pool, "ledger", NULL, 0, key, phrase, "") == -1, PMO_ERR_HELD, "\"ledger\"");
    CHECK(pmo_detach(ledger) == 0);
    CHECK(!contains(path, PLANTED, strlen(PLANTED)));
    pmo_seal_key *all[] = {same, from_command, credential};
    for (int i = 0; i < 3; i++) {
        char *again = pmo_attach_sealed(pool, "ledger", PMO_READ, NULL, 0, all[i]);
        CHECK(again && strcmp(again + 5000, PLANTED) == 0 && again[0] == 0);
        CHECK(pmo_detach(again) == 0);
    }

    options.size = 1 << 20;
    CHECK(pmo_create_sealed(pool, "heap", &options, key, "") == 0);
    void *heap = pmo_attach_sealed(pool, "heap", PMO_WRITE, NULL, 0, key);
    CHECK(heap && pmo_heap_format(heap, 0) == 0 && pmo_malloc(heap, 100) && pmo_psync(heap) == 0 && pmo_detach(heap) == 0);

    FAILS(!pmo_attach(pool, "ledger", PMO_WRITE, NULL, 0), PMO_ERR_SEALED, "sealed");
    FAILS(!pmo_attach(pool, "ledger", PMO_READ, NULL, 0), PMO_ERR_SEALED, "pmo_attach_sealed");
    FAILS(!pmo_attach_sealed(pool, "ledger", PMO_READ, NULL, 0, wrong), PMO_ERR_WRONG_KEY, "opens none of its 1 key slots");
    FAILS(!pmo_attach_sealed(pool, "ledger", PMO_READ, NULL, 0, NULL), PMO_ERR_ARGUMENT, "seal key is NULL");
    CHECK(pmo_create(pool, "plain", 4096) == 0);
    FAILS(!pmo_attach_sealed(pool, "plain", PMO_READ, NULL, 0, key), PMO_ERR_SEALED, "not sealed");
    FAILS(pmo_create_sealed(pool, "ledger", &options, key, "") == -1, PMO_ERR_EXISTS, "\"ledger\"");
    FAILS(pmo_create_sealed(pool, "x", &options, NULL, "") == -1, PMO_ERR_ARGUMENT, "seal key is NULL");
    FAILS(pmo_create_sealed(pool, "x", &options, key, NULL) == -1, PMO_ERR_ARGUMENT, "label is NULL");
    FAILS(pmo_create_sealed(pool, "x", &options, key, "a label that is longer than a key slot has room for by far, it is"), PMO_ERR_SEALED, "56 bytes");

    char slots[256] = "";
    CHECK(pmo_add_key(pool, "ledger", NULL, 0, key, phrase, "alice") == 1);
    CHECK(pmo_key_slots(pool, "ledger", NULL, 0, list, slots) == 0 && strcmp(slots, "0:1:the key file;1:2:alice;") == 0);
    CHECK(pmo_key_slots(pool, "ledger", NULL, 0, stop, NULL) == 7);
    FAILS(pmo_key_slots(pool, "plain", NULL, 0, list, slots) == -1, PMO_ERR_SEALED, "not sealed");
    FAILS(pmo_key_slots(pool, "ledger", NULL, 0, NULL, slots) == -1, PMO_ERR_ARGUMENT, "function");
    FAILS(pmo_remove_key(pool, "ledger", NULL, 0, wrong, 0) == -1, PMO_ERR_WRONG_KEY, "opens none");
    FAILS(pmo_remove_key(pool, "ledger", NULL, 0, key, 5) == -1, PMO_ERR_SEALED, "empty");
    CHECK(pmo_remove_key(pool, "ledger", NULL, 0, phrase, 0) == 0);
    FAILS(pmo_remove_key(pool, "ledger", NULL, 0, phrase, 1) == -1, PMO_ERR_SEALED, "last one");
    FAILS(!pmo_attach_sealed(pool, "ledger", PMO_READ, NULL, 0, key), PMO_ERR_WRONG_KEY, "opens none");
    FAILS(pmo_change_key(pool, "ledger", NULL, 0, key, wrong, NULL) == -1, PMO_ERR_WRONG_KEY, "opens none");
    CHECK(pmo_change_key(pool, "ledger", NULL, 0, phrase, key, "bob") == 1);
    CHECK(pmo_change_key(pool, "ledger", NULL, 0, key, phrase, NULL) == 1);
    slots[0] = 0;
    CHECK(pmo_key_slots(pool, "ledger", NULL, 0, list, slots) == 0 && strcmp(slots, "1:2:bob;") == 0);
    char *by_phrase = pmo_attach_sealed(pool, "ledger", PMO_READ, NULL, 0, phrase);
    CHECK(by_phrase && strcmp(by_phrase + 5000, PLANTED) == 0);

    /* Freed keys are noticed; objects that they opened stay attached. */
    CHECK(pmo_seal_key_free(phrase) == 0 && strcmp(by_phrase + 5000, PLANTED) == 0 && pmo_detach(by_phrase) == 0);
    FAILS(pmo_seal_key_free(phrase) == -1, PMO_ERR_ARGUMENT, "freed");
    FAILS(pmo_seal_key_free(NULL) == -1, PMO_ERR_ARGUMENT, "NULL");
    FAILS(!pmo_attach_sealed(pool, "ledger", PMO_READ, NULL, 0, phrase), PMO_ERR_ARGUMENT, "freed");
    puts("done");
    return 0;
}
