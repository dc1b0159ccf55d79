/* For programs that keep pointers to their own functions, constants or virtual tables in an object,
 * such as interpreters and databases: refuses an object of another program, or of this one loaded
 * elsewhere. The first program that has the object records its build ID and its load address in a
 * root.
 *
 *     const char *refused = pmo_refuse_another_program(object);
 *     if (refused != NULL)
 *         fprintf(stderr, "%s\n", refused);
 *
 * Link with -no-pie. Functions and tables of shared libraries move in every run, unchecked: -static
 * avoids them. */
#ifndef PMO_SAME_PROGRAM_H
#define PMO_SAME_PROGRAM_H

#ifndef _GNU_SOURCE
#error "define _GNU_SOURCE before anything is included: dl_iterate_phdr is an extension"
#endif

#include <link.h>
#include <pmo.h>
#include <string.h>

/* A program, as a root keeps it. */
struct pmo_program {
    unsigned char build_id[32];
    uint64_t build_id_len;
    uint64_t start;
};
PMO_TYPE_WAS(pmo_program, "struct program", PMO_FIELD(unsigned char[32], build_id), PMO_FIELD(uint64_t, build_id_len),
             PMO_FIELD(uint64_t, start))

/* This program, and whether it is loaded where it was linked to be. */
struct pmo_program_now {
    struct pmo_program program;
    int is_in_place;
};

/* The build ID among the notes of a segment. */
static inline void pmo_find_build_id(struct pmo_program *program, const char *notes, size_t len)
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
static inline int pmo_look_at_program(struct dl_phdr_info *info, size_t size, void *context)
{
    struct pmo_program_now *now = (struct pmo_program_now *)context;
    (void)size;
    now->is_in_place = info->dlpi_addr == 0;
    now->program.start = UINT64_MAX;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *segment = &info->dlpi_phdr[i];
        uint64_t address = info->dlpi_addr + segment->p_vaddr;
        if (segment->p_type == PT_LOAD && address < now->program.start)
            now->program.start = address;
        if (segment->p_type == PT_NOTE)
            pmo_find_build_id(&now->program, (const char *)(uintptr_t)address, segment->p_memsz);
    }
    return 1;
}

/** NULL if this program may use the object's values, which needs its heap open; else the reason and
 * the remedy. The first program that asks records itself in the root "program". */
static inline const char *pmo_refuse_another_program(void *object)
{
    struct pmo_program_now now;
    memset(&now, 0, sizeof now);
    dl_iterate_phdr(pmo_look_at_program, &now);
    if (now.program.build_id_len == 0)
        return "this program has no build ID: link it with -Wl,--build-id";
    if (!now.is_in_place)
        return "this program is loaded elsewhere in each run, with its functions and tables: link it with -no-pie, and begin with a "
               "new object";
    struct pmo_program *made = (struct pmo_program *)pmo_root(object, "program", PMO_TYPEOF(pmo_program));
    if (made != NULL) {
        if (made->build_id_len != now.program.build_id_len ||
            memcmp(made->build_id, now.program.build_id, now.program.build_id_len) != 0)
            return "another build of the program made it, with functions elsewhere: run that one, or begin with a new object";
        if (made->start != now.program.start)
            return "the program was loaded elsewhere when it made it: link it with -no-pie, and begin with a new object";
        return NULL;
    }
    if (pmo_errno() != PMO_ERR_ROOT_MISSING)
        return pmo_error_message();
    made = (struct pmo_program *)pmo_malloc(object, sizeof *made);
    if (made == NULL)
        return pmo_error_message();
    *made = now.program;
    if (pmo_root_create(object, "program", made, sizeof *made, PMO_TYPEOF(pmo_program)) != 0)
        return pmo_error_message();
    return NULL;
}

#endif
