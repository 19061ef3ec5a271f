// Reads parts of output files for `gctl logs`. A short-lived child process with the asking user's
// ids reads them, so neither permissions nor a slow file server can stop the daemon.
//
// Only regular files are read. It never blocks the loop; a read that takes longer than kReadLimit
// is given up. At most kMaxReads run at a time, and at most kMaxReadsOfUser of them for one user.
// So a user who stops the child, or reads from a file server that is gone, keeps no other user
// waiting.
#pragma once

#include <functional>
#include <map>
#include <string>

#include "common/loop/loop.h"
#include "common/proto/node_relay.h"
#include "noded/machine/files.h"

namespace gantry::node {

inline constexpr std::uint32_t kMaxLogBytes = 1u << 20;  // bytes of one answer
inline constexpr std::size_t kMaxReads = 32;
inline constexpr std::size_t kMaxReadsOfUser = 4;
inline constexpr Duration kReadLimit = seconds(10);

class LogReader {
 public:
  // `done` is called once for every read(), at once or later. `storage`: noded.storage, of which a
  // job's owner reads only what the job may see.
  LogReader(loop::Loop& loop, std::string node, std::vector<std::string> storage,
            std::function<void(proto::FetchLogReply&&)> done);
  ~LogReader();

  void read(const proto::FetchLog& fetch);

 private:
  struct OneRead {
    proto::FetchLog fetch;
    Fd data;
    pid_t pid = 0;
    bool given_up = false;
    loop::Watch ended;
    loop::Watch limit;
  };
  void finished(std::uint64_t number, loop::ProcessEnd end);
  void answer(std::uint64_t ticket, Bytes data, std::string error);

  loop::Loop& loop_;
  std::string node_;
  std::vector<std::string> storage_;
  std::function<void(proto::FetchLogReply&&)> done_;
  std::map<std::uint64_t, OneRead> reads_;
  std::uint64_t next_ = 1;
};

}  // namespace gantry::node
