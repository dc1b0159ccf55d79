/* Uses a database in the pool of the argument: spilled and rolled back transactions, savepoints,
 * values of all types, blobs in place, ATTACH, backup, VACUUM, threads; then prints "done". */
#include <pthread.h>
#include <sqlite3-pmo.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { THREADS = 4, EACH = 50, BLOB = 100000 };

static char name[4096], other[4096];

static void must(sqlite3 *db, int code, const char *what) {
    if (code == SQLITE_OK || code == SQLITE_DONE || code == SQLITE_ROW)
        return;
    fprintf(stderr, "%s: %s\n", what, db ? sqlite3_errmsg(db) : sqlite3_errstr(code));
    exit(1);
}

static void tell(void *none, int code, const char *text) {
    (void)none;
    if (code != SQLITE_BUSY && code != SQLITE_SCHEMA)
        fprintf(stderr, "%d: %s\n", code, text);
}

static sqlite3 *opened(const char *uri) {
    sqlite3 *db;
    int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_URI;
    must(NULL, sqlite3_open_v2(uri, &db, flags, NULL), uri);
    sqlite3_busy_timeout(db, 60000);
    return db;
}

static void run(sqlite3 *db, const char *sql) {
    must(db, sqlite3_exec(db, sql, NULL, NULL, NULL), sql);
}

static long number(sqlite3 *db, const char *sql) {
    sqlite3_stmt *statement;
    must(db, sqlite3_prepare_v2(db, sql, -1, &statement, NULL), sql);
    must(db, sqlite3_step(statement), sql);
    long found = (long)sqlite3_column_int64(statement, 0);
    must(db, sqlite3_finalize(statement), sql);
    return found;
}

static void expect(sqlite3 *db, const char *sql, long expected) {
    long found = number(db, sql);
    if (found != expected) {
        fprintf(stderr, "%s: %ld, not %ld\n", sql, found, expected);
        exit(1);
    }
}

static void blob_in_place(sqlite3 *db) {
    static char bytes[BLOB], back[BLOB];
    sqlite3_blob *blob;
    memset(bytes, 7, sizeof bytes);
    run(db, "CREATE TABLE b(v); INSERT INTO b VALUES (zeroblob(100000))");
    must(db, sqlite3_blob_open(db, "main", "b", "v", 1, 1, &blob), "blob");
    must(db, sqlite3_blob_write(blob, bytes, BLOB, 0), "write of a blob");
    must(db, sqlite3_blob_read(blob, back, BLOB, 0), "read of a blob");
    must(db, sqlite3_blob_close(blob), "close of a blob");
    if (memcmp(bytes, back, BLOB))
        exit(2);
}

static void *writer(void *argument) {
    sqlite3 *db = opened(name);
    char sql[200];
    for (long nth = 0; nth < EACH; nth++) {
        snprintf(sql, sizeof sql, "BEGIN IMMEDIATE; INSERT INTO t VALUES (%ld, hex(randomblob(900))); %s",
                 1000000 + (long)argument * EACH + nth, nth % 5 ? "COMMIT" : "ROLLBACK");
        run(db, sql);
        number(db, "SELECT count(*) FROM t");
    }
    must(db, sqlite3_close(db), "close of a thread");
    return NULL;
}

static void back_up(sqlite3 *from) {
    sqlite3 *to = opened(other);
    sqlite3_backup *backup = sqlite3_backup_init(to, "main", from, "main");
    must(to, sqlite3_backup_step(backup, -1), "backup");
    must(to, sqlite3_backup_finish(backup), "end of a backup");
    expect(to, "SELECT count(*) FROM t", number(from, "SELECT count(*) FROM t"));
    must(to, sqlite3_close(to), "close of a backup");
}

int main(int count, char **arguments) {
    if (count != 2)
        return 2;
    must(NULL, sqlite3_config(SQLITE_CONFIG_LOG, tell, NULL), "log");
    must(NULL, sqlite3_pmo_register(), "registration");
    must(NULL, sqlite3_pmo_register(), "second registration");
    snprintf(name, sizeof name, "file:%s?vfs=pmo&size=64M", arguments[1]);
    snprintf(other, sizeof other, "file:%s?vfs=pmo&object=copy.db", arguments[1]);
    sqlite3 *db = opened(name);
    run(db, "PRAGMA cache_size=20; CREATE TABLE t(a INTEGER PRIMARY KEY, b)");
    run(db, "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n WHERE i<3000)"
            " INSERT INTO t SELECT i, hex(randomblob(200)) FROM n");
    run(db, "BEGIN; DELETE FROM t; ROLLBACK");
    run(db, "BEGIN; SAVEPOINT s; UPDATE t SET b = NULL; ROLLBACK TO s; DELETE FROM t WHERE a > 2000; COMMIT");
    expect(db, "SELECT count(*) FROM t WHERE b IS NOT NULL", 2000);
    blob_in_place(db);
    pthread_t threads[THREADS];
    for (long thread = 0; thread < THREADS; thread++)
        pthread_create(&threads[thread], NULL, writer, (void *)thread);
    for (int thread = 0; thread < THREADS; thread++)
        pthread_join(threads[thread], NULL);
    expect(db, "SELECT count(*) FROM t", 2000 + THREADS * EACH * 4 / 5);
    back_up(db);
    char sql[5000];
    snprintf(sql, sizeof sql, "ATTACH '%s' AS copy", other);
    run(db, sql);
    run(db, "BEGIN; DELETE FROM main.t WHERE a < 100; DELETE FROM copy.t WHERE a < 100; COMMIT; DETACH copy");
    run(db, "SELECT pmo_commit('ticket'); DELETE FROM t WHERE a % 2; SELECT pmo_wait(); VACUUM");
    expect(db, "SELECT count(*) FROM pragma_integrity_check WHERE integrity_check <> 'ok'", 0);
    must(db, sqlite3_close(db), "close");
    puts("done");
    return 0;
}
