/* Programs that `pmo run` starts, and starts again at another function after a death. */
#ifndef PMO_RESUME_H
#define PMO_RESUME_H

#include <pmo.h>
#include <stdlib.h>

#ifdef __cplusplus
extern "C" {
#endif

/** A program may define it: it is called in the place of the rest of main, with main's arguments, where an earlier process that ran in the view died. Its result is the program's exit status. */
extern int _resume(int argc, char **argv) __attribute__((weak));

#ifdef __cplusplus
}
#endif

/** To be called first in main: attaches the view that `pmo run` named. After a death it calls _resume, if there is one, and does not return then. Otherwise 0, or -1 if it fails. */
static inline int pmo_resume(int argc, char **argv)
{
    int resumed = 0;
    if (pmo_view_start(&resumed) != 0)
        return -1;
    if (resumed && _resume)
        exit(_resume(argc, argv));
    return 0;
}

#endif
