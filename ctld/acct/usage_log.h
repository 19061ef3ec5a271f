// The append-only file of usage events: a line of JSON each, in the order of the journal. Every one
// is in it at least once, and after a restart it goes on behind the last: the store's records are
// only moved on (fold) once the file is durable up to there, so what is missing is told again.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "common/result.h"
#include "ctld/core/usage_event.h"

namespace gantry::acct {

class UsageLog {
 public:
  // Makes the file, or finds its last whole line; half a line that a crash left is cut off.
  static Result<std::unique_ptr<UsageLog>> open(const std::string& path);
  ~UsageLog();
  UsageLog(const UsageLog&) = delete;
  UsageLog& operator=(const UsageLog&) = delete;

  // Those that are not in it yet. Not durable before sync().
  Result<void> append(const std::vector<core::UsageEvent>& events);
  Result<void> sync();

 private:
  UsageLog(int fd, std::string path) : fd_(fd), path_(std::move(path)) {}
  Result<void> find_end();

  int fd_;
  std::string path_;
  std::uint64_t last_ = 0;  // number of the last event in it
  bool dirty_ = false;
};

// Lines of the file behind event `after`, at most `limit` octets, of one tenant or ("") of all.
Result<std::string> usage_lines(const std::string& path, std::uint64_t after,
                                const std::string& tenant, std::size_t limit);

}  // namespace gantry::acct
