/* Buffers that Python takes over from C without a copy, and UTF-8. Include after Python.h. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
    PyObject_HEAD
    void *data;
    Py_ssize_t size;
} Memory;

static int get_buffer(PyObject *self, Py_buffer *view, int flags)
{
    return PyBuffer_FillInfo(view, self, ((Memory *)self)->data, ((Memory *)self)->size, 1, flags);
}

static void free_memory(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);
    free(((Memory *)self)->data);
    release(self);
    Py_DECREF(type);
}

static PyType_Slot memory_slots[] = {{Py_bf_getbuffer, (void *)get_buffer}, {Py_tp_dealloc, (void *)free_memory}, {0, NULL}};
static PyType_Spec memory_spec = {
    "parquet_sink.convert.Memory", sizeof(Memory), 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, memory_slots,
};

/* Return a read-only object of `size` bytes that owns `data`, which may have more room, or be NULL; NULL with an error
 * set. `data` is the object's, or freed. */
static PyObject *give_memory(PyTypeObject *type, void *data, size_t size)
{
    void *fitted = realloc(data, size + 1);
    if (fitted == NULL) {
        free(data);
        return PyErr_NoMemory();
    }
    Memory *memory = (Memory *)((allocfunc)PyType_GetSlot(type, Py_tp_alloc))(type, 0);
    if (memory == NULL) {
        free(fitted);
        return NULL;
    }
    memory->data = fitted;
    memory->size = (Py_ssize_t)size;
    return (PyObject *)memory;
}

/* Return the bits of flags that are 0 or 1, the first one lowest, as Arrow has them. or_none: None where all are 1. */
static PyObject *give_bits(PyTypeObject *type, const char *flags, Py_ssize_t count, int or_none)
{
    if (or_none && (count == 0 || memchr(flags, 0, (size_t)count) == NULL))
        return Py_NewRef(Py_None);
    unsigned char *bits = calloc((size_t)count / 8 + 1, 1);
    if (bits == NULL)
        return PyErr_NoMemory();
    for (Py_ssize_t i = 0; i < count; i++)
        bits[i / 8] |= (unsigned char)(flags[i] << (i % 8));
    return give_memory(type, bits, ((size_t)count + 7) / 8);
}

/* How many bytes the character takes that begins there; 0: it is not UTF-8. */
static inline size_t character_size(const unsigned char *at, const unsigned char *end)
{
    unsigned char lead = *at;
    size_t size = lead < 0x80 ? 1 : lead >= 0xC2 && lead <= 0xDF ? 2 : lead >= 0xE0 && lead <= 0xEF ? 3 : lead >= 0xF0 && lead <= 0xF4 ? 4 : 0;
    if (size == 0 || (size_t)(end - at) < size)
        return 0;
    unsigned char low = lead == 0xE0 ? 0xA0 : lead == 0xF0 ? 0x90 : 0x80, high = lead == 0xED ? 0x9F : lead == 0xF4 ? 0x8F : 0xBF;
    for (size_t i = 1; i < size; i++, low = 0x80, high = 0xBF)
        if (at[i] < low || at[i] > high)
            return 0;
    return size;
}

static inline int is_utf8(const unsigned char *at, const unsigned char *end)
{
    for (uint64_t word; end - at >= 8 && (memcpy(&word, at, 8), (word & UINT64_C(0x8080808080808080)) == 0);)
        at += 8; /* mostly it is ASCII */
    for (size_t size; at < end; at += size)
        if ((size = character_size(at, end)) == 0)
            return 0;
    return 1;
}
