/* SQLite databases in pools of Indelible, for programs that are linked with SQLite and with
 * libsqlite3-pmo.a: `pkg-config --static --libs sqlite3-pmo`. */
#ifndef SQLITE3_PMO_H
#define SQLITE3_PMO_H

#include <sqlite3.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef void (*sqlite3_pmo_function)(void);

/* The functions that sqlite3_pmo_register() passes, in its order. */
int sqlite3_pmo_register_with(const sqlite3_pmo_function functions[6]);

/* Registers the VFS "pmo" with the SQLite that the program is linked with, once or more often;
 * call it before sqlite3_open(). Connections that are opened on the VFS later have its functions of
 * SQL, journal_mode=MEMORY, and a large mmap_size. Returns SQLITE_OK, or SQLite's error. */
static inline int sqlite3_pmo_register(void) {
    const sqlite3_pmo_function functions[6] = {
        (sqlite3_pmo_function)sqlite3_vfs_find,       (sqlite3_pmo_function)sqlite3_vfs_register,
        (sqlite3_pmo_function)sqlite3_uri_parameter,  (sqlite3_pmo_function)sqlite3_log,
        (sqlite3_pmo_function)sqlite3_auto_extension, (sqlite3_pmo_function)sqlite3_exec,
    };
    return sqlite3_pmo_register_with(functions);
}

#ifdef __cplusplus
}
#endif

#endif
