/* For programs that keep pointers to their own functions and constants in an object, as interpreters and databases do: refuses an
 * object that another program made, or this one where it was loaded elsewhere. The first program that has the object records
 * itself in a root: its build ID, which every build with other code has another of, and the address it is loaded at.
 *
 * That is all of a program only if it is linked with -static and -no-pie: shared libraries are elsewhere in every run.
 */
#ifndef SAME_PROGRAM_H
#define SAME_PROGRAM_H

#ifndef _GNU_SOURCE
#error "define _GNU_SOURCE before anything is included: dl_iterate_phdr is an extension"
#endif

#include <link.h>
#include <pmo.h>
#include <stdio.h>
#include <string.h>

struct program {
    unsigned char build_id[32];
    uint64_t build_id_len;
    uint64_t start;
};
PMO_TYPE(program, PMO_FIELD(unsigned char[32], build_id), PMO_FIELD(uint64_t, build_id_len), PMO_FIELD(uint64_t, start))

/* The build ID among the notes of a segment. */
static inline void find_build_id(struct program *program, const char *notes, size_t len)
{
    while (len >= sizeof(ElfW(Nhdr))) {
        ElfW(Nhdr) note;
        memcpy(&note, notes, sizeof note);
        size_t name = (note.n_namesz + 3) & ~(size_t)3, body = (note.n_descsz + 3) & ~(size_t)3;
        const char *text = notes + sizeof note;
        if (sizeof note + name + body > len)
            return;
        if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == 4 && memcmp(text, "GNU", 4) == 0 &&
            note.n_descsz <= sizeof program->build_id) {
            memcpy(program->build_id, text + name, note.n_descsz);
            program->build_id_len = note.n_descsz;
        }
        notes += sizeof note + name + body;
        len -= sizeof note + name + body;
    }
}

/* dl_iterate_phdr begins with the program. */
static inline int look_at_program(struct dl_phdr_info *info, size_t size, void *context)
{
    struct program *program = context;
    (void)size;
    program->start = UINT64_MAX;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *segment = &info->dlpi_phdr[i];
        uint64_t address = info->dlpi_addr + segment->p_vaddr;
        if (segment->p_type == PT_LOAD && address < program->start)
            program->start = address;
        if (segment->p_type == PT_NOTE)
            find_build_id(program, (const char *)(uintptr_t)address, segment->p_memsz);
    }
    return 1;
}

/* NULL if this program may use the object's values, which needs its heap open; else the reason. */
static inline const char *refuse_another_program(void *object)
{
    struct program now = {.start = 0};
    dl_iterate_phdr(look_at_program, &now);
    if (now.build_id_len == 0)
        return "this program has no build ID: link it with -Wl,--build-id";
    struct program *made = pmo_root(object, "program", PMO_TYPEOF(program));
    if (made != NULL) {
        if (made->build_id_len != now.build_id_len || memcmp(made->build_id, now.build_id, now.build_id_len) != 0)
            return "another build of the program made it, with functions elsewhere: run that one, or begin with a new object";
        if (made->start != now.start)
            return "the program was loaded elsewhere when it made it: link it with -static -no-pie, and begin with a new object";
        return NULL;
    }
    if (pmo_errno() != PMO_ERR_ROOT_MISSING)
        return pmo_error_message();
    made = pmo_malloc(object, sizeof *made);
    if (made == NULL)
        return pmo_error_message();
    *made = now;
    if (pmo_root_create(object, "program", made, sizeof *made, PMO_TYPEOF(program)) != 0)
        return pmo_error_message();
    return NULL;
}

#endif
