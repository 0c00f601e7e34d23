/* Reads records of one topic-partition from librdkafka into flat buffers, without a Python object for each; and
 * describes topics and lists offsets, without three and six objects for each topic-partition.
 *
 * Nothing is linked: the functions are looked up in the library that confluent-kafka brings and has loaded. They read
 * the topic-partition's own queue of a consumer that confluent-kafka made. Logs, errors of the client, and callbacks
 * stay in the consumer's main queue, which confluent-kafka serves. `native.py` checks all of this before it is used,
 * `native_batches.py` has the Python side.
 *
 * Declarations below are those of librdkafka's rdkafka.h that are the same in all versions from 2.3 on.
 */
#define Py_LIMITED_API 0x030B0000
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <dlfcn.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

typedef struct rd_kafka_s rd_kafka_t;
typedef struct rd_kafka_queue_s rd_kafka_queue_t;
typedef struct rd_kafka_headers_s rd_kafka_headers_t;
typedef struct rd_kafka_event_s rd_kafka_event_t;
typedef struct rd_kafka_error_s rd_kafka_error_t;
typedef struct {
    int err;
    void *topic;
    int32_t partition;
    void *payload;
    size_t len;
    void *key;
    size_t key_len;
    int64_t offset;
    void *private_;
} rd_kafka_message_t;
typedef struct {
    char *topic;
    int32_t partition;
    int64_t offset;
    void *metadata;
    size_t metadata_size;
    void *opaque;
    int err;
    void *private_;
} rd_kafka_topic_partition_t;
typedef void request_t(rd_kafka_t *, void *, void *, rd_kafka_queue_t *);

static struct {
    int (*version)(void);
    const char *(*name)(const rd_kafka_t *);
    rd_kafka_queue_t *(*partition_queue)(rd_kafka_t *, const char *, int32_t);
    void (*forward)(rd_kafka_queue_t *, rd_kafka_queue_t *);
    void (*queue_destroy)(rd_kafka_queue_t *);
    rd_kafka_message_t *(*consume)(rd_kafka_queue_t *, int);
    ssize_t (*consume_batch)(rd_kafka_queue_t *, int, rd_kafka_message_t **, size_t);
    void (*message_destroy)(rd_kafka_message_t *);
    int64_t (*timestamp)(const rd_kafka_message_t *, int *);
    int (*headers)(const rd_kafka_message_t *, rd_kafka_headers_t **);
    int (*header_at)(const rd_kafka_headers_t *, size_t, const char **, const void **, size_t *);
    const char *(*error_text)(const rd_kafka_message_t *);
    void *(*topics_named)(const char **, size_t);
    void (*topics_destroy)(void *);
    void *(*partitions_new)(int);
    rd_kafka_topic_partition_t *(*partitions_add)(void *, const char *, int32_t);
    void (*partitions_destroy)(void *);
    void *(*options_new)(rd_kafka_t *, int);
    int (*options_timeout)(void *, int, char *, size_t);
    rd_kafka_error_t *(*options_isolation)(void *, int);
    void (*options_destroy)(void *);
    rd_kafka_queue_t *(*queue_new)(rd_kafka_t *);
    request_t *describe, *list_offsets;
    rd_kafka_event_t *(*poll)(rd_kafka_queue_t *, int);
    int (*event_error)(rd_kafka_event_t *);
    const char *(*event_error_text)(rd_kafka_event_t *);
    const void *(*event_described)(rd_kafka_event_t *);
    void (*event_destroy)(rd_kafka_event_t *);
    const void **(*described_topics)(const void *, size_t *);
    const char *(*topic_name)(const void *);
    const rd_kafka_error_t *(*topic_error)(const void *);
    void *(*topic_id)(const void *);
    const void **(*topic_partitions)(const void *, size_t *);
    int (*partition_number)(const void *);
    const char *(*id_text)(void *);
    const void *(*event_listed)(rd_kafka_event_t *);
    const void **(*listed_offsets)(const void *, size_t *);
    const rd_kafka_topic_partition_t *(*listed_partition)(const void *);
    int32_t (*leader_epoch)(const rd_kafka_topic_partition_t *);
    void (*error_destroy)(rd_kafka_error_t *);
    int (*error_code)(const rd_kafka_error_t *);
    const char *(*error_string)(const rd_kafka_error_t *);
} rd;

enum { MOST_PENDING = 1000 }; /* messages taken from librdkafka at once */
enum { NOTHING, FULL, END, EVENT, NO_MEMORY }; /* how `fill` ended; native_batches.py has the same */

/* Bytes that grow. */
typedef struct {
    char *data;
    size_t size, room;
} Bytes;

static int append(Bytes *to, const void *data, size_t size)
{
    if (size > to->room - to->size) {
        if (size > (size_t)PY_SSIZE_T_MAX / 4 || to->size > (size_t)PY_SSIZE_T_MAX / 4)
            return -1;
        size_t room = to->room < 4096 ? 4096 : to->room;
        while (room - to->size < size)
            room *= 2;
        char *data_ = realloc(to->data, room);
        if (data_ == NULL)
            return -1;
        to->data = data_;
        to->room = room;
    }
    if (size > 0)
        memcpy(to->data + to->size, data, size);
    to->size += size;
    return 0;
}

/* Byte strings or nulls: where each ends, its bytes, and 1 for each that is not null. */
typedef struct {
    Bytes ends, data, present;
} Strings;

static int append_string(Strings *to, const void *data, size_t size)
{
    char present = data != NULL;
    if (present && append(&to->data, data, size) < 0)
        return -1;
    int64_t end = (int64_t)to->data.size;
    return append(&to->ends, &end, sizeof end) < 0 || append(&to->present, &present, 1) < 0 ? -1 : 0;
}

/* The records of a batch under way, and its bounds. */
typedef struct {
    PyObject_HEAD
    int busy;                    /* a thread is in `fill`, without Python's lock */
    int with_keys, with_headers; /* what counts as bytes of a record */
    int keep_keys, keep_headers; /* what is kept */
    int64_t most_records, most_bytes, header_bytes, record_bytes;
    int64_t records, bytes, received;
    int64_t oversized; /* bytes of the only record, whose value is left out; else 0 */
    Bytes offsets, timestamps, kinds, header_ends, headers_present;
    Strings values, keys, header_names, header_values;
} Batch;

/* What librdkafka has of one topic-partition. */
typedef struct {
    PyObject_HEAD
    rd_kafka_queue_t *queue; /* NULL when closed */
    PyObject *consumer;      /* lives at least as long as its queue */
    int busy;
    rd_kafka_message_t *pending[MOST_PENDING];
    Py_ssize_t next, pending_count;
} Queue;

static Bytes *all_bytes(Batch *self, int index)
{
    Bytes *const all[] = {
        &self->offsets, &self->timestamps, &self->kinds,
        &self->values.ends, &self->values.data, &self->values.present,
        &self->keys.ends, &self->keys.data, &self->keys.present,
        &self->header_ends, &self->headers_present,
        &self->header_names.ends, &self->header_names.data, &self->header_names.present,
        &self->header_values.ends, &self->header_values.data, &self->header_values.present,
    };
    return index < (int)(sizeof all / sizeof *all) ? all[index] : NULL;
}

static void empty_buffers(Batch *self)
{
    for (int i = 0; all_bytes(self, i) != NULL; i++)
        all_bytes(self, i)->size = 0;
    self->records = self->bytes = self->oversized = 0;
}

/* As before the first record; the room of the buffers stays. */
static void begin_batches(Batch *self)
{
    empty_buffers(self);
    self->received = -1;
}

static void forget_pending(Queue *self)
{
    while (self->next < self->pending_count)
        rd.message_destroy(self->pending[self->next++]);
    self->next = self->pending_count = 0;
}

/* Whether these bytes are UTF-8 as Python reads it: nothing overlong, no surrogates, nothing above U+10FFFF. */
static int is_utf8(const unsigned char *text, size_t size)
{
    for (size_t i = 0; i < size;) {
        unsigned char lead = text[i++];
        if (lead < 0x80)
            continue;
        int more = lead >= 0xC2 && lead <= 0xDF ? 1 : lead >= 0xE0 && lead <= 0xEF ? 2 : lead >= 0xF0 && lead <= 0xF4 ? 3 : 0;
        if (more == 0 || (size_t)more > size - i)
            return 0;
        unsigned char low = lead == 0xE0 ? 0xA0 : lead == 0xF0 ? 0x90 : 0x80;
        unsigned char high = lead == 0xED ? 0x9F : lead == 0xF4 ? 0x8F : 0xBF;
        for (; more > 0; more--, low = 0x80, high = 0xBF)
            if (text[i] < low || text[i++] > high)
                return 0;
    }
    return 1;
}

/* Appends a record's headers; without a message it has none that can be read. All of them are left out, and the
 * record has none that can be read, if a name is not UTF-8. -1 when memory is short. */
static int append_headers(Batch *self, const rd_kafka_message_t *message)
{
    rd_kafka_headers_t *headers;
    const char *name;
    const void *value;
    size_t size;
    char readable = message != NULL;
    if (message != NULL && rd.headers(message, &headers) == 0) {
        for (size_t i = 0; readable && rd.header_at(headers, i, &name, &value, &size) == 0; i++)
            readable = (char)is_utf8((const unsigned char *)name, strlen(name));
        for (size_t i = 0; readable && rd.header_at(headers, i, &name, &value, &size) == 0; i++)
            if (append_string(&self->header_names, name, strlen(name)) < 0 || append_string(&self->header_values, value, size) < 0)
                return -1;
    }
    int64_t end = (int64_t)(self->header_names.ends.size / sizeof(int64_t));
    return append(&self->header_ends, &end, sizeof end) < 0 || append(&self->headers_present, &readable, 1) < 0 ? -1 : 0;
}

/* The bytes of a record's headers, and how many these are; unreadable headers count nothing. */
static int64_t headers_size(const rd_kafka_message_t *message, int64_t *count)
{
    rd_kafka_headers_t *headers;
    const char *name;
    const void *value;
    size_t value_size;
    int64_t size = *count = 0;
    if (rd.headers(message, &headers) == 0)
        for (size_t i = 0; rd.header_at(headers, i, &name, &value, &value_size) == 0; i++, ++*count) {
            if (!is_utf8((const unsigned char *)name, strlen(name)))
                return *count = 0;
            size += (int64_t)strlen(name) + (int64_t)(value == NULL ? 0 : value_size);
        }
    return size;
}

/* What a record counts: `in_batch` for the bound of a batch, `side` its key and headers, `whole` for its own bound.
 * Headers are looked at without being kept, because a record that does not fit any more belongs to the next batch. */
typedef struct {
    int64_t in_batch, side, whole;
} Sizes;

static Sizes sizes_of(Batch *self, const rd_kafka_message_t *message)
{
    int64_t count = 0, headers = self->with_headers ? headers_size(message, &count) : 0;
    int64_t key = message->key == NULL ? 0 : (int64_t)message->key_len;
    int64_t value = message->payload == NULL ? 0 : (int64_t)message->len;
    Sizes sizes = {value + (self->with_keys ? key : 0) + headers + count * self->header_bytes, key + headers, value + key + headers};
    return sizes;
}

/* Appends a record without its value where `with_value` is 0, without key and headers where `with_side` is 0. */
static int append_record(Batch *self, const rd_kafka_message_t *message, int with_value, int with_side)
{
    int kind = 0;
    int64_t timestamp = rd.timestamp(message, &kind);
    char kind_ = (char)kind;
    if (kind == 0)
        timestamp = 0;
    if (append(&self->offsets, &message->offset, sizeof message->offset) < 0 ||
        append(&self->timestamps, &timestamp, sizeof timestamp) < 0 || append(&self->kinds, &kind_, 1) < 0 ||
        append_string(&self->values, with_value ? message->payload : NULL, message->len) < 0 ||
        (self->keep_keys && append_string(&self->keys, with_side ? message->key : NULL, message->key_len) < 0) ||
        (self->keep_headers && append_headers(self, with_side ? message : NULL) < 0))
        return -1;
    return 0;
}

/* Appends records below `end` until the batch is full, the range ends, an event comes, or nothing comes for so long. */
static int fill_unlocked(Queue *self, Batch *batch, int64_t end, int timeout_ms)
{
    for (;;) {
        if (self->next == self->pending_count) {
            self->next = self->pending_count = 0;
            ssize_t count = rd.consume_batch(self->queue, 0, self->pending, MOST_PENDING);
            if (count <= 0) {
                self->pending[0] = rd.consume(self->queue, timeout_ms);
                count = self->pending[0] != NULL;
            }
            if (count == 0)
                return NOTHING;
            self->pending_count = count;
        }
        rd_kafka_message_t *message = self->pending[self->next];
        if (message->err != 0)
            return EVENT;
        if (message->offset >= end)
            return END;
        Sizes sizes = sizes_of(batch, message);
        int64_t size = sizes.in_batch;
        int oversized = sizes.whole > batch->record_bytes;
        if (batch->records > 0 && (oversized || batch->records >= batch->most_records || batch->bytes + size > batch->most_bytes))
            return FULL;
        if (append_record(batch, message, !oversized, sizes.side <= batch->record_bytes) < 0)
            return NO_MEMORY;
        batch->oversized = oversized ? sizes.whole : 0;
        batch->records++;
        batch->bytes += size;
        batch->received = message->offset + 1;
        rd.message_destroy(message);
        self->next++;
        if (batch->received >= end)
            return END;
        if (oversized || batch->records >= batch->most_records || batch->bytes > batch->most_bytes)
            return FULL;
    }
}

static int refuse_busy(int busy)
{
    if (busy)
        PyErr_SetString(PyExc_ValueError, "another thread is reading");
    return busy ? -1 : 0;
}

static PyTypeObject *batch_type;

static PyObject *queue_fill(Queue *self, PyObject *args)
{
    Batch *batch;
    long long end;
    int timeout_ms, ended;
    if (!PyArg_ParseTuple(args, "O!Li", batch_type, &batch, &end, &timeout_ms) || refuse_busy(self->busy || batch->busy) < 0)
        return NULL;
    if (self->queue == NULL) {
        PyErr_SetString(PyExc_ValueError, "the queue is closed");
        return NULL;
    }
    self->busy = batch->busy = 1;
    Py_BEGIN_ALLOW_THREADS
    ended = fill_unlocked(self, batch, end, timeout_ms);
    Py_END_ALLOW_THREADS
    self->busy = batch->busy = 0;
    return ended == NO_MEMORY ? PyErr_NoMemory() : PyLong_FromLong(ended);
}

static PyObject *queue_event(Queue *self, PyObject *Py_UNUSED(ignored))
{
    if (refuse_busy(self->busy) < 0)
        return NULL;
    if (self->next == self->pending_count || self->pending[self->next]->err == 0)
        Py_RETURN_NONE;
    rd_kafka_message_t *message = self->pending[self->next];
    const char *text = rd.error_text(message);
    PyObject *event = Py_BuildValue("iNL", message->err, PyUnicode_DecodeUTF8(text, (Py_ssize_t)strlen(text), "replace"),
                                    (long long)message->offset);
    if (event != NULL) {
        rd.message_destroy(message);
        self->next++;
    }
    return event;
}

static PyObject *queue_forget(Queue *self, PyObject *Py_UNUSED(ignored))
{
    if (refuse_busy(self->busy) < 0)
        return NULL;
    forget_pending(self);
    Py_RETURN_NONE;
}

static void end_queue(Queue *self)
{
    forget_pending(self);
    if (self->queue != NULL)
        rd.queue_destroy(self->queue);
    self->queue = NULL;
    Py_CLEAR(self->consumer);
}

static PyObject *queue_close(Queue *self, PyObject *Py_UNUSED(ignored))
{
    if (refuse_busy(self->busy) < 0)
        return NULL;
    end_queue(self);
    Py_RETURN_NONE;
}

/* The client of a confluent-kafka consumer: the first field behind the object's head. NULL when it is closed. */
static rd_kafka_t *client_of(PyObject *consumer)
{
    rd_kafka_t *client;
    memcpy(&client, (char *)consumer + sizeof(PyObject), sizeof client);
    return client;
}

static int queue_init(Queue *self, PyObject *args, PyObject *Py_UNUSED(kwargs))
{
    PyObject *consumer;
    const char *topic;
    int partition;
    if (!PyArg_ParseTuple(args, "Osi", &consumer, &topic, &partition))
        return -1;
    rd_kafka_t *client = rd.version == NULL || self->queue != NULL ? NULL : client_of(consumer);
    rd_kafka_queue_t *queue = client == NULL ? NULL : rd.partition_queue(client, topic, partition);
    if (queue == NULL) {
        PyErr_SetString(PyExc_ValueError, "no consumer that can be read");
        return -1;
    }
    rd.forward(queue, NULL); /* from now on its records stay here, and do not go to the consumer's main queue */
    self->queue = queue;
    self->consumer = Py_NewRef(consumer);
    return 0;
}

static int batch_init(Batch *self, PyObject *args, PyObject *Py_UNUSED(kwargs))
{
    long long most_records, most_bytes, header_bytes, record_bytes;
    if (!PyArg_ParseTuple(args, "LLLLpppp", &most_records, &most_bytes, &header_bytes, &record_bytes,
                          &self->with_keys, &self->with_headers, &self->keep_keys, &self->keep_headers) || refuse_busy(self->busy) < 0)
        return -1;
    self->most_records = most_records;
    self->most_bytes = most_bytes;
    self->header_bytes = header_bytes;
    self->record_bytes = record_bytes;
    begin_batches(self);
    return 0;
}

static PyObject *batch_begin(Batch *self, PyObject *Py_UNUSED(ignored))
{
    if (refuse_busy(self->busy) < 0)
        return NULL;
    begin_batches(self);
    Py_RETURN_NONE;
}

static PyObject *batch_take(Batch *self, PyObject *Py_UNUSED(ignored))
{
    if (refuse_busy(self->busy) < 0)
        return NULL;
    int count = 0;
    while (all_bytes(self, count) != NULL)
        count++;
    PyObject *taken = PyTuple_New(count);
    for (int i = 0; taken != NULL && i < count; i++) {
        Bytes *from = all_bytes(self, i);
        PyObject *one = PyBytes_FromStringAndSize(from->data == NULL ? "" : from->data, (Py_ssize_t)from->size);
        if (one == NULL || PyTuple_SetItem(taken, i, one) < 0)
            Py_CLEAR(taken);
    }
    if (taken != NULL)
        empty_buffers(self);
    return taken;
}

static PyObject *batch_records(Batch *self, void *Py_UNUSED(closure)) { return PyLong_FromLongLong(self->records); }
static PyObject *batch_oversized(Batch *self, void *Py_UNUSED(closure)) { return PyLong_FromLongLong(self->oversized); }
static PyObject *batch_received(Batch *self, void *Py_UNUSED(closure)) { return PyLong_FromLongLong(self->received); }

static void release(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    ((freefunc)PyType_GetSlot(type, Py_tp_free))(self);
    Py_DECREF(type);
}

static void queue_dealloc(Queue *self)
{
    end_queue(self);
    release((PyObject *)self);
}

static void batch_dealloc(Batch *self)
{
    for (int i = 0; all_bytes(self, i) != NULL; i++)
        free(all_bytes(self, i)->data);
    release((PyObject *)self);
}

static PyMethodDef queue_methods[] = {
    {"fill", (PyCFunction)queue_fill, METH_VARARGS, "fill(batch, end, timeout_ms): reads into the batch; how that ended"},
    {"event", (PyCFunction)queue_event, METH_NOARGS, "event(): takes out (code, text, offset) of what `fill` met, or None"},
    {"forget", (PyCFunction)queue_forget, METH_NOARGS, "forget(): drops what was taken from librdkafka and not read"},
    {"close", (PyCFunction)queue_close, METH_NOARGS, "close(): before the consumer is closed"},
    {NULL, NULL, 0, NULL},
};
static PyType_Slot queue_slots[] = {
    {Py_tp_doc, "Queue(consumer, topic, partition): its records, which no longer reach the consumer's main queue."},
    {Py_tp_init, queue_init}, {Py_tp_new, PyType_GenericNew}, {Py_tp_dealloc, queue_dealloc},
    {Py_tp_methods, queue_methods}, {0, NULL},
};
static PyType_Spec queue_spec = {"parquet_sink.kafka._native_reader.Queue", sizeof(Queue), 0, Py_TPFLAGS_DEFAULT, queue_slots};

static PyMethodDef batch_methods[] = {
    {"begin", (PyCFunction)batch_begin, METH_NOARGS, "begin(): drops what was not taken; the batches of another range begin"},
    {"take", (PyCFunction)batch_take, METH_NOARGS, "take(): all buffers as bytes; the next batch begins"},
    {NULL, NULL, 0, NULL},
};
static PyGetSetDef batch_fields[] = {
    {"records", (getter)batch_records, NULL, "how many records there are", NULL},
    {"oversized", (getter)batch_oversized, NULL, "bytes of the only record, whose value is left out because it is too large; else 0", NULL},
    {"received", (getter)batch_received, NULL, "the offset after the last record, of earlier batches too; -1 before the first", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};
static PyType_Slot batch_slots[] = {
    {Py_tp_doc, "Batch(most_records, most_bytes, header_bytes, count_keys, count_headers, keep_keys, keep_headers)"},
    {Py_tp_init, batch_init}, {Py_tp_new, PyType_GenericNew}, {Py_tp_dealloc, batch_dealloc},
    {Py_tp_methods, batch_methods}, {Py_tp_getset, batch_fields}, {0, NULL},
};
static PyType_Spec batch_spec = {"parquet_sink.kafka._native_reader.Batch", sizeof(Batch), 0, Py_TPFLAGS_DEFAULT, batch_slots};

/* Looks the functions up in the library of `path`, or what that is linked to. The version; -1 when one is not there. */
static PyObject *load(PyObject *Py_UNUSED(module), PyObject *args)
{
    const char *path;
    if (!PyArg_ParseTuple(args, "s", &path))
        return NULL;
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    struct {
        const char *name;
        void *at;
    } const functions[] = {
        {"rd_kafka_name", &rd.name},
        {"rd_kafka_queue_get_partition", &rd.partition_queue},
        {"rd_kafka_queue_forward", &rd.forward},
        {"rd_kafka_queue_destroy", &rd.queue_destroy},
        {"rd_kafka_consume_queue", &rd.consume},
        {"rd_kafka_consume_batch_queue", &rd.consume_batch},
        {"rd_kafka_message_destroy", &rd.message_destroy},
        {"rd_kafka_message_timestamp", &rd.timestamp},
        {"rd_kafka_message_headers", &rd.headers},
        {"rd_kafka_header_get_all", &rd.header_at},
        {"rd_kafka_message_errstr", &rd.error_text},
        {"rd_kafka_TopicCollection_of_topic_names", &rd.topics_named},
        {"rd_kafka_TopicCollection_destroy", &rd.topics_destroy},
        {"rd_kafka_topic_partition_list_new", &rd.partitions_new},
        {"rd_kafka_topic_partition_list_add", &rd.partitions_add},
        {"rd_kafka_topic_partition_list_destroy", &rd.partitions_destroy},
        {"rd_kafka_AdminOptions_new", &rd.options_new},
        {"rd_kafka_AdminOptions_set_request_timeout", &rd.options_timeout},
        {"rd_kafka_AdminOptions_set_isolation_level", &rd.options_isolation},
        {"rd_kafka_AdminOptions_destroy", &rd.options_destroy},
        {"rd_kafka_queue_new", &rd.queue_new},
        {"rd_kafka_DescribeTopics", &rd.describe},
        {"rd_kafka_ListOffsets", &rd.list_offsets},
        {"rd_kafka_queue_poll", &rd.poll},
        {"rd_kafka_event_error", &rd.event_error},
        {"rd_kafka_event_error_string", &rd.event_error_text},
        {"rd_kafka_event_DescribeTopics_result", &rd.event_described},
        {"rd_kafka_event_destroy", &rd.event_destroy},
        {"rd_kafka_DescribeTopics_result_topics", &rd.described_topics},
        {"rd_kafka_TopicDescription_name", &rd.topic_name},
        {"rd_kafka_TopicDescription_error", &rd.topic_error},
        {"rd_kafka_TopicDescription_topic_id", &rd.topic_id},
        {"rd_kafka_TopicDescription_partitions", &rd.topic_partitions},
        {"rd_kafka_TopicPartitionInfo_partition", &rd.partition_number},
        {"rd_kafka_Uuid_base64str", &rd.id_text},
        {"rd_kafka_event_ListOffsets_result", &rd.event_listed},
        {"rd_kafka_ListOffsets_result_infos", &rd.listed_offsets},
        {"rd_kafka_ListOffsetsResultInfo_topic_partition", &rd.listed_partition},
        {"rd_kafka_topic_partition_get_leader_epoch", &rd.leader_epoch},
        {"rd_kafka_error_destroy", &rd.error_destroy},
        {"rd_kafka_error_code", &rd.error_code},
        {"rd_kafka_error_string", &rd.error_string},
        {"rd_kafka_version", &rd.version}, /* last: set only when all others are */
    };
    for (size_t i = 0; library != NULL && i < sizeof functions / sizeof *functions; i++) {
        void *found = dlsym(library, functions[i].name);
        if (found == NULL)
            return PyLong_FromLong(-1);
        memcpy(functions[i].at, &found, sizeof found);
    }
    return PyLong_FromLong(library == NULL ? -1 : rd.version());
}

/* Whether so much can be read there: the kernel says so, where looking would end the process. */
static int is_readable(int writable, int readable, const void *at)
{
    char copy[256];
    return write(writable, at, sizeof copy) == (ssize_t)sizeof copy && read(readable, copy, sizeof copy) == (ssize_t)sizeof copy;
}

/* The name of a consumer's client, as librdkafka has it; None where what is found in its place is no client. */
static PyObject *client_name(PyObject *Py_UNUSED(module), PyObject *consumer)
{
    int ends[2];
    if (rd.version == NULL || pipe(ends) != 0)
        Py_RETURN_NONE;
    const char *client = (const char *)client_of(consumer), *name = NULL;
    int legible = client != NULL;
    for (size_t at = 0; legible && at < 4096; at += 256)
        legible = is_readable(ends[1], ends[0], client + at);
    if (legible)
        name = rd.name((const rd_kafka_t *)client);
    legible = legible && name != NULL && is_readable(ends[1], ends[0], name) && memchr(name, 0, 256) != NULL;
    close(ends[0]);
    close(ends[1]);
    if (!legible)
        Py_RETURN_NONE;
    return PyUnicode_DecodeUTF8(name, (Py_ssize_t)strlen(name), "replace");
}

/* The numbers of a topic's partitions. */
static PyObject *numbers_of(const void *topic)
{
    size_t count = 0;
    const void **partitions = rd.topic_partitions(topic, &count);
    PyObject *numbers = PyList_New((Py_ssize_t)count);
    for (size_t i = 0; numbers != NULL && i < count; i++) {
        PyObject *number = PyLong_FromLong(rd.partition_number(partitions[i]));
        if (number == NULL || PyList_SetItem(numbers, (Py_ssize_t)i, number) < 0)
            Py_CLEAR(numbers);
    }
    return numbers;
}

/* One topic as `described` in descriptions.py takes it: (code, text, id, numbers). */
static PyObject *described_topic(const void *topic)
{
    const rd_kafka_error_t *error = rd.topic_error(topic);
    int code = error == NULL ? 0 : rd.error_code(error);
    if (code != 0)
        return Py_BuildValue("(izs[])", code, rd.error_string(error), "");
    const char *id = rd.id_text(rd.topic_id(topic));
    return Py_BuildValue("(issN)", 0, "", id == NULL ? "" : id, numbers_of(topic));
}

static PyObject *described_event(rd_kafka_event_t *event)
{
    if (rd.event_error(event) != 0 || rd.event_described(event) == NULL)
        return Py_BuildValue("(iz)", rd.event_error(event), rd.event_error_text(event));
    size_t count = 0;
    const void **topics = rd.described_topics(rd.event_described(event), &count);
    PyObject *found = PyDict_New();
    for (size_t i = 0; found != NULL && i < count; i++) {
        PyObject *one = described_topic(topics[i]);
        if (one == NULL || PyDict_SetItemString(found, rd.topic_name(topics[i]), one) < 0)
            Py_CLEAR(found);
        Py_XDECREF(one);
    }
    return found;
}

/* Adds what an event has of topic-partitions to {(topic, number): (code, offset, epoch)}. -1 when memory is short. */
static int add_listed(PyObject *found, rd_kafka_event_t *event)
{
    size_t count = 0;
    const void **listed = rd.listed_offsets(rd.event_listed(event), &count);
    int added = 0;
    for (size_t i = 0; added == 0 && i < count; i++) {
        const rd_kafka_topic_partition_t *one = rd.listed_partition(listed[i]);
        PyObject *key = Py_BuildValue("(si)", one->topic, (int)one->partition);
        PyObject *end = Py_BuildValue("(iLi)", one->err, (long long)one->offset, (int)rd.leader_epoch(one));
        added = key == NULL || end == NULL ? -1 : PyDict_SetItem(found, key, end);
        Py_XDECREF(key);
        Py_XDECREF(end);
    }
    return added;
}

/* A request: what it is about, where its answer comes, and the answer, NULL when there is none. */
typedef struct {
    void *subject;
    rd_kafka_queue_t *queue;
    rd_kafka_event_t *event;
} Asked;

static int64_t now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* Sends requests, and waits for all answers without Python's lock. isolation: a level of Kafka's, or -1. */
static void ask_unlocked(rd_kafka_t *client, request_t *request, Asked *asked, size_t count, int isolation, int timeout_ms)
{
    enum { ANY_REQUEST = 0, GRACE_MS = 1000 };
    void *options = rd.options_new(client, ANY_REQUEST);
    char why[256];
    int usable = options != NULL && rd.options_timeout(options, timeout_ms, why, sizeof why) == 0;
    if (usable && isolation >= 0) {
        rd_kafka_error_t *refused = rd.options_isolation(options, isolation);
        usable = refused == NULL;
        if (refused != NULL)
            rd.error_destroy(refused);
    }
    int64_t until = now_ms() + timeout_ms + GRACE_MS;
    for (size_t i = 0; usable && i < count; i++)
        request(client, asked[i].subject, options, asked[i].queue = rd.queue_new(client));
    for (size_t i = 0; usable && i < count; i++) {
        int64_t left = until - now_ms();
        asked[i].event = rd.poll(asked[i].queue, left > 0 ? (int)left : 0);
        rd.queue_destroy(asked[i].queue);
    }
    if (options != NULL)
        rd.options_destroy(options);
}

/* The client of an admin client, or an exception and NULL. */
static rd_kafka_t *asked_client(PyObject *admin)
{
    rd_kafka_t *client = rd.version == NULL ? NULL : client_of(admin);
    if (client == NULL)
        PyErr_SetString(PyExc_ValueError, "no client that can be asked");
    return client;
}

/* Topics by name: {topic: (code, text, id, numbers)}; (code, text) where the request failed; None without an answer. */
static PyObject *describe(PyObject *Py_UNUSED(module), PyObject *args)
{
    PyObject *admin, *topics;
    int timeout_ms;
    if (!PyArg_ParseTuple(args, "OO!i", &admin, &PyList_Type, &topics, &timeout_ms))
        return NULL;
    rd_kafka_t *client = asked_client(admin);
    Py_ssize_t count = PyList_Size(topics);
    const char **names = client == NULL ? NULL : calloc((size_t)count + 1, sizeof *names);
    int usable = names != NULL;
    for (Py_ssize_t i = 0; usable && i < count; i++)
        usable = (names[i] = PyUnicode_AsUTF8AndSize(PyList_GetItem(topics, i), NULL)) != NULL;
    void *subject = usable ? rd.topics_named(names, (size_t)count) : NULL; /* has copies of the names */
    free(names);
    if (subject == NULL)
        return PyErr_Occurred() ? NULL : PyErr_NoMemory();
    Asked asked = {subject, NULL, NULL};
    Py_BEGIN_ALLOW_THREADS
    ask_unlocked(client, rd.describe, &asked, 1, -1, timeout_ms);
    rd.topics_destroy(subject);
    Py_END_ALLOW_THREADS
    PyObject *found = asked.event == NULL ? Py_NewRef(Py_None) : described_event(asked.event);
    if (asked.event != NULL)
        rd.event_destroy(asked.event);
    return found;
}

/* Adds a topic-partition: a tuple (topic, number). at: which offset is asked for. -1 and an exception when it is none. */
static int add_partition(void *partitions, PyObject *one, long long at)
{
    const char *topic;
    int number;
    if (!PyArg_ParseTuple(one, "si", &topic, &number))
        return -1;
    rd.partitions_add(partitions, topic, number)->offset = at;
    return 0;
}

/* Of every `apart`th of `keys` from `first` on: what was answered, or code and text of the request that failed. Those that
 * had no answer are absent. -1 when memory is short. */
static int add_answer(PyObject *found, PyObject *keys, Py_ssize_t first, Py_ssize_t apart, rd_kafka_event_t *event)
{
    if (event == NULL)
        return 0;
    if (rd.event_error(event) == 0 && rd.event_listed(event) != NULL)
        return add_listed(found, event);
    PyObject *failed = Py_BuildValue("(iiiz)", rd.event_error(event), -1, -1, rd.event_error_text(event));
    int added = failed == NULL ? -1 : 0;
    for (Py_ssize_t i = first; added == 0 && i < PyList_Size(keys); i += apart)
        added = PyDict_SetItem(found, PyList_GetItem(keys, i), failed);
    Py_XDECREF(failed);
    return added;
}

/* Offsets of topic-partitions, as of `add_listed`. at: a timestamp, or what librdkafka has for the earliest and the
 * latest. librdkafka merges the answers of a request in quadratic time, so that several requests take less. A topic's
 * are in all of them: a request about nothing but topics that are gone does not say so. */
static PyObject *list_offsets(PyObject *Py_UNUSED(module), PyObject *args)
{
    enum { PIECE = 100 };
    PyObject *admin, *keys;
    long long at;
    int isolation, timeout_ms;
    if (!PyArg_ParseTuple(args, "OO!Lii", &admin, &PyList_Type, &keys, &at, &isolation, &timeout_ms))
        return NULL;
    rd_kafka_t *client = asked_client(admin);
    if (client == NULL)
        return NULL;
    Py_ssize_t count = PyList_Size(keys), pieces = (count + PIECE - 1) / PIECE;
    Asked *asked = calloc((size_t)pieces + 1, sizeof *asked);
    PyObject *found = asked == NULL ? PyErr_NoMemory() : PyDict_New();
    int usable = found != NULL;
    for (Py_ssize_t i = 0; usable && i < count; i++) {
        Asked *one = &asked[i % pieces];
        if (one->subject == NULL)
            one->subject = rd.partitions_new(PIECE);
        usable = add_partition(one->subject, PyList_GetItem(keys, i), at) == 0;
    }
    if (usable) {
        Py_BEGIN_ALLOW_THREADS
        ask_unlocked(client, rd.list_offsets, asked, (size_t)pieces, isolation, timeout_ms);
        Py_END_ALLOW_THREADS
    }
    for (Py_ssize_t i = 0; asked != NULL && i < pieces; i++) {
        usable = usable && add_answer(found, keys, i, pieces, asked[i].event) == 0;
        if (asked[i].event != NULL)
            rd.event_destroy(asked[i].event);
        if (asked[i].subject != NULL)
            rd.partitions_destroy(asked[i].subject);
    }
    free(asked);
    if (!usable)
        Py_CLEAR(found);
    return found;
}

static PyMethodDef functions[] = {
    {"describe", describe, METH_VARARGS, "describe(admin, topics, timeout_ms): what the cluster says of topics"},
    {"list_offsets", list_offsets, METH_VARARGS, "list_offsets(admin, keys, at, isolation, timeout_ms): of topic-partitions"},
    {"load", load, METH_VARARGS, "load(path): librdkafka's version; -1 when something is not there"},
    {"client_name", client_name, METH_O, "client_name(consumer): as librdkafka has it, or None"},
    {NULL, NULL, 0, NULL},
};

static int add_types(PyObject *module)
{
    PyObject *queue = PyType_FromSpec(&queue_spec);
    batch_type = (PyTypeObject *)PyType_FromSpec(&batch_spec); /* kept for as long as the process lives */
    int added = queue == NULL || batch_type == NULL ? -1 : PyModule_AddObjectRef(module, "Queue", queue);
    if (added == 0)
        added = PyModule_AddObjectRef(module, "Batch", (PyObject *)batch_type);
    Py_XDECREF(queue);
    return added;
}

static PyModuleDef_Slot module_slots[] = {{Py_mod_exec, add_types}, {0, NULL}};
static struct PyModuleDef module = {
    PyModuleDef_HEAD_INIT, "_native_reader", "Records from librdkafka's queues into flat buffers.", 0, functions, module_slots, NULL, NULL, NULL,
};

PyMODINIT_FUNC PyInit__native_reader(void) { return PyModuleDef_Init(&module); }
