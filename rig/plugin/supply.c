#define _GNU_SOURCE
#include "supply.h"
#include "qemu.h"

#include <dlfcn.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <sys/ioctl.h>
#include <time.h>

/* The state of a running machine. The machine's processor sets all this; the emulator's main thread
   reads it, too. */
static atomic_int lines = TIOCM_CD | TIOCM_CTS | TIOCM_DSR;
static atomic_ulong looks, hold, failed;
static atomic_bool over;

static uint64_t now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * 1000000000ul + time.tv_nsec;
}

void supply_set(int bits)
{
    lines = bits & (TIOCM_CD | TIOCM_CTS | TIOCM_DSR | TIOCM_RI);
}

void supply_fail(uint64_t looks_, uint64_t milliseconds)
{
    hold = milliseconds * 1000000;
    looks = looks_;
}

bool supply_over(void)
{
    return over;
}

uint64_t supply_failed(void)
{
    return failed ? now() - failed : 0;
}

static void pass_time(void)
{
    if (looks && !--looks) {
        lines &= ~TIOCM_CD;
        failed = now();
    }
    if (failed && now() - failed > hold) over = true;
}

/* All ioctl calls of the emulator; it asks no other port for lines. */
EXPORT int ioctl(int fd, unsigned long request, ...)
{
    static int (*next)(int, unsigned long, ...);
    va_list rest;
    va_start(rest, request);
    void *argument = va_arg(rest, void *);
    va_end(rest);
    if (request == TIOCMGET) {
        pass_time();
        *(int *)argument = lines;
        return 0;
    }
    /* Lines set by the machine end here. */
    if (request == TIOCMSET) return 0;
    if (!next) next = (int (*)(int, unsigned long, ...))dlsym(RTLD_NEXT, "ioctl");
    return next(fd, request, argument);
}
