#line 1 "in.c"
#include <pmo.h>
#include <string.h>
struct where { int x, y; };
 struct item {
    int id;
    struct item *next;
    
    
struct pmo_extensions extensions; };
#line 7 "in.c"
struct itemExtension1 { int stock; char name[8];
};
#line 8 "in.c"
struct itemExtension2 { long more; struct where at; struct item *other;
};
#line 4 "in.c"
static inline const struct pmo_type *pmo_type_item(void);
#line 4 "in.c"
static inline const struct pmo_type *pmo_type_itemExtension1(void);
static inline void pmo_leds_init_item_1(struct item *, struct itemExtension1 *);
#line 4 "in.c"
PMO_LEDS_INIT(item, 1)
#line 4 "in.c"
static inline const struct pmo_type *pmo_type_itemExtension2(void);
#line 4 "in.c"
static struct pmo_extension pmo_leds_of_item[] = {{"item", pmo_type_itemExtension1, pmo_leds_computed_item_1, 0}, {"item", pmo_type_itemExtension2, NULL, 0}};
#line 4 "in.c"
PMO_LEDS_ALL(item, 2)
#line 4 "in.c"
PMO_LEDS_EXTENSION(item, 1)
#line 4 "in.c"
PMO_LEDS_FIELD(item, 1, stock)
#line 4 "in.c"
PMO_LEDS_EXTENSION(item, 2)
#line 4 "in.c"
PMO_LEDS_FIELD(item, 2, more)
#line 4 "in.c"
PMO_LEDS_FIELD(item, 2, at)
#line 4 "in.c"
PMO_LEDS_FIELD(item, 2, other)
#line 4 "in.c"
static inline const struct pmo_type *pmo_leds_type_order(void);
#line 9 "in.c"

struct order { int n; struct item items[2]; };
int f(struct item *p) { return pmo_leds_item_get_stock(p); }

#line 7 "in.c"
static inline void pmo_leds_init_item_1(struct item *it, struct itemExtension1 *pmo_own)
#line 7 "in.c"
{ (void)it; (void)pmo_own; { pmo_own->stock = it->id; } }
static inline const struct pmo_type *pmo_leds_type_where(void);
static inline const struct pmo_type *pmo_leds_type_order(void);
static inline const struct pmo_type *pmo_leds_type_where(void) { static const struct pmo_field fields[] = {{"x", "i32", offsetof(struct where, x), sizeof(((struct where *)0)->x), NULL, NULL}, {"y", "i32", offsetof(struct where, y), sizeof(((struct where *)0)->y), NULL, NULL}}; static const struct pmo_type type = {"where", sizeof(struct where), fields, 2, PMO_STRUCT, __alignof__(struct where)}; return &type; }
static inline const struct pmo_type *pmo_leds_type_order(void) { static const struct pmo_field fields[] = {{"n", "i32", offsetof(struct order, n), sizeof(((struct order *)0)->n), NULL, NULL}, {"items", "struct item[2]", offsetof(struct order, items), sizeof(((struct order *)0)->items), pmo_type_item, NULL}}; static const struct pmo_type type = {"order", sizeof(struct order), fields, 2, PMO_STRUCT, __alignof__(struct order)}; return &type; }
#line 4 "in.c"
static inline const struct pmo_type *pmo_type_item(void) { static const struct pmo_field fields[] = {{"id", "i32", offsetof(struct item, id), sizeof(((struct item *)0)->id), NULL, NULL}, {"next", "item *", offsetof(struct item, next), sizeof(((struct item *)0)->next), NULL, pmo_type_item}, {"extensions", "", offsetof(struct item, extensions), sizeof(struct pmo_extensions), pmo_type_pmo_extensions, NULL}}; static const struct pmo_type type = {"item", sizeof(struct item), fields, 3, PMO_STRUCT, __alignof__(struct item)}; return &type; }
#line 4 "in.c"
static inline const struct pmo_type *pmo_type_itemExtension1(void) { static const struct pmo_field fields[] = {{"stock", "i32", offsetof(struct itemExtension1, stock), sizeof(((struct itemExtension1 *)0)->stock), NULL, NULL}, {"name", "i8[8]", offsetof(struct itemExtension1, name), sizeof(((struct itemExtension1 *)0)->name), NULL, NULL}}; static const struct pmo_type type = {"itemExtension1", sizeof(struct itemExtension1), fields, 2, PMO_STRUCT, __alignof__(struct itemExtension1)}; return &type; }
#line 4 "in.c"
static inline const struct pmo_type *pmo_type_itemExtension2(void) { static const struct pmo_field fields[] = {{"more", "i64", offsetof(struct itemExtension2, more), sizeof(((struct itemExtension2 *)0)->more), NULL, NULL}, {"at", "struct where", offsetof(struct itemExtension2, at), sizeof(((struct itemExtension2 *)0)->at), pmo_leds_type_where, NULL}, {"other", "item *", offsetof(struct itemExtension2, other), sizeof(((struct itemExtension2 *)0)->other), NULL, pmo_type_item}}; static const struct pmo_type type = {"itemExtension2", sizeof(struct itemExtension2), fields, 3, PMO_STRUCT, __alignof__(struct itemExtension2)}; return &type; }
