/* Reads many Protobuf messages of a known type into flat buffers, with a verdict for each.
 *
 * It is strict: a message is left to the library where it has a group, a field twice that is no list, two fields of a
 * oneof, a field in another wire type than its own, a number that an enum or a column has no room for, text that is not
 * UTF-8, or where it is no message at all. `wire.py` has the Python side. */
#define Py_LIMITED_API 0x030B0000
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include "../../../convert/native_memory.h"

/* Kinds of values; wire.py has the same. RAW32, RAW64: as they stand on the wire. */
enum { INT32, UINT32, INT64, UINT64, SINT32, SINT64, BOOL, ENUM, FIXED32, RAW32, FIXED64, RAW64, TEXT, BYTES, MESSAGE, TIMESTAMP, KINDS };
enum { VARINT, WIDE, SIZED, START, END, NARROW }; /* wire types */
enum { READ, OTHER, NO_MEMORY };                  /* how reading ends; OTHER: it is for the library */
enum { MOST_DEPTH = 200 };
static const size_t sizes[KINDS] = {4, 8, 8, 8, 4, 8, 1, 4, 8, 4, 8, 8, 4, 4, 0, 8}; /* of a value; of text, of its begin */
static const int wires[KINDS] = {VARINT, VARINT, VARINT, VARINT, VARINT, VARINT, VARINT, VARINT,
                                 NARROW, NARROW, WIDE,   WIDE,   SIZED,  SIZED,  SIZED,  SIZED};

/* A field: the values of all messages above it, or the items of all their lists. What was not written to is 0. */
typedef struct Column {
    uint32_t number;
    int kind, is_list, is_wrapped; /* is_wrapped: it is field 1 of a message in its place */
    int oneof;                     /* which of its message's, or -1 */
    int32_t *numbers;              /* of an enum; a value is the place of its number among these */
    Py_ssize_t number_count;
    struct Column *fields; /* of a message */
    Py_ssize_t field_count;
    Py_ssize_t *oneofs; /* of a message: the last row of each that has one of its fields */
    Py_ssize_t last;    /* the last row that has the field */
    int32_t *starts;    /* of a list, by row of the message above: its first item */
    Py_ssize_t started, start_room;
    Py_ssize_t count, room; /* items of lists so far; values that there is room for */
    char *present;
    void *values;     /* of text int32_t: where each one begins */
    Py_ssize_t begun; /* of text: values whose begin is written */
    char *text;
    size_t size, text_room;
} Column;

typedef struct {
    const unsigned char *at, *end;
} Reader;

static int read_message(Reader *self, Column *message, Py_ssize_t row);

static int is_text(const Column *column) { return column->kind == TEXT || column->kind == BYTES; }

static void free_columns(Column *columns, Py_ssize_t count)
{
    for (Py_ssize_t i = 0; columns != NULL && i < count; i++) {
        free_columns(columns[i].fields, columns[i].field_count);
        free(columns[i].numbers);
        free(columns[i].oneofs);
        free(columns[i].starts);
        free(columns[i].present);
        free(columns[i].values);
        free(columns[i].text);
    }
    free(columns);
}

/* Grow an array so that it has `needed` entries, the new ones 0. */
static int grow(void *array, Py_ssize_t from, Py_ssize_t to, size_t size)
{
    void *old, *grown;
    memcpy(&old, array, sizeof old);
    if (size == 0)
        return READ;
    if ((grown = realloc(old, (size_t)to * size)) == NULL)
        return NO_MEMORY;
    memset((char *)grown + (size_t)from * size, 0, (size_t)(to - from) * size);
    memcpy(array, &grown, sizeof grown);
    return READ;
}

/* Room for so many values, and for the end of the last text. */
static int reserve(Column *column, Py_ssize_t count)
{
    if (count < column->room)
        return READ;
    Py_ssize_t room = count + count / 2 + 64;
    if (grow(&column->present, column->room, room, 1) != READ || grow(&column->values, column->room, room, sizes[column->kind]) != READ)
        return NO_MEMORY;
    column->room = room;
    return READ;
}

static void begin_text(Column *column, Py_ssize_t at)
{
    while (column->begun <= at)
        ((int32_t *)column->values)[column->begun++] = (int32_t)column->size;
}

/* Write where the lists begin of rows up to this one. */
static int begin_list(Column *column, Py_ssize_t row)
{
    if (row >= column->start_room) {
        Py_ssize_t room = row + row / 2 + 64;
        if (grow(&column->starts, column->start_room, room, sizeof(int32_t)) != READ)
            return NO_MEMORY;
        column->start_room = room;
    }
    while (column->started <= row)
        column->starts[column->started++] = (int32_t)column->count;
    return READ;
}

static int read_varint(Reader *self, uint64_t *number)
{
    *number = 0;
    for (int shift = 0; self->at < self->end && shift < 70; shift += 7) {
        unsigned char byte = *self->at++;
        *number |= (uint64_t)(byte & 0x7F) << shift;
        if (byte < 0x80)
            return shift == 63 && byte > 1 ? OTHER : READ;
    }
    return OTHER;
}

static int read_fixed(Reader *self, int size, uint64_t *number)
{
    if (self->end - self->at < size)
        return OTHER;
    *number = 0;
    for (int i = 0; i < size; i++)
        *number |= (uint64_t)self->at[i] << (8 * i);
    self->at += size;
    return READ;
}

/* Take what a length stands before as a reader of its own. */
static int read_sized(Reader *self, Reader *below)
{
    uint64_t size;
    if (read_varint(self, &size) != READ || size > (uint64_t)(self->end - self->at))
        return OTHER;
    *below = (Reader){self->at, self->at + size};
    self->at += size;
    return READ;
}

static int read_tag(Reader *self, uint64_t *tag)
{
    return read_varint(self, tag) == READ && *tag <= UINT32_MAX && *tag >> 3 != 0 ? READ : OTHER;
}

static int skip(Reader *self, int wire)
{
    uint64_t ignored;
    Reader below;
    switch (wire) {
    case VARINT:
        return read_varint(self, &ignored);
    case WIDE:
        return read_fixed(self, 8, &ignored);
    case SIZED:
        return read_sized(self, &below);
    case NARROW:
        return read_fixed(self, 4, &ignored);
    default:
        return OTHER;
    }
}

static int read_timestamp(Reader self, int64_t *into)
{
    static const int64_t first = INT64_C(-62135596800), last = INT64_C(253402300799); /* of the years 1 to 9999 */
    uint64_t parts[3] = {0}, tag;
    int seen[3] = {0};
    while (self.at < self.end) {
        if (read_tag(&self, &tag) != READ)
            return OTHER;
        if (tag >> 3 > 2) {
            if (skip(&self, tag & 7) != READ)
                return OTHER;
        } else if ((tag & 7) != VARINT || seen[tag >> 3]++ || read_varint(&self, &parts[tag >> 3]) != READ) {
            return OTHER;
        }
    }
    int64_t seconds = (int64_t)parts[1];
    int32_t nanos = (int32_t)(uint32_t)parts[2];
    if (seconds < first || seconds > last || nanos < 0 || nanos >= 1000000000)
        return OTHER;
    *into = seconds * 1000 + nanos / 1000000;
    return READ;
}

static int read_text(Reader text, Column *to, Py_ssize_t at)
{
    size_t size = (size_t)(text.end - text.at);
    begin_text(to, at);
    if (size > to->text_room - to->size) {
        size_t room = 2 * to->text_room + size + 4096;
        char *grown = realloc(to->text, room);
        if (grown == NULL)
            return NO_MEMORY;
        to->text = grown;
        to->text_room = room;
    }
    if (size > 0)
        memcpy(to->text + to->size, text.at, size);
    to->size += size;
    return to->kind == BYTES || is_utf8(text.at, text.end) ? READ : OTHER;
}

/* Place the number of an enum among its numbers. */
static int read_enum(const Column *to, int32_t number, int32_t *into)
{
    for (Py_ssize_t i = 0; i < to->number_count; i++)
        if (to->numbers[i] == number) {
            *into = (int32_t)i;
            return READ;
        }
    return OTHER;
}

static int read_number(Reader *self, Column *to, Py_ssize_t at)
{
    uint64_t number;
    int wire = wires[to->kind], ended = wire == VARINT ? read_varint(self, &number) : read_fixed(self, wire == WIDE ? 8 : 4, &number);
    if (ended != READ)
        return ended;
    uint32_t narrow = (uint32_t)number;
    switch (to->kind) {
    case SINT32:
        narrow = (narrow >> 1) ^ (0 - (narrow & 1)); /* fall through */
    case INT32:
    case RAW32:
        ((uint32_t *)to->values)[at] = narrow;
        return READ;
    case ENUM:
        return read_enum(to, (int32_t)narrow, (int32_t *)to->values + at);
    case BOOL:
        ((char *)to->values)[at] = number != 0;
        return READ;
    case UINT32:
    case FIXED32:
        number = narrow;
        break;
    case SINT64:
        number = (number >> 1) ^ (0 - (number & 1));
        break;
    case UINT64:
    case FIXED64:
        if (number > INT64_MAX)
            return OTHER;
    }
    ((uint64_t *)to->values)[at] = number;
    return READ;
}

/* A value behind its tag, or behind the value before it in a list. */
static int read_value(Reader *self, Column *to, Py_ssize_t at)
{
    Reader below;
    if (wires[to->kind] != SIZED)
        return read_number(self, to, at);
    if (read_sized(self, &below) != READ)
        return OTHER;
    if (to->kind == MESSAGE)
        return read_message(&below, to, at);
    if (to->kind == TIMESTAMP)
        return read_timestamp(below, (int64_t *)to->values + at);
    return read_text(below, to, at);
}

/* A value in a message of its own, in which it may be absent. */
static int read_wrapped(Reader *self, Column *to, Py_ssize_t at)
{
    Reader below;
    uint64_t tag;
    int seen = 0, ended = read_sized(self, &below);
    if (is_text(to))
        begin_text(to, at);
    while (ended == READ && below.at < below.end) {
        if (read_tag(&below, &tag) != READ)
            return OTHER;
        if (tag >> 3 != 1)
            ended = skip(&below, tag & 7);
        else
            ended = (int)(tag & 7) != wires[to->kind] || seen++ ? OTHER : read_value(&below, to, at);
    }
    return ended;
}

/* Take one more item into a list. */
static int read_item(Reader *self, Column *to)
{
    Py_ssize_t at = to->count++;
    if (reserve(to, at + 1) != READ)
        return NO_MEMORY;
    to->present[at] = 1;
    return to->is_wrapped ? read_wrapped(self, to, at) : read_value(self, to, at);
}

static int read_list(Reader *self, Column *to, Py_ssize_t row, int wire)
{
    Reader packed;
    int ended = begin_list(to, row), is_sized = to->is_wrapped || wires[to->kind] == SIZED;
    if (ended != READ)
        return ended;
    if (wire == (is_sized ? SIZED : wires[to->kind]))
        return read_item(self, to);
    if (is_sized || wire != SIZED || read_sized(self, &packed) != READ)
        return OTHER;
    while (ended == READ && packed.at < packed.end)
        ended = read_item(&packed, to);
    return ended;
}

static int read_single(Reader *self, Column *message, Column *to, Py_ssize_t row, int wire)
{
    if (to->last == row || wire != (to->is_wrapped ? SIZED : wires[to->kind]))
        return OTHER;
    to->last = row;
    if (to->oneof >= 0) {
        if (message->oneofs[to->oneof] == row)
            return OTHER;
        message->oneofs[to->oneof] = row;
    }
    if (reserve(to, row + 1) != READ)
        return NO_MEMORY;
    to->present[row] = 1;
    return to->is_wrapped ? read_wrapped(self, to, row) : read_value(self, to, row);
}

/* The field of a number, mostly the one after the last; NULL: none. */
static Column *find_field(Column *message, uint64_t number, Py_ssize_t *after)
{
    for (Py_ssize_t tried = 0; tried < message->field_count; tried++) {
        Py_ssize_t index = *after < message->field_count ? *after : 0;
        Column *field = &message->fields[index];
        *after = index + 1;
        if (field->number == number) {
            *after -= field->is_list; /* it may come again */
            return field;
        }
    }
    return NULL;
}

static int read_message(Reader *self, Column *message, Py_ssize_t row)
{
    Py_ssize_t after = 0;
    uint64_t tag;
    while (self->at < self->end) {
        if (read_tag(self, &tag) != READ)
            return OTHER;
        Column *field = find_field(message, tag >> 3, &after);
        int wire = tag & 7, ended = field == NULL ? skip(self, wire)
                                    : field->is_list ? read_list(self, field, row, wire)
                                                     : read_single(self, message, field, row, wire);
        if (ended != READ)
            return ended;
    }
    return READ;
}

/* Complete the columns of a message that has so many rows. */
static int finish(Column *columns, Py_ssize_t count, Py_ssize_t rows)
{
    for (Py_ssize_t i = 0; i < count; i++) {
        Column *column = &columns[i];
        if (column->is_list && begin_list(column, rows) != READ)
            return NO_MEMORY;
        column->count = column->is_list ? column->count : rows;
        if (reserve(column, column->count + 1) != READ)
            return NO_MEMORY;
        if (is_text(column))
            begin_text(column, column->count);
        if (finish(column->fields, column->field_count, column->count) != READ)
            return NO_MEMORY;
    }
    return READ;
}

/* Columns of (number, kind, is_list, is_wrapped, oneof, numbers, fields) each; NULL with an error set. */
static Column *make_columns(PyObject *fields, Py_ssize_t *count, int depth)
{
    *count = PyTuple_Size(fields);
    if (*count < 0)
        return NULL;
    Column *columns = calloc((size_t)*count + 1, sizeof(Column));
    if (columns == NULL || depth > MOST_DEPTH) {
        free(columns);
        PyErr_NoMemory();
        return NULL;
    }
    for (Py_ssize_t i = 0; i < *count; i++) {
        Column *column = &columns[i];
        PyObject *numbers, *below;
        column->last = -1;
        if (!PyArg_ParseTuple(PyTuple_GetItem(fields, i), "IippiO!O!", &column->number, &column->kind, &column->is_list,
                              &column->is_wrapped, &column->oneof, &PyTuple_Type, &numbers, &PyTuple_Type, &below))
            goto failed;
        column->number_count = PyTuple_Size(numbers);
        column->numbers = calloc((size_t)column->number_count + 1, sizeof(int32_t));
        if ((column->fields = make_columns(below, &column->field_count, depth + 1)) == NULL)
            goto failed;
        column->oneofs = malloc((size_t)(column->field_count + 1) * sizeof *column->oneofs);
        if (column->kind < 0 || column->kind >= KINDS || column->oneof < -1 || column->oneof >= *count)
            PyErr_SetString(PyExc_ValueError, "no field");
        else if (column->numbers == NULL || column->oneofs == NULL)
            PyErr_NoMemory();
        for (Py_ssize_t n = 0; !PyErr_Occurred() && n < column->number_count; n++)
            column->numbers[n] = (int32_t)PyLong_AsLong(PyTuple_GetItem(numbers, n));
        for (Py_ssize_t n = 0; column->oneofs != NULL && n < column->field_count; n++)
            column->oneofs[n] = -1;
        if (PyErr_Occurred())
            goto failed;
    }
    return columns;
failed:
    free_columns(columns, *count);
    return NULL;
}

/* Append (starts, count, present, values, text) of each column to a list, those of a message's fields behind it. */
static int give(PyTypeObject *memory, PyObject *into, Column *columns, Py_ssize_t count, Py_ssize_t rows)
{
    for (Py_ssize_t i = 0; i < count; i++) {
        Column *column = &columns[i];
        void *starts = column->starts, *values = column->values, *text = column->text;
        size_t entries = (size_t)column->count + (size_t)is_text(column);
        column->starts = NULL;
        column->text = NULL;
        column->values = column->kind == BOOL ? values : NULL;
        PyObject *given = Py_BuildValue(
            "NnNNN", column->is_list ? give_memory(memory, starts, (size_t)(rows + 1) * sizeof(int32_t)) : Py_NewRef(Py_None), column->count,
            give_bits(memory, column->present, column->count, 1),
            column->kind == BOOL ? give_bits(memory, values, column->count, 0) : give_memory(memory, values, entries * sizes[column->kind]),
            give_memory(memory, text, column->size));
        int added = given == NULL ? -1 : PyList_Append(into, given);
        Py_XDECREF(given);
        if (added < 0 || give(memory, into, column->fields, column->field_count, column->count) < 0)
            return -1;
    }
    return 0;
}

/* Read each message; others: 1 for each that is left to the library. */
static int read_all(Column *root, const unsigned char *data, const int32_t *offsets, Py_ssize_t rows, char *others)
{
    for (Py_ssize_t row = 0; row < rows; row++) {
        Reader self = {data + offsets[row], data + offsets[row + 1]};
        int ended = read_message(&self, root, row);
        if (ended == NO_MEMORY)
            return NO_MEMORY;
        others[row] = ended != READ;
    }
    return finish(root->fields, root->field_count, rows);
}

/* See `functions`. */
static PyObject *read_(PyObject *module, PyObject *args)
{
    PyObject *fields, *columns = NULL, *given = NULL;
    Py_buffer data, offsets;
    Py_ssize_t first, rows;
    PyTypeObject *memory = *(PyTypeObject **)PyModule_GetState(module);
    if (!PyArg_ParseTuple(args, "O!y*y*nn", &PyTuple_Type, &fields, &data, &offsets, &first, &rows))
        return NULL;
    int usable = first >= 0 && rows >= 0 && (first + rows + 1) * (Py_ssize_t)sizeof(int32_t) <= offsets.len;
    const int32_t *all = (const int32_t *)offsets.buf + (usable ? first : 0);
    for (Py_ssize_t row = 0; usable && row < rows; row++)
        usable = 0 <= all[row] && all[row] <= all[row + 1] && all[row + 1] <= data.len;
    Column root = {.kind = MESSAGE};
    PyObject *whole = Py_BuildValue("((iiiii()O))", 1, MESSAGE, 0, 0, -1, fields);
    Py_ssize_t count = 0;
    Column *made = whole == NULL ? NULL : make_columns(whole, &count, 0);
    char *others = calloc((size_t)(usable ? rows : 0) + 1, 1);
    int ended = NO_MEMORY;
    if (!usable) {
        PyErr_SetString(PyExc_ValueError, "there are not so many values");
    } else if (made != NULL && others != NULL) {
        root = made[0];
        Py_BEGIN_ALLOW_THREADS
        ended = read_all(&root, data.buf, all, rows, others);
        Py_END_ALLOW_THREADS
        if (ended == READ && (columns = PyList_New(0)) != NULL && give(memory, columns, root.fields, root.field_count, rows) == 0)
            given = Py_BuildValue("NO", PyBytes_FromStringAndSize(others, rows), columns);
    }
    if (given == NULL && !PyErr_Occurred())
        PyErr_NoMemory();
    Py_XDECREF(columns);
    Py_XDECREF(whole);
    free_columns(made, count);
    free(others);
    PyBuffer_Release(&data);
    PyBuffer_Release(&offsets);
    return given;
}

static PyMethodDef functions[] = {
    {"read", read_, METH_VARARGS,
     "read(fields, data, offsets, first, rows): 1 for each message that is left to the library, and (starts, count, "
     "present, values, text) of each column as Arrow's buffers; starts: of lists, else None; present: None where all "
     "are. fields: a tuple of (number, kind, is_list, is_wrapped, oneof, numbers, fields) each. data, offsets: of Arrow's "
     "binary array, first, rows: which of its values."},
    {NULL, NULL, 0, NULL},
};

static int prepare_module(PyObject *self)
{
    PyObject **type = PyModule_GetState(self);
    return (*type = PyType_FromSpec(&memory_spec)) == NULL ? -1 : 0;
}

static PyModuleDef_Slot module_slots[] = {{Py_mod_exec, (void *)prepare_module}, {0, NULL}};
static struct PyModuleDef module = {
    PyModuleDef_HEAD_INIT, "_native_protobuf", "Protobuf messages of a known type into flat buffers.", sizeof(PyObject *), functions, module_slots, NULL, NULL, NULL,
};

PyMODINIT_FUNC PyInit__native_protobuf(void) { return PyModuleDef_Init(&module); }
