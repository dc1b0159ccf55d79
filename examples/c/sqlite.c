/* SQLite's database ":memory:" in an object, with all that SQLite allocates: it outlives the
 * process.
 *
 *     sqlite POOL insert NUMBER   inserts rows up to this one, a transaction and a psync each
 *     sqlite POOL show            prints the number of rows, their sum, and whether all is whole
 *
 * After a kill the next run has the last psync's database, without opening it. It points to
 * functions and constants of SQLite, whose addresses pmo/same_program.h checks. */
#define _GNU_SOURCE
#include <pmo/same_program.h>

#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>

struct database {
    sqlite3 *connection;
};
PMO_TYPE(database, PMO_FIELD(sqlite3 *, connection))

static void *object;

static void die(const char *what, const char *why)
{
    fprintf(stderr, "%s: %s\n", what, why);
    exit(1);
}

static void *allocate(int size) { return pmo_malloc(object, (size_t)size); }
static void *reallocate(void *block, int size) { return pmo_realloc(object, block, (size_t)size); }
static int size_of(void *block) { return block == NULL ? 0 : (int)pmo_usable_size(block); }
static int round_up(int size) { return (size + 15) & ~15; }
static int begin(void *context) { return (void)context, SQLITE_OK; }
static void end(void *context) { (void)context; }

static void release(void *block)
{
    if (pmo_free(block) != 0)
        die("free", pmo_error_message());
}

/* One thread: SQLite then makes no process mutexes. */
static void configure(void)
{
    static const sqlite3_mem_methods methods = {allocate, release, reallocate, size_of, round_up, begin, end, NULL};
    if (sqlite3_config(SQLITE_CONFIG_SINGLETHREAD) != SQLITE_OK || sqlite3_config(SQLITE_CONFIG_MALLOC, &methods) != SQLITE_OK ||
        sqlite3_config(SQLITE_CONFIG_MEMSTATUS, 0) != SQLITE_OK || sqlite3_initialize() != SQLITE_OK)
        die("sqlite", "it cannot be configured");
}

static void run(sqlite3 *connection, const char *sql)
{
    char *why = NULL;
    if (sqlite3_exec(connection, sql, NULL, NULL, &why) != SQLITE_OK)
        die(sql, why);
}

static sqlite3_int64 number(sqlite3 *connection, const char *sql)
{
    sqlite3_stmt *statement;
    if (sqlite3_prepare_v2(connection, sql, -1, &statement, NULL) != SQLITE_OK || sqlite3_step(statement) != SQLITE_ROW)
        die(sql, sqlite3_errmsg(connection));
    sqlite3_int64 value = sqlite3_column_int64(statement, 0);
    sqlite3_finalize(statement);
    return value;
}

/* An empty one if missing. */
static sqlite3 *database(void)
{
    struct database *database = pmo_root(object, "database", PMO_TYPEOF(database));
    if (database != NULL)
        return database->connection;
    if (pmo_errno() != PMO_ERR_ROOT_MISSING || (database = pmo_malloc(object, sizeof *database)) == NULL)
        die("database", pmo_error_message());
    if (sqlite3_open(":memory:", &database->connection) != SQLITE_OK)
        die("sqlite", "the database cannot be opened");
    run(database->connection, "CREATE TABLE rows(number INTEGER PRIMARY KEY, square INTEGER, text TEXT);"
                              "CREATE INDEX by_text ON rows(text);"
                              "CREATE TABLE total(count INTEGER, sum INTEGER); INSERT INTO total VALUES (0, 0);"
                              "CREATE TRIGGER counted AFTER INSERT ON rows BEGIN "
                              "UPDATE total SET count = count + 1, sum = sum + NEW.square; END");
    if (pmo_root_create(object, "database", database, sizeof *database, PMO_TYPEOF(database)) != 0 || pmo_psync(object) != 0)
        die("database", pmo_error_message());
    return database->connection;
}

static void insert(sqlite3 *connection, sqlite3_int64 last)
{
    for (sqlite3_int64 next = number(connection, "SELECT count(*) FROM rows") + 1; next <= last; next++) {
        char sql[200];
        snprintf(sql, sizeof sql, "BEGIN; INSERT INTO rows VALUES (%lld, %lld, hex(randomblob(20))); COMMIT", (long long)next,
                 (long long)(next * next));
        run(connection, sql);
        if (pmo_psync(object) != 0)
            die("psync", pmo_error_message());
        printf("inserted %lld\n", (long long)next);
        fflush(stdout);
    }
}

static void show(sqlite3 *connection)
{
    if (number(connection, "SELECT count(*) = 1 FROM pragma_integrity_check WHERE integrity_check = 'ok'") != 1)
        die("sqlite", "the database is not whole");
    if (number(connection, "SELECT count(*) FROM rows INDEXED BY by_text WHERE text > ''") !=
        number(connection, "SELECT count FROM total"))
        die("sqlite", "the index or the trigger's table has another number of rows");
    printf("%lld rows, sum %lld\n", (long long)number(connection, "SELECT count(*) FROM rows"),
           (long long)number(connection, "SELECT sum FROM total"));
}

int main(int argc, char **argv)
{
    if (argc < 3) {
        fprintf(stderr, "usage: %s POOL insert NUMBER | show\n", argv[0]);
        return 2;
    }
    pmo_pool *pool = pmo_open_or_format(argv[1], 64 << 20, 0);
    if (pool == NULL)
        die(argv[1], pmo_error_message());
    struct pmo_stat stat;
    struct pmo_create_options options = {.size = 1 << 20, .reach = 1 << 30};
    if (pmo_stat(pool, "sqlite", &stat) != 0 && pmo_create_with(pool, "sqlite", &options) != 0)
        die(argv[1], pmo_error_message());
    object = pmo_attach(pool, "sqlite", PMO_WRITE, NULL, 0);
    if (object == NULL || pmo_heap_open_or_format(object, PMO_HEAP_GROW) != 0)
        die(argv[1], pmo_error_message());
    const char *refused = pmo_refuse_another_program(object);
    if (refused != NULL)
        die(argv[1], refused);
    configure();
    sqlite3 *connection = database();
    if (strcmp(argv[2], "insert") == 0 && argc == 4)
        insert(connection, atoll(argv[3]));
    else
        show(connection);
    return pmo_detach(object) == 0 && pmo_close(pool) == 0 ? 0 : 1;
}
