/* Programs that `pmo run` starts, and starts again at another function after a death. */
#ifndef PMO_RESUME_H
#define PMO_RESUME_H

#include <pmo.h>
#include <stdlib.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Optional, defined by the program: pmo_resume calls it with main's arguments, in place of the
 * rest of main, where an earlier process in the view died. Its result is the program's exit status.
 */
extern int _resume(int argc, char **argv) __attribute__((weak));

#ifdef __cplusplus
}
#endif

/** First call of main: attaches the view that `pmo run` named. After a death it calls _resume, if
 * defined, and does not return. Otherwise 0, or -1 for an error. */
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
