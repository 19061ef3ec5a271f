// Reads parts of output files for `gctl logs`, as the user who asks: in a short-lived child process
// with that user's ids, so that neither a permission nor a slow file server is ever ours.
//
// Only regular files are read. Never blocks the loop; a read that takes longer than kReadLimit is
// given up. At most kMaxReads run at a time, of them kMaxReadsOfUser for one user: who stops the
// child, or reads from a file server that is gone, keeps nobody else from theirs.
#pragma once

#include <functional>
#include <map>
#include <string>

#include "common/loop/loop.h"
#include "common/proto/node_relay.h"
#include "noded/machine/files.h"

namespace gantry::node {

inline constexpr std::uint32_t kMaxLogBytes = 1u << 20;  // of one answer
inline constexpr std::size_t kMaxReads = 32;
inline constexpr std::size_t kMaxReadsOfUser = 4;
inline constexpr Duration kReadLimit = seconds(10);

class LogReader {
 public:
  // `done` is called once for every read(), later or at once.
  LogReader(loop::Loop& loop, std::string node, std::function<void(proto::FetchLogReply&&)> done);
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
  std::function<void(proto::FetchLogReply&&)> done_;
  std::map<std::uint64_t, OneRead> reads_;
  std::uint64_t next_ = 1;
};

}  // namespace gantry::node
