/* A Lua interpreter whose whole state is in an object: functions, tables, strings, and a coroutine with its stack.
 *
 *   lua POOL SCRIPT
 *
 * The script runs as a coroutine. Each yield is printed and psynced. After a kill the next run
 * continues behind the last yield, in the middle of the script's functions and loops; only the
 * first run reads the script's file.
 *
 * The state points to functions of the interpreter, whose addresses pmo/same_program.h checks.
 * Files of io.open end with the process.
 */
#define _GNU_SOURCE
#include <pmo/same_program.h>

#include <lauxlib.h>
#include <lua.h>
#include <lualib.h>
#include <stdio.h>
#include <stdlib.h>

struct machine {
    lua_State *main;
    lua_State *script;
    int64_t yields;
    int64_t ended;
};
PMO_TYPE(machine, PMO_FIELD(lua_State *, main), PMO_FIELD(lua_State *, script), PMO_FIELD(int64_t, yields), PMO_FIELD(int64_t, ended))

static void die(const char *what, const char *why)
{
    fprintf(stderr, "%s: %s\n", what, why);
    exit(1);
}

static void *allocate(void *object, void *block, size_t old_size, size_t size)
{
    (void)old_size;
    if (size > 0)
        return pmo_realloc(object, block, size);
    if (pmo_free(block) != 0)
        die("free", pmo_error_message());
    return NULL;
}

static int panic(lua_State *lua)
{
    die("lua", lua_tostring(lua, -1));
    return 0;
}

/* A machine with the script loaded. */
static struct machine *begin(void *object, const char *path)
{
    struct machine *machine = pmo_calloc(object, 1, sizeof *machine);
    lua_State *lua = machine == NULL ? NULL : lua_newstate(allocate, object);
    if (lua == NULL)
        die(path, pmo_error_message());
    lua_atpanic(lua, panic);
    luaL_openlibs(lua);
    machine->main = lua;
    /* The registry protects it from collection. */
    machine->script = lua_newthread(lua);
    luaL_ref(lua, LUA_REGISTRYINDEX);
    if (luaL_loadfile(machine->script, path) != LUA_OK)
        die("lua", lua_tostring(machine->script, -1));
    if (pmo_root_create(object, "machine", machine, sizeof *machine, PMO_TYPEOF(machine)) != 0)
        die(path, pmo_error_message());
    return machine;
}

static void step(struct machine *machine)
{
    int results = 0;
    int status = lua_resume(machine->script, machine->main, 0, &results);
    if (status == LUA_YIELD) {
        printf("%lld %s\n", (long long)++machine->yields, results > 0 ? luaL_tolstring(machine->script, -1, NULL) : "");
        lua_settop(machine->script, 0);
    } else if (status == LUA_OK) {
        machine->ended = 1;
    } else {
        die("lua", lua_tostring(machine->script, -1));
    }
}

int main(int argc, char **argv)
{
    if (argc != 3) {
        fprintf(stderr, "usage: %s POOL SCRIPT\n", argv[0]);
        return 2;
    }
    pmo_pool *pool = pmo_open_or_format(argv[1], 64 << 20, 0);
    if (pool == NULL)
        die(argv[1], pmo_error_message());
    struct pmo_stat stat;
    struct pmo_create_options options = {.size = 1 << 20, .reach = 1 << 30};
    if (pmo_stat(pool, "lua", &stat) != 0 && pmo_create_with(pool, "lua", &options) != 0)
        die(argv[1], pmo_error_message());
    void *object = pmo_attach(pool, "lua", PMO_WRITE, NULL, 0);
    if (object == NULL || pmo_heap_open_or_format(object, PMO_HEAP_GROW) != 0)
        die(argv[1], pmo_error_message());
    const char *refused = pmo_refuse_another_program(object);
    if (refused != NULL)
        die(argv[1], refused);
    struct machine *machine = pmo_root(object, "machine", PMO_TYPEOF(machine));
    if (machine == NULL && pmo_errno() != PMO_ERR_ROOT_MISSING)
        die(argv[1], pmo_error_message());
    if (machine == NULL)
        machine = begin(object, argv[2]);
    while (!machine->ended) {
        step(machine);
        if (pmo_psync(object) != 0)
            die("psync", pmo_error_message());
        fflush(stdout);
    }
    printf("ended after %lld yields\n", (long long)machine->yields);
    return pmo_detach(object) == 0 && pmo_close(pool) == 0 ? 0 : 1;
}
