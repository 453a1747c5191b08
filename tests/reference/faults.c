/* Loaded before libc (LD_PRELOAD): lets the calls that write files below a folder fail or end the process, or notes them so that a power cut at any
   of them can be played. `fault_arm` and `fault_note` are called from Python. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define FDS 4096
#define REAL(name) ({ static __typeof__(&name) real; if (!real) real = (__typeof__(&name))dlsym(RTLD_NEXT, #name); real; })

static char under[PATH_MAX];
static char names[FDS][PATH_MAX];
static long calls, fail_at = -1;
static int fail_with, fail_on, notes = -1;

void fault_arm(const char *folder, long at, int error, int on) {
  snprintf(under, sizeof under, "%s", folder);
  calls = 0, fail_at = at, fail_with = error, fail_on = on;
}

long fault_calls(void) { return calls; }

void fault_note(int fd) { notes = fd; }

static int inside(const char *path) { return *under && !strncmp(path, under, strlen(under)); }

static const char *of(int fd) { return fd >= 0 && fd < FDS && *names[fd] && inside(names[fd]) ? names[fd] : NULL; }

static int fails(void) {
  long now = calls++;
  if (fail_at < 0 || now < fail_at || (now > fail_at && !fail_on)) return 0;
  if (!fail_with) kill(getpid(), SIGKILL);
  errno = fail_with;
  return 1;
}

static void put(const void *data, size_t size) { syscall(SYS_write, notes, data, size); }

static void text(const char *path) {
  uint32_t size = strlen(path);
  put(&size, sizeof size), put(path, size);
}

static void note(char what, const char *path, uint64_t at, const void *data, uint32_t size) {
  if (notes < 0) return;
  int before = errno;
  put(&what, 1), text(path), put(&at, sizeof at), put(&size, sizeof size);
  if (size) put(data, size);
  errno = before;
}

static const char *full(int folder, const char *path, char *place) {
  if (*path == '/' || folder == AT_FDCWD) return path;
  const char *name = folder >= 0 && folder < FDS ? names[folder] : "";
  snprintf(place, PATH_MAX, "%.2000s/%.2000s", name, path);
  return place;
}

static int opened(const char *path, int flags, int fd, int there) {
  if (fd >= 0 && fd < FDS) {
    snprintf(names[fd], PATH_MAX, "%s", path);
    if (inside(path) && (flags & O_CREAT) && !there) note('O', path, 0, NULL, 0);
    if (inside(path) && (flags & O_TRUNC)) note('T', path, 0, NULL, 0);
  }
  return fd;
}

#define OPENING(name)                                                                 \
  int name(const char *path, int flags, ...) {                                        \
    va_list rest;                                                                     \
    va_start(rest, flags);                                                            \
    mode_t mode = va_arg(rest, mode_t);                                               \
    va_end(rest);                                                                     \
    int there = !access(path, F_OK);                                                  \
    if (inside(path) && (flags & (O_CREAT | O_WRONLY | O_RDWR)) && fails()) return -1; \
    return opened(path, flags, REAL(name)(path, flags, mode), there);                 \
  }
OPENING(open)
OPENING(open64)

#define OPENING_AT(name)                                                              \
  int name(int folder, const char *part, int flags, ...) {                            \
    va_list rest;                                                                     \
    va_start(rest, flags);                                                            \
    mode_t mode = va_arg(rest, mode_t);                                               \
    va_end(rest);                                                                     \
    char place[PATH_MAX];                                                             \
    const char *path = full(folder, part, place);                                     \
    int there = !access(path, F_OK);                                                  \
    if (inside(path) && (flags & (O_CREAT | O_WRONLY | O_RDWR)) && fails()) return -1; \
    return opened(path, flags, REAL(name)(folder, part, flags, mode), there);         \
  }
OPENING_AT(openat)
OPENING_AT(openat64)

int close(int fd) {
  if (fd >= 0 && fd < FDS) *names[fd] = 0;
  return REAL(close)(fd);
}

#define WRITING(name, type)                                          \
  ssize_t name(int fd, const void *data, size_t size, type at) {     \
    const char *path = of(fd);                                       \
    if (path && fails()) return -1;                                  \
    ssize_t done = REAL(name)(fd, data, size, at);                   \
    if (path && done > 0) note('W', path, at, data, done);           \
    return done;                                                     \
  }
WRITING(pwrite, off_t)
WRITING(pwrite64, off64_t)

ssize_t write(int fd, const void *data, size_t size) {
  const char *path = of(fd);
  if (path && fails()) return -1;
  uint64_t at = path ? lseek(fd, 0, SEEK_CUR) : 0;
  ssize_t done = REAL(write)(fd, data, size);
  if (path && done > 0) note('W', path, at, data, done);
  return done;
}

#define READING(name, type)                                \
  ssize_t name(int fd, void *data, size_t size, type at) { \
    if (of(fd) && fails()) return -1;                      \
    return REAL(name)(fd, data, size, at);                 \
  }
READING(pread, off_t)
READING(pread64, off64_t)

#define SYNCING(name)                       \
  int name(int fd) {                        \
    const char *path = of(fd);              \
    if (path && fails()) return -1;         \
    int done = REAL(name)(fd);              \
    if (path) note('S', path, 0, NULL, 0);  \
    return done;                            \
  }
SYNCING(fsync)
SYNCING(fdatasync)

#define CUTTING(name, type)                  \
  int name(int fd, type size) {              \
    const char *path = of(fd);               \
    if (path && fails()) return -1;          \
    int done = REAL(name)(fd, size);         \
    if (path) note('T', path, size, NULL, 0); \
    return done;                             \
  }
CUTTING(ftruncate, off_t)
CUTTING(ftruncate64, off64_t)

#define NAMING(name, what)                                            \
  int name(const char *old, const char *new) {                        \
    if (inside(new) && fails()) return -1;                            \
    int done = REAL(name)(old, new);                                  \
    if (inside(new) && !done) note(what, old, 0, new, strlen(new));   \
    return done;                                                      \
  }
NAMING(rename, 'R')
NAMING(link, 'L')

int linkat(int from, const char *old, int to, const char *new, int flags) {
  char one[PATH_MAX], two[PATH_MAX];
  const char *before = full(from, old, one), *after = full(to, new, two);
  if (inside(after) && fails()) return -1;
  int done = REAL(linkat)(from, old, to, new, flags);
  if (inside(after) && !done) note('L', before, 0, after, strlen(after));
  return done;
}

int unlink(const char *path) {
  int done = REAL(unlink)(path);
  if (inside(path) && !done) note('U', path, 0, NULL, 0);
  return done;
}

int unlinkat(int folder, const char *part, int flags) {
  char place[PATH_MAX];
  const char *path = full(folder, part, place);
  int done = REAL(unlinkat)(folder, part, flags);
  if (inside(path) && !done) note('U', path, 0, NULL, 0);
  return done;
}

int rmdir(const char *path) {
  int done = REAL(rmdir)(path);
  if (inside(path) && !done) note('U', path, 0, NULL, 0);
  return done;
}

int mkdir(const char *path, mode_t mode) {
  if (inside(path) && fails()) return -1;
  int done = REAL(mkdir)(path, mode);
  if (inside(path) && !done) note('D', path, 0, NULL, 0);
  return done;
}
