/* Reads many JSON objects of a known schema into flat buffers, or gives up: then Arrow's reader takes them. Lists in them
 * become text, there or before that. Payloads are cut out of envelopes.
 *
 * It is strict: whatever is not plainly one JSON object with fields of the schema, each at most once and of its type,
 * makes it give up on all values. `fast.py` and `lists.py` have the Python side, and say what the answer must be.
 */
#define _GNU_SOURCE
#define Py_LIMITED_API 0x030B0000
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <float.h>
#include <locale.h>
#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#ifdef __APPLE__
#include <xlocale.h>
#endif
#include "../native_memory.h"

/* Kinds of columns; fast.py has the same. LISTS: text, and lists, which become text. */
enum { NOTHING, INTEGER, FRACTION, BOOLEAN, TEXT, OBJECT, LISTS, INTEGER32, INTEGER16, INTEGER8, KINDS };
static const size_t sizes[KINDS] = {0, 8, 8, 1, 4, 0, 4, 4, 2, 1}; /* bytes of a value; of text, of where it begins */
static const int64_t most[KINDS] = {0, INT64_MAX, 0, 0, 0, 0, 0, INT32_MAX, INT16_MAX, INT8_MAX};
enum { READ, OTHER, NO_MEMORY };                            /* how reading ends; OTHER: it is for Arrow's reader */
enum { MOST_DEPTH = 200 };
enum { MOST_SPACE = 64, MOST_KEYS = 32 }; /* of a list that becomes text: before it, as in lists.py; of an object in it */

/* A column of values by row. Rows that nothing was written to are null. */
typedef struct Column {
    int kind;
    char *name; /* without a quote, a backslash or a control character: it stands so in JSON */
    size_t name_size;
    struct Column *fields; /* of an object */
    Py_ssize_t field_count;
    char *present; /* 1 for each row that has a value */
    void *values;  /* integers, double, or char of a boolean, by row; of text int32_t: where each row's begins */
    Py_ssize_t begun; /* of text: rows whose begin is written */
    char *text;
    size_t size, room;
    Py_ssize_t last; /* the last row that has the field, null or not */
} Column;

typedef struct {
    const unsigned char *at, *end;
    Py_ssize_t row;
    int levels;   /* that a list may have */
    int escaping; /* lists become what stands in a string, not its text */
    unsigned char *room; /* for a list, as much as a record has */
} Reader;

static locale_t c_locale;

static int read_object(Reader *self, Column *object);
static int copy_value(Reader *self, unsigned char **out, int depth);

static int is_text(const Column *column) { return column->kind == TEXT || column->kind == LISTS; }

static void free_columns(Column *columns, Py_ssize_t count)
{
    for (Py_ssize_t i = 0; columns != NULL && i < count; i++) {
        free_columns(columns[i].fields, columns[i].field_count);
        free(columns[i].name);
        free(columns[i].present);
        free(columns[i].values);
        free(columns[i].text);
    }
    free(columns);
}

/* Room for so many rows. */
static int prepare(Column *columns, Py_ssize_t count, Py_ssize_t rows)
{
    for (Py_ssize_t i = 0; i < count; i++) {
        Column *one = &columns[i];
        size_t size = sizes[one->kind];
        one->last = -1;
        one->present = calloc((size_t)rows + 1, 1);
        one->values = size == 0 ? NULL : calloc((size_t)rows + 1, size);
        if (one->present == NULL || (size > 0 && one->values == NULL) || prepare(one->fields, one->field_count, rows) < 0)
            return -1;
    }
    return 0;
}

static void skip_space(Reader *self)
{
    while (self->at < self->end && (*self->at == ' ' || *self->at == '\n' || *self->at == '\t' || *self->at == '\r'))
        self->at++;
}

static int take_character(Reader *self, unsigned char character)
{
    int is_there = self->at < self->end && *self->at == character;
    self->at += is_there;
    return is_there;
}

static int take(Reader *self, const char *word)
{
    size_t size = strlen(word);
    if ((size_t)(self->end - self->at) < size || memcmp(self->at, word, size) != 0)
        return 0;
    self->at += size;
    return 1;
}

static int is_digit(Reader *self) { return self->at < self->end && *self->at >= '0' && *self->at <= '9'; }

/* Digits, at least one; the number they make if `count`, which counts them without leading zeros, is 19 at most. */
static int read_digits(Reader *self, uint64_t *number, int *count)
{
    if (!is_digit(self))
        return OTHER;
    for (; is_digit(self); self->at++) {
        if (*count < 19)
            *number = *number * 10 + (uint64_t)(*self->at - '0');
        *count += *number > 0;
    }
    return READ;
}

/* The part of a number before its fraction, which begins with 0 only where that is all. */
static int read_whole(Reader *self, int *negative, uint64_t *number, int *count)
{
    *negative = take(self, "-");
    if (take(self, "0"))
        return is_digit(self) ? OTHER : READ;
    return read_digits(self, number, count);
}

static int read_integer(Reader *self, Column *to)
{
    int negative, count = 0;
    uint64_t number = 0;
    if (read_whole(self, &negative, &number, &count) != READ || count > 19 || number > (uint64_t)most[to->kind] + (uint64_t)negative ||
        (negative && number == 0))
        return OTHER; /* a fraction, too, as what follows is no delimiter */
    int64_t value = (int64_t)(negative ? 0 - number : number);
    if (to->kind == INTEGER)
        ((int64_t *)to->values)[self->row] = value;
    else if (to->kind == INTEGER32)
        ((int32_t *)to->values)[self->row] = (int32_t)value;
    else if (to->kind == INTEGER16)
        ((int16_t *)to->values)[self->row] = (int16_t)value;
    else
        ((int8_t *)to->values)[self->row] = (int8_t)value;
    return READ;
}

static int read_fraction(Reader *self, double *into)
{
    static const double powers[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,  1e10, 1e11,
                                    1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
    const unsigned char *begin = self->at;
    int negative, count = 0, is_short = 1;
    uint64_t number = 0;
    ptrdiff_t digits = 0;
    if (read_whole(self, &negative, &number, &count) != READ)
        return OTHER;
    if (take(self, ".")) {
        const unsigned char *point = self->at;
        if (read_digits(self, &number, &count) != READ)
            return OTHER;
        digits = self->at - point;
    }
    if (take(self, "e") || take(self, "E")) {
        uint64_t exponent = 0;
        int ignored = 0;
        if (!take(self, "+"))
            take(self, "-");
        if (read_digits(self, &exponent, &ignored) != READ)
            return OTHER;
        is_short = 0;
    }
    if (FLT_EVAL_METHOD == 0 && is_short && count <= 15 && digits <= 22) { /* both are exact, so the quotient is the nearest */
        *into = (double)number / powers[digits];
        if (negative)
            *into = -*into;
        return READ;
    }
    char *stopped; /* at the latest by the bracket that ends the value */
    *into = strtod_l((const char *)begin, &stopped, c_locale);
    return (const unsigned char *)stopped == self->at && isfinite(*into) ? READ : OTHER;
}

static int append(Column *to, const void *text, size_t size)
{
    if (size > to->room - to->size) {
        size_t room = to->room < 4096 ? 4096 : to->room;
        while (room - to->size < size)
            room *= 2;
        char *grown = realloc(to->text, room);
        if (grown == NULL)
            return NO_MEMORY;
        to->text = grown;
        to->room = room;
    }
    if (size > 0)
        memcpy(to->text + to->size, text, size);
    to->size += size;
    return READ;
}

/* Four hexadecimal digits; -1: none. */
static long read_hex(Reader *self)
{
    long found = 0;
    if (self->end - self->at < 4)
        return -1;
    for (int i = 0; i < 4; i++) {
        unsigned char digit = *self->at++, lower = digit | 0x20;
        if (digit >= '0' && digit <= '9')
            found = found * 16 + digit - '0';
        else if (lower >= 'a' && lower <= 'f')
            found = found * 16 + lower - 'a' + 10;
        else
            return -1;
    }
    return found;
}

/* What stands for a character, behind the backslash. */
static int read_escape(Reader *self, Column *to)
{
    static const char from[] = "\"\\/bfnrt", into[] = "\"\\/\b\f\n\r\t";
    const char *known = self->at < self->end && *self->at != 0 ? strchr(from, *self->at) : NULL;
    if (known != NULL) {
        self->at++;
        return append(to, &into[known - from], 1);
    }
    if (!take(self, "u"))
        return OTHER;
    long code = read_hex(self);
    if (code <= 0 || (code >= 0xDC00 && code <= 0xDFFF))
        return OTHER;
    if (code >= 0xD800 && code <= 0xDBFF) {
        long low = take(self, "\\u") ? read_hex(self) : -1;
        if (low < 0xDC00 || low > 0xDFFF)
            return OTHER;
        code = 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00);
    }
    unsigned char out[4];
    int size = code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
    for (int i = size - 1; i > 0; i--, code >>= 6)
        out[i] = (unsigned char)(0x80 | (code & 0x3F));
    static const unsigned char leads[] = {0, 0, 0xC0, 0xE0, 0xF0};
    out[0] = (unsigned char)(leads[size] | code);
    return append(to, out, (size_t)size);
}

/* The first quote, backslash or control character, if `ascii` any byte beyond ASCII, too; the end where there is none. */
static const unsigned char *skip_plain(const unsigned char *at, const unsigned char *end, int ascii)
{
#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    const uint64_t ones = UINT64_C(0x0101010101010101), highs = ones * 0x80;
    for (uint64_t word; end - at >= 8; at += 8) {
        memcpy(&word, at, 8);
        uint64_t quotes = word ^ (ones * '"'), backslashes = word ^ (ones * '\\');
        uint64_t ends = ((quotes - ones) & ~quotes) | ((backslashes - ones) & ~backslashes) | ((word - ones * 0x20) & ~word);
        ends = (ends | (ascii ? word : 0)) & highs; /* of a byte that ends it, but for those after the first one */
        if (ends != 0)
            return at + __builtin_ctzll(ends) / 8;
    }
#endif
    while (at < end && *at >= 0x20 && *at != '"' && *at != '\\' && !(ascii && *at >= 0x80))
        at++;
    return at;
}

static void begin_text(Reader *self, Column *to)
{
    int32_t *begins = to->values;
    while (to->begun <= self->row)
        begins[to->begun++] = (int32_t)to->size;
}

/* Text behind its quote; whether it is UTF-8 is for the Python side to look at. */
static int read_text(Reader *self, Column *to)
{
    begin_text(self, to);
    for (;;) {
        const unsigned char *begin = self->at;
        self->at = skip_plain(begin, self->end, 0);
        if (self->at == self->end || *self->at < 0x20)
            return OTHER;
        int ended = append(to, begin, (size_t)(self->at - begin));
        if (ended != READ || *self->at++ == '"')
            return ended;
        if ((ended = read_escape(self, to)) != READ)
            return ended;
    }
}

/* A list as JSON text, which is no longer than it is. */
static int read_list(Reader *self, Column *to)
{
    begin_text(self, to);
    unsigned char *out = self->room;
    int ended = copy_value(self, &out, self->levels);
    return ended == READ ? append(to, self->room, (size_t)(out - self->room)) : ended;
}

static int read_value(Reader *self, Column *to)
{
    int ended = READ;
    if (self->at < self->end && *self->at == 'n')
        return take(self, "null") ? READ : OTHER;
    switch (to->kind) {
    case INTEGER:
    case INTEGER32:
    case INTEGER16:
    case INTEGER8:
        ended = read_integer(self, to);
        break;
    case FRACTION:
        ended = read_fraction(self, (double *)to->values + self->row);
        break;
    case BOOLEAN:
        if (take(self, "true"))
            ((char *)to->values)[self->row] = 1;
        else if (!take(self, "false"))
            return OTHER;
        break;
    case LISTS:
        if (self->at < self->end && *self->at == '[') {
            ended = read_list(self, to);
            break;
        } /* else as text */
    case TEXT:
        ended = take_character(self, '"') ? read_text(self, to) : OTHER;
        break;
    case OBJECT:
        ended = read_object(self, to);
        break;
    default:
        return OTHER;
    }
    to->present[self->row] = 1;
    return ended;
}

/* As memcmp, which is dearer for names. Some of the last bytes are compared twice rather than one by one. */
static int is_equal(const unsigned char *text, const char *name, size_t size)
{
    uint64_t left, right;
    uint32_t narrow_left, narrow_right;
    size_t at = 0;
    for (; size - at >= 8; at += 8) {
        memcpy(&left, text + at, 8);
        memcpy(&right, name + at, 8);
        if (left != right)
            return 0;
    }
    for (; size >= 4 && at < size; at += 4) {
        at = at + 4 > size ? size - 4 : at;
        memcpy(&narrow_left, text + at, 4);
        memcpy(&narrow_right, name + at, 4);
        if (narrow_left != narrow_right)
            return 0;
    }
    for (; at < size; at++)
        if (text[at] != (unsigned char)name[at])
            return 0;
    return 1;
}

/* The field whose name and quote come next, mostly the one after the last; NULL: none of these. */
static Column *next_field(Reader *self, Column *object, Py_ssize_t *after)
{
    for (Py_ssize_t tried = 0; tried < object->field_count; tried++) {
        Py_ssize_t index = *after < object->field_count ? *after : 0;
        Column *one = &object->fields[index];
        *after = index + 1;
        if ((size_t)(self->end - self->at) > one->name_size && self->at[one->name_size] == '"' && is_equal(self->at, one->name, one->name_size)) {
            self->at += one->name_size + 1;
            return one;
        }
    }
    return NULL;
}

static int read_object(Reader *self, Column *object)
{
    Py_ssize_t after = 0;
    if (!take_character(self, '{'))
        return OTHER;
    skip_space(self);
    if (take_character(self, '}'))
        return READ;
    for (;;) {
        Column *field = take_character(self, '"') ? next_field(self, object, &after) : NULL;
        if (field == NULL || field->last == self->row)
            return OTHER;
        field->last = self->row;
        skip_space(self);
        if (!take_character(self, ':'))
            return OTHER;
        skip_space(self);
        int ended = read_value(self, field);
        if (ended != READ)
            return ended;
        skip_space(self);
        if (take_character(self, '}'))
            return READ;
        if (!take_character(self, ','))
            return OTHER;
        skip_space(self);
    }
}

static int read_all(Column *root, const Py_buffer *data, const int32_t *offsets, Py_ssize_t rows, int levels)
{
    Reader self = {.levels = levels};
    int32_t longest = 0;
    for (Py_ssize_t row = 0; row < rows; row++) {
        int32_t begin = offsets[row], end = offsets[row + 1];
        if (begin < 0 || begin >= end || end > data->len)
            return OTHER;
        longest = end - begin > longest ? end - begin : longest;
    }
    if ((self.room = malloc((size_t)longest + 1)) == NULL)
        return NO_MEMORY;
    int ended = READ;
    for (self.row = 0; self.row < rows && ended == READ; self.row++) {
        int32_t begin = offsets[self.row], end = offsets[self.row + 1];
        self.at = (const unsigned char *)data->buf + begin;
        self.end = (const unsigned char *)data->buf + end;
        ended = self.end[-1] == '}' ? read_object(&self, root) : OTHER; /* where a number ends at the latest */
        if (ended == READ && self.at != self.end)
            ended = OTHER;
    }
    free(self.room);
    return ended;
}

/* Columns of (name, kind, fields) each; NULL with an error set. */
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
        Column *one = &columns[i];
        char *name;
        Py_ssize_t size;
        PyObject *given, *below;
        if (!PyArg_ParseTuple(PyTuple_GetItem(fields, i), "OiO!", &given, &one->kind, &PyTuple_Type, &below) ||
            PyBytes_AsStringAndSize(given, &name, &size) < 0)
            goto failed;
        if (one->kind < NOTHING || one->kind >= KINDS) {
            PyErr_SetString(PyExc_ValueError, "no kind of column");
            goto failed;
        }
        one->name = malloc((size_t)size + 1);
        if (one->name == NULL) {
            PyErr_NoMemory();
            goto failed;
        }
        memcpy(one->name, name, (size_t)size);
        one->name_size = (size_t)size;
        if ((one->fields = make_columns(below, &one->field_count, depth + 1)) == NULL)
            goto failed;
    }
    return columns;
failed:
    free_columns(columns, *count);
    return NULL;
}

/* Appends (present, values, text) of each column to a list, those of an object's fields behind it. */
static int give(PyTypeObject *memory, PyObject *into, Column *columns, Py_ssize_t count, Py_ssize_t rows)
{
    for (Py_ssize_t i = 0; i < count; i++) {
        Column *one = &columns[i];
        Reader behind = {.row = rows};
        if (is_text(one))
            begin_text(&behind, one);
        void *values = one->values, *text = one->text;
        one->text = NULL;
        size_t entries = (size_t)(is_text(one) ? rows + 1 : rows);
        one->values = one->kind == BOOLEAN ? values : NULL;
        PyObject *found = Py_BuildValue("NNN", give_bits(memory, one->present, rows, 1),
                                        one->kind == BOOLEAN ? give_bits(memory, values, rows, 0)
                                                             : give_memory(memory, values, entries * sizes[one->kind]),
                                        give_memory(memory, text, one->size));
        int added = found == NULL ? -1 : PyList_Append(into, found);
        Py_XDECREF(found);
        if (added < 0 || give(memory, into, one->fields, one->field_count, rows) < 0)
            return -1;
    }
    return 0;
}

/* The type of buffers that are given, which lives as long as the module. */
static PyTypeObject *memory_type(PyObject *module) { return *(PyTypeObject **)PyModule_GetState(module); }

/* See `functions`. */
static PyObject *read_(PyObject *self, PyObject *args)
{
    PyObject *fields, *found = NULL;
    Py_buffer data, offsets;
    Py_ssize_t first, rows;
    int levels, ended = NO_MEMORY;
    if (!PyArg_ParseTuple(args, "O!y*y*nni", &PyTuple_Type, &fields, &data, &offsets, &first, &rows, &levels))
        return NULL;
    Column root = {0};
    root.fields = make_columns(fields, &root.field_count, 0);
    if (root.fields != NULL) {
        const int32_t *all = offsets.buf;
        if (levels < 0 || levels > MOST_DEPTH || first < 0 || rows < 0 || (first + rows + 1) * (Py_ssize_t)sizeof(int32_t) > offsets.len) {
            PyErr_SetString(PyExc_ValueError, "there are not so many values or levels");
        } else {
            Py_BEGIN_ALLOW_THREADS
            if (prepare(root.fields, root.field_count, rows) == 0)
                ended = read_all(&root, &data, all + first, rows, levels);
            Py_END_ALLOW_THREADS
            if (ended == NO_MEMORY)
                PyErr_NoMemory();
            else if (ended == OTHER)
                found = Py_NewRef(Py_None);
            else if ((found = PyList_New(0)) != NULL && give(memory_type(self), found, root.fields, root.field_count, rows) < 0)
                Py_CLEAR(found);
        }
    }
    free_columns(root.fields, root.field_count);
    PyBuffer_Release(&data);
    PyBuffer_Release(&offsets);
    return found;
}

/* Bytes that others own. */
typedef struct {
    const unsigned char *text;
    size_t size;
} Piece;

static int same(const unsigned char *text, Piece other) { return memcmp(text, other.text, other.size) == 0; }

/* The last place from `at` back that holds no white space. */
static const unsigned char *skip_back(const unsigned char *begin, const unsigned char *at)
{
    for (int i = 0; i < MOST_SPACE && at > begin && (*at == ' ' || *at == '\n' || *at == '\t' || *at == '\r'); i++)
        at--;
    return at;
}

/* Whether a member of one of these names begins with this bracket. begin: of the record. */
static int is_named(const unsigned char *begin, const unsigned char *bracket, const Piece *names, Py_ssize_t count)
{
    if (bracket == begin)
        return 0;
    const unsigned char *colon = skip_back(begin, bracket - 1);
    if (*colon != ':' || colon == begin)
        return 0;
    const unsigned char *quote = skip_back(begin, colon - 1);
    for (Py_ssize_t i = 0; *quote == '"' && i < count; i++) {
        if ((size_t)(quote - begin) < names[i].size + 2)
            continue;
        const unsigned char *first = quote - names[i].size;
        if (first[-1] != '"' || !same(first, names[i]))
            continue;
        const unsigned char *before = skip_back(begin, first - 2);
        if (*before == '{' || *before == ',')
            return 1;
    }
    return 0;
}

/* Writes text, if `escaping` with a backslash before quotes and backslashes: at most twice as many bytes. */
static void put(Reader *self, unsigned char **out, const unsigned char *text, size_t size)
{
    if (!self->escaping && size > 1) {
        memcpy(*out, text, size);
        *out += size;
        return;
    }
    for (size_t i = 0; i < size; i++) {
        if (self->escaping && (text[i] == '"' || text[i] == '\\'))
            *(*out)++ = '\\';
        *(*out)++ = text[i];
    }
}

static int put_taken(Reader *self, unsigned char character, unsigned char **out)
{
    if (!take_character(self, character))
        return 0;
    put(self, out, &character, 1);
    return 1;
}

static int put_word(Reader *self, const char *word, unsigned char **out)
{
    if (!take(self, word))
        return OTHER;
    put(self, out, (const unsigned char *)word, strlen(word));
    return READ;
}

/* A string, if it stands there with the fewest escapes. said: what stands between its quotes. */
static int copy_text(Reader *self, unsigned char **out, Piece *said)
{
    if (!put_taken(self, '"', out))
        return OTHER;
    said->text = self->at;
    for (;;) {
        const unsigned char *begin = self->at;
        self->at = skip_plain(begin, self->end, 1);
        memcpy(*out, begin, (size_t)(self->at - begin));
        *out += self->at - begin;
        if (self->at == self->end)
            return OTHER;
        said->size = (size_t)(self->at - said->text);
        if (put_taken(self, '"', out))
            return READ;
        size_t size = character_size(self->at, self->end);
        if (*self->at == '\\') {
            unsigned char escape = self->end - self->at > 1 ? self->at[1] : 0;
            size = escape != 0 && strchr("\"\\bfnrt", escape) != NULL ? 2 : 0;
        } else if (*self->at < 0x20)
            size = 0;
        if (size == 0)
            return OTHER;
        put(self, out, self->at, size);
        self->at += size;
    }
}

static ptrdiff_t count_digits(Reader *self)
{
    const unsigned char *begin = self->at;
    while (is_digit(self))
        self->at++;
    return self->at - begin;
}

/* A number, if it stands there as orjson writes it: integers that are plainly in int64, and fractions of 15 digits, of
 * which the shortest form is their own. */
static int copy_number(Reader *self, unsigned char **out)
{
    const unsigned char *begin = self->at;
    int negative = take(self, "-"), is_zero = take(self, "0");
    ptrdiff_t whole = count_digits(self);
    if ((whole == 0) != is_zero)
        return OTHER;
    if (take(self, ".")) {
        const unsigned char *point = self->at;
        ptrdiff_t digits = count_digits(self);
        if (digits == 0 || whole + digits > 15 || (digits > 1 && self->at[-1] == '0'))
            return OTHER;
        if (is_zero && digits > 3 && memcmp(point, "0000", 4) == 0)
            return OTHER; /* with an exponent */
    } else if (whole > 18 || (negative && is_zero))
        return OTHER;
    if (self->at < self->end && (*self->at == 'e' || *self->at == 'E'))
        return OTHER;
    put(self, out, begin, (size_t)(self->at - begin));
    return READ;
}

/* A name that none of these is, and its colon. */
static int copy_key(Reader *self, unsigned char **out, Piece *keys, int *count)
{
    Piece *key = &keys[*count];
    if (*count == MOST_KEYS || copy_text(self, out, key) != READ)
        return OTHER;
    for (int i = 0; i < *count; i++)
        if (keys[i].size == key->size && same(key->text, keys[i]))
            return OTHER; /* the last one counts */
    ++*count;
    skip_space(self);
    if (!put_taken(self, ':', out))
        return OTHER;
    skip_space(self);
    return READ;
}

/* A list or an object behind its bracket. */
static int copy_all(Reader *self, unsigned char **out, int depth, int is_object)
{
    Piece keys[MOST_KEYS];
    int count = 0;
    unsigned char closing = is_object ? '}' : ']';
    skip_space(self);
    if (put_taken(self, closing, out))
        return READ;
    for (;;) {
        if ((is_object && copy_key(self, out, keys, &count) != READ) || copy_value(self, out, depth) != READ)
            return OTHER;
        skip_space(self);
        if (put_taken(self, closing, out))
            return READ;
        if (!put_taken(self, ',', out))
            return OTHER;
        skip_space(self);
    }
}

/* Writes JSON without white space, as orjson does, if it stands there so. depth: levels that there may be. */
static int copy_value(Reader *self, unsigned char **out, int depth)
{
    Piece said;
    if (self->at == self->end)
        return OTHER;
    switch (*self->at) {
    case '"':
        return copy_text(self, out, &said);
    case '[':
    case '{':
        if (depth == 0)
            return OTHER;
        return copy_all(self, out, depth - 1, put_taken(self, '{', out) || !put_taken(self, '[', out));
    case 't':
        return put_word(self, "true", out);
    case 'f':
        return put_word(self, "false", out);
    case 'n':
        return put_word(self, "null", out);
    default:
        return copy_number(self, out);
    }
}

/* Writes a record with strings in the place of lists of these names; OTHER where one is not plain. */
static int copy_record(Reader *self, unsigned char **out, const Piece *names, Py_ssize_t count, int depth)
{
    const unsigned char *begin = self->at, *done = begin, *from = begin;
    while (from < self->end && (from = memchr(from, '[', (size_t)(self->end - from))) != NULL) {
        if (!is_named(begin, from, names, count)) {
            from++;
            continue;
        }
        memcpy(*out, done, (size_t)(from - done));
        *out += from - done;
        *(*out)++ = '"';
        self->at = from;
        if (copy_value(self, out, depth) != READ)
            return OTHER;
        *(*out)++ = '"';
        done = from = self->at;
    }
    memcpy(*out, done, (size_t)(self->end - done));
    *out += self->end - done;
    return READ;
}

/* See `functions`. */
static PyObject *lists_as_text(PyObject *Py_UNUSED(module), PyObject *args)
{
    PyObject *given, *found = NULL;
    Py_buffer data, offsets;
    Py_ssize_t first, rows;
    int depth;
    if (!PyArg_ParseTuple(args, "O!y*y*nni", &PyTuple_Type, &given, &data, &offsets, &first, &rows, &depth))
        return NULL;
    Py_ssize_t count = PyTuple_Size(given);
    const int32_t *all = (const int32_t *)offsets.buf + (first < 0 ? 0 : first);
    int usable = first >= 0 && rows >= 0 && (first + rows + 1) * (Py_ssize_t)sizeof(int32_t) <= offsets.len && all[0] >= 0;
    for (Py_ssize_t row = 0; usable && row < rows; row++)
        usable = all[row] <= all[row + 1] && all[row + 1] <= data.len;
    Piece *names = calloc((size_t)count + 1, sizeof *names);
    size_t size = usable ? (size_t)(all[rows] - all[0]) : 0;
    unsigned char *text = malloc(2 * size + 1), *others = calloc((size_t)(usable ? rows : 0) + 1, 1);
    int32_t *ends = calloc((size_t)(usable ? rows : 0) + 1, sizeof *ends);
    if (names == NULL || text == NULL || others == NULL || ends == NULL) {
        PyErr_NoMemory();
    } else if (!usable || size > INT32_MAX / 2 || depth < 0 || depth > MOST_DEPTH) {
        PyErr_SetString(PyExc_ValueError, "there are not so many values, bytes or levels");
    } else {
        int named = 1;
        for (Py_ssize_t i = 0; named && i < count; i++) {
            char *name;
            Py_ssize_t length;
            if ((named = PyBytes_AsStringAndSize(PyTuple_GetItem(given, i), &name, &length) == 0))
                names[i] = (Piece){(const unsigned char *)name, (size_t)length};
        }
        unsigned char *out = text;
        if (named) {
            Py_BEGIN_ALLOW_THREADS
            for (Py_ssize_t row = 0; row < rows; row++) {
                Reader self = {(const unsigned char *)data.buf + all[row], (const unsigned char *)data.buf + all[row + 1], row, depth, 1, NULL};
                others[row] = copy_record(&self, &out, names, count, depth) != READ;
                if (others[row])
                    out = text + ends[row];
                ends[row + 1] = (int32_t)(out - text);
            }
            Py_END_ALLOW_THREADS
            found = Py_BuildValue("NNN", PyBytes_FromStringAndSize((char *)text, out - text),
                                  PyBytes_FromStringAndSize((char *)ends, (rows + 1) * (Py_ssize_t)sizeof *ends),
                                  PyBytes_FromStringAndSize((char *)others, rows));
        }
    }
    free(names);
    free(text);
    free(others);
    free(ends);
    PyBuffer_Release(&data);
    PyBuffer_Release(&offsets);
    return found;
}

/* See `functions`. */
static PyObject *payloads(PyObject *self, PyObject *args)
{
    Py_buffer prefix, suffix, data, offsets;
    Py_ssize_t first, rows, size = 0, count = 0;
    if (!PyArg_ParseTuple(args, "y*y*y*y*nn", &prefix, &suffix, &data, &offsets, &first, &rows))
        return NULL;
    PyObject *found = NULL;
    int usable = first >= 0 && rows >= 0 && (first + rows + 1) * (Py_ssize_t)sizeof(int32_t) <= offsets.len;
    const int32_t *all = (const int32_t *)offsets.buf + (usable ? first : 0);
    for (Py_ssize_t row = 0; usable && row < rows; row++)
        usable = 0 <= all[row] && all[row] <= all[row + 1] && all[row + 1] <= data.len;
    char *text = malloc(usable && rows > 0 ? (size_t)(all[rows] - all[0]) + 1 : 1);
    char *fits = calloc((size_t)(usable ? rows : 0) + 1, 1);
    int32_t *ends = calloc((size_t)(usable ? rows : 0) + 1, sizeof *ends);
    if (!usable) {
        PyErr_SetString(PyExc_ValueError, "there are not so many values");
    } else if (text == NULL || fits == NULL || ends == NULL) {
        PyErr_NoMemory();
    } else {
        Py_BEGIN_ALLOW_THREADS
        for (Py_ssize_t row = 0; row < rows; row++) {
            const char *begin = (const char *)data.buf + all[row];
            Py_ssize_t between = all[row + 1] - all[row] - prefix.len - suffix.len;
            fits[row] = between >= 0 && memcmp(begin, prefix.buf, (size_t)prefix.len) == 0 &&
                        memcmp(begin + prefix.len + between, suffix.buf, (size_t)suffix.len) == 0;
            if (!fits[row])
                continue;
            memcpy(text + size, begin + prefix.len, (size_t)between);
            ends[++count] = (int32_t)(size += between);
        }
        Py_END_ALLOW_THREADS
        PyTypeObject *memory = memory_type(self);
        found = Py_BuildValue("NNN", PyBytes_FromStringAndSize(fits, rows), give_memory(memory, text, (size_t)size),
                              give_memory(memory, ends, (size_t)(count + 1) * sizeof *ends));
        text = NULL;
        ends = NULL;
    }
    free(text);
    free(fits);
    free(ends);
    PyBuffer_Release(&prefix);
    PyBuffer_Release(&suffix);
    PyBuffer_Release(&data);
    PyBuffer_Release(&offsets);
    return found;
}

static PyMethodDef functions[] = {
    {"read", read_, METH_VARARGS,
     "read(fields, data, offsets, first, rows, levels): (present, values, text) of each column as Arrow's buffers, or "
     "None; present: None where all are. fields: a tuple of (name, kind, fields) each. data, offsets: of Arrow's binary "
     "array, first, rows: which of its values. levels: that a list may have."},
    {"lists_as_text", lists_as_text, METH_VARARGS,
     "lists_as_text(names, data, offsets, first, rows, depth): text and offsets of the values with strings in the place "
     "of lists of these names, and 1 for each that is left out. depth: levels that a list may have."},
    {"payloads", payloads, METH_VARARGS,
     "payloads(prefix, suffix, data, offsets, first, rows): 1 for each value that begins and ends so, text and offsets of "
     "what is between in these."},
    {NULL, NULL, 0, NULL},
};

static int prepare_module(PyObject *self)
{
    PyObject **type = PyModule_GetState(self);
    if ((*type = PyType_FromSpec(&memory_spec)) == NULL)
        return -1;
    c_locale = newlocale(LC_ALL_MASK, "C", (locale_t)0); /* kept for as long as the process lives */
    if (c_locale == (locale_t)0)
        PyErr_SetString(PyExc_ImportError, "no locale C");
    return c_locale == (locale_t)0 ? -1 : 0;
}

static PyModuleDef_Slot module_slots[] = {{Py_mod_exec, prepare_module}, {0, NULL}};
static struct PyModuleDef module = {
    PyModuleDef_HEAD_INIT, "_native_json", "JSON objects of a known schema into flat buffers.", sizeof(PyObject *), functions, module_slots, NULL, NULL, NULL,
};

PyMODINIT_FUNC PyInit__native_json(void) { return PyModuleDef_Init(&module); }
