// The append-only file of usage events: one line of JSON for each, in the order of the journal.
// Every event is in it at least once. Changes are folded into the store's records only when the
// file is durable up to the same event, so after a restart the events that are missing are appended
// again.
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
  // Creates the file, or finds its last complete line. An incomplete line after a crash is cut off.
  static Result<std::unique_ptr<UsageLog>> open(const std::string& path);
  ~UsageLog();
  UsageLog(const UsageLog&) = delete;
  UsageLog& operator=(const UsageLog&) = delete;

  // Appends the events that are not in the file yet. They are durable only after sync().
  Result<void> append(const std::vector<core::UsageEvent>& events);
  Result<void> sync();

 private:
  UsageLog(int fd, std::string path) : fd_(fd), path_(std::move(path)) {}
  Result<void> find_end();

  int fd_;
  std::string path_;
  std::uint64_t last_ = 0;  // number of the last event in the file
  bool dirty_ = false;
};

// Lines of the file after event `after`, at most `limit` octets, for one tenant or ("") for all.
Result<std::string> usage_lines(const std::string& path, std::uint64_t after,
                                const std::string& tenant, std::size_t limit);

}  // namespace gantry::acct
