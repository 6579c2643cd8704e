/* Stands between a process and its disk (LD_PRELOAD). Below the folder DISK_ROOT,
 *
 *   - every change of a file or of a name and every sync is appended to the file DISK_JOURNAL, in the order in
 *     which they happened: what was on the disk at any moment can be worked out from it;
 *   - while the file DISK_FAIL exists, every sync fails with EIO and writes nothing;
 *   - while the file DISK_KILL exists, a sync ends the process as SIGKILL does, after it was recorded: no other
 *     change is under way then, so the journal tells all of them.
 *
 * Shared memory (-shm) and locks are left out: they do not outlive a loss of power. Calls go to the kernel
 * directly, and descriptors of other files pass through without a lock, also in a child that is just being
 * started. */

#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#define FILES_MAX 4096
#define NAME_MAX_BYTES 64

/* Written to the journal before its name, its other name and its data; little endian, as in disk/journal.rs. */
struct record {
    uint32_t kind;
    uint32_t name_bytes;
    uint32_t other_bytes;
    int32_t error;
    uint64_t offset;
    uint64_t data_bytes;
};

enum { CREATED = 1, CUT = 2, WRITTEN = 3, SYNCED = 4, REMOVED = 5, RENAMED = 6 };

static const char *root, *failing, *killing;
static int journal = -1;
static pthread_mutex_t order = PTHREAD_MUTEX_INITIALIZER;
/* The name below the root for each descriptor of a file that is watched, "." for the root; empty for others. */
static char names[FILES_MAX][NAME_MAX_BYTES];

__attribute__((constructor)) static void begin(void) {
    root = getenv("DISK_ROOT");
    failing = getenv("DISK_FAIL");
    killing = getenv("DISK_KILL");
    const char *path = getenv("DISK_JOURNAL");
    if (path != NULL)
        journal = syscall(SYS_openat, AT_FDCWD, path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
}

static int ends_with(const char *text, const char *end) {
    size_t a = strlen(text), b = strlen(end);
    return a >= b && strcmp(text + a - b, end) == 0;
}

/* The name of a path below the root, or NULL if it is not watched. */
static const char *watched(const char *path) {
    if (root == NULL || path == NULL) return NULL;
    size_t length = strlen(root);
    if (strncmp(path, root, length) != 0) return NULL;
    path += length;
    if (*path == '\0') return ".";
    if (*path++ != '/') return NULL;
    if (*path == '\0') return ".";
    if (strchr(path, '/') != NULL || strlen(path) >= NAME_MAX_BYTES) return NULL;
    if (ends_with(path, "-shm") || ends_with(path, ".lock")) return NULL;
    return path;
}

static const char *name_of(int fd) {
    return fd >= 0 && fd < FILES_MAX && names[fd][0] != '\0' ? names[fd] : NULL;
}

static void record(int kind, const char *name, const char *other, int error, uint64_t offset, const void *data,
                   size_t bytes) {
    if (journal < 0) return;
    struct record head = {kind, strlen(name), strlen(other), error, offset, bytes};
    struct iovec parts[] = {
        {&head, sizeof head},
        {(void *)name, head.name_bytes},
        {(void *)other, head.other_bytes},
        {(void *)data, bytes},
    };
    ssize_t all = sizeof head + head.name_bytes + head.other_bytes + bytes;
    /* A journal with a gap proves nothing. */
    if (syscall(SYS_writev, journal, parts, 4) != all) abort();
}

static int open_watched(const char *name, const char *path, int flags, mode_t mode) {
    struct stat about;
    pthread_mutex_lock(&order);
    int is_new = (flags & O_CREAT) && stat(path, &about) != 0;
    int fd = syscall(SYS_openat, AT_FDCWD, path, flags, mode);
    int error = errno;
    if (fd >= 0) {
        if (fd >= FILES_MAX) abort();
        strcpy(names[fd], name);
        if (is_new)
            record(CREATED, name, "", 0, 0, NULL, 0);
        else if (flags & O_TRUNC)
            record(CUT, name, "", 0, 0, NULL, 0);
    }
    pthread_mutex_unlock(&order);
    errno = error;
    return fd;
}

static int open_any(int directory, const char *path, int flags, mode_t mode) {
    const char *name = watched(path);
    if (name != NULL) return open_watched(name, path, flags, mode);
    return syscall(SYS_openat, directory, path, flags, mode);
}

#define MODE(flags, mode)                              \
    mode_t mode = 0;                                   \
    if ((flags) & (O_CREAT | __O_TMPFILE)) {           \
        va_list more;                                  \
        va_start(more, flags);                         \
        mode = va_arg(more, int);                      \
        va_end(more);                                  \
    }

int open(const char *path, int flags, ...) {
    MODE(flags, mode)
    return open_any(AT_FDCWD, path, flags, mode);
}
int open64(const char *path, int flags, ...) {
    MODE(flags, mode)
    return open_any(AT_FDCWD, path, flags, mode);
}
int openat(int directory, const char *path, int flags, ...) {
    MODE(flags, mode)
    return open_any(directory, path, flags, mode);
}
int openat64(int directory, const char *path, int flags, ...) {
    MODE(flags, mode)
    return open_any(directory, path, flags, mode);
}
int creat(const char *path, mode_t mode) { return open_any(AT_FDCWD, path, O_CREAT | O_WRONLY | O_TRUNC, mode); }

int close(int fd) {
    if (fd >= 0 && fd < FILES_MAX) names[fd][0] = '\0';
    return syscall(SYS_close, fd);
}

/* Writes at an offset, or where the descriptor stands. */
static ssize_t write_watched(int fd, const char *name, const void *data, size_t bytes, off64_t offset, int at) {
    pthread_mutex_lock(&order);
    if (!at) offset = lseek64(fd, 0, SEEK_CUR);
    ssize_t done = at ? syscall(SYS_pwrite64, fd, data, bytes, offset) : syscall(SYS_write, fd, data, bytes);
    int error = errno;
    if (done > 0) record(WRITTEN, name, "", 0, offset, data, done);
    pthread_mutex_unlock(&order);
    errno = error;
    return done;
}

ssize_t write(int fd, const void *data, size_t bytes) {
    const char *name = name_of(fd);
    if (name != NULL) return write_watched(fd, name, data, bytes, 0, 0);
    return syscall(SYS_write, fd, data, bytes);
}
ssize_t pwrite64(int fd, const void *data, size_t bytes, off64_t offset) {
    const char *name = name_of(fd);
    if (name != NULL) return write_watched(fd, name, data, bytes, offset, 1);
    return syscall(SYS_pwrite64, fd, data, bytes, offset);
}
ssize_t pwrite(int fd, const void *data, size_t bytes, off_t offset) { return pwrite64(fd, data, bytes, offset); }

int ftruncate64(int fd, off64_t length) {
    const char *name = name_of(fd);
    if (name == NULL) return syscall(SYS_ftruncate, fd, length);
    pthread_mutex_lock(&order);
    int done = syscall(SYS_ftruncate, fd, length);
    int error = errno;
    if (done == 0) record(CUT, name, "", 0, length, NULL, 0);
    pthread_mutex_unlock(&order);
    errno = error;
    return done;
}
int ftruncate(int fd, off_t length) { return ftruncate64(fd, length); }

static int is_there(const char *path) {
    return path != NULL && syscall(SYS_faccessat, AT_FDCWD, path, F_OK) == 0;
}

static int sync_any(long call, int fd) {
    const char *name = name_of(fd);
    if (name == NULL) return syscall(call, fd);
    pthread_mutex_lock(&order);
    int fails = is_there(failing);
    int done = fails ? -1 : syscall(call, fd);
    int error = fails ? EIO : errno;
    record(SYNCED, name, "", done == 0 ? 0 : error, 0, NULL, 0);
    if (is_there(killing)) kill(getpid(), SIGKILL);
    pthread_mutex_unlock(&order);
    errno = error;
    return done;
}

int fsync(int fd) { return sync_any(SYS_fsync, fd); }
int fdatasync(int fd) { return sync_any(SYS_fdatasync, fd); }

static int remove_any(int directory, const char *path, int flags) {
    const char *name = watched(path);
    if (name == NULL) return syscall(SYS_unlinkat, directory, path, flags);
    pthread_mutex_lock(&order);
    int done = syscall(SYS_unlinkat, directory, path, flags);
    int error = errno;
    if (done == 0) record(REMOVED, name, "", 0, 0, NULL, 0);
    pthread_mutex_unlock(&order);
    errno = error;
    return done;
}

int unlink(const char *path) { return remove_any(AT_FDCWD, path, 0); }
int unlinkat(int directory, const char *path, int flags) { return remove_any(directory, path, flags); }

int rename(const char *from, const char *to) {
    const char *name = watched(from), *other = watched(to);
    if (name == NULL || other == NULL) return syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, 0);
    pthread_mutex_lock(&order);
    int done = syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, 0);
    int error = errno;
    if (done == 0) record(RENAMED, name, other, 0, 0, NULL, 0);
    pthread_mutex_unlock(&order);
    errno = error;
    return done;
}
