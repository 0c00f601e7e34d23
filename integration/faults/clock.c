/* Adds an offset to the time of day of every process that is started with this library in LD_PRELOAD, as if the
   machine's clock were stepped: CLOCK_STEP_FILE names a file of eight bytes, nanoseconds. Clocks that do not go by the
   time of day are left alone, and waits until a time of day end when they should. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <threads.h>
#include <time.h>
#include <unistd.h>

static volatile int64_t *offset;

__attribute__((constructor)) static void begin(void) {
  const char *path = getenv("CLOCK_STEP_FILE");
  int file = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
  void *found = file < 0 ? MAP_FAILED : mmap(NULL, 8, PROT_READ, MAP_SHARED, file, 0);
  if (file >= 0) close(file);
  if (found != MAP_FAILED) offset = found;
}

static void add(struct timespec *at, int64_t more) {
  int64_t total = (int64_t)at->tv_sec * 1000000000 + at->tv_nsec + more;
  at->tv_sec = total / 1000000000;
  at->tv_nsec = total % 1000000000;
}

int clock_gettime(clockid_t which, struct timespec *at) {
  static int (*real)(clockid_t, struct timespec *);
  if (!real) real = dlsym(RTLD_NEXT, "clock_gettime");
  int result = real(which, at);
  if (result == 0 && offset && (which == CLOCK_REALTIME || which == CLOCK_REALTIME_COARSE)) add(at, *offset);
  return result;
}

int gettimeofday(struct timeval *at, void *zone) {
  struct timespec now;
  (void)zone;
  clock_gettime(CLOCK_REALTIME, &now);
  at->tv_sec = now.tv_sec;
  at->tv_usec = now.tv_nsec / 1000;
  return 0;
}

time_t time(time_t *at) {
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  if (at) *at = now.tv_sec;
  return now.tv_sec;
}

int timespec_get(struct timespec *at, int base) {
  if (base != TIME_UTC) return 0;
  clock_gettime(CLOCK_REALTIME, at);
  return base;
}

/* A deadline beyond 2001 is of the time of day; monotonic ones are the machine's uptime. */
int pthread_cond_timedwait(pthread_cond_t *cond, pthread_mutex_t *mutex, const struct timespec *until) {
  static int (*real)(pthread_cond_t *, pthread_mutex_t *, const struct timespec *);
  if (!real) real = dlvsym(RTLD_NEXT, "pthread_cond_timedwait", "GLIBC_2.3.2");
  if (!real) real = dlsym(RTLD_NEXT, "pthread_cond_timedwait");
  struct timespec meant = *until;
  if (offset && meant.tv_sec > 1000000000) add(&meant, -*offset);
  return real(cond, mutex, &meant);
}

int cnd_timedwait(cnd_t *cond, mtx_t *mutex, const struct timespec *until) {
  static int (*real)(cnd_t *, mtx_t *, const struct timespec *);
  if (!real) real = dlsym(RTLD_NEXT, "cnd_timedwait");
  struct timespec meant = *until;
  if (offset) add(&meant, -*offset);
  return real(cond, mutex, &meant);
}

int sem_timedwait(sem_t *semaphore, const struct timespec *until) {
  static int (*real)(sem_t *, const struct timespec *);
  if (!real) real = dlsym(RTLD_NEXT, "sem_timedwait");
  struct timespec meant = *until;
  if (offset) add(&meant, -*offset);
  return real(semaphore, &meant);
}
