// A library that is loaded before libc (LD_PRELOAD). It records every write and sync of files
// called data.mdb, and everything that is written to the descriptor kAckFd, in order. The recording
// goes to the file that GANTRY_RECORD names. The calls still go to the system unchanged.
// test_power_loss.cc replays prefixes of the recording.
#include "write_recorder.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

namespace {

using gantry::store::kAckFd;
using gantry::store::Recorded;
using gantry::store::RecordedOp;

int log_fd = -2;  // -2: the log is not opened yet

void put(const void* data, std::size_t size) {
  if (::syscall(SYS_write, log_fd, data, size) != static_cast<long>(size)) ::abort();
}

bool recording() {
  if (log_fd == -2) {
    const char* path = ::getenv("GANTRY_RECORD");
    log_fd = path == nullptr ? -1
                             : static_cast<int>(::syscall(SYS_openat, AT_FDCWD, path,
                                                          O_WRONLY | O_CREAT | O_APPEND, 0600));
  }
  return log_fd >= 0;
}

bool is_data_file(int fd) {
  char link[64] = "/proc/self/fd/";
  int n = 14;
  if (fd >= 100) link[n++] = static_cast<char>('0' + fd / 100 % 10);
  if (fd >= 10) link[n++] = static_cast<char>('0' + fd / 10 % 10);
  link[n++] = static_cast<char>('0' + fd % 10);
  link[n] = '\0';
  char path[4096];
  ssize_t size = ::readlink(link, path, sizeof path);
  constexpr char kName[] = "/data.mdb";
  constexpr std::size_t kSize = sizeof kName - 1;
  return size >= static_cast<ssize_t>(kSize) && std::memcmp(path + size - kSize, kName, kSize) == 0;
}

void record(RecordedOp op, std::uint64_t offset, const void* data, std::size_t size) {
  Recorded head{op, {}, static_cast<std::uint32_t>(size), offset};
  put(&head, sizeof head);
  if (size > 0) put(data, size);
}

void record_write(int fd, const void* data, std::size_t size, off_t offset) {
  if (!recording()) return;
  if (fd == kAckFd) {
    record(RecordedOp::ack, 0, data, size);
  } else if (is_data_file(fd)) {
    bool synced = (::fcntl(fd, F_GETFL) & O_DSYNC) != 0;
    record(synced ? RecordedOp::synced_write : RecordedOp::write,
           static_cast<std::uint64_t>(offset), data, size);
  }
}

void record_sync(int fd) {
  if (recording() && is_data_file(fd)) record(RecordedOp::sync, 0, nullptr, 0);
}

void record_vector(int fd, const iovec* parts, int count, off_t offset) {
  for (int i = 0; i < count; ++i) {
    record_write(fd, parts[i].iov_base, parts[i].iov_len, offset);
    offset += static_cast<off_t>(parts[i].iov_len);
  }
}

}  // namespace

// A write is recorded before it is made, and a sync after it has returned.
extern "C" {

ssize_t write(int fd, const void* data, size_t size) {
  record_write(fd, data, size, fd == kAckFd ? 0 : ::lseek(fd, 0, SEEK_CUR));
  return ::syscall(SYS_write, fd, data, size);
}
ssize_t pwrite(int fd, const void* data, size_t size, off_t offset) {
  record_write(fd, data, size, offset);
  return ::syscall(SYS_pwrite64, fd, data, size, offset);
}
ssize_t pwrite64(int fd, const void* data, size_t size, off64_t offset) {
  return pwrite(fd, data, size, offset);
}
ssize_t writev(int fd, const iovec* parts, int count) {
  record_vector(fd, parts, count, ::lseek(fd, 0, SEEK_CUR));
  return ::syscall(SYS_writev, fd, parts, count);
}
ssize_t pwritev(int fd, const iovec* parts, int count, off_t offset) {
  record_vector(fd, parts, count, offset);
  return ::syscall(SYS_pwritev, fd, parts, count, offset, 0);
}
ssize_t pwritev64(int fd, const iovec* parts, int count, off64_t offset) {
  return pwritev(fd, parts, count, offset);
}
int fdatasync(int fd) {
  int rc = static_cast<int>(::syscall(SYS_fdatasync, fd));
  if (rc == 0) record_sync(fd);
  return rc;
}
int fsync(int fd) {
  int rc = static_cast<int>(::syscall(SYS_fsync, fd));
  if (rc == 0) record_sync(fd);
  return rc;
}
}
