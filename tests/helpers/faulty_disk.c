/* Below SQLite: the n-th write to a file named *.db* fails or is cut short, and all are recorded.
 *
 *   fault_arm(n, kind)   from now on the n-th call fails: 0 I/O error, 1 disk full, 2 short write,
 *                        3 fsync fails; returns nothing
 *   fault_fired()        whether it has happened
 *   fault_record(path)   append every call to this file; an empty path stops it
 *   fault_note(number)   add a mark to the record
 *   fault_locks(error)   from now on no file can be locked; 0: again
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

static int left = 0, kind = 0, fired = 0, record = -1;

void fault_arm(int n, int k) { left = n; kind = k; fired = 0; }
int fault_fired(void) { return fired; }

static ssize_t plain_write(int fd, const void *data, size_t size) {
    static ssize_t (*real)(int, const void *, size_t);
    if (!real) real = dlsym(RTLD_NEXT, "write");
    return real(fd, data, size);
}

static void add(char what, const char *name, int64_t at, const void *data, int64_t size) {
    if (record < 0) return;
    int64_t head[3] = {what, at, size};
    char path[256] = {0};
    strncpy(path, name, 255);
    plain_write(record, head, sizeof head);
    plain_write(record, path, sizeof path);
    if (data) plain_write(record, data, size);
}

void fault_record(const char *path) {
    if (record >= 0) close(record);
    record = *path ? open(path, O_CREAT | O_WRONLY | O_APPEND, 0600) : -1;
}
void fault_note(int number) { add('n', "", number, 0, 0); }

/* the name of an open file if it belongs to a journal; folders count when they are synced */
static int named(int fd, char *name) {
    char link[64];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t n = readlink(link, name, 255);
    if (n < 0) return 0;
    name[n] = 0;
    return strstr(name, ".db") != 0;
}

static int fails(void) { return left > 0 && --left == 0 ? (fired = 1) : 0; }

static ssize_t put(int fd, const void *data, size_t size, off_t at, int placed) {
    static ssize_t (*real)(int, const void *, size_t, off_t);
    char name[256];
    if (!real) real = dlsym(RTLD_NEXT, "pwrite");
    if (fd != record && named(fd, name)) {
        if (!placed) at = lseek(fd, 0, SEEK_CUR);
        if (kind < 3 && fails()) {
            if (kind == 2 && size > 1) {
                ssize_t done = placed ? real(fd, data, size / 2, at) : plain_write(fd, data, size / 2);
                add('w', name, at, data, done);
                left = 1; /* the rest does not fit either */
                kind = 1;
                return done;
            }
            errno = kind == 0 ? EIO : ENOSPC;
            return -1;
        }
        add('w', name, at, data, size);
    }
    return placed ? real(fd, data, size, at) : plain_write(fd, data, size);
}

ssize_t pwrite(int fd, const void *data, size_t size, off_t at) { return put(fd, data, size, at, 1); }
ssize_t pwrite64(int fd, const void *data, size_t size, off_t at) { return put(fd, data, size, at, 1); }
ssize_t write(int fd, const void *data, size_t size) { return put(fd, data, size, 0, 0); }

static int sync_with(const char *call, int fd) {
    char name[256] = {0};
    int ours = named(fd, name);
    if (ours && kind == 3 && fails()) { errno = EIO; return -1; }
    add(ours ? 's' : 'd', name, 0, 0, 0); /* d: perhaps the folder */
    return ((int (*)(int))dlsym(RTLD_NEXT, call))(fd);
}
int fsync(int fd) { return sync_with("fsync", fd); }
int fdatasync(int fd) { return sync_with("fdatasync", fd); }

int ftruncate64(int fd, off_t size) {
    char name[256];
    if (named(fd, name)) {
        if (kind < 3 && fails()) { errno = EIO; return -1; }
        add('t', name, size, 0, 0);
    }
    return ((int (*)(int, off_t))dlsym(RTLD_NEXT, "ftruncate64"))(fd, size);
}
int ftruncate(int fd, off_t size) { return ftruncate64(fd, size); }

int unlink(const char *path) {
    if (strstr(path, ".db")) add('u', path, 0, 0, 0);
    return ((int (*)(const char *))dlsym(RTLD_NEXT, "unlink"))(path);
}

static int no_locks = 0;
void fault_locks(int error) { no_locks = error; }

static int control(int fd, int what, void *how) {
    static int (*real)(int, int, ...);
    char name[256];
    if (!real) real = dlsym(RTLD_NEXT, "fcntl64");
    if (!real) real = dlsym(RTLD_NEXT, "fcntl");
    if (no_locks && (what == F_SETLK || what == F_SETLKW || what == F_GETLK) && named(fd, name)) {
        errno = no_locks;
        return -1;
    }
    return real(fd, what, how);
}
#define CONTROL(name) \
    int name(int fd, int what, ...) { \
        va_list more; \
        va_start(more, what); \
        void *how = va_arg(more, void *); \
        va_end(more); \
        return control(fd, what, how); \
    }
CONTROL(fcntl)
CONTROL(fcntl64)
